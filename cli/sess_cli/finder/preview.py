"""The pane that shows the conversation around the current hit."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.strip import Strip

from sess_cli.finder.pane import Pane
from sess_cli.finder.passage import Passage


class Preview(Pane):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "scroll_up", show=False),
        Binding("down", "scroll_down", show=False),
        Binding("pageup", "page_up", show=False),
        Binding("pagedown", "page_down", show=False),
        Binding("home", "scroll_home", show=False),
        Binding("end", "scroll_end", show=False),
    ]

    def __init__(self) -> None:
        super().__init__(id="preview")
        self._lines: list[Strip] = []

    @property
    def text_width(self) -> int:
        return max(20, self.line_width)

    def clear(self) -> None:
        self._lines = []
        self.hold(0)

    def show(self, passage: Passage) -> None:
        """The chosen event near the top, unless that would hide its match."""
        self._lines = passage.strips
        self.hold(len(self._lines))
        height = self.size.height
        top = passage.top - height // 4
        if passage.match >= top + height - 2:
            top = passage.match - height // 2
        self.show_from(top)

    def render_line(self, y: int) -> Strip:
        number = y + self.scroll_offset.y
        return self.filled(self._lines[number] if number < len(self._lines) else Strip([]))
