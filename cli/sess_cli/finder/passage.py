"""The conversation around the current hit: its lines with the matches marked, and their pane."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import apsw
from rich.console import Console
from rich.style import Style
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.strip import Strip

from sess_cli.finder import looks
from sess_cli.finder.looks import Pane
from sess_cli.finder.query import Card, Cards
from sess_cli.finder.worker import Latest
from sess_cli.render import amounts, layout
from sess_common.escape import safe
from sess_schema import labels
from sess_schema.citations import Citations
from sess_schema.session import Entry, Reader

if TYPE_CHECKING:
    from sess_schema.ids import EventId, SessionId
    from sess_schema.queries.search.terms import Leaf


BEFORE, AFTER = 12, 30  # events around the chosen one
DEBOUNCE = 0.04
_FOLD = {"user": 12, "assistant": 40, "thinking": 3}
_OUTPUT, _ERROR, _NOTICE = 4, 10, 3
_READ = 4000  # characters of any other event
_MOST_CHOSEN = 200  # lines of the chosen event
_AROUND = 4  # lines around a match that stay unfolded
_WINDOW = 100_000  # characters on both sides of the first match in a very long text
_MOST_MARKS = 500
_SPACE = Text()  # between messages
# Rich needs a console to wrap text; nothing is written to this one.
_CONSOLE = Console(width=80, color_system=None, force_terminal=False, legacy_windows=False)


@dataclass(frozen=True, slots=True)
class Place:
    session: SessionId
    event: EventId | None  # None for the end of the session
    leaves: tuple[Leaf, ...]
    width: int


@dataclass(slots=True)
class Passage:
    place: Place
    card: Card | None
    cite: str | None = None  # the chosen event, after a `#`
    lines: list[Text] = field(default_factory=list)
    top: int = 0  # where the chosen event starts
    match: int = 0  # the line of its first match
    when: int | None = None
    strips: list[Strip] = field(default_factory=list)  # the lines as they are drawn

    def add(self, lines: Sequence[Text]) -> None:
        """Never two empty lines in a row."""
        if lines and lines[0] is _SPACE and self.lines and self.lines[-1] is _SPACE:
            lines = lines[1:]
        self.lines += lines


class Passages:
    """Reads the passage requested last."""

    def __init__(self, index: Path, show: Callable[[Passage], None]) -> None:
        self._show = show
        self._cards = Cards()
        self._latest: Latest[Place] = Latest(index, self._read, self._failed)
        self.ask, self.close = self._latest.ask, self._latest.close

    def _read(self, db: apsw.Connection, place: Place) -> None:
        self._latest.pause(DEBOUNCE)
        self._cards.refresh(db)
        passage = read(db, place, self._cards.of(db, place.session))
        self._latest.check()
        self._finish(passage)

    def _failed(self, place: Place, error: Exception) -> None:
        self._finish(Passage(place, None, lines=[Text(looks.line(str(error)), looks.FAILED)]))

    def _finish(self, passage: Passage) -> None:
        passage.strips = [Strip(line.render(_CONSOLE)) for line in passage.lines]
        self._show(passage)


def read(db: apsw.Connection, place: Place, card: Card) -> Passage:
    reader = Reader(db, place.session)
    order = reader.order
    at = order.index(place.event) if place.event in reader.places else len(order)
    first, last = max(0, at - BEFORE), min(len(order), at + AFTER)
    cite = None if place.event is None else Citations(db).short(place.event, place.session)
    passage = Passage(place, card, cite)
    if first:
        passage.add([_about(first, "earlier event"), _SPACE])
    shown = [
        *reader.some(order[first:at], _READ),
        *reader.some(order[at : at + 1]),
        *reader.some(order[at + 1 : last], _READ),
    ]
    for entry in shown:
        drawing = _Drawing(place, chosen=entry.id == place.event)
        drawn = [*drawing.lines(entry)]
        passage.add(drawn)
        if entry.id == place.event:
            passage.top = len(passage.lines) - len(drawn)
            passage.match, passage.when = passage.top + drawing.match, drawing.when
    if last < len(order):
        passage.add([_SPACE, _about(len(order) - last, "later event")])
    if place.event is None:
        passage.top, passage.when = len(passage.lines), card.row.ended
    return passage


def _about(count: int, what: str) -> Text:
    return Text(f"  … {amounts.plural(count, what)}", looks.DIM)


class _Drawing:
    """The lines of one event; those of the chosen one start with a bar."""

    def __init__(self, place: Place, *, chosen: bool) -> None:
        self._leaves = place.leaves
        self._chosen = chosen
        self._width = max(10, place.width - 2)
        self._bar = ("▌ ", looks.MARKER) if chosen else ("  ", looks.PLAIN)
        self.match = 0
        self._matched = False
        self.when: int | None = None
        self._drawn = 0

    def lines(self, event: Entry) -> Iterator[Text]:
        self.when = event.ts
        for text in self._body(event):
            self._drawn += 1
            yield text if text is _SPACE else Text.assemble(self._bar, text)

    def _body(self, event: Entry) -> Iterator[Text]:
        hidden = event.type == "system" and event.label != labels.COMPACT
        hidden = hidden or (event.type == "summary" and event.label in labels.TITLES)
        if hidden and not self._chosen:
            return
        if event.type == "user":
            yield from self._said("❯ ", event.text, looks.BOLD, event.type)
        elif event.type == "assistant":
            failed = event.label == labels.API_ERROR
            yield from self._said(
                "", event.text, looks.FAILED if failed else looks.PLAIN, "assistant"
            )
        elif event.type == "thinking":
            yield from self._said("✻ ", event.text, looks.THOUGHT, event.type)
        elif event.type == "tool_use":
            yield from self._call(event)
        else:
            yield Text(f"· {looks.line(event.label or event.type)}", looks.DIM)
            yield from self._folded(event.text, _NOTICE, looks.DIM)

    def _said(self, lead: str, text: str, style: Style, kind: str) -> Iterator[Text]:
        if kind != "thinking":
            yield _SPACE
        for number, line in enumerate(self._folded(text, _FOLD[kind], style, indent=len(lead))):
            before = lead if number == 0 else " " * len(lead)
            yield Text.assemble((before, looks.NAME if kind == "user" else style), line)
        if kind != "thinking":
            yield _SPACE

    def _call(self, event: Entry) -> Iterator[Text]:
        status = event.status or "pending"
        took = f" {amounts.duration(event.duration_ms)}" if event.duration_ms is not None else ""
        end = f"{status}{took}"
        tool = layout.cut(looks.line(event.tool or "unknown tool"), self._width // 2)
        style = looks.STATUS.get(status, looks.DIM)
        summary = self._marked(looks.line(event.summary), looks.PLAIN)
        room = max(1, self._width - layout.cells(tool) - len(end) - 6)
        summary.truncate(room, overflow="ellipsis", pad=True)
        self._note(summary)
        yield Text.assemble(
            ("● ", style), (tool, looks.BOLD), "  ", summary, "  ",
            (end, style if status != "ok" else looks.DIM), no_wrap=True,
        )  # fmt: skip
        if self._chosen and looks.line(event.input) != looks.line(event.summary):
            yield from self._indented(event.input, _OUTPUT, looks.NAME)
        failed = status in ("error", "denied")
        most = _ERROR if failed else _OUTPUT
        yield from self._indented(event.output, most, looks.FAILED if failed else looks.DIM)

    def _indented(self, text: str, most: int, style: Style) -> Iterator[Text]:
        for line in self._folded(text, most, style, indent=2, code=True):
            yield Text.assemble("  ", line)

    def _folded(
        self, text: str, most: int, style: Style, *, indent: int = 0, code: bool = False
    ) -> Iterator[Text]:
        """The first lines, and for the chosen event also those around its matches, wrapped."""
        text, before, after = _window(text.strip("\n"), self._leaves if self._chosen else ())
        clean = safe(text).expandtabs(4).rstrip()
        if not clean:
            return
        lines = clean.split("\n")
        spans = self._spans(clean)
        starts = [0]
        for line in lines:
            starts.append(starts[-1] + len(line) + 1)
        kept = self._kept(len(lines), most, [bisect.bisect_right(starts, b) - 1 for b, _ in spans])
        while kept and max(kept) + 1 < len(lines) and not lines[max(kept)].strip():
            kept.remove(max(kept))
        width, hidden = self._width - indent, before
        for number, line in enumerate(lines):
            if number not in kept:
                hidden += 1
                continue
            if hidden:
                yield _gap(hidden)
                hidden = 0
            made, start = Text(line, style), starts[number]
            for begin, end in spans:
                if begin < start + len(line) and end > start:
                    made.stylize(looks.MATCH, max(0, begin - start), end - start)
            yield from self._fitted(made, width, code=code)
        if hidden + after:
            yield _gap(hidden + after)

    def _fitted(self, line: Text, width: int, *, code: bool) -> Iterator[Text]:
        if code and not self._chosen:
            line.truncate(width, overflow="ellipsis")
            yield line
            return
        for piece in line.wrap(_CONSOLE, width, overflow="fold"):
            piece.rstrip()
            self._note(piece)
            yield piece

    def _kept(self, count: int, most: int, matches: Sequence[int]) -> set[int]:
        keep = set(range(most if count > most + 1 else count))
        if self._chosen:
            for number in matches:
                keep.update(range(max(0, number - _AROUND), min(count, number + _AROUND + 1)))
            keep = set(sorted(keep)[:_MOST_CHOSEN])
        return keep

    def _spans(self, text: str) -> list[tuple[int, int]]:
        matches = (islice(leaf.places(text), _MOST_MARKS) for leaf in self._leaves)
        return sorted(span for places in matches for span in places)

    def _marked(self, text: str, style: Style) -> Text:
        made = Text(text, style)
        for begin, end in self._spans(text):
            made.stylize(looks.MATCH, begin, end)
        return made

    def _note(self, text: Text) -> None:
        if not self._matched and any(span.style == looks.MATCH for span in text.spans):
            self._matched, self.match = True, self._drawn


def _gap(lines: int) -> Text:
    return Text(f"… {amounts.plural(lines, 'line')}", looks.DIM)


def _window(text: str, leaves: Sequence[Leaf]) -> tuple[str, int, int]:
    """An excerpt of a long text around its first match, and the lines before and after it."""
    if len(text) <= 2 * _WINDOW:
        return text, 0, 0
    places = (next(iter(leaf.places(text)), None) for leaf in leaves)
    at = min((place[0] for place in places if place), default=0)
    begin = text.rfind("\n", 0, max(0, at - _WINDOW)) + 1
    end = min(len(text), begin + 2 * _WINDOW)
    return text[begin:end], text.count("\n", 0, begin), text.count("\n", end)


class Preview(Pane):
    """The pane that shows the conversation around the current hit."""

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
