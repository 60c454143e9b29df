"""The row of filters below the input, with choices from the index."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import apsw
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.geometry import Offset
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from sess_cli.finder import looks
from sess_cli.finder.worker import Latest
from sess_cli.render import layout
from sess_schema.queries import sessions
from sess_schema.queries.search import Filter

MOST_CHOICES = 15
_WIDEST_CHIP = 18
_WIDEST_CHOICE = 60


@dataclass(frozen=True, slots=True)
class Choice:
    label: str
    filter: Filter | None = None


@dataclass(frozen=True, slots=True)
class Facet:
    name: str
    key: str
    nothing: Choice
    choices: tuple[Choice, ...] = ()


DATES = (
    Choice("today", Filter("since", "today")),
    Choice("last 7 days", Filter("since", "7d")),
    Choice("last 30 days", Filter("since", "30d")),
)
FACETS = (
    Facet("agent", "f2", Choice("all")),
    Facet("project", "f3", Choice("all")),
    Facet("tool", "f4", Choice("all")),
    Facet("errors", "f5", Choice("all"), (Choice("errors", Filter("is", "failed")),)),
    Facet("date", "f6", Choice("any"), DATES),
)


class Choices:
    """Reads the choices once; counting tools takes a moment on a large index."""

    def __init__(self, index: Path, show: Callable[[str, tuple[Choice, ...]], object]) -> None:
        self._show = show
        self._latest: Latest[str] = Latest(index, self._read, lambda _request, _error: None)
        self.close = self._latest.close
        self._latest.ask("choices")

    def _read(self, db: apsw.Connection, _request: str) -> None:
        self._show("agent", tuple(Choice(one, Filter("agent", one)) for one in sessions.agents(db)))
        # No directory name contains a NUL, and a filter with one is an error.
        real = "FROM sessions WHERE records > 0 AND project != '' AND NOT instr(project, char(0))"
        projects = _most_used(db, "project", real)
        self._show(
            "project", tuple(Choice(layout.home_short(p), Filter("project", p)) for p in projects)
        )
        tools = _most_used(db, "tool", "FROM events WHERE retired = 0 AND tool != ''")
        self._show("tool", tuple(Choice(one, Filter("tool", _literally(one))) for one in tools))


def _most_used(db: apsw.Connection, column: str, where: str) -> list[str]:
    sql = f"SELECT {column} {where} GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT {MOST_CHOICES}"
    return [value for (value,) in db.execute(sql)]


def _literally(tool: str) -> str:
    """A pattern that matches only this name."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in tool)


class Chip(Static):
    """One facet: its key, and its name or the current choice."""

    class Pressed(Message):
        def __init__(self, facet: Facet) -> None:
            super().__init__()
            self.facet = facet

    def __init__(self, facet: Facet) -> None:
        super().__init__(id=f"facet-{facet.name}")
        self.facet = facet
        self.choice = facet.nothing

    def on_mount(self) -> None:
        self.choose(self.choice)

    def on_click(self) -> None:
        self.post_message(self.Pressed(self.facet))

    def choose(self, choice: Choice) -> None:
        self.choice = choice
        text = Text(f"{self.facet.key.upper()} ", looks.DIM, no_wrap=True)
        if choice.filter is None:
            text = Text.assemble(text, self.facet.name)
        else:
            label = layout.cut_start(looks.line(choice.label), _WIDEST_CHIP)
            text = Text.assemble(text, (label, looks.MARKER))
        self.update(text)


class FacetBar(Horizontal):
    class Changed(Message):
        """The filters have changed."""

    def compose(self) -> ComposeResult:
        for facet in FACETS:
            yield Chip(facet)

    @property
    def filters(self) -> tuple[Filter, ...]:
        return tuple(chip.choice.filter for chip in self.query(Chip) if chip.choice.filter)

    def offer(self, name: str, choices: tuple[Choice, ...]) -> None:
        chip = self.chip(name)
        chip.facet = Facet(name, chip.facet.key, chip.facet.nothing, choices)

    def chip(self, name: str) -> Chip:
        return self.query_one(f"#facet-{name}", Chip)

    def choose(self, name: str, choice: Choice) -> None:
        self.chip(name).choose(choice)
        self.post_message(self.Changed())

    def on_chip_pressed(self, message: Chip.Pressed) -> None:
        message.stop()
        self.open(message.facet.name)

    def open(self, name: str) -> None:
        """Open a menu, or toggle if there are only two choices."""
        chip = self.chip(name)
        facet = chip.facet
        options = (facet.nothing, *facet.choices)
        if name == "errors":
            self.choose(name, options[chip.choice is facet.nothing])
            return

        def chosen(choice: Choice | None) -> None:
            if choice is not None:
                self.choose(name, choice)

        menu = Menu(options, chip.choice, facet.key, chip.region.bottom_left)
        self.app.push_screen(menu, chosen)


class Menu(ModalScreen[Choice | None]):
    """The choices of a facet, below its chip."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,tab", "dismiss", "Close", show=False),
        Binding("ctrl+n,ctrl+j", "move(1)", show=False),
        Binding("ctrl+p,ctrl+k", "move(-1)", show=False),
    ]

    def __init__(self, options: Sequence[Choice], current: Choice, key: str, at: Offset) -> None:
        super().__init__()
        self._options = options
        self._current = current
        self._key = key
        self._at = at

    def compose(self) -> ComposeResult:
        yield OptionList(
            *(Option(Text(_fitting(one.label), no_wrap=True)) for one in self._options),
            compact=True,
        )

    def on_mount(self) -> None:
        menu = self.query_one(OptionList)
        width = max(layout.cells(_fitting(one.label)) for one in self._options) + 4
        menu.styles.width = min(width, self.app.size.width)
        left = max(0, min(self._at.x, self.app.size.width - width))
        menu.styles.offset = (left, self._at.y)
        labels = [one.label for one in self._options]
        menu.highlighted = labels.index(self._current.label) if self._current.label in labels else 0

    def on_key(self, event: events.Key) -> None:
        if event.key == self._key:
            self.action_move(1)

    def action_move(self, by: int) -> None:
        menu = self.query_one(OptionList)
        menu.action_cursor_down() if by > 0 else menu.action_cursor_up()

    def on_click(self, event: events.Click) -> None:
        if event.widget is self:
            self.dismiss(None)

    def on_option_list_option_selected(self, message: OptionList.OptionSelected) -> None:
        self.dismiss(self._options[message.option_index])


def _fitting(label: str) -> str:
    return layout.cut_start(looks.line(label), _WIDEST_CHOICE)
