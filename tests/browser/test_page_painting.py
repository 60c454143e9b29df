"""What is on the screen before the scripts of a page have run, and what they make of it."""

from __future__ import annotations

import pytest
from tests.browser.reader import READY, Reader

from sess_cli.export.html import page

# Remembers the first card that a frame could show, and whether that was before the scripts ran.
FIRST_FRAME = """() => {
  const look = () => {
    const card = document.querySelector("#talk > article");
    if (!card) { requestAnimationFrame(look); return; }
    const ready = "ready" in document.documentElement.dataset;
    window.seen = { card, place: card.getBoundingClientRect().top, ready };
  };
  requestAnimationFrame(look);
}"""
NO_FRAMES = "window.requestAnimationFrame = () => 0"
COARSE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


def opened(reader, path, script, **options):
    context = reader.browser.new_context(
        **{"viewport": {"width": 1280, "height": 800}, **options}, offline=True
    )
    reader.contexts.append(context)
    tab = context.new_page()
    tab.add_init_script(script if script.startswith("window") else f"({script})()")
    tab.goto(path.as_uri())
    return tab


@pytest.mark.parametrize("static", [False, True])
def test_plain_cards_are_painted_before_the_scripts_run_and_drawn_once(long, static):
    tab = opened(long, long.written(page.Look(utc=True, static=static)), FIRST_FRAME)
    tab.wait_for_selector(READY)
    assert tab.evaluate("window.seen.ready") is False
    assert tab.evaluate("window.seen.card === document.querySelector('#talk article')")


@pytest.mark.parametrize("options", [{}, COARSE])
def test_what_was_painted_first_stays_where_it_is(long, options):
    tab = opened(long, long.written(), FIRST_FRAME, **options)
    tab.wait_for_selector(READY)
    place = "document.querySelector('#talk article').getBoundingClientRect().top"
    assert tab.evaluate(place) == pytest.approx(tab.evaluate("window.seen.place"), abs=1)


def test_a_finger_finds_everything_in_a_card(long):
    tab = opened(long, long.written(), FIRST_FRAME, **COARSE)
    tab.wait_for_selector(READY)
    low = tab.evaluate(
        """() => [...document.querySelectorAll("#talk :is(summary, button:not(.zoom), .at)")]
        .filter((e) => e.offsetParent && e.offsetHeight < 40).map((e) => e.textContent)"""
    )
    assert low == []


def test_a_name_and_its_time_are_on_one_line_where_fingers_are_used(long):
    tab = opened(long, long.written(), FIRST_FRAME, **COARSE)
    tab.wait_for_selector(READY)
    apart = tab.evaluate(
        """() => [...document.querySelectorAll("#talk :is(.k-user, .k-assistant) > header")]
        .filter((header) => header.offsetParent).slice(0, 8)
        .map((header) => [".who", ".at"].map((name) => header.querySelector(name)))
        .map((both) => both.map((one) => one.getBoundingClientRect()))
        .map(([who, at]) => Math.abs(who.top + who.bottom - at.top - at.bottom) / 2)"""
    )
    assert len(apart) > 2
    assert max(apart) < 2


def test_a_page_that_is_printed_before_it_was_painted_is_whole(long):
    tab = opened(long, long.written(), NO_FRAMES)
    assert tab.locator(READY).count() == 0
    tab.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert tab.locator(".group > article.k-user").count() == long_prompts(long)


def test_days_are_told_apart_without_scripts(world, browser):
    t = world.transcript("22222222-2222-4222-8222-222222222222")
    first, second = t.prompt("on one day"), t.prompt("on the next")
    first["timestamp"], second["timestamp"] = "2026-02-03T10:00:00Z", "2026-02-04T10:00:00Z"
    t.append(first, second)
    world.ingest()
    reader = Reader(world, browser)
    path = reader.written(session="22222222-2222-4222-8222-222222222222")
    tab = reader.tab(path, java_script_enabled=False).tab
    days = [one.get_attribute("data-day") for one in tab.locator("#talk article").all()]
    reader.close()
    assert days == ["Tuesday, 2026-02-03", "Wednesday, 2026-02-04"]


def long_prompts(reader):
    return sum(item.type == "user" for item in reader.items())
