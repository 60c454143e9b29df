"""The list of results: conversation titles, each with its hits below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip

from sess_cli.finder import looks
from sess_cli.finder.looks import Pane, Piece
from sess_cli.finder.query import Answer, Conversation
from sess_cli.render import amounts, layout
from sess_common import times
from sess_schema.ids import EventId, SessionId
from sess_schema.queries.search import Hit

_WHAT = 16  # cells for the speaker or tool, so that excerpts align
_INDENT = 2
_WIDEST_PLACE = 30
_NARROWEST = 20
_SPACIOUS = 30  # lines from which conversations are separated by a blank one


@dataclass(frozen=True, slots=True)
class Item:
    """What a line represents: a hit, a session, or the hits not shown."""

    conversation: Conversation
    hit: Hit | None = None
    more: bool = False

    @property
    def session(self) -> SessionId:
        return self.hit.session_key if self.hit else self.conversation.card.row.key

    @property
    def event(self) -> EventId | None:
        return self.hit.event if self.hit else None

    def same_hit(self, other: Item) -> bool:
        return (self.session, self.event) == (other.session, other.event)


@dataclass(frozen=True, slots=True)
class _Line:
    item: Item
    heading: bool  # cannot be chosen
    empty: bool = False


class ResultList(Pane):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", show=False),
        Binding("down", "move(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("home", "end(-1)", show=False),
        Binding("end", "end(1)", show=False),
    ]

    class Chosen(Message):
        """The current line has changed."""

    class Opened(Message):
        """The current line was opened."""

    class Left(Message):
        """The user moved up from the first line."""

    def __init__(self, *, utc: bool) -> None:
        super().__init__(id="results")
        self._utc = utc
        self._lines: list[_Line] = []
        self._cursor = 0
        self._moved = False
        self._now = times.now_ms()
        self.answer: Answer | None = None

    @property
    def item(self) -> Item | None:
        return self._lines[self._cursor].item if self._lines else None

    @property
    def excerpt_width(self) -> int:
        return max(_NARROWEST, self.line_width - _INDENT - _WHAT - 1)

    def show(self, answer: Answer, *, same_question: bool) -> None:
        """Draw an answer; the line the user moved to stays current."""
        kept = self.item if same_question and self._moved else None
        self.answer = answer
        self._now = times.now_ms()
        self._lines = [*self._laid_out(answer.conversations)]
        self.hold(len(self._lines))
        line = self._line_of(kept) if kept else None
        self._moved = line is not None
        self._cursor = self._step(-1, 1) if line is None else line
        if not same_question:
            self.show_from(0)

    def _line_of(self, item: Item) -> int | None:
        """Where an item is now; a `more hits` line may have become those hits."""
        numbers = [n for n, line in enumerate(self._lines) if line.item.same_hit(item)]
        exact = [n for n in numbers if self._lines[n].item.more == item.more]
        choosable = [n for n in exact or numbers if not self._lines[n].heading]
        return choosable[0] if choosable else None

    def _laid_out(self, conversations: Sequence[Conversation]) -> Iterator[_Line]:
        spaced = self.size.height >= _SPACIOUS
        for number, one in enumerate(conversations):
            if number and spaced and one.hits:
                yield _Line(Item(one, one.hits[0]), heading=True, empty=True)
            yield from _lines(one)

    # -- moving

    def action_move(self, by: int) -> None:
        if by < 0 and self._cursor <= self._step(-1, 1):
            self.post_message(self.Left())
        else:
            self.step(by)

    def step(self, by: int) -> None:
        self._go(self._step(self._cursor, by))

    def action_page(self, by: int) -> None:
        at = self._cursor + by * max(1, self.size.height - 1)
        self._go(self._step(max(-1, min(at, len(self._lines))) - by, by))

    def action_end(self, by: int) -> None:
        self._go(self._step(-1 if by < 0 else len(self._lines), -by))

    def on_click(self, event: events.Click) -> None:
        number = event.y + self.scroll_offset.y
        if 0 <= number < len(self._lines):
            self._go(self._step(number - 1, 1))
            if event.chain > 1:
                self.post_message(self.Opened())

    def _step(self, start: int, by: int) -> int:
        """The next selectable line in a direction; the nearest one at an end."""
        at = start + by
        while 0 <= at < len(self._lines) and self._lines[at].heading:
            at += by
        if 0 <= at < len(self._lines):
            return at
        choosable = [number for number, line in enumerate(self._lines) if not line.heading]
        return (choosable[-1] if by > 0 else choosable[0]) if choosable else 0

    def _go(self, number: int) -> None:
        if not self._lines or number == self._cursor:
            return
        self._cursor, self._moved = number, True
        top = number - 1 if number and self._lines[number - 1].heading else number
        height, offset = self.size.height, self.scroll_offset.y
        if top < offset:
            self.show_from(top)
        elif number >= offset + height:
            self.show_from(number - height + 1)
        self.refresh()
        self.post_message(self.Chosen())

    # -- drawing

    def on_resize(self) -> None:
        self.hold(len(self._lines))

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    def render_line(self, y: int) -> Strip:
        number, width = y + self.scroll_offset.y, self.line_width
        if number >= len(self._lines):
            return self.filled(Strip([]))
        current = number == self._cursor
        bar = current and self.has_focus
        marker = ("▌", looks.MARKER) if current and not bar else (" ", looks.PLAIN)
        pieces = self._pieces(self._lines[number], width - 1, bar=bar)
        strip = self.filled(looks.strip((marker, *pieces), width))
        return strip.apply_style(looks.CHOSEN) if bar else strip

    def _pieces(self, line: _Line, width: int, *, bar: bool) -> Iterator[Piece]:
        item = line.item
        if line.empty:
            return iter(())
        if line.heading or item.hit is None:
            return self._session(item.conversation, width)
        if item.more:
            count = amounts.plural(item.conversation.more, "more hit")
            words = f"{count if self.answer and self.answer.complete else 'more hits'} here"
            return iter([(" " * (_INDENT + _WHAT - 1) + words, looks.DIM)])
        return _hit(item, item.hit, width, bar=bar)

    def _session(self, conversation: Conversation, width: int) -> Iterator[Piece]:
        card = conversation.card
        place = layout.tail_of(looks.line(card.row.project), min(_WIDEST_PLACE, width // 4))
        about = f"{place} · {amounts.ago(card.row.ended, self._now, utc=self._utc)}"
        title = layout.cut(card.title, max(4, width - layout.cells(about) - 2))
        gap = width - layout.cells(title) - layout.cells(about)
        yield title, looks.BOLD
        yield " " * max(1, gap), looks.PLAIN
        yield about, looks.DIM


def _lines(conversation: Conversation) -> list[_Line]:
    if not conversation.hits:
        return [_Line(Item(conversation), heading=False)]
    first, last = conversation.hits[0], conversation.hits[-1]
    lines = [_Line(Item(conversation, first), heading=True)]
    lines += [_Line(Item(conversation, hit), heading=False) for hit in conversation.hits]
    if conversation.more:
        lines.append(_Line(Item(conversation, last, more=True), heading=False))
    return lines


def _hit(item: Item, hit: Hit, width: int, *, bar: bool) -> Iterator[Piece]:
    status = f" {hit.status}" if hit.status in ("error", "denied", "pending") else ""
    name = looks.line(hit.tool) if hit.type == "tool_use" and hit.tool else hit.type
    if hit.session_key != item.conversation.card.row.key:
        name = f"↳ {name}"
    name = layout.cut(name, _WHAT - 1 - len(status))
    yield " " * (_INDENT - 1), looks.PLAIN
    yield name, looks.PLAIN if bar else looks.TOOL
    if status:
        yield status, looks.PLAIN if bar else looks.STATUS[status[1:]]
    yield " " * (_WHAT - layout.cells(name) - len(status)), looks.PLAIN
    match = looks.CHOSEN_MATCH if bar else looks.MATCH
    yield from looks.marked(hit.snippet.text, hit.snippet.spans, match)
