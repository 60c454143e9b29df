"""`sess stats --html` in a real browser, from a file, with no network."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC

import pytest
from playwright.sync_api import expect
from tests.browser.attacks import PAYLOADS, Watched, hostile

from sess_cli.export.report import charts, page
from sess_schema.connection import open_reader
from sess_schema.queries.stats import Stats

PHONE = {"width": 390, "height": 844}
TAGS = {
    "html", "head", "meta", "title", "style", "script", "body", "header", "main", "footer", "div",
    "h1", "h2", "h3", "p", "span", "code", "button", "ul", "li", "dl", "dt", "dd", "figure",
    "figcaption", "details", "summary", "table", "colgroup", "col", "thead", "tbody", "tfoot", "tr",
    "th", "td", "data", "bdi", "svg", "g", "rect", "line", "path", "text",
}  # fmt: skip
ATTRIBUTES = {
    "lang", "charset", "http-equiv", "content", "name", "id", "class", "type", "hidden", "title",
    "dir", "scope", "colspan", "value", "role", "tabindex", "aria-label", "aria-hidden",
    "aria-live", "x", "y", "x1", "x2", "y1", "y2", "d", "rx", "width", "height", "viewBox",
    "preserveAspectRatio", "text-anchor",
}  # fmt: skip


@pytest.fixture
def opened(world, browser):
    """The report of records, in a tab."""
    contexts = []

    def open_report(*records, asked=None, **options):
        world.transcript().append(*records)
        world.ingest()
        path = world.root / "report.html"
        with closing(open_reader(world.state / "index.db")) as db:
            page.write(db, asked or Stats(zone=UTC), str(path))
        contexts.append(browser.new_context(offline=True, **options))
        watched = Watched(contexts[-1])
        watched.open(path)
        return watched

    yield open_report
    for context in contexts:
        context.close()


@pytest.fixture
def work(world):
    """Three days, one failed call, one slow one."""
    t = world.transcript()
    records = []
    for day in (1, 2, 4):
        told = {"timestamp": f"2026-02-0{day}T10:00:00.000Z"}
        later = {"timestamp": f"2026-02-0{day}T10:00:0{day}.500Z"}
        records += [
            t.prompt("go on", **told),
            t.call(f"c{day}", "Bash", command="make") | told,
            t.result(f"c{day}", "Exit code 2\nno rule", is_error=day == 2, **later),
        ]
    return records


def test_hostile_names_everywhere_run_nothing(world, opened):
    """Projects, branches, models and tools are attacks; only our own elements appear."""
    evil = [*hostile(world.transcript())]
    for number, name in enumerate(PAYLOADS):
        t = world.transcript(f"{number:08}-2222-4222-8222-222222222222", f"-code-{number}")
        answer = t.call(f"d{number}", name, command="ls")
        answer["message"]["model"] = name
        t.append(
            t.prompt("go", cwd=f"/code/{name}", gitBranch=name),
            answer,
            t.result(f"d{number}", name, is_error=True),
        )
    watched = opened(*evil)
    tab = watched.tab
    assert set(tab.evaluate("[...document.all].map(e => e.localName)")) <= TAGS
    assert set(tab.evaluate("[...document.all].flatMap(e => e.getAttributeNames())")) <= ATTRIBUTES
    for summary in tab.locator("summary").all():
        summary.click()
    for row in tab.locator("tr.mark").all():
        row.hover()
    assert set(tab.evaluate("[...document.querySelectorAll('#tip *')].map(e => e.localName)")) == {
        "b", "i", "span",
    }  # fmt: skip
    assert tab.evaluate("document.scripts.length") == 2
    assert "<script>" in tab.locator("#tools-data").inner_text()
    watched.assert_quiet()


def test_filters_that_attack_are_shown_as_text(opened, work):
    asked = Stats(zone=UTC, projects=(PAYLOADS[1],), branches=PAYLOADS[:8], subagents="exclude")
    watched = opened(*work, asked=asked)
    expect(watched.tab.locator("script")).to_have_count(2)
    assert "<script>" in watched.tab.locator(".filters").inner_text()
    watched.assert_quiet()


def test_pointing_at_a_mark_shows_its_exact_values(opened, work):
    watched = opened(*work)
    tab = watched.tab
    tip = tab.locator("#tip")
    expect(tip).to_be_hidden()
    tab.locator("#failures g.mark").nth(24).hover()
    assert tip.inner_text().split("\n") == [
        "Mon 2026-02-02 10:00+0000", "failed", "1", "calls", "1",
    ]  # fmt: skip
    tab.locator("#latency tr.mark").hover()
    assert tip.inner_text().split("\n")[:5] == ["Bash", "calls", "3", "p50", "2,500 ms"]
    tab.locator("h1").hover()
    expect(tip).to_be_hidden()
    watched.assert_quiet()


def test_a_finger_that_was_lifted_still_points(opened, work):
    watched = opened(*work, viewport=PHONE, has_touch=True)
    tab = watched.tab
    tab.locator("#tools tr.mark").tap()
    assert tab.locator("#tip b").inner_text() == "Bash"
    tab.locator("#tools h2").tap()
    expect(tab.locator("#tip")).to_be_hidden()
    watched.assert_quiet()


def test_keys_walk_through_a_chart(opened, work):
    watched = opened(*work)
    tab = watched.tab
    tip = tab.locator("#tip")
    tab.locator("#clock .scroll[role]").first.focus()
    heads = []
    for key in ("End", "ArrowLeft", "ArrowUp", "Home", "ArrowRight", "ArrowDown", "ArrowLeft"):
        tab.keyboard.press(key)
        heads.append(tip.locator("b").inner_text())
    assert heads == [
        "Sun 23:00–23:59", "Sun 22:00–22:59", "Sat 22:00–22:59", "Mon 00:00–00:59",
        "Mon 01:00–01:59", "Tue 01:00–01:59", "Tue 00:00–00:59",
    ]  # fmt: skip
    tab.keyboard.press("Escape")
    expect(tip).to_be_hidden()
    watched.assert_quiet()


def test_every_chart_can_be_reached_by_key_and_has_a_name(opened, work):
    tab = opened(*work).tab
    charts = tab.locator(".chart")
    expect(charts).to_have_count(10)
    for chart in charts.all():
        inside = chart.locator(".scroll")
        stop = inside.first if inside.count() else chart
        assert stop.get_attribute("tabindex") == "0"
        assert stop.get_attribute("aria-label")


def test_on_a_phone_charts_open_at_the_newest_end_and_say_that_they_scroll(opened, world):
    t = world.transcript()
    days = [f"2026-{month:02}-{day:02}" for month in (1, 2, 3) for day in range(1, 28)]
    records = [t.answer("done", timestamp=f"{day}T10:00:00.000Z") for day in days]
    tab = opened(*records, viewport=PHONE).tab
    chart = tab.locator("#tokens")
    expect(chart.locator(".swipe")).to_be_visible()
    left, room = chart.locator(".scroll").first.evaluate(
        "one => [one.scrollLeft, one.scrollWidth - one.clientWidth]"
    )
    assert room > 0
    assert abs(left - room) <= 1
    expect(chart.locator(".plot .scroll")).to_have_class("scroll before")
    last = chart.locator("svg.columns > text").last
    assert last.evaluate("one => one.getBoundingClientRect().right") <= PHONE["width"]
    chart.locator(".plot .scroll").focus()
    tab.keyboard.press("Home")
    expect(chart.locator(".plot .scroll")).to_have_class("scroll after")


def test_names_that_would_be_cut_to_the_same_are_whole():
    alike = [f"bedrock/us.anthropic.claude-sonnet-with-a-long-name-4-{n}" for n in (2, 5)]
    shown = charts.short_names([*alike, "another/" + "x" * 60], 40)
    assert [one.removeprefix("<bdi>").removesuffix("</bdi>") for one in shown[:2]] == alike
    assert "…" in shown[2]


def test_the_theme_is_the_systems_until_chosen_and_then_remembered(opened, work):
    watched = opened(*work, color_scheme="dark")
    tab = watched.tab
    colour = "getComputedStyle(document.body).backgroundColor"
    dark = tab.evaluate(colour)
    tab.locator("#theme").click()
    light = tab.evaluate(colour)
    assert dark != light
    tab.reload()
    assert tab.evaluate(colour) == light
    watched.assert_quiet()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_scrolls_inside_figures_only(opened, work, scheme):
    watched = opened(*work, viewport=PHONE, color_scheme=scheme, has_touch=True)
    tab = watched.tab
    for summary in tab.locator("summary").all():
        summary.click()
    assert tab.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    assert tab.evaluate(
        "[...document.querySelectorAll('figure')].every(f => f.scrollWidth <= f.clientWidth)"
    )
    newest = tab.locator("#calendar rect.mark").last
    assert newest.bounding_box()["x"] < PHONE["width"]
    watched.assert_quiet()


def test_without_javascript_everything_can_be_read(opened, work):
    tab = opened(*work, java_script_enabled=False).tab
    expect(tab.locator("#theme")).to_be_hidden()
    assert tab.locator("#failures g.mark title").nth(24).text_content() == (
        "Mon 2026-02-02 10:00+0000\nfailed\t1\ncalls\t1"
    )
    tab.locator("#tools summary").click()
    assert tab.locator("#tools-data tfoot").inner_text().split() == [
        "total",
        "3",
        "1",
        "33.3%",
        "0",
        "0",
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast(opened, work, scheme):
    """At least 4.5:1 for text, 3:1 for colours of series."""
    tab = opened(*work, color_scheme=scheme).tab
    worst = tab.evaluate("""() => {
      const style = getComputedStyle(document.documentElement);
      const light = (name) => {
        const hex = style.getPropertyValue(name).trim();
        const [r, g, b] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255)
          .map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const contrast = (a, b) => {
        const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
        return (x + 0.05) / (y + 0.05);
      };
      const read = ["--text", "--dim"].flatMap(
        (c) => ["--bg", "--panel"].map((b) => contrast(c, b)));
      const drawn = [0, 1, 2, 3, 4, 5, 6].map((n) => contrast(`--s${n}`, "--panel"));
      return [Math.min(...read, contrast("--warn", "--warn-bg")),
              Math.min(...drawn, contrast("--bad", "--panel"))];
    }""")
    assert worst[0] >= 4.5
    assert worst[1] >= 3
