"""Pages that run only our scripts and load nothing."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from sess_cli.export.html import markup

if TYPE_CHECKING:
    from sess_cli.export.html.encrypted import Lock

GENERATOR = "sess export html"
_ASSETS = Path(__file__).with_name("assets")


@cache
def asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")


THEME_BUTTON = '<button type="button" id="theme" hidden>◐</button>'


@cache
def script(name: str) -> str:
    """A script with the switch of themes; the page needs a `THEME_BUTTON`."""
    return f'"use strict";\n{asset("theme.js")}\n{asset("themed.js")}\n{asset(name)}'


@cache
def _unsealing(name: str, *, several: bool) -> str:
    """The same script, run when the passphrase has been given."""
    needed = "\n".join(asset(one) for one in ("theme.js", "page/zstd.js", "unseal.js"))
    start = f"function start() {{\n{asset('themed.js')}\n{asset(name)}\n}}"
    block = """document.querySelector('script[data-what="sealed"]').textContent"""
    ask = f"askPassphrase({block}, start, {str(several).lower()});"
    return f'(() => {{\n"use strict";\n{needed}\n{start}\n{ask}\n}})();'


def document(
    title: str, body: str, *, style: str, name: str, lock: Lock | None = None, several: bool = False
) -> bytes:
    """A page with the script `name`; `several`: other files are opened with the same key."""
    pieces = [body]
    return b"".join(written(title, pieces, style=style, name=name, lock=lock, several=several))


def written(
    title: str,
    body: Iterable[str],
    *,
    style: str,
    name: str,
    lock: Lock | None = None,
    several: bool = False,
) -> Iterator[bytes]:
    """The same piece by piece; only what is encrypted has to be in memory as a whole."""
    used = script(name)
    if lock is not None:
        used, style = _unsealing(name, several=several), style + asset("unseal.css")
        body = [lock.body(title, "".join(body))]
        title = lock.title
    yield f"{_head(title, style=style, script=used)}<body>\n".encode()
    for piece in body:
        yield piece.encode()
    yield f"\n<script>{used}</script>\n</body>\n</html>\n".encode()


def _head(title: str, *, style: str, script: str) -> str:
    """Everything before the body; the policy allows only this style and these scripts."""
    early = asset("page/early.js")
    policy = (
        f"default-src 'none'; script-src '{_hash(early)}' '{_hash(script)}';"
        f" style-src '{_hash(style)}';"
        " img-src data:; base-uri 'none'; form-action 'none'"
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<meta name="generator" content="{GENERATOR}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{markup.text(markup.unmarked(title))}</title>\n<style>{style}</style>\n"
        f"<script>{early}</script>\n</head>\n"
    )


def _hash(source: str) -> str:
    return f"sha256-{b64encode(sha256(source.encode()).digest()).decode()}"
