"""HTML snippets. Names come from transcripts, so they are escaped here."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sess_cli.render import layout, tallies
from sess_schema.escape import safe
from sess_schema.queries.tally import Tally

_MOST_ROWS = 2000
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


def exact(value: int, shown: str | None = None) -> str:
    """A number for people, with the exact one for programs."""
    return f'<data value="{value}">{text(f"{value:,}" if shown is None else shown)}</data>'


def cost(tally: Tally) -> str:
    """A cost; unknown is not the same as zero."""
    return exact(tally.cost_nano, tallies.cost(tally))


@dataclass(slots=True)
class Table:
    """The data behind a chart; the first column names the row, every other cell is markup."""

    id: str
    heads: Sequence[str]
    rows: list[tuple[str, list[str]]]
    total: list[str] | None = None

    def __str__(self) -> str:
        if not self.rows:
            return ""
        heads = "".join(f'<th scope="col">{name(head, 40)}</th>' for head in self.heads)
        rows = "".join(
            _row(name(head, 60, from_end=True), cells) for head, cells in self.rows[:_MOST_ROWS]
        )
        foot = ""
        if self.total is not None:
            foot = f"<tfoot>{_row('total', self.total)}</tfoot>"
        note = ""
        if len(self.rows) > _MOST_ROWS:
            shown = f"{_MOST_ROWS:,} of {len(self.rows):,} rows shown; the total includes all."
            note = f'<p class="note">{shown}</p>'
        return (
            f'<details class="data" id="{self.id}"><summary>Data</summary>{note}'
            f'<div class="scroll" tabindex="0" role="group" aria-label="Data">'
            f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody>{foot}</table>"
            "</div></details>"
        )


def _row(head: str, cells: Sequence[str]) -> str:
    return f'<tr><th scope="row">{head}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'


def figure(id_: str, title: str, caption: str, chart: str, table: object = "") -> str:
    """A chart with its heading, a caption, and its data."""
    return (
        f'<figure id="{id_}"><figcaption><h2>{text(title)}</h2>'
        f'<p class="note">{text(caption)}</p></figcaption>{chart}{table}</figure>'
    )


def empty(caption: str) -> str:
    return f'<p class="empty">{text(caption)}</p>'
