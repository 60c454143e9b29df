"""Exports: one long session as a page, and a site of many sessions, drawn, kept and grown."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from harness import SESS, Store, median, run, run_watched
from report import Context, Row

OK = (0,)
FORMS: dict[str, tuple[str, ...]] = {
    "plain HTML": ("static.html", "html", "--static"),
    "a timeline": ("timeline.html", "html", "--style", "timeline"),
    "pages": ("pages", "html", "--style", "pages"),
    "Markdown": ("session.md", "md"),
    "JSON": ("session.json", "json"),
}
DECODE = """
import sys, orjson
for line in open(sys.argv[1], "rb"): orjson.loads(line)
"""


def page(c: Context) -> None:
    """A long session: 30 MB and 13,000 lines."""
    store = c.work.store(3 if c.quick else 30, 1)
    target = store.out / "page.html"
    command = [SESS, "export", "html", "last", "-o", str(target), "--no-sync"]
    watched = run_watched(command, store.env, OK, every=0.02)
    seconds = median(c.repeat, lambda: run(command, store.env))
    c.wall("page", f"session of {store.mb:.0f} MB as HTML", seconds, 1500)
    c.add(Row("page", "peak memory", watched.peak_mb, "MB", 200))
    c.add(Row("page", "size", target.stat().st_size / 1e6, "MB", 5))


def other_forms(c: Context) -> None:
    """The same session in other forms, beside decoding its transcript."""
    store = c.work.store(3 if c.quick else 30, 1)
    transcript = max(store.home.rglob("*.jsonl"), key=lambda one: one.stat().st_size)
    decode = [sys.executable, "-c", DECODE, str(transcript)]
    bare = median(c.repeat, lambda: run(decode)) - c.bare
    for what, (name, *options) in FORMS.items():
        target = store.out / name
        command = [SESS, "export", *options, "last", "-o", str(target), "--force", "--no-sync"]
        peak = run_watched(command, store.env, OK, every=0.02).peak_mb
        seconds = median(min(c.repeat, 3), lambda command=command: run(command, store.env))
        row = Row("export", f"session of {store.mb:.0f} MB as {what}", seconds * 1000, "ms")
        row.ratio, row.to = seconds / bare, "orjson over its transcript"
        c.add(row)
        c.add(Row("export", f"{what}: peak memory", peak, "MB", 200))
        c.add(Row("export", f"{what}: size", _size(target) / 1e6, "MB"))


def site(c: Context) -> None:
    store = c.work.store(12 if c.quick else 124, 30 if c.quick else 256)
    folder = store.out / "site"
    command = [SESS, "export", "site", "-o", str(folder), "--no-sync"]
    cold = _cold(store, command, folder)
    c.wall("site", f"{_pages(folder)} sessions of {store.mb:.0f} MB", cold, 10_000)
    c.add(Row("site", "size", _size(folder) / 1e6, "MB", 45))
    c.wall("site", "nothing changed", median(c.repeat, lambda: run(command, store.env)), 300)
    grown = []
    for _ in range(c.repeat):
        store.append("one more line")
        store.sync(store.live)
        grown.append(run(command, store.env).seconds)
    c.wall("site", "one session grown", sorted(grown)[len(grown) // 2], 500)


def _cold(store: Store, command: list[str], folder: Path) -> float:
    shutil.rmtree(folder, ignore_errors=True)
    return run(command, store.env).seconds


def _pages(folder: Path) -> int:
    return sum(1 for _ in (folder / "sessions").iterdir())


def _size(folder: Path) -> int:
    if folder.is_file():
        return folder.stat().st_size
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


BENCHES: dict[str, Callable[[Context], None]] = {
    "page": page,
    "export": other_forms,
    "site": site,
}
