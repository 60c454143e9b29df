"""`sess pick` on the whole screen: mark records of a transcript, and see what a cut would take."""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Static

from sess_cli.edit.listing import shown_preview, tokens
from sess_cli.finder import looks
from sess_cli.picker import CHOSEN, PULLED, SUGGESTED, Marks
from sess_cli.render import amounts, layout
from sess_schema.queries.transcripts import Record

_THEMES = ("ansi-dark", "textual-ansi")
_ROLES = {
    "user": Style(color="green"),
    "assistant": Style(color="cyan"),
    "tool": Style(color="magenta"),
    "system": looks.DIM,
}
_MARKS = {
    CHOSEN: Style(color="red", bold=True),
    SUGGESTED: Style(color="yellow", bold=True),
    PULLED: Style(color="red"),
}
_KEYS = (
    ("space", "mark", "mark"),
    ("d", "mark, next", "mark_and_move"),
    ("s", "mark suggested", "mark_suggested"),
    ("c", "clear", "clear"),
    ("r", "relink", "relink"),
    ("f", "force", "force"),
    ("enter", "cut", "commit"),
    ("q", "quit", "abort"),
)


class Rows(ScrollView, can_focus=True, inherit_bindings=False):
    """The records, one line each; the cursor is always in view."""

    def __init__(self, marks: Marks, *, utc: bool) -> None:
        super().__init__()
        self._marks = marks
        self._utc = utc
        self.cursor = 0

    def on_mount(self) -> None:
        self.virtual_size = Size(0, len(self._marks.records))

    @property
    def record(self) -> Record:
        return self._marks.records[self.cursor]

    def move_to(self, place: int) -> None:
        self.cursor = max(0, min(place, len(self._marks.records) - 1))
        top, height = self.scroll_offset.y, max(1, self.size.height)
        if self.cursor < top:
            self.scroll_to(y=self.cursor, animate=False)
        elif self.cursor >= top + height:
            self.scroll_to(y=self.cursor - height + 1, animate=False)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        place = y + self.scroll_offset.y
        if place >= len(self._marks.records):
            return Strip.blank(self.size.width)
        width = self.scrollable_content_region.width
        strip = looks.strip(self._pieces(self._marks.records[place]), width)
        if place == self.cursor:
            rest = width - strip.cell_length
            segments = [
                Segment(one.text, (one.style or looks.PLAIN) + looks.CHOSEN) for one in strip
            ]
            return Strip([*segments, Segment(" " * rest, looks.CHOSEN)], width)
        return strip

    def _pieces(self, record: Record) -> list[looks.Piece]:
        mark = self._marks.mark(record.number)
        gone = record.number in self._marks.plan.gone
        time = "" if record.ts is None else amounts.clock(record.ts, utc=self._utc, seconds=True)
        preview = layout.cut(looks.line(shown_preview(record)), 400)
        return [
            (f" {mark} ", _MARKS.get(mark, looks.PLAIN)),
            (f"{record.number:>5}  ", looks.DIM),
            (f"{record.role:<9}", _ROLES[record.role]),
            (f" {tokens(record.tokens):>6}  {time:<8}  ", looks.DIM),
            (preview, looks.DIM + Style(strike=True) if gone else looks.PLAIN),
        ]

    def on_click(self, event: events.Click) -> None:
        self.move_to(event.y + self.scroll_offset.y)
        if isinstance(self.app, Picker):
            self.app.show()


class Picker(App[bool]):
    """Returns True if the marked records shall be cut."""

    TITLE = "sess pick"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    Screen { layout: vertical; background: ansi_default; }
    Rows { height: 1fr; scrollbar-size-vertical: 1; background: ansi_default; }
    #head, #trouble { height: 1; }
    #legend, #why { height: auto; max-height: 3; }
    #keys { height: 1; link-style: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "move(1)"),
        Binding("k,up", "move(-1)"),
        Binding("pagedown,ctrl+f", "page(1)"),
        Binding("pageup,ctrl+b", "page(-1)"),
        Binding("g,home", "first"),
        Binding("G,end", "last"),
        Binding("space,x", "mark"),
        Binding("d", "mark_and_move"),
        Binding("s", "mark_suggested"),
        Binding("c", "clear"),
        Binding("r", "relink"),
        Binding("enter", "commit"),
        Binding("f", "force"),
        Binding("escape", "leave"),
        Binding("q", "abort"),
        Binding("ctrl+c,ctrl+q", "abort", priority=True),
    ]

    def __init__(self, marks: Marks, *, utc: bool = False) -> None:
        super().__init__()
        self.marks = marks
        self._refusal = ""  # why the last key did nothing
        self.rows = Rows(marks, utc=utc)
        self.head = Static(id="head")
        self.trouble = Static(id="trouble")
        self.legend = Static(id="legend")
        self.why = Static(id="why")
        self.theme = next(name for name in _THEMES if name in self.available_themes)

    def compose(self) -> ComposeResult:
        yield self.head
        yield self.trouble
        yield self.rows
        yield self.why
        yield self.legend
        yield Static(self._keys(), id="keys")

    def on_mount(self) -> None:
        self.rows.focus()
        suggested = [
            at for at, record in enumerate(self.marks.records) if self.marks.why(record.number)
        ]
        self.call_after_refresh(self.rows.move_to, suggested[0] if suggested else 0)
        self.call_after_refresh(self.show)

    def show(self) -> None:
        """Everything around the rows."""
        marks = self.marks
        head = Text(no_wrap=True, overflow="ellipsis")
        head.append(marks.header(), looks.BOLD)
        if marks.relink:
            head.append("  relink", looks.NAME)
        if marks.force:
            head.append("  force", looks.NAME)
        self.head.update(head)
        trouble = self._refusal or marks.trouble()
        self._refusal = ""
        self.trouble.update(Text(trouble, Style(color="red"), no_wrap=True, overflow="ellipsis"))
        self.trouble.display = bool(trouble)
        why = looks.line(marks.why(self.rows.record.number))
        self.why.update(Text(why, Style(color="yellow")))
        self.why.display = bool(why)
        legend = Text(no_wrap=True, overflow="ellipsis")
        used = {marks.mark(record.number) for record in marks.records}
        for mark, what in ((CHOSEN, "marked"), (SUGGESTED, "suggested"), (PULLED, "goes with it")):
            if mark in used:
                legend.append(f"{mark} ", _MARKS[mark]).append(f"{what}   ", looks.DIM)
        self.legend.update(legend)
        self.legend.display = bool(legend)
        self.rows.refresh()

    @staticmethod
    def _keys() -> Text:
        text = Text(no_wrap=True, overflow="ellipsis")
        for key, what, action in _KEYS:
            click = Style.from_meta({"@click": f"app.{action}"})
            text.append("  " if text else "")
            text.append(key, looks.NAME + click).append(f" {what}", looks.DIM + click)
        return text

    # -- keys

    def action_move(self, step: int) -> None:
        self.rows.move_to(self.rows.cursor + step)
        self.show()

    def action_page(self, step: int) -> None:
        self.action_move(step * max(1, self.rows.size.height - 1))

    def action_first(self) -> None:
        self.rows.move_to(0)
        self.show()

    def action_last(self) -> None:
        self.rows.move_to(len(self.marks.records) - 1)
        self.show()

    def action_mark(self) -> None:
        self.marks.toggle(self.rows.record.number)
        self.show()

    def action_mark_and_move(self) -> None:
        self.action_mark()
        self.action_move(1)

    def action_mark_suggested(self) -> None:
        self.marks.choose_suggested()
        self.show()

    def action_clear(self) -> None:
        self.marks.clear()
        self.show()

    def action_relink(self) -> None:
        self.marks.relink = not self.marks.relink
        self.show()

    def action_force(self) -> None:
        self.marks.force = not self.marks.force
        self.show()

    def action_commit(self) -> None:
        if not self.marks.chosen:
            self._refusal = "nothing is marked; q quits"
            self.show()
        elif self.marks.warnings and not self.marks.force:
            self._refusal = f"not cut: {self.marks.trouble()}; f cuts anyway"
            self.show()
        else:
            self.exit(True)

    def action_leave(self) -> None:
        """Escape, which is pressed by mistake, does not take the marks."""
        if self.marks.chosen:
            self._refusal = "c clears the marks, q quits without cutting"
            self.show()
        else:
            self.exit(False)

    def action_abort(self) -> None:
        self.exit(False)
