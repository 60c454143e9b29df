"""Pieces of markup. Names come from transcripts: what is not ours is escaped here."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sess_cli.render import layout, tallies
from sess_schema.escape import safe
from sess_schema.queries.tally import Tally

_MOST_ROWS = 2000
_LONGEST = 400  # characters of a name; the rest tells nobody anything


def flat(text: str) -> str:
    """One line that shows what is in a name and obeys none of it."""
    shown = safe(text).replace("\n", "⏎").replace("\t", "⇥")
    return shown if len(shown) <= _LONGEST else shown[:_LONGEST] + "…"


def text(value: str) -> str:
    return html.escape(flat(value), quote=True)


def name(value: str, width: int, *, from_end: bool = False) -> str:
    """A name cut to a width, whole when somebody points at it, its direction its own affair."""
    shown = flat(value)
    cut = (layout.cut_start if from_end else layout.cut)(shown, width)
    whole = f' title="{html.escape(shown, quote=True)}"' if cut != shown else ""
    return f"<bdi{whole}>{html.escape(cut, quote=True)}</bdi>"


def whole(value: str) -> str:
    """A name in a place that cuts what does not fit by itself."""
    shown = html.escape(flat(value), quote=True)
    return f'<bdi dir="ltr" title="{shown}">{shown}</bdi>'


def path(value: str) -> str:
    """A path, its last part first: the one that tells most is there wherever it is cut."""
    above, _, last = flat(value).rpartition("/")
    if not above or not last:
        return whole(value)
    shown = html.escape(flat(value), quote=True)
    return (
        f'<bdi dir="ltr" title="{shown}">{html.escape(last)}</bdi>'
        f' <bdi dir="ltr" class="dim">{html.escape(above)}</bdi>'
    )


def tip(head: str, lines: Iterable[tuple[str, str]] = ()) -> str:
    """What a mark says when somebody points at it: a head, then names and values."""
    told = [text(head), *(f"{text(what)}\t{text(value)}" for what, value in lines)]
    return f"<title>{chr(10).join(told)}</title>"


def exact(value: int, shown: str | None = None) -> str:
    """A number for people, and the exact one for programs."""
    return f'<data value="{value}">{text(f"{value:,}" if shown is None else shown)}</data>'


def cost(tally: Tally) -> str:
    """What is not known is no money, but not nothing either."""
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
            told = f"{_MOST_ROWS:,} of {len(self.rows):,} rows; the total is of all."
            note = f'<p class="note">{told}</p>'
        return (
            f'<details class="data" id="{self.id}"><summary>Data</summary>{note}'
            f'<div class="scroll" tabindex="0" role="group" aria-label="Data">'
            f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody>{foot}</table>"
            "</div></details>"
        )


def _row(head: str, cells: Sequence[str]) -> str:
    return f'<tr><th scope="row">{head}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'


def figure(id_: str, title: str, said: str, chart: str, table: object = "") -> str:
    """A chart with its heading, what it shows in a sentence, and its data."""
    return (
        f'<figure id="{id_}"><figcaption><h2>{text(title)}</h2>'
        f'<p class="note">{text(said)}</p></figcaption>{chart}{table}</figure>'
    )


def empty(said: str) -> str:
    return f'<p class="empty">{text(said)}</p>'
