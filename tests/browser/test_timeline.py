"""`--style timeline` in a real browser, from a file, with no network."""

from __future__ import annotations

from contextlib import closing

import pytest
from playwright.sync_api import expect
from tests.browser.attacks import Watched, hostile

from sess_cli.export.html import encrypted, timeline
from sess_cli.export.story import Story
from sess_schema.connection import open_reader
from sess_schema.queries import sessions

MAIN = "11111111-1111-4111-8111-111111111111"


@pytest.fixture
def page_of(world, browser):
    """Records to an open tab."""
    contexts = []

    def opened(*records, fragment="", lock=None, **options):
        world.transcript().append(*records)
        world.ingest()
        path = world.root / "timeline.html"
        with closing(open_reader(world.state / "index.db")) as db, path.open("wb") as out:
            timeline.write(Story(db, sessions.resolve(db, MAIN)), out, utc=True, lock=lock)
        contexts.append(browser.new_context(offline=True, **options))
        watched = Watched(contexts[-1])
        watched.open(path, fragment)
        return watched

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture
def talk(world):
    """A prompt, an answer, a good and a failed command, a read."""
    t = world.transcript()
    return [
        t.prompt("please fix the flaky test"),
        t.answer("I will look"),
        t.call("c1", command="go test ./..."),
        t.result("c1", "FAIL: the needle is here", is_error=True),
        t.call("c2", command="go vet"),
        t.result("c2", "fine"),
        t.call("c3", "Read", file_path="/code/demo/retry.go"),
        t.result("c3", "package retry"),
    ]


def shown(tab):
    return tab.eval_on_selector_all(".event", "rows => rows.map(row => row.id)")


@pytest.mark.parametrize("width", [390, 768, 1024])
def test_a_finger_finds_every_row(page_of, talk, width):
    finger = {"viewport": {"width": width, "height": 800}, "has_touch": True, "is_mobile": True}
    tab = page_of(*talk, **finger).tab
    low = tab.evaluate(
        """() => [...document.querySelectorAll("summary, .link, button, input, select")]
        .filter((one) => one.offsetParent && one.getBoundingClientRect().height < 40)
        .map((one) => one.outerHTML)"""
    )
    assert low == []


def test_kinds_and_text_filter_together(page_of, talk):
    watched = page_of(*talk)
    tab = watched.tab
    for kind, expected in (
        ("tool_use", ["evt-2", "evt-3", "evt-4"]),
        ("errors", ["evt-2"]),
        ("shell", ["evt-2", "evt-3"]),
        ("user", ["evt-0"]),
        ("tool:Read", ["evt-4"]),
        ("all", ["evt-0", "evt-1", "evt-2", "evt-3", "evt-4"]),
    ):
        tab.select_option("#kind", kind)
        assert shown(tab) == expected, kind
    tab.select_option("#kind", "tool_use")
    tab.fill("#text", "NEEDLE")
    tab.wait_for_function("() => document.getElementById('count').value === '1 of 5'")
    assert shown(tab) == ["evt-2"], "found in an output that was never drawn, in any case"
    tab.select_option("#kind", "user")
    assert shown(tab) == []
    assert tab.inner_text("#events") == "No events match."
    watched.assert_quiet()


def test_the_text_may_hold_what_html_escapes(page_of, world):
    t = world.transcript()
    watched = page_of(t.prompt('if a < b && c > "d" then'), t.prompt("details summary amp"))
    watched.tab.fill("#text", '< b && c > "d"')
    watched.tab.wait_for_function("() => document.getElementById('count').value === '1 of 2'")
    assert shown(watched.tab) == ["evt-0"]
    watched.tab.fill("#text", "event-body")
    watched.tab.wait_for_function("() => document.getElementById('count').value === '0 of 2'")


def test_a_row_opens_by_click_and_by_key_and_shows_everything(page_of, talk):
    tab = page_of(*talk).tab
    expect(tab.locator(".event-body")).to_have_count(0)
    tab.click("#evt-2 summary .input")
    assert tab.inner_text("#evt-2 pre.failed") == "FAIL: the needle is here"
    arrow = "getComputedStyle(document.querySelector('#evt-2 summary'), '::before').transform"
    tab.wait_for_function(f"() => {arrow} === 'matrix(0, 1, -1, 0, 0, 0)'")
    tab.focus("#evt-3 summary")
    tab.keyboard.press("Enter")
    assert tab.inner_text("#evt-3 pre.output") == "fine"
    tab.click("#evt-2 summary .input")
    assert not tab.evaluate("document.getElementById('evt-2').open")


def test_slash_goes_to_the_box_unless_something_is_typed(page_of, talk):
    tab = page_of(*talk).tab
    tab.keyboard.press("/")
    assert tab.evaluate("document.activeElement.id") == "text"
    tab.keyboard.type("a/b")
    assert tab.input_value("#text") == "a/b"
    tab.keyboard.press("Escape")
    assert tab.input_value("#text") == ""


def test_the_permalink_does_not_toggle_what_it_was_clicked_in(page_of, talk):
    tab = page_of(*talk).tab
    tab.click("#evt-2 summary .input")
    tab.click("#evt-2 .link")
    assert tab.evaluate("[location.hash, document.getElementById('evt-2').open]") == [
        "#evt-2",
        True,
    ]


def test_a_hash_opens_a_row_far_below_and_one_that_a_filter_hides(page_of, world):
    t = world.transcript()
    watched = page_of(*(t.prompt(f"prompt {n}") for n in range(3000)), fragment="#evt-2500")
    tab = watched.tab
    tab.wait_for_function(
        "() => { const row = document.getElementById('evt-2500');"
        " if (!row || !row.open) return false;"
        " const top = row.getBoundingClientRect().top; return top > 0 && top < innerHeight; }"
    )
    assert tab.evaluate("document.querySelectorAll('*').length") < 5000
    tab.fill("#text", "prompt 7")
    tab.wait_for_function("() => document.getElementById('count').value === '111 of 3,000'")
    tab.evaluate("location.hash = '#evt-12'")
    tab.wait_for_function("() => (document.getElementById('evt-12') || {}).open === true")
    assert tab.input_value("#text") == ""
    watched.assert_quiet()


def test_rows_are_drawn_while_scrolling_and_stay_open(page_of, world):
    t = world.transcript()
    tab = page_of(*(t.prompt(f"prompt {n}") for n in range(1000))).tab
    tab.click("#evt-3 summary")
    tab.evaluate("document.activeElement.blur(), scrollTo(0, document.body.scrollHeight)")
    tab.wait_for_selector("#evt-999")
    tab.wait_for_function("() => !document.getElementById('evt-3')")
    tab.evaluate("scrollTo(0, 0)")
    tab.wait_for_function("() => (document.getElementById('evt-3') || {}).open === true")


def test_everything_can_be_read_without_scripts(page_of, world):
    t = world.transcript()
    tab = page_of(*(t.prompt(f"prompt {n}") for n in range(100)), java_script_enabled=False).tab
    expect(tab.locator(".event")).to_have_count(100)
    expect(tab.locator("#filters")).to_be_hidden()
    expect(tab.locator("#evt-99 .event-body")).to_be_hidden()
    tab.click("#evt-99 summary .input")
    assert tab.locator("#evt-99 .event-body").inner_text().endswith("prompt 99")


def test_it_is_printed_whole_and_is_then_as_it_was(page_of, talk):
    tab = page_of(*talk).tab
    tab.click("#evt-1 summary .input")
    expect(tab.locator(".event[open]")).to_have_count(1)
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    expect(tab.locator(".event[open] .event-body")).to_have_count(5)
    assert "FAIL: the needle is here" in tab.inner_text("#evt-2 .event-body")
    tab.evaluate("dispatchEvent(new Event('afterprint'))")
    expect(tab.locator(".event[open]")).to_have_count(1)


def test_nothing_hostile_runs_and_nothing_is_asked_for(page_of, world):
    t = world.transcript()
    watched = page_of(*hostile(t))
    tab = watched.tab
    assert tab.evaluate("document.querySelectorAll('script').length") == 2
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    tab.evaluate("for (const row of document.querySelectorAll('.event')) row.open = true")
    tab.wait_for_function("() => document.querySelectorAll('.event:not([open])').length === 0")
    tab.wait_for_function("() => document.querySelectorAll('.event-body').length > 100")
    for option in tab.eval_on_selector_all("#kind option", "all => all.map(one => one.value)"):
        tab.select_option("#kind", value=option)
        assert tab.evaluate("document.querySelectorAll('.event').length") > 0, option
    bad = "[...document.querySelectorAll('*')].filter(one => [...one.attributes].some("
    bad += "at => /^on/.test(at.name) || /^\\s*javascript:/i.test(at.value))).length"
    tab.fill("#text", "<script>")
    tab.wait_for_function("() => document.getElementById('count').value.includes(' of ')")
    assert tab.evaluate(bad) == 0
    watched.assert_quiet()


def test_an_encrypted_timeline_opens_at_its_address(page_of, world):
    """Rows after the first 60, which are text until they are drawn, are there too."""
    pytest.importorskip("cryptography")
    t = world.transcript()
    records = [t.prompt(f"prompt {number}") for number in range(200)]
    watched = page_of(*records, fragment="#evt-150", lock=encrypted.Lock("right"))
    tab = watched.tab
    tab.get_by_label("Passphrase").fill("wrong")
    tab.keyboard.press("Enter")
    expect(tab.locator("#refused")).to_have_text("Wrong passphrase.")
    tab.get_by_label("Passphrase").fill("right")
    tab.keyboard.press("Enter")
    expect(tab.locator("#count")).to_have_text("200 events")
    expect(tab.locator("#evt-150 pre")).to_have_text("prompt 150")
    assert tab.title() == f"{MAIN[:8]} prompt 0"
    watched.assert_quiet()
