"""First paint and first text of a page: in headless Chromium from disk, also on a slow processor.

Beside the pages of other programs: `make bench COMPARE=1`.
"""

import os
import shutil
import statistics
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import peers
from harness import SESS, BenchError, Store, run, say
from report import Context, Row

if TYPE_CHECKING:
    from playwright.sync_api import Browser

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
SIZES = (0.3, 3.0, 30.0)  # MB of transcript
RATES = {1: "", 4: ", processor at a quarter"}
LOAD_SECONDS = 120
# Each form, and what another program's page of the same form is compared with.
OURS: dict[str, tuple[str, tuple[str, ...]]] = {
    "one page": ("page.html", ()),
    "plain HTML": ("static.html", ("--static",)),
    "first of the pages": ("pages/page-001.html", ("--style", "pages")),
    "index of the pages": ("pages/index.html", ("--style", "pages")),
}
THEIRS = {
    "claude-code-log, one page": ("log.html", "one page"),
    "claude-code-transcripts, the first page": ("theirs/page-001.html", "first of the pages"),
    "claude-code-transcripts, the index": ("theirs/index.html", "index of the pages"),
}
PAINTED = """() => new Promise((done) => {
  const look = () => {
    const [paint, text] = ["first-paint", "first-contentful-paint"]
      .map((name) => performance.getEntriesByName(name)[0]?.startTime);
    if (text) done([paint, text]); else setTimeout(look, 20);
  };
  look();
})"""
LOADED = "() => [performance.getEntriesByType('navigation')[0].loadEventEnd]"
MOMENTS = ("first paint", "first text")


@contextmanager
def chromium() -> Iterator["Browser"]:
    try:
        from playwright.sync_api import sync_playwright  # an extra
    except ImportError:
        raise BenchError("needs Playwright: pip install -e '.[dev]'") from None
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        raise BenchError(f"needs one of {', '.join(BROWSERS)}")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


def visit(browser: "Browser", path: Path, rate: int, *, whole: bool = False) -> list[float]:
    """Milliseconds from the navigation to the first paint and text, or to the end of loading."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    try:
        tab = context.new_page()
        blank = path.with_name("blank.html")
        blank.write_text("<!doctype html><title>blank</title><p>blank</p>\n")
        tab.goto(blank.as_uri())  # the process that draws local files has begun
        protocol = context.new_cdp_session(tab)
        protocol.send("Emulation.setCPUThrottlingRate", {"rate": rate})
        until: Any = "load" if whole else "commit"
        tab.goto(path.as_uri(), wait_until=until, timeout=LOAD_SECONDS * 1000)
        return [float(at) for at in tab.evaluate(LOADED if whole else PAINTED)]
    finally:
        context.close()


Times = dict[str, tuple[float, ...]]  # of each page, at MOMENTS


def medians(c: Context, browser: "Browser", pages: dict[str, Path], rate: int) -> Times:
    """In turns, so that whatever else the machine does meets all of them."""
    found: dict[str, list[list[float]]] = {name: [] for name in pages}
    for _ in range(c.repeat):
        for name, path in pages.items():
            found[name].append(visit(browser, path, rate))
    return {
        name: tuple(map(statistics.median, zip(*times, strict=True)))
        for name, times in found.items()
    }


def written(store: Store) -> dict[str, Path]:
    pages = {}
    for what, (name, options) in OURS.items():
        target = store.out / "paint" / name.split("/")[0]
        target.parent.mkdir(exist_ok=True)
        if not target.exists():
            command = [SESS, "export", "html", "last", *options, "-o", str(target), "--no-sync"]
            run(command, store.env)
        pages[what] = store.out / "paint" / name
    return pages


def stores(c: Context) -> Iterator[Store]:
    for size in SIZES[:2] if c.quick else SIZES:
        yield c.work.store(size, 1)


def paint(c: Context) -> None:
    with chromium() as browser:
        for store in stores(c):
            pages = written(store)
            for rate, slow in RATES.items():
                for what, values in medians(c, browser, pages, rate).items():
                    for moment, value in zip(MOMENTS, values, strict=True):
                        name = f"{what}, {store.mb:.2g} MB{slow}: {moment}"
                        c.add(Row("paint", name, value, "ms"))
        [whole] = visit(browser, pages["plain HTML"], 1, whole=True)
        c.add(Row("paint", f"plain HTML, {store.mb:.2g} MB, loaded", whole, "ms", 3000))


def beside(c: Context) -> None:
    """The same sessions as pages of other programs, and ours again in the same turns."""
    peers.install()
    with chromium() as browser:
        for store in stores(c):
            ours, theirs = written(store), _written_by_others(store)
            if not theirs:
                raise BenchError("none of them could be installed and run here")
            for rate, slow in RATES.items():
                found = medians(c, browser, {**ours, **theirs}, rate)
                for what in theirs:
                    like = THEIRS[what][1]
                    for moment, value, ours_at in zip(
                        MOMENTS, found[what], found[like], strict=True
                    ):
                        name = f"{what}, {store.mb:.2g} MB{slow}: {moment}"
                        row = Row("peers-paint", name, value, "ms")
                        row.ratio, row.to = value / ours_at, f"sess: {like}"
                        c.add(row)


def _written_by_others(store: Store) -> dict[str, Path]:
    out = store.out / "paint"
    longest = max(store.home.rglob("*.jsonl"), key=lambda path: path.stat().st_size)
    env = store.env | {"XDG_CACHE_HOME": str(out), "PATH": os.environ["PATH"]}
    for name, options in (
        ("claude-code-log", [str(longest), "-o", str(out / "log.html")]),
        ("claude-code-transcripts", ["json", str(longest), "-o", str(out / "theirs")]),
    ):
        try:
            subprocess.run(
                [str(peers.VENV / name), *options],
                env=env, capture_output=True, timeout=peers.PATIENCE, check=True,
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError) as error:
            say(f"{name}: {str(error)[-120:]}")
    pages = {what: out / name for what, (name, _) in THEIRS.items()}
    return {what: path for what, path in pages.items() if path.exists()}


BENCHES: dict[str, Callable[[Context], None]] = {"paint": paint}
PEERS: dict[str, Callable[[Context], None]] = {"peers-paint": beside}
