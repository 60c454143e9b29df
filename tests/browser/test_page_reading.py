"""The page in a real browser: scrolling, links, printing, and without scripts."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect
from tests.browser.attacks import hostile
from tests.browser.reader import AT_TOP, MAIN, READY, ROUNDS, SETTLED, Reader

from sess_cli.export.html import page, shell

LIVE = "document.querySelectorAll('*').length"
CARDS = "document.querySelectorAll('#talk article.card').length"
HERE = "document.querySelector('#talk article.here')"
PLACE = f"{HERE}.getBoundingClientRect().top - document.querySelector('.toolbar').offsetHeight"

# The least contrast of visible text, of each element with the backgrounds below it.
CONTRAST = """() => {
  const dot = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const mixed = (colours) => {
    for (const colour of colours) { dot.fillStyle = colour; dot.fillRect(0, 0, 1, 1); }
    return [...dot.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const light = (rgb) => rgb.map((c) => c / 255)
    .map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, at) => sum + c * [0.2126, 0.7152, 0.0722][at], 0);
  let worst = 21;
  for (const element of document.querySelectorAll("#talk *")) {
    const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!own || !element.checkVisibility({ opacityProperty: true })) continue;
    const below = [];
    let opacity = 1;
    for (let at = element; at; at = at.parentElement) {
      below.unshift(getComputedStyle(at).backgroundColor);
      opacity *= getComputedStyle(at).opacity;
    }
    const ground = mixed(below);
    const full = mixed([...below, getComputedStyle(element).color]);
    const seen = full.map((c, at) => c * opacity + ground[at] * (1 - opacity));
    const [x, y] = [light(seen), light(ground)].sort((a, b) => b - a);
    worst = Math.min(worst, (x + 0.05) / (y + 0.05));
  }
  return worst;
}"""


@pytest.fixture
def reader(world, browser):
    reader = Reader(world, browser)
    yield reader
    reader.close()


def test_a_long_page_is_quiet_and_draws_only_what_is_near(long):
    watched = long.tab(long.written())
    tab = watched.tab
    tab.wait_for_selector(READY)
    tab.evaluate(SETTLED)
    assert tab.title() == "prompt number 0: please change the retry code"
    expect(tab.locator("nav.outline li")).to_have_count(ROUNDS + 1)
    assert tab.evaluate(CARDS) < 60
    assert tab.evaluate(LIVE) < 2500
    tab.keyboard.press("G")
    tab.evaluate(SETTLED)
    expect(tab.get_by_text(f"Round {ROUNDS - 1} is done")).to_be_visible()
    assert tab.evaluate(CARDS) < 60
    expect(tab.locator("#talk").get_by_text("prompt number 0:")).to_have_count(0)
    watched.assert_quiet()


def test_the_page_stays_where_it_is_while_neighbours_are_drawn(long):
    tab = long.tab(long.written(), "#evt-180").tab
    tab.wait_for_selector(READY)
    before = tab.evaluate(PLACE)
    tab.evaluate(SETTLED)
    assert tab.evaluate(PLACE) == pytest.approx(before, abs=2)
    tab.evaluate("window.scrollBy(0, -300)")
    tab.evaluate(SETTLED)
    assert tab.evaluate(PLACE) == pytest.approx(before + 300, abs=2)


def test_scrolling_back_and_forth_shows_the_same_cards(long):
    tab = long.tab(long.written(), "#evt-180").tab
    tab.wait_for_selector(READY)
    tab.evaluate(SETTLED)
    seen = tab.evaluate(AT_TOP)
    for _ in range(6):
        tab.evaluate("window.scrollBy(0, 900)")
        tab.evaluate(SETTLED)
    assert tab.evaluate(AT_TOP) != seen
    for _ in range(6):
        tab.evaluate("window.scrollBy(0, -900)")
        tab.evaluate(SETTLED)
    assert tab.evaluate(AT_TOP) == seen


def test_permalinks_open_cards_that_are_not_drawn_yet(long):
    path = long.written()
    items = long.items()
    wanted = items[200]
    others = [item for item in items if item.ts == wanted.ts]
    for fragment in (f"#{wanted.key}", f"#evt-{wanted.number}", f"#msg-{wanted.ts}"):
        tab = long.tab(path, fragment).tab
        tab.wait_for_selector("article.here")
        key = others[0].key if fragment.startswith("#msg") else wanted.key
        assert tab.evaluate(f"{HERE}.id") == key
        assert 0 <= tab.evaluate(PLACE) < 40


def test_a_link_to_a_hidden_kind_of_card_shows_that_kind(long):
    thought = next(i for i in long.items() if i.type == "thinking" and i.number > 150)
    watched = long.tab(long.written(), f"#{thought.key}")
    watched.tab.wait_for_selector("article.here")
    assert watched.tab.evaluate(f"{HERE}.id") == thought.key
    assert watched.tab.locator("input[name=level][value=thinking]").is_checked()


def test_a_link_into_a_subagent_opens_its_conversation(long):
    call = next(i for i in long.items() if i.agent is not None)
    path = long.written()
    tab = long.tab(path, f"#{call.key}").tab
    tab.wait_for_selector("article.here")
    expect(tab.locator("section.agent article")).to_have_count(0)
    tab.locator("article.here section.agent summary").first.click()
    expect(tab.get_by_text("the buried treasure")).to_be_visible()
    name = tab.locator("section.agent article").nth(1).get_attribute("id")
    again = long.tab(path, f"#{name}").tab
    again.wait_for_selector("article.here")
    assert again.evaluate(f"{HERE}.id") == name
    expect(again.get_by_text("the buried treasure")).to_be_visible()


def test_the_outline_marks_what_is_read_and_leads_there(long):
    tab = long.tab(long.written()).tab
    tab.wait_for_selector(READY)
    tab.get_by_role("link", name="prompt number 30:").click()
    tab.evaluate(SETTLED)
    assert "prompt number 30:" in tab.locator("nav.outline a[aria-current]").inner_text()
    assert tab.evaluate(AT_TOP).startswith("prompt number 30:")
    about = tab.locator("nav.outline a[aria-current] small").inner_text()
    assert "1 Bash · 1 Edit" in about
    assert "1 failed" in tab.get_by_role("link", name="prompt number 40:").inner_text()


def test_on_a_phone_the_outline_is_a_drawer(long):
    watched = long.tab(long.written(), viewport={"width": 390, "height": 844})
    tab = watched.tab
    tab.wait_for_selector(READY)
    expect(tab.get_by_role("link", name="prompt number 5:")).to_be_hidden()
    tab.get_by_role("button", name="Prompts").click()
    tab.get_by_role("link", name="prompt number 5:").click()
    tab.evaluate(SETTLED)
    assert tab.evaluate(AT_TOP.replace("700", "195")).startswith("prompt number 5:")
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    watched.assert_quiet()


def test_the_strip_jumps_to_that_moment(long):
    tab = long.tab(long.written()).tab
    tab.wait_for_selector(READY)
    box = tab.locator("#strip").bounding_box()
    tab.mouse.move(box["x"] + box["width"] / 2, box["y"] + 10)
    assert tab.locator(".bubble").inner_text().startswith("3")
    tab.mouse.click(box["x"] + box["width"] / 2, box["y"] + 10)
    tab.evaluate(SETTLED)
    assert 440 < int(tab.locator("#strip").get_attribute("aria-valuenow")) < 560
    tab.locator("#strip").focus()
    tab.keyboard.press("End")
    tab.evaluate(SETTLED)
    assert int(tab.locator("#strip").get_attribute("aria-valuenow")) > 950
    tab.keyboard.press("Home")
    tab.evaluate(SETTLED)
    assert tab.locator("#strip").get_attribute("aria-valuenow") == "0"


def test_long_output_is_folded_and_stays_as_somebody_left_it(long):
    tab = long.tab(long.written()).tab
    tab.wait_for_selector(READY)
    fold = tab.locator("article:has-text('line 0 of a long output') .fold").last
    assert fold.bounding_box()["height"] == 250
    assert "line 199" not in fold.text_content()
    tab.get_by_role("button", name="Show more").first.click()
    assert fold.bounding_box()["height"] > 2000
    assert "line 199" in fold.text_content()
    tab.keyboard.press("G")
    tab.evaluate(SETTLED)
    tab.keyboard.press("g")
    tab.evaluate(SETTLED)
    assert fold.bounding_box()["height"] > 2000
    tab.get_by_role("button", name="Show less").first.click()
    assert fold.bounding_box()["height"] == 250


def test_an_image_is_enlarged_and_put_back(long):
    tab = long.tab(long.written()).tab
    tab.wait_for_selector(READY)
    tab.locator("button.zoom").first.click()
    expect(tab.locator("dialog.enlarged img")).to_be_visible()
    tab.keyboard.press("Escape")
    expect(tab.locator("dialog.enlarged")).to_have_count(0)


def test_the_theme_follows_the_system_until_one_is_chosen(long):
    path = long.written()
    watched = long.tab(path, color_scheme="dark")
    tab = watched.tab
    tab.wait_for_selector(READY)
    colour = "getComputedStyle(document.body).backgroundColor"
    assert tab.evaluate(colour) == "rgb(21, 23, 26)"
    tab.keyboard.press("t")
    tab.keyboard.press("t")
    assert tab.evaluate(colour) == "rgb(246, 245, 242)"
    tab.reload()
    tab.wait_for_selector(READY)
    assert tab.evaluate(colour) == "rgb(246, 245, 242)"
    tab.get_by_role("button", name="Theme: light").click()
    assert tab.evaluate(colour) == "rgb(21, 23, 26)"


def test_without_scripts_prompts_answers_and_calls_can_be_read(long):
    tab = long.tab(long.written(), java_script_enabled=False).tab
    text = tab.inner_text("main")
    for number in range(ROUNDS):
        assert f"prompt number {number}:" in text
        assert f"Round {number} is" in text
    assert tab.locator("main .plain summary").last.inner_text() == "1 Bash, 1 Edit"
    expect(tab.locator("#query")).to_be_hidden()


def test_a_static_page_has_everything_without_scripts_and_works_with_them(long):
    path = long.written(page.Look(static=True))
    tab = long.tab(path, java_script_enabled=False).tab
    expect(tab.locator("main > article")).to_have_count(len(long.items()))
    watched = long.tab(path)
    tab = watched.tab
    tab.wait_for_selector(READY)
    tab.locator("#query").fill("needle among")
    expect(tab.locator("#found")).to_have_text("1 of 7")
    tab.keyboard.press("Escape")
    tab.keyboard.press("1")
    expect(tab.locator("main > article:visible")).to_have_count(2 * ROUNDS + 1)
    watched.assert_quiet()


def test_a_static_page_prepares_only_the_cards_that_are_near(long):
    """However long the session is, the page is there at once."""
    tab = long.tab(long.written(page.Look(static=True))).tab
    tab.wait_for_selector(READY)
    tab.evaluate(SETTLED)
    prepared = tab.locator("main > article:has(> .act)")
    assert prepared.count() < 100 < len(long.items())
    tab.keyboard.press("G")
    tab.evaluate(SETTLED)
    expect(tab.locator("main > article").last.locator("> .act")).to_have_count(1)
    expect(tab.get_by_text(f"Round {ROUNDS - 1} is done")).to_be_visible()


def test_an_endless_line_is_read_found_and_copied_whole(reader):
    """A browser needs minutes to break a line of megabytes: it is laid out in pieces."""
    endless = "".join(f"{number:06d}" for number in range(100_000))
    t = reader.world.transcript(MAIN)
    t.append(t.prompt(f"look at {endless}"), t.call("b", command="cat"), t.result("b", endless))
    reader.world.ingest()
    tab = reader.tab(reader.written()).tab
    tab.wait_for_selector(READY)
    output = tab.locator("article.t-shell .out")
    assert output.text_content() != endless  # trimmed while it is folded
    tab.locator("article.t-shell").get_by_role("button", name="Show more").click()
    assert output.text_content() == endless
    tab.locator("#query").fill("099998099999")
    expect(tab.locator("#found")).to_have_text("2 of 2")
    piece = endless[8_000 - 30 : 8_000 + 30]  # across two pieces of the output
    tab.locator("#query").fill(piece)
    expect(tab.locator("#found")).to_contain_text("of 2")
    assert tab.evaluate(
        """() => {
          getSelection().selectAllChildren(document.querySelector("article.t-shell .out"));
          return getSelection().toString().length;
        }"""
    ) == len(endless)


def test_printing_draws_everything_and_opens_it(long):
    watched = long.tab(long.written())
    tab = watched.tab
    tab.wait_for_selector(READY)
    tab.keyboard.press("4")
    tab.evaluate("window.addEventListener('beforeprint', () => { window.printed = " + CARDS + " })")
    assert tab.pdf()[:4] == b"%PDF"
    inside_the_agent = 2
    assert tab.evaluate("window.printed") == len(long.items()) + inside_the_agent
    tab.evaluate(SETTLED)
    assert tab.evaluate(CARDS) < 80
    watched.assert_quiet()


def test_nothing_is_faded_on_paper(reader):
    t = reader.world.transcript(MAIN)
    lines = "\n".join(f"line {number}" for number in range(80))
    t.append(t.prompt("go"), t.call("a"), t.result("a", lines), t.call("b"))
    t.append(t.result("b", lines, is_error=True))
    reader.world.ingest()
    tab = reader.tab(reader.written()).tab
    tab.wait_for_selector(READY)
    tab.emulate_media(media="print")
    folds = tab.locator(".fold[data-fold=closed]")
    expect(folds).to_have_count(2)
    for fold in folds.all():
        assert fold.evaluate("(e) => getComputedStyle(e).maskImage") == "none"
        assert fold.evaluate("(e) => e.offsetHeight") > 900


def test_paper_is_white_whatever_the_theme(long):
    tab = long.tab(long.written(), color_scheme="dark").tab
    tab.wait_for_selector(READY)
    tab.keyboard.press("t")
    tab.emulate_media(media="print")
    style = "getComputedStyle(document.body)"
    assert tab.evaluate(f"{style}.backgroundColor") == "rgb(255, 255, 255)"
    assert tab.evaluate(f"{style}.color") == "rgb(36, 34, 31)"
    expect(tab.locator(".toolbar")).to_be_hidden()


def test_a_hostile_session_runs_nothing_however_it_is_read(reader):
    t = reader.world.transcript(MAIN)
    t.append(*hostile(t))
    reader.world.ingest()
    watched = reader.tab(reader.written())
    tab = watched.tab
    tab.wait_for_selector(READY)
    tab.keyboard.press("4")
    tab.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert tab.evaluate(CARDS) == len(reader.items())
    tab.evaluate("window.dispatchEvent(new Event('afterprint'))")
    tab.locator("#query").fill("<script>")
    expect(tab.locator("#found")).to_have_text(re.compile("^1 of "))
    tab.locator("#filters summary").click()
    tab.locator("#strip").hover()
    for button in ("card", "prompt"):
        tab.evaluate(f"document.querySelector('button[data-act={button}]').click()")
    tab.evaluate(SETTLED)
    watched.assert_quiet()


def test_a_session_of_which_nothing_is_known_opens(reader):
    t = reader.world.transcript(MAIN)
    t.append({"type": "summary", "summary": "Nothing yet", "leafUuid": "x"})
    reader.world.ingest()
    watched = reader.tab(reader.written())
    tab = watched.tab
    tab.wait_for_selector(READY)
    for key in ("j", "k", "e", "G", "g", "1", "4", "o"):
        tab.keyboard.press(key)
    tab.locator("#query").fill("nothing")
    expect(tab.locator("#found")).to_have_text("1 of 1")
    watched.assert_quiet()


def test_assets_may_stand_beside_the_page(long):
    folder = long.world.root / "assets"
    folder.mkdir()
    (folder / shell.STYLE_NAME).write_text(shell.style(), encoding="utf-8")
    (folder / shell.SCRIPT_NAME).write_text(shell.script(), encoding="utf-8")
    look = page.Look(assets="assets", trail=[("All sessions", "index.html")])
    path = long.written(look)
    assert b"Cards: what happened" not in path.read_bytes()
    watched = long.tab(path, "#evt-200")
    watched.tab.wait_for_selector("article.here")
    assert watched.tab.evaluate("getComputedStyle(document.body).backgroundColor") == (
        "rgb(246, 245, 242)"
    )
    expect(watched.tab.get_by_role("link", name="All sessions")).to_be_visible()
    watched.assert_quiet()


def test_an_encrypted_page_opens_with_its_passphrase_only(long):
    pytest.importorskip("cryptography")
    path = long.written(passphrase="correct horse")
    assert b"prompt number" not in path.read_bytes()
    watched = long.tab(path, "#evt-200")
    tab = watched.tab
    assert tab.title() == "Encrypted session"
    tab.get_by_label("Passphrase").fill("wrong horse")
    tab.get_by_role("button", name="Open").click()
    expect(tab.locator("#refused")).to_have_text("Wrong passphrase.")
    tab.get_by_label("Passphrase").fill("correct horse")
    tab.keyboard.press("Enter")
    tab.wait_for_selector("article.here")
    assert tab.title() == "prompt number 0: please change the retry code"
    assert tab.evaluate(f"Number({HERE}.dataset.n)") == 200
    watched.assert_quiet()


def test_days_are_divided_among_the_cards_that_are_shown(reader):
    """The divider stands above the first shown card of a day, whatever is filtered."""
    t = reader.world.transcript(MAIN)
    records = [t.prompt("one"), t.answer("first"), t.call("b", command="x"), t.answer("second")]
    for record, day in zip(records, (1, 1, 2, 2), strict=True):
        record["timestamp"] = f"2026-03-0{day}T10:00:00.000Z"
    t.append(*records)
    reader.world.ingest()
    for static in (False, True):
        tab = reader.tab(reader.written(page.Look(utc=True, static=static))).tab
        tab.wait_for_selector(READY)
        days = "[...document.querySelectorAll('#talk article[data-day]')]"
        told = f"{days}.map((card) => [card.dataset.day, card.dataset.kind])"
        first = ["Sunday, 2026-03-01", "user"]
        assert tab.evaluate(told) == [first, ["Monday, 2026-03-02", "tool_use"]]
        tab.keyboard.press("1")
        assert tab.evaluate(told) == [first, ["Monday, 2026-03-02", "assistant"]]


def test_the_end_of_a_failure_is_seen_and_all_of_it_when_unfolded(reader):
    t = reader.world.transcript(MAIN)
    lines = "\n".join(f"step {number}" for number in range(2_000))
    t.append(t.prompt("go"), t.call("b", command="x"), t.result("b", lines, is_error=True))
    reader.world.ingest()
    tab = reader.tab(reader.written()).tab
    tab.wait_for_selector(READY)
    fold = tab.locator(".fold.tail")
    assert fold.bounding_box()["height"] == 250
    shown = fold.text_content().split("\n")
    assert shown[-1] == "step 1999"
    assert len(shown) < 60
    tab.get_by_role("button", name="Show more").click()
    assert fold.text_content() == lines


@pytest.mark.parametrize("width", [390, 768, 999])
def test_on_small_screens_the_search_has_a_row_and_everything_can_be_hit(long, width):
    tab = long.tab(long.written(), viewport={"width": width, "height": 800}).tab
    tab.wait_for_selector(READY)
    query = tab.locator("#query").bounding_box()
    assert query["width"] > 0.55 * width  # what is left of the row depends on fonts
    level = tab.locator(".levels").bounding_box()
    assert level["y"] + level["height"] <= query["y"]
    small = tab.evaluate(
        """() => [...document.querySelectorAll(".toolbar button, .toolbar summary, #query")]
        .filter((e) => e.offsetParent && (e.offsetHeight < 40 || e.offsetWidth < 40))
        .map((e) => e.id)"""
    )
    assert small == []
    assert tab.evaluate("document.documentElement.scrollWidth") == width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_code_and_the_colours_of_terminals_have_enough_contrast(reader, scheme):
    """Line numbers, faint text, and any colour on any other."""
    t = reader.world.transcript(MAIN)
    said = "".join(f"\x1b[{fg};{bg}mword\x1b[0m" for fg in (31, 37, 90, 97) for bg in range(40, 48))
    t.append(
        t.prompt("go"),
        t.call("a", command="x"),
        t.result("a", f"{said}\x1b[2mfaint\x1b[0m\x1b[41mred\x1b[0m\x1b[7mturned\x1b[0m"),
        t.call("b", "Read", file_path="/x.py"),
        t.result("b", "     1\tone = 1\n     2\ttwo = 2"),
    )
    reader.world.ingest()
    tab = reader.tab(reader.written(), color_scheme=scheme).tab
    tab.wait_for_selector(READY)
    assert tab.locator(".gutter").count() == 1
    assert tab.evaluate(CONTRAST) >= 4.5
