"""Pages that run only our scripts and load nothing."""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from pathlib import Path

from sess_cli.export.html import markup

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


def head(title: str, *, style: str, script: str) -> str:
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
        f"<title>{markup.text(title)}</title>\n<style>{style}</style>\n"
        f"<script>{early}</script>\n</head>\n"
    )


def _hash(source: str) -> str:
    return f"sha256-{b64encode(sha256(source.encode()).digest()).decode()}"
