"""The finder: an input line, the results below it, the conversation beside them, and help."""

from __future__ import annotations

import gc
from contextlib import closing
from pathlib import Path
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Input, Label, Static

from sess_cli.finder import looks
from sess_cli.finder.actions import COMMANDS_HERE, Acting, Choosing
from sess_cli.finder.facets import FACETS, Choice, Choices, FacetBar
from sess_cli.finder.passage import Passage, Passages, Place, Preview
from sess_cli.finder.query import Answer, Finding, Request
from sess_cli.finder.results import Item, ResultList
from sess_cli.render import amounts
from sess_schema.connection import open_reader
from sess_schema.queries import sessions
from sess_schema.queries.search.terms import Term

WIDE = 110  # columns from which the conversation is next to the list
LOW = 18  # lines below which the conversation takes the whole screen
LATE = 0.2  # seconds after which older results are called that
REST = 1.0  # seconds without a key before garbage is collected
_THEMES = ("ansi-dark", "textual-ansi")
PLACEHOLDER = 'words, "a phrase", -without, tool:Bash is:error since:7d'

_KEYS = (
    ("enter", "read the session from here, then return"),
    ("y  ctrl+y", "copy SESSION#EVENT, as `sess show` takes it"),
    ("m", "copy the event, or a whole session, as Markdown"),
    ("e", "write the session to a Markdown file here"),
    ("r  ctrl+r", "quit and resume the session in its agent"),
    ("p  ctrl+o", "hide or show the conversation"),
    ("F2 F3 F4 F5 F6", "filter by agent, project, tool, errors, date"),
    ("ctrl+n/j  ctrl+p/k", "next and previous hit; n and N while reading"),
    ("tab  arrows  page", "move within and between the panes"),
    ("/", "back to the input"),
    ("esc  ctrl+q", "quit"),
)
_WORDS = (
    ("retry timeout", "both words; the last may be incomplete"),
    ('"exit code 1"', "an exact phrase"),
    ("-word", "exclude a word"),
    ("one OR other", "either word"),
    ("tool:Bash is:error", "failed calls of a tool"),
    ("project:web since:7d", "by project and time"),
    ("type:user file:*.py", "prompts; files touched by a call"),
)
# The bottom line: key, label, and the action for a click.
_IN_LIST = (
    ("enter", "read", "read"),
    ("y", "id", "copy_name"),
    ("m", "md", "copy_markdown"),
    ("e", "export", "export"),
    ("r", "resume", "resume"),
    ("p", "preview", "toggle_preview"),
    ("/", "type", "type"),
    ("?", "help", "help"),
    ("esc", "quit", "quit"),
)
_IN_LINE = (
    ("enter", "read", "read"),
    ("↓", "list", "list"),
    ("^Y", "id", "copy_name"),
    ("^R", "resume", "resume"),
    ("^O", "preview", "toggle_preview"),
    ("F1", "help", "help"),
    ("esc", "quit", "quit"),
)


class Found(Message):
    """What a thread found."""

    def __init__(self, what: Answer | Passage | tuple[str, tuple[Choice, ...]]) -> None:
        super().__init__()
        self.what = what


class Line(Input):
    """The input line; arrow keys move into the list."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "app.list(1)"),
        Binding("ctrl+k", "app.step(-1)"),  # would delete to the end of the line
        Binding("pagedown", "app.list(0, 1)"),
        Binding("pageup", "app.list(0, -1)"),
    ]

    def __init__(self) -> None:
        super().__init__(placeholder=PLACEHOLDER, id="query", compact=True)


class Finder(Acting):
    CSS_PATH = Path(__file__).with_name("style.tcss")
    TITLE = "sess"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "read"),
        Binding("y,ctrl+y", "copy_name"),
        Binding("m", "copy_markdown"),
        Binding("e", "export"),
        Binding("r,ctrl+r", "resume"),
        Binding("p,ctrl+o", "toggle_preview"),
        Binding("n,ctrl+n,ctrl+j", "step(1)"),
        Binding("N,ctrl+p,ctrl+k", "step(-1)"),
        Binding("slash", "type"),
        *(Binding(facet.key, f"facet('{facet.name}')") for facet in FACETS),
        Binding("f1,question_mark", "help"),
        Binding("escape", "quit"),
        Binding("ctrl+q,ctrl+c", "quit", priority=True),
    ]

    def __init__(self, index: Path, *, utc: bool = False, choosing: Choosing = None) -> None:
        super().__init__(index, utc=utc, choosing=choosing)
        self._number = 0
        self._asked: Request | None = None
        self._answer: Answer | None = None
        self._place: Place | None = None
        self._whole: frozenset[int] = frozenset()
        self._preview_wanted = True
        self._line = Line()
        self._facets = FacetBar()
        self._results = ResultList(utc=utc)
        self._preview = Preview()
        self._keys = KeyBar(choosing=choosing is not None)
        self._threads: list[Finding | Passages | Choices] = []
        # Report a file that is not an index before the screen changes.
        with closing(open_reader(index)) as db:
            self._empty = not sessions.any_session(db)
        # The terminal's own colours, by the name in this version of Textual.
        self.theme = next(name for name in _THEMES if name in self.available_themes)

    def compose(self) -> ComposeResult:
        with Horizontal(id="top"):
            yield Label("> ", id="prompt")
            yield self._line
        yield self._facets
        with Horizontal(id="panes"):
            yield self._results
            yield self._preview
        yield self._keys

    def on_mount(self) -> None:
        def tell(what: Answer | Passage) -> None:
            self.post_message(Found(what))

        self._finding = Finding(self._index, tell, utc=self._utc)
        self._passages = Passages(self._index, tell)
        choices = Choices(self._index, lambda *facet: self.post_message(Found(facet)))
        self._threads = [self._finding, self._passages, choices]
        self._rest = self.set_interval(REST, self._tidy_up, pause=True)
        self._late = self.set_interval(LATE, self._say_late, pause=True)
        if self.choosing == "command":
            self._line.value = COMMANDS_HERE
            self._line.cursor_position = len(COMMANDS_HERE)
        self._line.focus()
        self.call_after_refresh(self._ask)

    def on_unmount(self) -> None:
        for worker in self._threads:
            worker.close()

    @property
    def item(self) -> Item | None:
        return self._results.item

    # -- asking

    @on(Input.Changed)
    @on(FacetBar.Changed)
    def _question_changed(self) -> None:
        self._whole = frozenset()
        self._ask()

    def _ask(self) -> None:
        self._number += 1
        self._asked = Request(
            self._number,
            self._line.value,
            self._facets.filters,
            max(1, self._results.size.height),
            self._results.excerpt_width,
            self._whole,
        )
        self._finding.ask(self._asked)
        for timer in (self._rest, self._late):
            timer.reset()
            timer.resume()

    def _say_late(self) -> None:
        """Results of an earlier text must not pass for those of the present one."""
        self._late.pause()
        shown, asked = self._answer, self._asked
        if shown and asked and _question(shown.request) != _question(asked):
            before = f' · still showing "{looks.line(shown.request.text)}"' if shown.hits else ""
            self._results.border_title = Text.assemble(
                ("searching …", looks.BOLD), (before, looks.NOTICE)
            )

    def _tidy_up(self) -> None:
        self._rest.pause()
        gc.collect()

    def on_found(self, message: Found) -> None:
        what = message.what
        if isinstance(what, Answer):
            self._show_answer(what)
        elif isinstance(what, Passage):
            if what.place == self._place:
                self._show_passage(what)
        else:
            self._facets.offer(*what)

    def _show_answer(self, answer: Answer) -> None:
        if answer.request != self._asked:
            return
        self._late.pause()
        before, self._answer = self._answer, answer
        same = before is not None and _question(before.request) == _question(answer.request)
        self._results.border_title = _summary(answer, empty=self._empty)
        self._results.show(answer, same_question=same)
        self._look()

    @on(ResultList.Chosen)
    def _look(self) -> None:
        """Show the conversation around the current item, if it has changed."""
        item, answer = self.item, self._answer
        if item is None or answer is None:
            self._place = None
            self._preview.border_title = None
            self._preview.clear()
            return
        place = Place(item.session, item.event, answer.leaves, self._preview.text_width)
        if place != self._place and self._preview.display:
            self._place = place
            self._passages.ask(place)

    def _show_passage(self, passage: Passage) -> None:
        self._preview.border_title = self._about(passage)
        self._preview.show(passage)

    def _about(self, passage: Passage) -> Text | None:
        if passage.card is None:
            return None
        row, cite = passage.card.row, passage.cite
        name = looks.line(passage.card.name) + (f"#{cite}" if cite else "")
        facts = [amounts.clock(passage.when, utc=self._utc)]
        if row.parent is not None:
            facts.append(looks.line(f"subagent {row.agent_type or ''}"))
        elif row.git_branch:
            facts.append(looks.line(row.git_branch))
        return Text.assemble((name, looks.NAME), (f"  {' · '.join(facts)}", looks.DIM))

    # -- the screen

    def on_resize(self, event: events.Resize) -> None:
        self._arrange(event.size.width, event.size.height)

    def _arrange(self, width: int, height: int) -> None:
        narrow, below = width < WIDE, self.screen_stack[0]  # not the help screen that may cover it
        below.set_class(narrow, "narrow")
        below.set_class(not self._preview_wanted or (narrow and height < LOW), "alone")
        self.call_after_refresh(self._ask_again)

    def _ask_again(self) -> None:
        """Redo excerpts and conversation for the new width."""
        self._ask()
        self._look()

    @on(Input.Submitted)
    @on(ResultList.Opened)
    def action_read(self) -> None:
        item = self.item
        if item is not None and item.more:
            self._whole |= {item.conversation.card.row.key}
            self._ask()
        elif item is not None and self.choosing:
            self.choose()
        elif item is not None:
            leaves = self._answer.leaves if self._answer else ()
            self.read(item, [leaf.text for leaf in leaves if isinstance(leaf, Term)])

    def action_toggle_preview(self) -> None:
        self._preview_wanted = not self._preview_wanted
        self._arrange(self.size.width, self.size.height)

    def action_list(self, lines: int = 0, pages: int = 0) -> None:
        self._results.focus()
        if lines:
            self._results.action_move(lines)
        if pages:
            self._results.action_page(pages)

    def action_step(self, by: int) -> None:
        """Move in the list, wherever the focus is."""
        self._results.step(by)

    def action_type(self) -> None:
        self._line.focus()

    def action_help(self) -> None:
        self.push_screen(Help())

    def action_facet(self, name: str) -> None:
        self._facets.open(name)

    @on(events.DescendantFocus)
    def _focus_moved(self) -> None:
        self._keys.show(typing=self._line.has_focus)

    @on(ResultList.Left)
    def _back_to_line(self) -> None:
        self._line.focus()


def _question(request: Request) -> tuple[object, ...]:
    return request.text, request.filters


def _summary(answer: Answer, *, empty: bool) -> Text:
    if answer.error:
        words = looks.line(answer.error)
    elif not answer.conversations:
        filtered = " with these filters" if answer.request.filters else ""
        words = "no sessions yet" if empty else f"nothing found{filtered}"
    elif not answer.hits:
        words = "newest sessions"
    else:
        words = amounts.plural(answer.hits, "hit") + ("" if answer.counted else " or more")
    deviation = f" · {looks.line(answer.deviation)}" if answer.deviation else ""
    notes = "".join(f" · {looks.line(note)}" for note in answer.notes[:1])
    return Text.assemble((words, looks.BOLD), (deviation, looks.NOTICE), (notes, looks.DIM))


class KeyBar(Static):
    """The keys available for the current focus; each can be clicked."""

    def __init__(self, *, choosing: bool) -> None:
        super().__init__()
        self._choosing = choosing

    def show(self, *, typing: bool) -> None:
        text = Text(no_wrap=True)
        for key, what, action in _IN_LINE if typing else _IN_LIST:
            if self._choosing and action == "resume":
                continue
            if self._choosing and action == "read":
                what = "choose"  # noqa: PLW2901
            click = Style.from_meta({"@click": f"app.{action}"})
            text.append("  " if text else "")
            text.append(key, looks.NAME + click).append(f" {what}", looks.DIM + click)
        self.update(text)


class Help(ModalScreen[None]):
    def compose(self) -> ComposeResult:
        text = Text()
        for title, rows in (("Keys", _KEYS), ("Search syntax", _WORDS)):
            text.append(f"{title}\n", looks.BOLD)
            for left, right in rows:
                text.append(f"  {left:<22}", looks.NAME)
                text.append(f"{right}\n")
        text.append("\nSingle letters work in the list; in the input they are typed.", looks.DIM)
        yield Static(text)

    def on_key(self, event: events.Key) -> None:
        event.stop()
        self.dismiss()

    def on_click(self) -> None:
        self.dismiss()
