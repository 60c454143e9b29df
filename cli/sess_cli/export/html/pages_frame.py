"""The frame around the content of every page of `--style pages`."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from sess_cli.export.html import markup, sealed, shell
from sess_common import times

if TYPE_CHECKING:
    from sess_cli.export.html.encrypted import Lock

_NUMBERS = 15  # up to this many pages are all listed
_AROUND = 3


@cache
def style() -> str:
    """`pages.css` comes last, to override the look of cards."""
    return "\n".join(shell.asset(name) for name in ("palette.css", "cards.css", "pages.css"))


def document(title: str, body: str, lock: Lock | None = None) -> bytes:
    column = f"<div class='column'>\n{body}\n</div>"
    return sealed.document(title, column, style=style(), name="pages.js", lock=lock, several=True)


def page_name(number: int) -> str:
    return f"page-{number:03}.html"


def navigation(current: int, total: int) -> str:
    """Links: Index, Prev, page numbers, Next; 0 is the index, and alone if there is one page."""
    links = [_step("Index", 0, current, rel="up")]
    if total > 1 or (total and not current):
        links.append(_step("← Prev", current - 1, current, off=current <= 1, rel="prev"))
        before = 0
        for number in range(1, total + 1):
            ends = number in (1, total)
            if total > _NUMBERS and not ends and abs(number - current) > _AROUND:
                continue
            if number != before + 1:
                links.append('<span class="gap">…</span>')
            links.append(_step(str(number), number, current))
            before = number
        links.append(_step("Next →", current + 1, current, off=current >= total, rel="next"))
    return f'<nav class="pages" aria-label="Pages">{"".join(links)}</nav>'


def _step(name: str, number: int, current: int, *, off: bool = False, rel: str = "") -> str:
    if number == current:
        return f'<span class="here" aria-current="page">{name}</span>'
    if off:
        return f'<span class="off" aria-disabled="true">{name}</span>'
    target = page_name(number) if number else "index.html"
    return f'<a href="{target}"{f" rel={rel}" if rel in ("prev", "next") else ""}>{name}</a>'


def moment(ts: int | None, *, utc: bool) -> str:
    if ts is None:
        return "<time>no time</time>"
    return f'<time datetime="{times.iso(ts)}">{times.local(ts, utc=utc):%Y-%m-%d %H:%M}</time>'


def search_box() -> str:
    """Not shown where no script runs."""
    return (
        '<div class="search" id="search"><input type="search" id="term"'
        ' placeholder="Search ( / )" aria-label="Search all pages" autocomplete="off"'
        ' spellcheck="false"><button type="button" id="find">Search</button></div>'
    )


def heading(title: str, below: str) -> str:
    whole = markup.attr(markup.unmarked(title))
    return (
        f'<header class="top"><div class="named"><h1 title="{whole}" dir="auto">'
        f"{markup.title(markup.line(title))}</h1>"
        f"{search_box()}{sealed.THEME_BUTTON}</div>{below}</header>"
    )
