"""Colours that any terminal has, dark or light, and foreign text that cannot leave its line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from sess_cli.render import layout
from sess_schema.escape import safe

Part = tuple[str, Style]

PLAIN = Style()
BOLD = Style(bold=True)
DIM = Style(dim=True)
THOUGHT = Style(dim=True, italic=True)
NAME = Style(color="cyan")
TOOL = Style(color="magenta")
FAILED = Style(color="red")
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


def marked(text: str, spans: Iterable[tuple[int, int]], match: Style) -> Iterator[Part]:
    """One line of foreign text with the places that matched."""
    at = 0
    for begin, end in spans:
        yield _flat(text[at:begin]), PLAIN
        yield _flat(text[begin:end]), match
        at = end
    yield _flat(text[at:]), PLAIN


def strip(parts: Iterable[Part], width: int) -> Strip:
    """A line cut to a width. Much of a keystroke's time goes into these: no rich.Text."""
    segments, left = [], width
    for whole, style in parts:
        text = layout.cut(whole, left)
        segments.append(Segment(text, style))
        left -= layout.cells(text)
        if not left:
            break
    return Strip(segments, width - left)


def _flat(text: str) -> str:
    return safe(text).replace("\n", " ").replace("\t", " ")
