"""Styles for any terminal, dark or light; foreign text confined to its line; scrolling lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from sess_cli.render import layout
from sess_common.escape import safe

Piece = tuple[str, Style]
_GAP = 1  # between the text and the scrollbar

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


class Pane(ScrollView, can_focus=True):
    """Scrolling lines, each drawn when it becomes visible."""

    @property
    def line_width(self) -> int:
        return self.scrollable_content_region.width - _GAP

    def filled(self, strip: Strip) -> Strip:
        return strip.adjust_cell_length(self.line_width + _GAP)

    def hold(self, lines: int) -> None:
        """Set the number of lines. Setting `virtual_size` would lay out the whole screen again,
        which takes longer than drawing it."""
        self.set_reactive(Pane.virtual_size, Size(self.line_width, lines))
        self.vertical_scrollbar.window_virtual_size = lines
        if self.scroll_offset.y > self.max_scroll_y:
            self.show_from(self.max_scroll_y)
        self.refresh()

    def show_from(self, line: int) -> None:
        self.scroll_to(y=max(0, line), animate=False, force=True)
