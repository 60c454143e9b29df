"""Styles for any terminal, dark or light, and foreign text confined to its line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from sess_cli.render import layout
from sess_common.escape import safe

Piece = tuple[str, Style]

PLAIN = Style()
BOLD = Style(bold=True)
DIM = Style(dim=True)
THOUGHT = Style(dim=True, italic=True)
NAME = Style(color="cyan")
TOOL = Style(color="magenta")
FAILED = Style(color="red")
NOTICE = Style(color="yellow")
MATCH = Style(color="black", bgcolor="yellow", bold=True)
CHOSEN = Style(reverse=True)
CHOSEN_MATCH = Style(bold=True, underline=True)
MARKER = Style(color="cyan", bold=True)
STATUS = {
    "ok": Style(color="green"),
    "error": FAILED,
    "denied": Style(color="yellow"),
    "pending": Style(color="yellow"),
}


def line(text: str | None) -> str:
    """Foreign text on one line."""
    return " ".join(safe(text or "").split())


def marked(text: str, spans: Iterable[tuple[int, int]], match: Style) -> Iterator[Piece]:
    """One line of foreign text with its matches highlighted."""
    at = 0
    for begin, end in spans:
        yield _flat(text[at:begin]), PLAIN
        yield _flat(text[begin:end]), match
        at = end
    yield _flat(text[at:]), PLAIN


def strip(pieces: Iterable[Piece], width: int) -> Strip:
    """A line cut to a width. A hot path on every keystroke: no rich.Text."""
    segments, left = [], width
    for whole, style in pieces:
        text = layout.cut(whole, left)
        segments.append(Segment(text, style))
        left -= layout.cells(text)
        if not left:
            break
    return Strip(segments, width - left)


def _flat(text: str) -> str:
    return safe(text).replace("\n", " ").replace("\t", " ")
