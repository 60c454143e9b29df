"""`--style pages` in a real browser, from files, with no network."""

from __future__ import annotations

from contextlib import closing

import pytest
from playwright.sync_api import expect
from tests.browser.attacks import PAYLOADS, PIXEL, Watched, hostile

from sess_cli.export import forge
from sess_cli.export.html import encrypted, pages
from sess_cli.export.story import Story
from sess_schema.connection import open_reader
from sess_schema.queries import sessions

MAIN = "11111111-1111-4111-8111-111111111111"
READY = "html.scripted"
# Remembers whether the first frame came before the script ran, and where the first text was.
FIRST_FRAME = """(() => {
  const look = () => {
    const shown = document.querySelector(".prompt, .message");
    if (!shown) { requestAnimationFrame(look); return; }
    const ready = document.documentElement.classList.contains("scripted");
    window.seen = { ready, top: shown.getBoundingClientRect().top };
  };
  requestAnimationFrame(look);
})()"""


@pytest.fixture
def site(world, browser):
    """Records to a tab that shows one of the files made of them."""
    contexts = []

    def opened(*records, name="index.html", fragment="", lock=None, **options):
        world.transcript().append(*records)
        world.ingest()
        folder = world.root / "pages"
        with closing(open_reader(world.state / "index.db")) as db:
            story = Story(db, sessions.resolve(db, MAIN))
            pages.write(story, str(folder), repository=forge.parse("me/it"), utc=True, lock=lock)
        context = browser.new_context(offline=True, locale="en-GB", **options)
        contexts.append(context)
        watched = Watched(context)
        watched.tab.add_init_script(FIRST_FRAME)
        watched.open(folder / name, fragment)
        if lock is None and options.get("java_script_enabled", True):
            watched.tab.wait_for_selector(READY)
        return watched

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture
def talk(world):
    """Seven prompts on two pages; the last but one was answered with a long output."""
    t = world.transcript()
    return [
        *(t.prompt(f"prompt {n}") for n in range(1, 7)),
        t.call("c1", command="make all"),
        t.result("c1", "".join(f"line {n}\n" for n in range(200)) + "the Needle <b> & co"),
        t.prompt("prompt 7"),
    ]


def status_is(tab, text):
    tab.wait_for_function(
        "text => document.getElementById('status')?.textContent === text", arg=text
    )


def test_a_reader_finds_the_way_through_the_pages(site, talk):
    watched = site(*talk)
    tab = watched.tab
    tab.click("nav.pages >> nth=0 >> text=Next →")
    assert tab.url.endswith("/page-001.html")
    tab.click("nav.pages >> nth=1 >> text=Next →")
    assert tab.url.endswith("/page-002.html")
    assert tab.locator("nav.pages >> nth=0").inner_text().split() == [
        "Index", "←", "Prev", "1", "2", "Next", "→",
    ]  # fmt: skip
    tab.click("nav.pages >> nth=0 >> text=Index")
    tab.get_by_role("link", name="Prompt 6").click()
    assert "/page-002.html#msg-" in tab.url
    assert tab.locator(".message:target").inner_text().endswith("prompt 6")
    watched.assert_quiet()


def test_search_covers_all_pages_from_a_file(site, talk):
    watched = site(*talk)
    tab = watched.tab
    tab.fill("#term", "needle <B> & CO")
    tab.keyboard.press("Enter")
    status_is(tab, "1 message found in 2 of 2 pages")
    hit = tab.locator("#results a")
    assert hit.locator("b").inner_text() == "Page 2 · Bash"
    assert hit.locator("mark").inner_text() == "Needle <b> & co"
    assert tab.evaluate("location.hash") == "#search=needle%20%3CB%3E%20%26%20CO"
    hit.click()
    assert "/page-002.html#msg-" in tab.url
    assert "the Needle <b> & co" in tab.locator(".message:target").text_content()
    watched.assert_quiet()


@pytest.mark.parametrize("name", ["index.html", "page-002.html"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_first_screen_does_not_wait_for_the_script_and_stays_where_it_is(
    site, talk, name, width
):
    tab = site(*talk, name=name, viewport={"width": width, "height": 800}).tab
    assert tab.evaluate("window.seen.ready") is False
    top = "document.querySelector('.prompt, .message').getBoundingClientRect().top"
    assert tab.evaluate(top) == tab.evaluate("window.seen.top")


@pytest.mark.parametrize("name", ["index.html", "page-001.html"])
def test_what_is_on_the_first_screen_is_laid_out_at_once_and_what_is_far_from_it_is_not(
    site, talk, name
):
    tab = site(*talk, name=name).tab
    found = tab.evaluate(
        "() => [...document.querySelectorAll('.prompt, .message')]"
        ".map((one) => getComputedStyle(one).contentVisibility)"
    )
    assert found[:3] == ["visible"] * 3
    assert {*found[3:]} == {"auto"}


def test_an_address_with_a_search_runs_it_and_closing_takes_it_away(site, talk):
    tab = site(*talk, fragment="#search=prompt").tab
    status_is(tab, "7 messages found in 2 of 2 pages")
    assert tab.input_value("#asked") == "prompt"
    tab.fill("#asked", "")
    status_is(tab, "Enter a search term.")
    tab.fill("#asked", "no such words")
    status_is(tab, "0 messages found in 2 of 2 pages")
    tab.keyboard.press("Escape")
    tab.wait_for_selector("#modal", state="hidden")
    tab.wait_for_function("() => location.hash === ''")


def test_slash_opens_the_search_and_a_page_sends_its_reader_to_the_index(site, talk):
    tab = site(*talk).tab
    tab.keyboard.press("/")
    assert tab.evaluate("document.activeElement.id") == "asked"
    tab.keyboard.type("prompt 3")
    status_is(tab, "1 message found in 2 of 2 pages")
    tab.click("#close")
    tab.wait_for_selector("#modal", state="hidden")
    tab.click("nav.pages >> nth=0 >> text=1")
    tab.wait_for_url("**/page-001.html")
    tab.wait_for_selector(READY)
    tab.keyboard.press("/")
    tab.keyboard.type("prompt 4")
    tab.keyboard.press("Enter")
    status_is(tab, "1 message found in 2 of 2 pages")
    assert tab.url.endswith("/index.html#search=prompt%204")


def test_long_blocks_fold_and_unfold_but_not_those_with_pictures(site, talk, world):
    t = world.transcript("22222222-2222-4222-8222-222222222222")
    image = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": PIXEL},
    }
    long = "word " * 4000
    tab = site(
        *talk,
        t.prompt([{"type": "text", "text": "look"}, image], sessionId=MAIN),
        t.answer(long, sessionId=MAIN),
        name="page-002.html",
    ).tab
    fold = tab.locator(".t-shell .fold.short")
    fold.wait_for()
    assert fold.evaluate("one => one.offsetHeight") == 200
    tab.click("text=Show more")
    assert tab.locator(".t-shell .fold").first.evaluate("one => one.offsetHeight") > 2000
    tab.click("text=Show less")
    expect(fold).to_have_count(1)
    expect(tab.locator(".k-assistant .fold.short")).to_have_count(0)
    tab.focus(".zoom")
    tab.keyboard.press("Enter")
    expect(tab.locator("dialog.picture img")).to_be_visible()
    tab.keyboard.press("Escape")
    tab.wait_for_selector("dialog.picture", state="detached")


def test_a_failure_is_folded_to_its_end_and_printed_whole(site, world):
    t = world.transcript()
    lines = "".join(f"line {n}\n" for n in range(200))
    failed = (t.call("c", command="make"), t.result("c", lines, is_error=True))
    tab = site(t.prompt("go"), *failed, name="page-001.html").tab
    fold = tab.locator(".fold.tail.short")
    fold.wait_for()
    inside = "one => one.querySelector('pre').getBoundingClientRect().bottom - one.{}.bottom"
    assert abs(fold.evaluate(inside.format("getBoundingClientRect()"))) < 1
    assert fold.evaluate("one => one.offsetHeight") == 200
    expect(tab.locator(".more-button")).to_have_text("Show more")
    tab.emulate_media(media="print")
    assert tab.locator(".fold.tail").evaluate("one => one.offsetHeight") > 2000


def test_everything_on_a_page_can_be_hit(site, talk):
    tab = site(*talk, name="page-002.html", viewport={"width": 390, "height": 800}).tab
    tab.locator(".more-button").wait_for()
    small = tab.evaluate(
        """() => [...document.querySelectorAll("button, input, nav a")]
        .filter((e) => e.offsetParent && (e.offsetHeight < 40 || e.offsetWidth < 40))
        .map((e) => e.outerHTML)"""
    )
    assert small == []


def test_a_link_into_something_folded_opens_it(site, world):
    t = world.transcript()
    meta = t.prompt("secret instructions\nin two lines", isMeta=True)
    first = t.prompt("hello")
    watched = site(first, meta, name="page-001.html", fragment="#msg-1769940001000")
    assert watched.tab.locator("details.asides").evaluate("one => one.open")
    expect(watched.tab.locator(".message:target")).to_be_visible()


def test_a_prompt_in_the_index_leads_to_its_page_and_its_links_where_they_say(site, world):
    t = world.transcript()
    watched = site(t.prompt("read <https://a.test/> and\n\n## do it"))
    tab = watched.tab
    aim = """(at) => {
        const box = document.querySelector(at).getBoundingClientRect();
        const hit = document.elementFromPoint(box.left + 8, box.top + box.height / 2);
        return hit.closest("a")?.getAttribute("href") ?? null; }"""
    assert tab.evaluate(aim, ".said a") == "https://a.test/"
    assert tab.evaluate(aim, ".said h3").startswith("page-001.html#msg-")
    tab.get_by_role("heading", name="#1 ").click()
    tab.wait_for_url("**/page-001.html#msg-*")


def test_times_are_shown_as_on_every_other_page(site, talk):
    tab = site(*talk, name="index.html").tab
    assert tab.locator("time").first.inner_text() == "2026-02-01 10:00"


def test_everything_can_be_read_without_scripts(site, talk):
    tab = site(*talk, name="page-002.html", java_script_enabled=False).tab
    assert "the Needle <b> & co" in tab.locator("main").inner_text()
    expect(tab.locator("#search")).to_be_hidden()
    tab.click("nav.pages >> nth=0 >> text=Index")
    expect(tab.locator("article.prompt")).to_have_count(7)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_colours_follow_the_system(site, talk, scheme):
    tab = site(*talk, color_scheme=scheme).tab
    background = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == {"light": "rgb(246, 245, 242)", "dark": "rgb(21, 23, 26)"}[scheme]


def test_the_theme_is_switched_as_on_every_other_page(site, talk):
    tab = site(*talk, color_scheme="light").tab
    tab.get_by_role("button", name="Theme: system").click()
    background = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == "rgb(21, 23, 26)"


def test_nothing_hostile_runs_and_nothing_is_asked_for(site, world):
    t = world.transcript()
    watched = site(*hostile(t))
    tab = watched.tab
    bad = "() => [...document.querySelectorAll('*')].filter(one => [...one.attributes].some("
    bad += "at => /^on|^style$/.test(at.name) || /^\\s*(javascript|data:text)/i.test(at.value)))"
    bad += ".length + document.querySelectorAll('script:not([type])').length - 2"
    open_all = "for (const one of document.querySelectorAll('details')) one.open = true"
    names = sorted(path.name for path in (world.root / "pages").glob("*.html"))
    assert len(names) > 10
    for name in names:
        watched.open(world.root / "pages" / name)
        tab.evaluate(open_all)
        assert (name, tab.evaluate(bad)) == (name, 0)
        watched.assert_quiet()
    watched.open(world.root / "pages" / "index.html", "#search=%3Cscript%3E")
    tab.wait_for_function(
        "pages => document.getElementById('status').textContent.includes(`${pages} of ${pages}`)",
        arg=len(names) - 1,
    )
    assert tab.locator("#results a").count() > len(PAYLOADS)
    expect(tab.locator("#results script, #results img")).to_have_count(0)
    watched.assert_quiet()


def test_encrypted_pages_ask_once_in_a_tab(site, talk):
    """The links, the search and the address of a message work as in plain pages."""
    pytest.importorskip("cryptography")
    watched = site(*talk, lock=encrypted.Lock("right"))
    tab = watched.tab
    assert tab.title() == "Encrypted session"
    tab.get_by_label("Passphrase").fill("right")
    tab.keyboard.press("Enter")
    tab.fill("#term", "needle")
    tab.keyboard.press("Enter")
    status_is(tab, "1 message found in 2 of 2 pages")
    tab.locator("#results a").click()
    tab.wait_for_selector(".message:has-text('the Needle')")
    assert "/page-002.html#msg-" in tab.url
    tab.click("nav.pages >> nth=0 >> text=Index")
    expect(tab.locator("main.timeline")).to_contain_text("prompt 6")
    watched.assert_quiet()
    with closing(tab.context.new_page()) as other:
        other.goto(tab.url)
        expect(other.get_by_label("Passphrase")).to_be_visible()
