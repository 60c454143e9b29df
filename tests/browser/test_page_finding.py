"""Using the page: search, filter, jump, copy."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect
from tests.browser.reader import AT_TOP, FAILED, READY, ROUNDS, SETTLED, Reader, long_session
from tests.conftest import World

ITEMS = 5 * ROUNDS + 2  # one prompt with an image, one call of an agent


@pytest.fixture(scope="module")
def long_world(tmp_path_factory):
    world = World(tmp_path_factory.mktemp("long"))
    long_session(world)
    return world


@pytest.fixture
def tab(long_world, browser):
    reader = Reader(long_world, browser)
    watched = reader.tab(reader.written())
    watched.tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    watched.tab.wait_for_selector(READY)
    yield watched.tab
    watched.assert_quiet()
    reader.close()


def found(tab, text):
    expect(tab.locator("#found")).to_have_text(text)


def test_search_counts_matches_in_cards_that_were_never_drawn(tab):
    tab.keyboard.press("/")
    tab.keyboard.type("NEEDLE among")
    found(tab, "1 of 7")
    assert tab.evaluate("CSS.highlights.get('found').size") >= 1
    seen = []
    for number in range(1, 8):
        found(tab, f"{number} of 7")
        tab.evaluate(SETTLED)
        seen.append(tab.evaluate("[...CSS.highlights.get('current')][0].startContainer.data"))
        tab.keyboard.press("Enter")
    assert seen == [f"{10 * n} passed, the needle among them" for n in range(7)]
    found(tab, "1 of 7")
    tab.keyboard.press("Shift+Enter")
    found(tab, "7 of 7")
    tab.keyboard.press("Escape")
    found(tab, "")
    assert tab.evaluate("CSS.highlights.has('found')") is False


def test_search_reports_matches_hidden_by_the_level(tab):
    tab.locator("#query").fill("needle")
    thoughts = 2 * ROUNDS  # each in the line that folds it, and inside
    found(tab, "1 of 7")
    expect(tab.locator("#elsewhere")).to_have_text(f"{thoughts} more hidden")
    tab.locator("#elsewhere").click()
    found(tab, f"1 of {thoughts + 7}")
    expect(tab.locator("#elsewhere")).to_be_hidden()
    tab.keyboard.press("n")
    found(tab, f"2 of {thoughts + 7}")
    tab.keyboard.press("N")
    found(tab, f"1 of {thoughts + 7}")


@pytest.mark.parametrize("width", [320, 390, 768])
def test_what_was_typed_can_be_read_on_a_phone_beside_what_was_found(tab, width):
    tab.set_viewport_size({"width": width, "height": 800})
    tab.locator("#query").fill("needle")
    found(tab, "1 of 7")
    expect(tab.locator("#elsewhere")).to_be_visible()
    box = tab.locator("#query").bounding_box()
    assert box["width"] >= 200
    for name in ("#previous", "#next", "#elsewhere", "#filters summary"):
        other = tab.locator(name).bounding_box()
        assert other["x"] >= 0
        assert other["x"] + other["width"] <= width
        assert other["height"] >= 40
    tab.wait_for_function(
        """() => [...CSS.highlights.get("current")][0].getBoundingClientRect().top
        > document.querySelector(".toolbar").getBoundingClientRect().bottom"""
    )


def test_search_opens_what_hides_a_match(tab):
    tab.locator("#query").fill("line 150 of a long")
    found(tab, "1 of 1")
    tab.evaluate(SETTLED)
    box = tab.evaluate(
        "[...CSS.highlights.get('current')][0].getBoundingClientRect().toJSON()",
    )
    assert 52 < box["top"] < 800
    tab.locator("#query").fill("buried treasure")
    found(tab, "1 of 1")
    expect(tab.get_by_text("the buried treasure")).to_be_visible()


def test_search_crosses_inline_markup_and_reports_no_matches(tab):
    tab.locator("#query").fill("Round 69 is done, with a link")
    found(tab, "1 of 1")
    tab.locator("#query").fill("nowhere to be found")
    found(tab, "No matches")


def test_levels_show_more_and_more(tab):
    counts = []
    for key in "1234":
        tab.keyboard.press(key)
        counts.append(tab.locator("#said").inner_text())
    talk = 2 * ROUNDS + 1
    assert counts == [
        f"{talk} of {ITEMS} events shown",
        f"{talk + 2 * ROUNDS + 1} of {ITEMS} events shown",
        f"{ITEMS} of {ITEMS} events shown",
        f"{ITEMS} of {ITEMS} events shown",
    ]


def test_filters_have_counts_and_can_be_combined(tab):
    tab.locator("#filters > summary").click()
    errors = tab.get_by_label(f"Errors {len(FAILED)}")
    bash = tab.get_by_label(f"Bash {ROUNDS}")
    thinking = tab.get_by_label(f"Thinking {ROUNDS}")
    errors.check(force=True)
    tab.evaluate(SETTLED)
    expect(tab.locator("#talk article.card")).to_have_count(len(FAILED))
    assert tab.locator("#filtered").inner_text().strip() == str(len(FAILED))
    errors.uncheck(force=True)
    bash.check(force=True)
    assert tab.locator("#said").inner_text() == f"{ROUNDS} of {ITEMS} events shown"
    thinking.check(force=True)
    assert tab.locator("#said").inner_text() == f"{2 * ROUNDS} of {ITEMS} events shown"
    tab.get_by_role("button", name="Clear filters").click()
    assert tab.locator("#said").inner_text() == f"{4 * ROUNDS + 2} of {ITEMS} events shown"


def test_a_changed_level_keeps_the_place(tab):
    tab.evaluate("location.hash = '#evt-180'")
    tab.evaluate(SETTLED)
    before = tab.locator("nav.outline a[aria-current]").inner_text()
    tab.keyboard.press("4")
    tab.evaluate(SETTLED)
    assert tab.locator("nav.outline a[aria-current]").inner_text() == before


def test_keys_lead_from_prompt_to_prompt_and_from_error_to_error(tab):
    for expected in (1, "see", 2, 3):
        tab.keyboard.press("j")
        tab.evaluate(SETTLED)
        said = expected if expected == "see" else f"prompt number {expected}:"
        assert tab.evaluate(AT_TOP).startswith(said)
    tab.keyboard.press("k")
    tab.evaluate(SETTLED)
    assert tab.evaluate(AT_TOP).startswith("prompt number 2:")
    errors = []
    for _ in FAILED:
        tab.keyboard.press("e")
        tab.evaluate(SETTLED)
        errors.append(tab.locator("article.here .gist").first.inner_text())
    assert errors == [f"run {number}" for number in FAILED]
    tab.keyboard.press("E")
    assert tab.locator("article.here .gist").first.inner_text() == f"run {FAILED[-2]}"
    tab.keyboard.press("g")
    assert tab.evaluate("window.scrollY") == 0


def test_the_help_names_the_keys_and_closes(tab):
    tab.keyboard.press("?")
    expect(tab.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    tab.keyboard.press("Escape")
    expect(tab.locator("#help")).to_be_hidden()


def test_keys_typed_into_the_search_field_are_text(tab):
    tab.keyboard.press("/")
    tab.keyboard.type("jk?t")
    assert tab.locator("#query").input_value() == "jk?t"
    expect(tab.locator("#help")).to_be_hidden()


def copied(tab, act, card):
    card.hover()
    card.locator(f"button[data-act={act}]").click()
    expect(card.locator(f"button[data-act={act}]")).to_have_text("Copied")
    return tab.evaluate("navigator.clipboard.readText()")


def test_a_link_a_card_and_a_prompt_can_be_copied(tab):
    prompt = tab.locator("#talk article.k-user").first
    link = copied(tab, "link", prompt)
    assert link == tab.url.split("#")[0] + "#" + prompt.get_attribute("id")
    command = tab.locator("#talk article.t-shell").first
    assert copied(tab, "card", command) == (
        "**Bash** run 0 (ok, 1.0s)\n\n```\nmake test-0\n```\n\n"
        "```\n0 passed, the needle among them\n```\n"
    )
    whole = copied(tab, "prompt", prompt)
    assert whole.startswith("**User**\n\nprompt number 0: please change the retry code\n\n---\n")
    assert "```diff\n-x = 0\n+x = 1\n y = 1\n```" in whole
    assert "Round 0 is **done**, with a [link](https://example.org/0)." in whole
    assert "prompt number 1:" not in whole


def test_the_resume_command_can_be_copied(tab):
    tab.locator(".about > summary").click()
    tab.locator("[data-copy=resume]").click()
    expect(tab.locator("[data-copy=resume]")).to_have_text("Copied")
    assert tab.evaluate("navigator.clipboard.readText()") == (
        "cd /code/demo && claude --resume 11111111-1111-4111-8111-111111111111"
    )


def test_everything_can_be_reached_and_named(tab):
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.className") == "skip"
    tab.keyboard.press("Enter")
    assert tab.evaluate("document.activeElement.id") == "talk"
    unnamed = tab.evaluate(
        """() => [...document.querySelectorAll("button, input, summary, a, [tabindex='0']")]
        .filter((e) => !(e.textContent.trim() || e.getAttribute("aria-label") || e.alt
          || e.labels?.length || e.querySelector("img[alt]"))).map((e) => e.outerHTML)"""
    )
    assert unnamed == []
