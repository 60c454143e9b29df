"""Every kind of page is open to everybody: axe-core finds nothing, of any level, at any width."""

from __future__ import annotations

from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.browser.reader import MAIN, READY

from sess_cli.export.html import encrypted, page, pages, timeline
from sess_cli.export.html.page import Combined
from sess_cli.export.report import page as report
from sess_cli.export.site.build import Site, Wanted
from sess_cli.export.story import Story
from sess_schema.connection import open_reader
from sess_schema.queries import sessions
from sess_schema.queries.sessions import Listing
from sess_schema.queries.stats import Stats

OTHER = "22222222-2222-4222-8222-222222222222"
KINDS = (
    "reader", "static", "combined", "timeline", "pages/index", "pages/page-001", "site/index",
    "site/project", "site/session", "report", "locked", "unlocked",
)  # fmt: skip
WIDTHS = (390, 768, 1280)
RUN = """async () => (await axe.run(document, {resultTypes: ["violations"]})).violations.map(
    (one) => `${one.id} (${one.impact}): ${one.nodes.map((node) => node.html).join(" ")}`)"""


@pytest.fixture(scope="module")
def axe():
    found = find_spec("axe_playwright_python")
    if found is None or found.origin is None:
        pytest.skip("axe-playwright-python is not installed: NO PAGE WAS CHECKED FOR ACCESS")
    return (Path(found.origin).parent / "axe.min.js").read_text("utf-8")


@pytest.fixture(scope="module")
def written(long_world):
    """Every kind of page of a session with all that a card can have, by kind."""
    root = long_world.root / "axe"
    root.mkdir()
    t = long_world.transcript(OTHER)
    code = "def brew():\n" + "    return 418\n" * 40
    table = "| a | b |\n|---|---|\n| 1 | 2 |"
    t.append(
        t.prompt(f"# Heading\n\n```python\n{code}```\n\n{table}\n\n{table}"),
        t.call("r1", "Read", file_path="/code/demo/brew.py"),
        t.result("r1", "".join(f"{n}\tline {n}\n" for n in range(1, 60))),
        t.call("r2", "Read", file_path="/code/demo/pot.py"),
        t.result("r2", "".join(f"{n}\tline {n}\n" for n in range(1, 60))),
        t.call("q", "AskUserQuestion", questions=[{"question": "Black or green?", "options": []}]),
        t.result("q", "green"),
        t.answer(f"> quoted\n\n- [x] done\n\n{table}\n\n![pot](https://example.org/pot.png)"),
    )
    long_world.ingest()
    found = {name: root / f"{name}.html" for name in KINDS}
    with closing(open_reader(long_world.state / "index.db")) as db:
        main, other = (sessions.resolve(db, name) for name in (MAIN, OTHER))

        def put(name, write):
            with found[name].open("wb") as out:
                write(out)

        put("reader", lambda out: page.write(Story(db, main), out))
        put("static", lambda out: page.write(Story(db, other), out, page.Look(static=True)))
        both = Combined([Story(db, main), Story(db, other)])
        put("combined", lambda out: page.write(both, out))
        put("timeline", lambda out: timeline.write(Story(db, other), out))
        pages.write(Story(db, main), str(root / "pages"))
        site = Site(db, str(root / "site"), [*Listing(alone=True, limit=0).rows(db)], Wanted())
        assert not site.build(None).failed
        found["site/project"] = next((root / "site/projects").iterdir())
        found["site/session"] = next((root / "site/sessions").iterdir())
        report.write(db, Stats(), str(found["report"]))
        if find_spec("cryptography"):
            for name in ("locked", "unlocked"):
                put(name, lambda out: page.write(Story(db, main), out, lock=encrypted.Lock("key")))
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_axe_finds_nothing(kind, written, axe, browser):
    """At a phone's, a tablet's and a window's width, light and dark."""
    if not written[kind].exists():
        pytest.skip("cryptography is not installed")
    for width, scheme in ((390, "light"), (768, "dark"), (1280, "light"), (1280, "dark")):
        size = {"width": width, "height": 900}
        context = browser.new_context(viewport=size, color_scheme=scheme, offline=True)
        tab = context.new_page()
        tab.goto(written[kind].as_uri())
        if kind == "unlocked":
            tab.get_by_label("Passphrase").fill("key")
            tab.keyboard.press("Enter")
            tab.wait_for_selector(READY)
        tab.evaluate(axe)
        assert tab.evaluate(RUN) == [], (width, scheme)
        context.close()
