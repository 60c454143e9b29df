"""What another agent must know to take over a session, found in one pass over its events.

Everything comes from a `Story`, so that secrets are masked before they get here.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field

from sess_cli.continuing.todos import Todos
from sess_cli.export import ansi, shapes
from sess_cli.export.story import Item, Story
from sess_schema import kinds, labels
from sess_schema.calls import Todo
from sess_schema.queries import sessions
from sess_schema.queries.views.error_rules import RULES, Classifier
from sess_schema.queries.views.programs import program
from sess_schema.session import shown

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
    key: str
    times: int = 1


@dataclass(slots=True, frozen=True)
class Failure:
    what: str
    output: str
    key: str


@dataclass(slots=True, frozen=True)
class Decision:
    what: str
    key: str


@dataclass(slots=True)
class Facts:
    requests: list[str] = field(default_factory=list)  # in order; the first one is the goal
    decisions: list[Decision] = field(default_factory=list)
    files: list[Changed] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)  # by their last run
    errors: list[Failure] = field(default_factory=list)  # that nothing has put right since
    commits: list[str] = field(default_factory=list)
    todos: list[Todo] = field(default_factory=list)
    plan: str = ""
    summary: str = ""  # of what the agent has compacted
    last_answer: str = ""
    pending: list[str] = field(default_factory=list)
    ended: str = ""  # why, if not by itself


def of_story(story: Story) -> Facts:
    gathered = _Gathered(story)
    for item in story.items():
        gathered.add(item)
    return gathered.facts()


class _Gathered:
    def __init__(self, story: Story) -> None:
        self._story = story
        self._facts = Facts()
        self._todos = Todos()
        self._commands: dict[str, Command] = {}
        self._failed: dict[str, Failure] = {}
        self._denied: dict[str, Decision] = {}
        self._classes = Classifier(RULES)

    def facts(self) -> Facts:
        found = self._facts
        found.commands = [*self._commands.values()]
        found.errors = [*self._failed.values()]
        found.decisions += self._denied.values()
        found.todos = self._todos.all
        found.files = self._files()
        return found

    def add(self, item: Item) -> None:
        found = self._facts
        if item.type == "user":
            found.ended = ""
            if item.label not in _NOT_REQUESTS and item.text.strip():
                found.requests.append(item.text.strip())
        elif item.type == "assistant":
            if item.label in labels.ALARMS:
                found.ended = item.text.strip()
            elif item.text.strip():
                found.last_answer, found.ended = item.text.strip(), ""
        elif item.type == "tool_use" and item.unjoined is None:
            self._call(item)
        elif item.type == "summary" and not item.is_title:
            found.summary = item.text.strip()
        elif item.label == labels.TODO:
            self._todos.take_notice(item.text)
        elif item.label == labels.PLAN:
            found.plan = item.text.strip()
        elif item.label == labels.INTERRUPTED:
            found.ended = "The user interrupted it."
        elif item.label in labels.ALARMS:
            found.ended = item.text.strip()

    def _call(self, item: Item) -> None:
        found, said = self._facts, _said(item)
        if item.status == "pending":
            found.pending.append(said)
        if item.kind == kinds.PLAN:
            self._plan(item)
        elif item.kind == kinds.QUESTION and item.status == "ok":
            asked = f"Asked: {item.summary or said}\nAnswer: {ansi.plain(item.output).strip()}"
            found.decisions.append(Decision(asked, item.key))
        found.commits += [f"{one.sha[:10]} {one.subject}".strip() for one in item.commits]
        if item.kind not in _UNIMPORTANT and not _only_looks(item):
            self._judge(item, said)

    def _plan(self, item: Item) -> None:
        refused = item.status in ("error", "denied")
        if not refused and self._todos.take(item.given, item.output):
            return
        plan = item.given.get("plan") if isinstance(item.given, dict) else None
        if isinstance(plan, str) and plan.strip():
            if not refused:
                self._facts.plan = plan.strip()
            elif item.output.strip():
                refusal = f"Plan rejected: {ansi.plain(item.output).strip()}"
                self._facts.decisions.append(Decision(refusal, item.key))

    def _judge(self, item: Item, said: str) -> None:
        """A failure or refusal is open until the same is done with success."""
        about = _about(item, said)
        self._failed.pop(about, None)
        self._denied.pop(about, None)
        if item.status == "denied":
            self._denied[about] = Decision(f"Not allowed: {said}", item.key)
        elif item.status == "error":
            output = ansi.plain(item.output).strip()
            if self._classes.of(item.tool or "", item.kind, output) not in _SLIPS:
                self._failed[about] = Failure(said, output, item.key)
        if item.kind == kinds.SHELL and item.status in ("ok", "error"):
            self._ran(about, item.status, shapes.command(item).strip(), item.key)

    def _ran(self, about: str, status: str, text: str, key: str) -> None:
        if program(text) not in _TIDYING:
            before = self._commands.pop(about, None)  # to the end of the list
            if "\n" not in text and len(text) <= _LONGEST:
                times = before.times + 1 if before else 1
                self._commands[about] = Command(text, status, key, times)
            elif before:
                self._commands[about] = before

    def _files(self) -> list[Changed]:
        story = self._story
        project = story.row.directory or ""
        found = [
            Changed(story.cleaned(_relative(path, project)), added, removed, times)
            for path, added, removed, times in story.db.execute(_FILES, (story.row.key,))
        ]
        return found[::-1]  # the last one first


def _said(item: Item) -> str:
    """A call in one line."""
    if item.kind == kinds.SHELL:
        return sessions.one_line(shapes.command(item))
    return sessions.one_line(f"{item.tool or 'unknown tool'} {item.summary}")


def _only_looks(item: Item) -> bool:
    command = shapes.command(item) if item.kind == kinds.SHELL else ""
    return bool(command) and (program(command) in _LOOKING or bool(_GIT.search(command)))


def _about(item: Item, said: str) -> str:
    """The same for calls that try the same: a program and what it does, a file."""
    if item.kind == kinds.SHELL:
        words = shapes.command(item).split()
        name = program(shapes.command(item))
        at = next((n for n, word in enumerate(words) if word.rsplit("/", 1)[-1] == name), 0)
        verb = next((one for one in words[at + 1 : at + 3] if one[0].isalpha()), "")
        return f"{kinds.SHELL} {name} {verb}"
    if item.files:
        return f"file {item.files[0]['path']}"
    return f"{item.tool} {said}"


def _relative(path: str, project: str) -> str:
    """As seen from the project, if it is in there."""
    below = project.rstrip("/") + "/"
    return path.removeprefix(below) if project and path.startswith(below) else os.fspath(path)
