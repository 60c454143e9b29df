"""The document around a page: head, policy, styles and scripts, inline or linked; encrypted or not.

No page loads anything but its own styles and scripts, and none sends anything.
"""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING

from sess_cli.export.html import markup

if TYPE_CHECKING:
    from sess_cli.export.html.encrypted import Lock

_ASSETS = os.path.join(os.path.dirname(__file__), "assets")
_STYLES = ("palette.css", "page.css", "cards.css", "unseal.css")
_SCRIPTS = (
    "../theme", "zstd", "store", "folds", "list", "outline", "strip", "markdown", "search",
    "filters", "keys", "../unseal", "start",
)  # fmt: skip
STYLE_NAME, SCRIPT_NAME = "page.css", "page.js"
GENERATOR = "sess export html"
THEME_BUTTON = '<button type="button" id="theme" hidden>◐</button>'


@cache
def style() -> str:
    return "\n".join(asset(name) for name in _STYLES)


@cache
def script() -> str:
    """Wrapped in a function, so that it defines no globals."""
    scripts = "\n".join(asset(os.path.join("page", f"{name}.js")) for name in _SCRIPTS)
    return f'(() => {{\n"use strict";\n{scripts}\n}})();\n'


@cache
def early() -> str:
    """Runs before the first paint: sets the chosen theme, and marks that scripts run."""
    return asset(os.path.join("page", "early.js"))


def document(
    title: str, body: Iterable[str], *, assets: str | None = None, level: str = "tools"
) -> Iterator[str]:
    """`assets`: the URL of a directory with `style()` and `script()`; None inlines them."""
    html = f'<html lang="en" data-level="{level}">'
    if assets is None:
        yield head(title, style=style(), script=script(), html=html)
        tail = f"<script>{script()}</script>"
    else:
        base = markup.attr(assets.rstrip("/"))
        yield head(title, links=[f"{base}/{STYLE_NAME}"], html=html)
        tail = f'<script src="{base}/{SCRIPT_NAME}"></script>'
    yield "<body>\n"
    yield from body
    yield f"\n{tail}\n</body>\n</html>\n"


def head(
    title: str,
    *,
    style: str = "",
    script: str = "",
    links: Sequence[str] = (),
    html: str = '<html lang="en">',
    generator: str = "sessiond",
    images: bool = True,
) -> str:
    """Everything before the body of any page, with the only security policy there is.

    A page runs `early()` and `script`, or the scripts beside it if its styles are `links`. It
    loads nothing else, and sends nothing.
    """
    styles, scripts = ("'self'", "'self'") if links else (_hashed(style), _hashed(script))
    policy = (
        f"default-src 'none'; script-src {_hashed(early())} {scripts}; style-src {styles};"
        f"{' img-src data:;' if images else ''} base-uri 'none'; form-action 'none'"
    )
    styled = "\n".join(f'<link rel="stylesheet" href="{link}">' for link in links)
    return (
        f'<!doctype html>\n{html}\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<meta name="generator" content="{generator}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{markup.text(markup.unmarked(title))}</title>\n"
        f"{styled or f'<style>{style}</style>'}\n<script>{early()}</script>\n</head>\n"
    )


def _hashed(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


@cache
def asset(name: str, folder: str = _ASSETS) -> str:
    """A file that is shipped with this module, or in the folder of another."""
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return file.read()


# -- pages with a script of their own


@cache
def _themed(name: str) -> str:
    """A script with the switch of themes; the page needs a `THEME_BUTTON`."""
    return f'"use strict";\n{asset("theme.js")}\n{asset("themed.js")}\n{asset(name)}'


@cache
def _unsealing(name: str, *, several: bool) -> str:
    """The same script, run when the passphrase has been given."""
    needed = "\n".join(map(asset, ("theme.js", "page/zstd.js", "unseal.js")))
    start = f"function start() {{\n{asset('themed.js')}\n{asset(name)}\n}}"
    block = """document.querySelector('script[data-what="sealed"]').textContent"""
    ask = f"askPassphrase({block}, start, {str(several).lower()});"
    return f'(() => {{\n"use strict";\n{needed}\n{start}\n{ask}\n}})();'


def scripted(
    title: str,
    body: Iterable[str],
    *,
    style: str,
    script: str,
    lock: Lock | None = None,
    several: bool = False,
) -> Iterator[bytes]:
    """A page with one of our scripts, piece by piece; only what is encrypted is joined first.

    `several`: other files are opened with the same key.
    """
    code = _themed(script) if lock is None else _unsealing(script, several=several)
    if lock is not None:
        style += asset("unseal.css")
        body = [lock.body(title, "".join(body))]
        title = lock.title
    top = head(title, style=style, script=code, generator=GENERATOR)
    yield f"{top}<body>\n".encode()
    for piece in body:
        yield piece.encode()
    yield f"\n<script>{code}</script>\n</body>\n</html>\n".encode()
