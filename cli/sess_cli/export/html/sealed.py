"""Pages that run only our scripts and load nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING

from sess_cli.export.html import shell
from sess_cli.export.html.shell import asset

if TYPE_CHECKING:
    from sess_cli.export.html.encrypted import Lock

GENERATOR = "sess export html"
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
    top = shell.head(title, style=style, script=used, generator=GENERATOR)
    yield f"{top}<body>\n".encode()
    for piece in body:
        yield piece.encode()
    yield f"\n<script>{used}</script>\n</body>\n</html>\n".encode()
