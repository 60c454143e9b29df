"""A brief in Markdown with which another agent takes over, within a budget of tokens.

Everything comes from a `Story`, so that secrets are masked before they get here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from sess_cli.continuing.state import Todos, plan_in
from sess_cli.export import ansi, meaning
from sess_cli.export.story import Item, Story
from sess_cli.render import amounts
from sess_cli.render.markdown import code, fenced, quoted
from sess_schema import kinds, labels, shown
from sess_schema.calls import Todo
from sess_schema.queries import sessions
from sess_schema.queries.sessions import one_line
from sess_schema.queries.views.error_rules import RULES, Classifier
from sess_schema.queries.views.tools import program_of

_NOT_REQUESTS = frozenset({labels.COMMAND, labels.BASH, labels.MEMORY})
# Looking around changes nothing and proves nothing.
_LOOKING = frozenset({
    "awk", "basename", "cat", "cd", "date", "diff", "dirname", "du", "echo", "env", "fd", "file",
    "find", "grep", "head", "jq", "less", "ls", "nl", "printf", "ps", "pwd", "realpath", "rg",
    "sed", "sleep", "sort", "stat", "tail", "test", "tree", "true", "type", "uniq", "wc", "which",
    "xxd", "unknown",
})  # fmt: skip
_TIDYING = frozenset({"chmod", "cp", "kill", "ln", "mkdir", "mv", "pkill", "rm", "touch"})
# Commits are listed by themselves.
_GIT = re.compile(r"\bgit (?:status|log|diff|show|branch|blame|add|commit|rev-parse|ls-files)\b")
# Failures of the agent's own handiwork say nothing about the project.
_SLIPS = frozenset({
    "file not read yet", "file changed since read", "text not unique", "text not found",
    "nothing to change", "no such tool", "no such task", "bad arguments", "output too large",
    "not a directory or file", "cancelled",
})  # fmt: skip
_UNIMPORTANT = frozenset({kinds.READ, kinds.SEARCH, kinds.PLAN, kinds.QUESTION, kinds.AGENT})
_LONGEST = 200  # characters of a command that anyone would run again
_FILES = (
    "SELECT d.path, sum(d.added), sum(d.removed), count(*) FROM edits d"
    " JOIN events e ON e.id = d.event_id WHERE e.status = 'ok' AND e.retired = 0"
    f" AND e.session_id IN ({shown.FAMILY.replace('?1', '?')})"
    " GROUP BY d.path ORDER BY max(e.id)"
)
T = TypeVar("T")
CHARACTERS_PER_TOKEN = 4
# How generously texts and lists are given: the most generous that fits is used.
_SCALES = (12.0, 8.0, 5.0, 3.0, 2.0, 1.4, 1.0, 0.7, 0.5, 0.35, 0.25, 0.15, 0.1, 0.06)
_BOXES = {"done": "x", "doing": "~", "open": " "}
_TAG, _TICK = re.compile(r"\\*<"), re.compile(r"\\*`")
_SPACE = re.compile(r"\s\S*\Z")
_CUT = " […] "


@dataclass(slots=True, frozen=True)
class Changed:
    path: str
    added: int
    removed: int
    times: int


@dataclass(slots=True)
class Command:
    text: str
    status: str
    times: int = 1


@dataclass(slots=True, frozen=True)
class Noted:
    """A decision, or a failure with its output."""

    what: str
    key: str  # of the event
    output: str = ""


@dataclass(slots=True)
class Facts:
    requests: list[str] = field(default_factory=list)  # in order; the first one is the goal
    decisions: list[Noted] = field(default_factory=list)
    files: list[Changed] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)  # by their last run
    errors: list[Noted] = field(default_factory=list)  # that nothing has put right since
    commits: list[str] = field(default_factory=list)
    todos: list[Todo] = field(default_factory=list)
    plan: str = ""
    summary: str = ""  # of what the agent has compacted
    last_answer: str = ""
    pending: list[str] = field(default_factory=list)
    ended: str = ""  # why, if not by itself


def facts_of(story: Story) -> Facts:
    gathering = _Gathering(story)
    for item in story.items():
        gathering.add(item)
    return gathering.facts()


class _Gathering:
    def __init__(self, story: Story) -> None:
        self._story = story
        self._facts = Facts()
        self._todos = Todos()
        self._commands: dict[str, Command] = {}
        self._failed: dict[str, Noted] = {}
        self._denied: dict[str, Noted] = {}
        self._classes = Classifier(RULES)

    def facts(self) -> Facts:
        facts = self._facts
        facts.commands = [*self._commands.values()]
        facts.errors = [*self._failed.values()]
        facts.decisions += self._denied.values()
        facts.todos = self._todos.all
        facts.files = self._files()
        return facts

    def add(self, item: Item) -> None:
        facts = self._facts
        if item.type == "user":
            facts.ended = ""
            if item.label not in _NOT_REQUESTS and item.text.strip():
                facts.requests.append(item.text.strip())
        elif item.type == "assistant":
            if item.label in labels.ALARMS:
                facts.ended = item.text.strip()
            elif item.text.strip():
                facts.last_answer, facts.ended = item.text.strip(), ""
        elif item.type == "tool_use" and item.unjoined is None:
            self._call(item)
        elif item.type == "summary" and not item.is_title:
            facts.summary = item.text.strip()
        elif item.label == labels.TODO:
            self._todos.take_notice(item.text)
        elif item.label == labels.PLAN:
            facts.plan = item.text.strip()
        elif item.label == labels.INTERRUPTED:
            facts.ended = "The user interrupted it."
        elif item.label in labels.ALARMS:
            facts.ended = item.text.strip()

    def _call(self, item: Item) -> None:
        facts, line = self._facts, _in_one_line(item)
        if item.status == "pending":
            facts.pending.append(line)
        if item.kind == kinds.PLAN:
            self._plan(item)
        elif item.kind == kinds.QUESTION and item.status == "ok":
            asked = f"Asked: {item.summary or line}\nAnswer: {ansi.plain(item.output).strip()}"
            facts.decisions.append(Noted(asked, item.key))
        facts.commits += [f"{commit.sha[:10]} {commit.subject}".strip() for commit in item.commits]
        if item.kind not in _UNIMPORTANT and not _only_looks(item):
            self._judge(item, line)

    def _plan(self, item: Item) -> None:
        refused = item.status in ("error", "denied")
        if not refused and self._todos.take(item.given, item.output):
            return
        plan = plan_in(item.given)
        if plan and not refused:
            self._facts.plan = plan
        elif plan and item.output.strip():
            refusal = f"Plan rejected: {ansi.plain(item.output).strip()}"
            self._facts.decisions.append(Noted(refusal, item.key))

    def _judge(self, item: Item, line: str) -> None:
        """A failure or refusal is open until the same is done with success."""
        about = _subject_of(item, line)
        self._failed.pop(about, None)
        self._denied.pop(about, None)
        if item.status == "denied":
            self._denied[about] = Noted(f"Not allowed: {line}", item.key)
        elif item.status == "error":
            output = ansi.plain(item.output).strip()
            if self._classes.of(item.tool or "", item.kind, output) not in _SLIPS:
                self._failed[about] = Noted(line, item.key, output)
        if item.kind == kinds.SHELL and item.status in ("ok", "error"):
            self._ran(about, item.status, meaning.command(item).strip())

    def _ran(self, about: str, status: str, text: str) -> None:
        if program_of(text) not in _TIDYING:
            before = self._commands.pop(about, None)  # to the end of the list
            if "\n" not in text and len(text) <= _LONGEST:
                times = before.times + 1 if before else 1
                self._commands[about] = Command(text, status, times)
            elif before:
                self._commands[about] = before

    def _files(self) -> list[Changed]:
        story = self._story
        project = story.row.directory or ""
        files = [
            Changed(story.cleaned(_relative(path, project)), added, removed, times)
            for path, added, removed, times in story.db.execute(_FILES, (story.row.key,))
        ]
        return files[::-1]  # the last one first


def _in_one_line(item: Item) -> str:
    """A call in one line."""
    if item.kind == kinds.SHELL:
        return sessions.one_line(meaning.command(item))
    return sessions.one_line(f"{item.tool or 'unknown tool'} {item.summary}")


def _only_looks(item: Item) -> bool:
    command = meaning.command(item) if item.kind == kinds.SHELL else ""
    return bool(command) and (program_of(command) in _LOOKING or bool(_GIT.search(command)))


def _subject_of(item: Item, line: str) -> str:
    """The same for calls that try the same: a program and what it does, a file."""
    if item.kind == kinds.SHELL:
        words = meaning.command(item).split()
        name = program_of(meaning.command(item))
        at = next((n for n, word in enumerate(words) if word.rsplit("/", 1)[-1] == name), 0)
        verb = next((word for word in words[at + 1 : at + 3] if word[0].isalpha()), "")
        return f"{kinds.SHELL} {name} {verb}"
    if item.files:
        return f"file {item.files[0]['path']}"
    return f"{item.tool} {line}"


def _relative(path: str, project: str) -> str:
    """As seen from the project, if it is in there."""
    below = project.rstrip("/") + "/"
    return path.removeprefix(below) if project and path.startswith(below) else os.fspath(path)


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
    return "`".join(
        piece if at % 2 else _TAG.sub(_escaped, piece) for at, piece in enumerate(pieces)
    )


def _escaped(match: re.Match[str]) -> str:
    """With a backslash of its own, and the ones before it doubled."""
    return "\\" * (2 * len(match[0]) - 1) + match[0][-1]


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
        for decision in self._last_of(self._facts.decisions, 10):
            what = plain(one_line(self._text(decision.what, 260)))
            yield f"- {what} ({code('#' + decision.key[:8])})"
        for commit in self._last_of(self._facts.commits, 10):
            yield f"- Commit {plain(one_line(self._text(commit, 120)))}"

    def _files(self) -> Iterator[str]:
        shown = self._facts.files[: self._count(25)]
        for file in shown:
            again = f", {file.times} edits" if file.times > 1 else ""
            yield f"- {code(file.path)} (+{file.added:,} −{file.removed:,}{again})"
        if more := len(self._facts.files) - len(shown):
            yield f"- … and {more} more"

    def _commands(self) -> Iterator[str]:
        for command in self._last_of(self._facts.commands, 12):
            about = "failed" if command.status == "error" else "ok"
            about += f", run {command.times} times" if command.times > 1 else ""
            yield f"- {code(one_line(self._text(command.text, 200)))} ({about})"

    def _errors(self) -> Iterator[str]:
        for error in self._last_of(self._facts.errors, 5):
            yield f"- {code(one_line(self._text(error.what, 160)))} ({code('#' + error.key[:8])})"
            if tail := self._tail(error.output):
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
