"""A brief in Markdown with which another agent takes over, within a budget of tokens."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from sess_cli.continuing.facts import Facts
from sess_cli.export.story import Story
from sess_cli.render import amounts
from sess_cli.render.markdown import code, fenced, quoted
from sess_schema.queries.sessions import one_line

T = TypeVar("T")

CHARACTERS_PER_TOKEN = 4
# How generously texts and lists are given: the most generous that fits is used.
_SCALES = (12.0, 8.0, 5.0, 3.0, 2.0, 1.4, 1.0, 0.7, 0.5, 0.35, 0.25, 0.15, 0.1, 0.06)
_BOXES = {"done": "x", "doing": "~", "open": " "}
_TAG, _TICK = re.compile(r"\\*<"), re.compile(r"\\*`")
_SPACE = re.compile(r"\s\S*\Z")
_CUT = " […] "


def write(story: Story, facts: Facts, max_tokens: int) -> str:
    """The brief; sections that do not fit become shorter, the last state and errors last."""
    most = max_tokens * CHARACTERS_PER_TOKEN
    text = ""
    for scale in _SCALES:
        text = "\n".join(_Brief(story, facts, scale).lines()).strip() + "\n"
        if len(text) <= most:
            return text
    return _shortest(text, most)


def plain(text: str) -> str:
    """Foreign text on one line: readable as it is, but neither HTML nor code without an end."""
    pieces = text.split("`")
    if len(pieces) % 2 == 0 or "``" in text or "\\`" in text:
        return _TICK.sub(_escaped, _TAG.sub(_escaped, text))
    return "`".join(one if at % 2 else _TAG.sub(_escaped, one) for at, one in enumerate(pieces))


def _escaped(found: re.Match[str]) -> str:
    """With a backslash of its own, and the ones before it doubled."""
    return "\\" * (2 * len(found[0]) - 1) + found[0][-1]


def _shortest(text: str, most: int) -> str:
    """Whole lines, as many as fit."""
    kept, size = list[str](), 0
    for line in text.splitlines():
        size += len(line) + 1
        if size > most - len(_CUT):
            break
        kept.append(line)
    return "\n".join([*kept, _CUT.strip()]) + "\n"


class _Brief:
    def __init__(self, story: Story, facts: Facts, scale: float) -> None:
        self._story, self._facts, self._scale = story, facts, scale

    def lines(self) -> Iterator[str]:
        facts = self._facts
        yield from self._head()
        yield from self._section("Goal", self._goal())
        yield from self._section("What was asked later", self._asked())
        yield from self._section("Plan", quoted(self._text(facts.plan, 900)))
        yield from self._section("Summary of earlier work", quoted(self._text(facts.summary, 1500)))
        yield from self._section("Decisions", self._decisions())
        yield from self._section("Files changed", self._files())
        yield from self._section("Commands that matter", self._commands())
        yield from self._section("Open errors", self._errors())
        yield from self._section("To-dos", self._todos())
        yield from self._section("Where it stands", self._last())

    def _head(self) -> Iterator[str]:
        story, row = self._story, self._story.row
        yield f"# Handoff: {plain(self._text(story.title, 100))}"
        yield ""
        model = f" with {plain(story.models[-1])}" if story.models else ""
        yield f"You take over a session of {plain(row.agent)}{model}. Quotes are from it."
        yield ""
        if story.project:
            branch = f", on branch {code(story.branch)}" if story.branch else ""
            yield f"- Work in {code(story.project)}{branch}"
        when = amounts.clock(row.ended, utc=True)
        yield f"- Last active: {when}" + (" UTC" if row.ended is not None else "")
        more = code(f"sess show {row.session}")
        yield f"- Everything: {more}; one event: {code(f'sess show {row.session}#EVENT')}"
        yield ""

    @staticmethod
    def _section(title: str, inside: Iterable[str]) -> Iterator[str]:
        lines = [*inside]
        if any(line.strip() not in ("", ">") for line in lines):
            yield f"## {title}"
            yield ""
            yield from lines
            if lines[-1]:
                yield ""

    def _goal(self) -> Iterator[str]:
        if self._facts.requests:
            yield from quoted(self._text(self._facts.requests[0], 1200))

    def _asked(self) -> Iterator[str]:
        later = self._facts.requests[1:]
        shown = self._last_of(later, 12)
        if len(shown) < len(later):
            yield f"- … {len(later) - len(shown)} earlier ones"
        for number, request in enumerate(shown, 1):
            length = 800 if number == len(shown) else 220
            yield f"- {plain(one_line(self._text(request, length)))}"

    def _decisions(self) -> Iterator[str]:
        for one in self._last_of(self._facts.decisions, 10):
            yield f"- {plain(one_line(self._text(one.what, 260)))} ({code('#' + one.key[:8])})"
        for commit in self._last_of(self._facts.commits, 10):
            yield f"- Commit {plain(one_line(self._text(commit, 120)))}"

    def _files(self) -> Iterator[str]:
        shown = self._facts.files[: self._count(25)]
        for one in shown:
            again = f", {one.times} edits" if one.times > 1 else ""
            yield f"- {code(one.path)} (+{one.added:,} −{one.removed:,}{again})"
        if more := len(self._facts.files) - len(shown):
            yield f"- … and {more} more"

    def _commands(self) -> Iterator[str]:
        for one in self._last_of(self._facts.commands, 12):
            about = "failed" if one.status == "error" else "ok"
            about += f", run {one.times} times" if one.times > 1 else ""
            yield f"- {code(one_line(self._text(one.text, 200)))} ({about})"

    def _errors(self) -> Iterator[str]:
        for one in self._last_of(self._facts.errors, 5):
            yield f"- {code(one_line(self._text(one.what, 160)))} ({code('#' + one.key[:8])})"
            if tail := self._tail(one.output):
                yield ""
                yield from (f"  {line}".rstrip() for line in fenced(tail))

    def _todos(self) -> Iterator[str]:
        todos = self._facts.todos
        done = [todo for todo in todos if todo.state == "done"]
        shown = {id(todo) for todo in self._last_of(done, 8)}
        if len(shown) < len(done):
            yield f"- [x] … {len(done) - len(shown)} more that are done"
        for todo in todos:
            if todo.state != "done" or id(todo) in shown:
                yield f"- [{_BOXES[todo.state]}] {plain(one_line(self._text(todo.text, 200)))}"

    def _last(self) -> Iterator[str]:
        facts = self._facts
        if facts.last_answer:
            yield "The agent said last:"
            yield ""
            yield from quoted(self._text(facts.last_answer, 1600))
        for call in self._last_of(facts.pending, 5):
            yield f"- No result yet: {code(one_line(self._text(call, 200)))}"
        if facts.ended:
            yield f"- It ended early: {plain(one_line(self._text(facts.ended, 300)))}"

    # -- fitting

    def _count(self, usual: int) -> int:
        return max(1, round(usual * min(self._scale, 4)))

    def _last_of(self, listed: Sequence[T], usual: int) -> Sequence[T]:
        return listed[-self._count(usual) :]

    def _text(self, text: str, usual: int) -> str:
        """A text, or its start and end."""
        most = max(40, round(usual * self._scale))
        if len(text) <= most:
            return text
        head, tail = text[: most * 2 // 3], text[-(most // 3) :]
        return f"{_SPACE.sub('', head)}{_CUT}{tail.partition(' ')[2] or tail}"

    def _tail(self, output: str) -> str:
        """The end of an output, which usually says what is wrong."""
        lines = [line for line in output.splitlines() if line.strip()][-self._count(8) :]
        return "\n".join(line if len(line) <= 160 else line[:159] + "…" for line in lines)
