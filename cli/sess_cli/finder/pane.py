"""Scrolling lines, each drawn when it becomes visible."""

from __future__ import annotations

from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

_GAP = 1  # between the text and the scrollbar


class Pane(ScrollView, can_focus=True):
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
