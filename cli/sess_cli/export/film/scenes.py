"""Scenes of a film: the content of one event, which can be shown at several lengths."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from sess_cli.export.film import rows
from sess_cli.export.film.rows import Look, Row
from sess_cli.render import amounts
from sess_schema.ids import EventId

TOOLS = frozenset({"shell", "read", "search", "edit", "write", "todo", "agent", "tool"})
COMPACT = frozenset({"read", "search", "tool", "thought", "notice"})  # no empty row between them
_FENCE = re.compile(r"(?:`{3,}|~{3,})\S*\Z")
_ENDING = 3  # a third of the shown output comes from its end, which has the outcome


@dataclass(slots=True)
class Body:
    """Rows of which any number can be shown, with a count of the hidden ones."""

    rows: list[Row] = field(default_factory=list)
    hidden: int = 0  # lines not in `rows`
    from_end: bool = False  # also show the last rows
    indent: str = "  "
    of: str = ""  # what the lines belong to, if not obvious

    def shown(self, most: int) -> list[Row]:
        if not self.hidden and len(self.rows) <= most:
            return self.rows
        if most <= 0:
            return []
        lines = [line for line in self.rows if line]  # drop empty rows first
        if not self.hidden and len(lines) <= most:
            return lines
        kept = min(most - 1, len(lines))
        last = min(kept, ending(kept)) if self.from_end else 0
        missing = len(lines) + self.hidden - kept
        words = f"{self.indent}… {amounts.plural(missing, 'more line')}{self.of}"
        gap = rows.row((words, rows.DIM))
        return [*lines[: kept - last], gap, *lines[len(lines) - last :]]


def ending(count: int) -> int:
    """How many of `count` lines are taken from the end."""
    return max(1, count // _ENDING)


@dataclass(slots=True)
class Call:
    """A tool call for the tape: plain text without styles."""

    kind: str  # shell, read, edit, write, agent
    tool: str
    subject: str
    output: str
    status: str  # ok, error, denied, pending


@dataclass(slots=True)
class Scene:
    kind: str  # prompt, answer, thought, notice, commit, or one of TOOLS
    event: EventId
    ts: int | None
    chapter: int  # number of prompts so far, including this one
    above: list[Row] = field(default_factory=list)  # drawn at once: a rule, a comment
    head: Body = field(default_factory=Body)
    typed: bool = False  # the head appears as if typed
    body: Body = field(default_factory=Body)
    tail: Row = ()
    wait: int = 0  # duration of the call in milliseconds
    failed: bool = False
    final: bool = False  # the last answer before the next prompt
    call: Call | None = None

    @property
    def said(self) -> str:
        """The words of a person or a model, on one line."""
        drawn = {"prompt": self.head.rows, "answer": self.body.rows}.get(self.kind, [])
        lines = (rows.plain(row).lstrip(" ❯●│") for row in drawn)
        words = " ".join(" ".join(line for line in lines if not _FENCE.match(line)).split())
        # A prompt is typed as it was written; an answer has been drawn, without its marks.
        return rows.plain(rows.inline_markdown(words)) if self.kind == "prompt" else words

    @property
    def spaced(self) -> bool:
        return self.kind not in COMPACT


@dataclass(slots=True)
class Card:
    """A full screen: a title in large letters, and rows that are large if there is room."""

    title: Row
    rows: list[Row]
    indent: int = 0  # of what a row that is too long goes on with
    foot: Row = ()  # at the end of the screen, in small letters


@dataclass(slots=True)
class Storyboard:
    title: str
    opening: Card
    scenes: list[Scene]
    closing: Card
    chapters: list[str]  # the prompts, in order; the first is number 1
    started: int | None
    ended: int | None


class RepeatedFailures:
    """Failures that repeat within a prompt: shown once, with how often they came again."""

    def __init__(self) -> None:
        self._chapter = -1
        self._first: dict[tuple[str, ...], Scene] = {}
        self._again: dict[int, tuple[Scene, int]] = {}  # by event, with how often it repeats

    def merge(self, scene: Scene) -> bool:
        """Count a failure like an earlier one of its prompt; return whether it is one."""
        if scene.chapter != self._chapter:
            self._chapter = scene.chapter
            self._first = {}
        if not scene.failed:
            return False
        words = (scene.kind, *map(rows.plain, scene.body.rows or scene.head.rows))
        first = self._first.setdefault(words, scene)
        if first is scene:
            return False
        _, count = self._again.get(first.event, (first, 0))
        self._again[first.event] = first, count + 1
        return True

    def add_counts(self) -> None:
        """Say below each first failure how often it came again."""
        for scene, count in self._again.values():
            words = f"  {'and ' if scene.tail else ''}{amounts.plural(count, 'more time')} the same"
            scene.tail = rows.row(*scene.tail, (words, Look("red")))
