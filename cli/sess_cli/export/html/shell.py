"""The document around a page: head, policy, styles and scripts, inline or linked."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Iterable, Iterator
from functools import cache
from hashlib import sha256

from sess_cli.export.html import markup

_ASSETS = os.path.join(os.path.dirname(__file__), "assets")
_STYLES = ("palette.css", "page.css", "cards.css", "unseal.css")
_SCRIPTS = (
    "../theme", "zstd", "store", "folds", "list", "outline", "strip", "markdown", "search",
    "filters", "keys", "../unseal", "start",
)  # fmt: skip
STYLE_NAME, SCRIPT_NAME = "page.css", "page.js"


@cache
def style() -> str:
    return "\n".join(_read(name) for name in _STYLES)


@cache
def script() -> str:
    """Wrapped in a function, so that it defines no globals."""
    scripts = "\n".join(_read(os.path.join("page", f"{name}.js")) for name in _SCRIPTS)
    return f'(() => {{\n"use strict";\n{scripts}\n}})();\n'


@cache
def early() -> str:
    """Runs before the first paint: sets the chosen theme, and marks that scripts run."""
    return _read(os.path.join("page", "early.js"))


def document(
    title: str, body: Iterable[str], *, assets: str | None = None, level: str = "tools"
) -> Iterator[str]:
    """`assets`: the URL of a directory with `style()` and `script()`; None inlines them."""
    head, tail, styles, scripts = _beside(assets) if assets is not None else _inside()
    policy = (
        f"default-src 'none'; script-src {scripts}; style-src {styles}; img-src data:;"
        " base-uri 'none'; form-action 'none'"
    )
    name = markup.text(markup.unmarked(title))
    yield (
        f'<!doctype html>\n<html lang="en" data-level="{level}">\n<head>\n'
        '<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<meta name="generator" content="sessiond">\n'
        f"<title>{name}</title>\n{head}\n<script>{early()}</script>\n</head>\n<body>\n"
    )
    yield from body
    yield f"\n{tail}\n</body>\n</html>\n"


def _inside() -> tuple[str, str, str, str]:
    return (
        f"<style>{style()}</style>",
        f"<script>{script()}</script>",
        _hashed(style()),
        f"{_hashed(early())} {_hashed(script())}",
    )


def _beside(folder: str) -> tuple[str, str, str, str]:
    base = markup.attr(folder.rstrip("/"))
    return (
        f'<link rel="stylesheet" href="{base}/{STYLE_NAME}">',
        f'<script src="{base}/{SCRIPT_NAME}"></script>',
        "'self'",
        f"{_hashed(early())} 'self'",
    )


def _hashed(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _read(name: str) -> str:
    with open(os.path.join(_ASSETS, name), encoding="utf-8") as file:
        return file.read()
