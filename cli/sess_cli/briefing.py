"""What an agent forgets when its conversation is compacted: a brief of a session in few words.

Made from rows of the index alone, in milliseconds: an agent waits for it. `sess handoff` tells
more, to another agent, and reads the whole session for it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence

import apsw

from sess_common.classes import TYPE_CHECKING, dataclass, field
from sess_schema import kinds, labels, shown

if TYPE_CHECKING:
    from typing import Any

    from sess_schema.ids import SessionId

TOKENS = 600
_BYTES_PER_TOKEN = 3
_READ = 2_000  # characters of a text
_MOST = {
    "orders": 6,
    "decisions": 5,
    "commits": 6,
    "files": 12,
    "commands": 6,
    "errors": 3,
    "todos": 12,
}
_ORDER = re.compile(
    r"\b(?:never|always|do not|don't|must(?: not)?|from now on|no matter what|without asking)\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]?")
_NOT_REQUESTS = frozenset({labels.COMMAND, labels.BASH, labels.MEMORY})
_LOOKING = re.compile(
    r"(?:\w+=\S+ +)*(?:cd \S+ *(?:&&|;) *)?"
    r"(?:cat|ls|head|tail|grep|rg|find|echo|pwd|sed|wc|which|git (?:status|log|diff|show))\b"
)
_EVENTS = (
    "SELECT e.id, e.type, e.label, e.tool, e.kind, e.status, e.summary"
    f" FROM {shown.EVENTS} WHERE t.session_id = ? AND {shown.CURRENT} AND e.unjoined IS NULL"
    f" AND e.type IN ('user', 'tool_use') {shown.IN_ORDER}"
)
_FILES = (
    "SELECT d.path, sum(d.added), sum(d.removed) FROM edits d JOIN events e ON e.id = d.event_id"
    " WHERE e.session_id = ? AND e.status = 'ok' AND e.retired = 0 GROUP BY d.path"
    " ORDER BY max(e.id) DESC LIMIT ?"
)
_COMMITS = (
    "SELECT c.sha, c.subject FROM commits c JOIN events e ON e.id = c.event_id"
    " WHERE e.session_id = ? AND e.retired = 0 ORDER BY e.id DESC LIMIT ?"
)


@dataclass(slots=True)
class Facts:
    """Of one session, the latest last."""

    requests: list[str] = field(default_factory=list)  # the first, and the last two
    orders: list[str] = field(default_factory=list)
    decisions: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    commits: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    todos: list[str] = field(default_factory=list)


def facts_of(db: apsw.Connection, session: SessionId, project: str | None) -> Facts:
    facts = Facts()
    prompts: list[int] = []
    questions: list[tuple[int, str]] = []
    runs: dict[str, tuple[int, str, str]] = {}  # the last one of each command
    plans: list[int] = []
    for event, type_, label, tool, kind, status, summary in db.execute(_EVENTS, (session,)):
        if type_ == "user":
            if label not in _NOT_REQUESTS:
                prompts.append(event)
        elif kind == kinds.QUESTION and status == "ok":
            questions.append((event, summary or ""))
        elif kind == kinds.PLAN:
            plans.append(event)
        elif kind == kinds.SHELL and summary and not _LOOKING.match(summary):
            runs.pop(summary, None)
            runs[summary] = (event, summary, status or "")
        elif status == "error" and kind in (kinds.EDIT, kinds.WRITE):
            runs[f"{tool} {summary}"] = (event, f"{tool} {summary}", status)
        elif kind in (kinds.EDIT, kinds.WRITE):
            runs.pop(f"{tool} {summary}", None)
    _add_requests(facts, _texts(db, prompts, "text"))
    answers = _texts(db, [event for event, _ in questions[-_MOST["decisions"] :]], "output")
    asked = [summary for _, summary in questions[-_MOST["decisions"] :]]
    facts.decisions = [
        f"{_line(question, 120)} → {_line(answer, 160)}"
        for question, answer in zip(asked, answers, strict=False)
    ]
    facts.files = [
        f"{_below(path, project)} (+{added} −{removed})"
        for path, added, removed in db.execute(_FILES, (session, _MOST["files"]))
    ]
    commits = [*db.execute(_COMMITS, (session, _MOST["commits"]))][::-1]
    facts.commits = [f"{sha[:10]} {_line(subject, 90)}" for sha, subject in commits]
    _add_commands(db, facts, [*runs.values()])
    facts.todos = _todos(db, plans)
    return facts


def _texts(db: apsw.Connection, events: Sequence[int], column: str) -> list[str]:
    """The beginnings of texts, in order."""
    rows = db.execute(
        f"SELECT substr(x.{column}, 1, {_READ}) FROM json_each(?) j"
        " JOIN event_texts x ON x.id = j.value ORDER BY j.key",
        (json.dumps([*events]),),
    )
    return [text for (text,) in rows]


def _add_requests(facts: Facts, prompts: list[str]) -> None:
    prompts = [prompt for prompt in prompts if prompt.strip()]
    facts.requests = [_line(prompt, 300) for prompt in [*prompts[:1], *prompts[1:][-2:]]]
    orders: dict[str, None] = {}
    for prompt in prompts:
        for sentence in _SENTENCE.findall(prompt):
            if _ORDER.search(sentence) and len(sentence) < 240:
                orders[_line(sentence, 160)] = None
    facts.orders = [*orders][-_MOST["orders"] :]


def _add_commands(db: apsw.Connection, facts: Facts, runs: Sequence[tuple[int, str, str]]) -> None:
    shell = [run for run in runs if run[2] in ("ok", "error")][-_MOST["commands"] :]
    facts.commands = [
        f"{_line(summary, 120)} ({'ok' if status == 'ok' else 'failed'})"
        for _, summary, status in shell
    ]
    failed = [run for run in runs if run[2] == "error"][-_MOST["errors"] :]
    outputs = _texts(db, [event for event, _, _ in failed], "output")
    if failed:
        from sess_schema.queries.failures import signature

        facts.errors = [
            f"{_line(summary, 100)} → {_line(signature.key(output)[1] or output, 160)}"
            for (_, summary, _), output in zip(failed, outputs, strict=False)
        ]


def _todos(db: apsw.Connection, plans: Sequence[int]) -> list[str]:
    """Those that are not done."""
    if not plans:
        return []
    from sess_cli.continuing.state import Todos
    from sess_schema.session import Reader

    todos = Todos()
    reader = Reader(db, _session_of(db, plans[0]))
    for entry in reader.some(plans[-_READ:], _READ):  # type: ignore[arg-type]
        if entry.status not in ("error", "denied"):
            todos.take(reader.input(entry), entry.output)
    left = [f"[{todo.mark}] {_line(todo.text, 100)}" for todo in todos.all if todo.state != "done"]
    return left[: _MOST["todos"]]


def _session_of(db: apsw.Connection, event: int) -> SessionId:
    session: SessionId = db.execute("SELECT session_id FROM events WHERE id = ?", (event,)).get
    return session


_SECTIONS: tuple[tuple[str, str], ...] = (
    ("requests", "Asked (first, then last)"),
    ("orders", "Standing orders"),
    ("todos", "Not done yet"),
    ("errors", "Open errors"),
    ("decisions", "Decided by the person"),
    ("commits", "Commits"),
    ("files", "Files changed, the last first"),
    ("commands", "Commands"),
)


def write(facts: Facts, clean: Callable[[str], str | None], tokens: int = TOKENS) -> str:
    """The brief within a budget; `clean` masks a line, or drops it."""
    left = tokens * _BYTES_PER_TOKEN
    lines: list[str] = []
    for line in _lines(facts, clean):
        left -= len(line.encode("utf-8", "replace")) + 1
        if left < 0:
            break
        lines.append(line)
    while lines and not lines[-1].startswith("- "):
        lines.pop()  # the title of a section that found no room
    return "\n".join(lines)


def _lines(facts: Facts, clean: Callable[[str], str | None]) -> Iterator[str]:
    for name, title in _SECTIONS:
        cleaned = [text for one in getattr(facts, name) if (text := clean(one))]
        if cleaned:
            yield f"{title}:"
            yield from (f"- {text}" for text in cleaned)


def _line(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


def _below(path: str, project: str | None) -> str:
    folder = (project or "").rstrip("/") + "/"
    return path.removeprefix(folder) if project else path


def as_object(facts: Facts) -> dict[str, Any]:
    return {name: getattr(facts, name) for name, _ in _SECTIONS}
