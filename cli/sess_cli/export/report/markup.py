"""HTML snippets. Names come from transcripts, so they are escaped here."""

from __future__ import annotations

import html
from collections.abc import Iterable

from sess_cli.render import layout
from sess_cli.render.stats.report import Amount
from sess_common.escape import safe

_LONGEST = 400  # characters of a name


def flat(text: str) -> str:
    """A name on one line, with its control characters made visible."""
    shown = safe(text).replace("\n", "⏎").replace("\t", "⇥")
    return shown if len(shown) <= _LONGEST else shown[:_LONGEST] + "…"


def text(value: str) -> str:
    return html.escape(flat(value), quote=True)


def name(value: str, width: int, *, from_end: bool = False) -> str:
    """A name cut to a width, whole in its tooltip, with its own text direction."""
    shown = flat(value)
    cut = (layout.cut_start if from_end else layout.cut)(shown, width)
    whole = f' title="{html.escape(shown, quote=True)}"' if cut != shown else ""
    return f"<bdi{whole}>{html.escape(cut, quote=True)}</bdi>"


def whole(value: str) -> str:
    """A whole name, for a place that cuts by itself what does not fit."""
    shown = html.escape(flat(value), quote=True)
    return f'<bdi dir="ltr" title="{shown}">{shown}</bdi>'


def path(value: str) -> str:
    """A path, its last name first, so that cutting keeps the most useful name."""
    above, _, last = flat(value).rpartition("/")
    if not above or not last:
        return whole(value)
    shown = html.escape(flat(value), quote=True)
    return (
        f'<bdi dir="ltr" title="{shown}">{html.escape(last)}</bdi>'
        f' <bdi dir="ltr" class="dim">{html.escape(above)}</bdi>'
    )


def tip(head: str, lines: Iterable[tuple[str, str]] = ()) -> str:
    """The tooltip of a mark: a heading, then names and values."""
    shown = [text(head), *(f"{text(what)}\t{text(value)}" for what, value in lines)]
    return f"<title>{chr(10).join(shown)}</title>"


def exact(value: int | Amount, shown: str = "") -> str:
    """A number for people, with the exact one for programs."""
    number = value.number if isinstance(value, Amount) else value
    return f'<data value="{number}">{text(shown or str(value))}</data>'


def empty(caption: str) -> str:
    return f'<p class="empty">{text(caption)}</p>'
