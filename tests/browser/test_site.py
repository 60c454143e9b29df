"""The site in a browser: lists, and the search over all sessions."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect
from tests.browser.attacks import Watched

A, B = (f"{letter * 8}-1111-4111-8111-111111111111" for letter in "ab")
EVIL = "<img src=x onerror=alert(1)><script>alert(2)</script>"


@pytest.fixture
def browser_page(browser):
    context = browser.new_context(offline=True, viewport={"width": 1280, "height": 800})
    watched = Watched(context)
    yield watched.tab
    watched.assert_quiet()
    context.close()


@pytest.fixture
def site(world, tmp_path):
    for session, word in ((A, "walrus"), (B, "octopus")):
        t = world.transcript(session, folder=f"-code-{word}")
        t.append(
            t.prompt(f"{EVIL} find the {word}", cwd=f"/code/{word}{EVIL}"),
            t.call("c", "Bash", command=f"grep -r {word} {EVIL}"),
            t.result("c", f"{'x' * 9000}\nZebra crossing {EVIL}"),
            *(line for n in range(80) for line in (t.prompt(f"more {n}"), t.answer(f"ok {n}"))),
            t.answer(f"the {word} sleeps"),
        )
    world.ingest()
    world.run("sess", "export", "site", "-o", tmp_path / "site", "--no-sync", check=0)
    return (tmp_path / "site" / "index.html").as_uri()


def test_search_finds_text_of_any_session_and_links_to_it(browser_page, site):
    page = browser_page
    status = page.locator("#status")
    page.goto(site)
    page.keyboard.press("/")
    page.keyboard.type("WALRUS sleeps")
    expect(status).to_have_text("1 event in 1 session")
    expect(page.locator("#hits mark").first).to_have_text("walrus")
    expect(page.locator("#lists")).to_be_hidden()
    page.click("#hits p a")
    expect(page.get_by_text("the walrus sleeps").first).to_be_in_viewport()
    assert page.input_value("#query") == "walrus"  # the page goes on searching
    expect(page.locator("#found")).to_have_text("3 of 3")
    page.go_back()
    expect(status).to_have_text("1 event in 1 session")
    assert page.input_value("#query") == "WALRUS sleeps"
    page.fill("#query", '"zebra crossing"')
    expect(status).to_have_text("2 events in 2 sessions")
    page.fill("#query", "nowhere to be found")
    expect(status).to_have_text("No matches")
    page.keyboard.press("Escape")
    expect(page.locator("#lists")).to_be_visible()


def test_on_a_phone_nothing_lies_below_the_theme_button(browser_page, site):
    page = browser_page
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(site)
    button = page.locator("#theme").bounding_box()
    assert page.locator(".masthead .facts").bounding_box()["y"] > button["y"] + button["height"]
    gap = "document.querySelector('h2').getBoundingClientRect().top"
    assert (
        page.evaluate(f"{gap} - document.querySelector('#query').getBoundingClientRect().bottom")
        < 50
    )


def test_lists_lead_to_sessions_and_back(browser_page, site):
    page = browser_page
    page.goto(site)
    expect(page.locator(".projects li")).to_have_count(2)
    page.click(".projects li >> nth=0 >> a")
    page.click(".sessions a")
    page.wait_for_selector("article.card")
    page.click(".trail a >> nth=0")
    assert page.url == site
