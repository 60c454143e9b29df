"""Follows a to-do list through the calls and notices that change it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import apsw

from sess_common import times
from sess_schema import calls, kinds, labels, shown
from sess_schema.calls import Todo, bare
from sess_schema.queries import sessions
from sess_schema.queries.sessions import SessionRow
from sess_schema.session import Entry, Reader

_NUMBER = re.compile(r"#(\d+)")
LOCAL = "local"
_CLEARED = "cleared"
_PREFIXES = ("plan", "goal")  # as in `plan_title`
_TOLD = (
    f"SELECT DISTINCT e.id FROM {shown.EVENTS} WHERE t.session_id = ?1 AND {shown.CURRENT}"
    " AND (e.kind = ?2 OR e.label IN (SELECT value FROM json_each(?3)) OR (e.type = 'summary'"
    " AND coalesce(e.label, '') NOT IN (SELECT value FROM json_each(?4)))"
    " OR (e.type = 'tool_use' AND e.status = 'pending'))"
)
_LAST = (
    f"SELECT e.id FROM {shown.EVENTS} WHERE t.session_id = ?1 AND {shown.CURRENT} AND e.type = ?2"
    " AND coalesce(e.label, '') NOT IN (SELECT value FROM json_each(?3))"
    " ORDER BY t.source_id DESC, t.offset DESC, e.block DESC LIMIT 1"
)
# An unreadable line may have changed the mode, or anything else.
_BROKEN = "SELECT line FROM records WHERE session_id = ? AND kind = ? AND retired = 0 ORDER BY line"
_MODEL = (
    "SELECT model FROM usage WHERE session_id = ? AND counted AND model IS NOT NULL"
    " ORDER BY ts DESC, id DESC LIMIT 1"
)


class Todos:
    """A list that is replaced as a whole or changed item by item."""

    def __init__(self) -> None:
        self.all: list[Todo] = []

    def take(self, given: Any, answer: str = "") -> bool:
        """Follow a call or a notice; False if it is not about to-dos."""
        named = calls.named(given)
        todos = calls.todos_in(named)
        if todos is None:
            return self._take_one(named, answer)
        if todos and named.get("merge") is True:
            for todo in todos:
                self._put(todo)
        else:
            self.all = [todo for todo in todos if not todo.is_gone]
        return True

    def take_notice(self, text: str) -> None:
        """Follow a notice of the whole list: if it has none, nothing is left to do."""
        if not self.take({"todos": text}):
            self.all = []

    def _take_one(self, named: Mapping[str, Any], answer: str) -> bool:
        key = calls.word(named.get("taskid"))
        if key is None and calls.word(named.get("subject")) is None:
            return False
        if key is None:
            numbered = _NUMBER.search(answer)
            key = numbered[1] if numbered else str(len(self.all) + 1)
        elif not named.keys() & {"status", "subject"}:
            return False  # only asked for
        self._put(calls.todo_of({**named, "id": key}))
        return True

    def _put(self, todo: Todo) -> None:
        for own in self.all:
            if own.id is not None and own.id == todo.id:
                own.text = todo.text or own.text
                if todo.status is not None:
                    own.state, own.status = todo.state, todo.status
                break
        else:
            if todo.text:
                self.all.append(todo)
        self.all = [own for own in self.all if not own.is_gone]


@dataclass(slots=True)
class Plan:
    """The last plan. An update without a title or content keeps those of before."""

    status: str | None = None  # draft, submitted, approved, rejected
    title: str | None = None
    content: str | None = None
    feedback: str | None = None


@dataclass(slots=True)
class State:
    model: str | None = None
    mode: str | None = None
    environment: str = LOCAL
    profile: str | None = None
    goal: str | None = None
    plan: Plan | None = None
    todos: Todos = field(default_factory=Todos)
    system_prompt: str | None = None
    env_info: str | None = None
    compactions: int = 0
    summary: str | None = None  # of the last compaction
    pending: list[dict[str, str | None]] = field(default_factory=list)  # calls without a result
    last_prompt: str | None = None
    last_answer: str | None = None
    broken: list[int] = field(default_factory=list)  # lines that cannot be read

    def as_object(self, db: apsw.Connection, row: SessionRow) -> dict[str, Any]:
        return {
            "session": row.session,
            "agent": row.agent,
            "title": sessions.title_of(db, row),
            "project": row.project,
            "git_branch": row.git_branch,
            "agent_version": row.version,
            "ended": times.iso(row.ended),
            "source_gone": bool(row.source_gone),
            "model": self.model,
            "models": json.loads(row.models),
            "mode": self.mode,
            "environment": self.environment,
            "profile": self.profile,
            "goal": self.goal,
            "plan": asdict(self.plan) if self.plan else None,
            "todos": [todo.as_object() for todo in self.todos.all],
            "system_prompt": self.system_prompt,
            "env_info": self.env_info,
            "compactions": self.compactions,
            "summary": self.summary,
            "pending": self.pending,
            "last_prompt": self.last_prompt,
            "last_answer": self.last_answer,
            "broken_lines": self.broken,
        }


def read(db: apsw.Connection, row: SessionRow) -> State:
    """The state at the end of the session. What subagents did is not part of it."""
    reader = Reader(db, row.key)
    state = State(mode=row.mode, model=_model(db, row))
    asked = (row.key, kinds.PLAN, json.dumps([*labels.STATE]), json.dumps([*labels.TITLES]))
    wanted = {event for (event,) in db.execute(_TOLD, asked)}
    for entry in reader.some([event for event in reader.order if event in wanted]):
        _follow(state, reader, entry)
    state.broken = [line for (line,) in db.execute(_BROKEN, (row.key, labels.BROKEN))]
    state.last_prompt = _last(db, reader, row, "user")
    state.last_answer = _last(db, reader, row, "assistant")
    return state


def _follow(state: State, reader: Reader, entry: Entry) -> None:
    if entry.type == "tool_use":
        if entry.status == "pending" and entry.unjoined is None:
            state.pending.append({"tool": entry.tool, "summary": entry.summary or None})
        if entry.kind == kinds.PLAN:
            _follow_call(state, reader, entry)
    elif entry.type == "summary":
        state.compactions += 1
        state.summary = entry.text
    else:
        _follow_notice(state, entry, _fields(reader.record(entry)))


def _follow_call(state: State, reader: Reader, entry: Entry) -> None:
    given = reader.input(entry)
    if entry.status not in ("error", "denied") and state.todos.take(given, entry.output):
        return
    if plan := plan_in(given):
        refused = entry.status in ("error", "denied")
        status = "rejected" if refused else "approved" if entry.status == "ok" else "submitted"
        state.plan = Plan(status, None, plan, entry.output.strip() if refused else None)


def plan_in(given: Any) -> str:
    """The plan in the input of a call; empty if it has none."""
    plan = given.get("plan") if isinstance(given, Mapping) else None
    return plan.strip() if isinstance(plan, str) else ""


def _follow_notice(state: State, entry: Entry, notice: Mapping[str, Any]) -> None:
    if entry.label == labels.MODE:
        state.mode = entry.text
    elif entry.label == labels.ENVIRONMENT:
        state.environment = entry.text
    elif entry.label == labels.PROFILE:
        state.profile = entry.text
    elif entry.label == labels.GOAL:
        goal = _text(notice, "objective") or entry.text
        state.goal = None if _text(notice, "status") == _CLEARED else goal
    elif entry.label == labels.SYSTEM_PROMPT:
        state.system_prompt = _text(notice, "content") or entry.text
        state.env_info = _text(notice, "envinfo")
    elif entry.label == labels.TODO:
        if not state.todos.take(notice):
            state.todos.take_notice(entry.text)
    elif entry.label == labels.PLAN:
        before = state.plan or Plan()
        state.plan = Plan(
            _text(notice, "status"),
            _text(notice, "title") or before.title,
            _text(notice, "content") or before.content,
            _text(notice, "feedback"),
        )


def _fields(record: Any) -> dict[str, Any]:
    """The fields of a notice, `plan_title` as `title`."""
    fields: dict[str, Any] = {}
    for name, value in record.items() if isinstance(record, Mapping) else ():
        plain = bare(str(name))
        for prefix in _PREFIXES:
            plain = plain.removeprefix(prefix) or plain
        fields.setdefault(plain, value)
    return fields


def _text(notice: Mapping[str, Any], name: str) -> str | None:
    value = notice.get(name)
    return value if isinstance(value, str) and value else None


def _model(db: apsw.Connection, row: SessionRow) -> str | None:
    models = [*json.loads(row.models), db.execute(_MODEL, (row.key,)).get]
    return next((model for model in reversed(models) if model), None)


def _last(db: apsw.Connection, reader: Reader, row: SessionRow, kind: str) -> str | None:
    event = db.execute(_LAST, (row.key, kind, json.dumps([*labels.ALARMS]))).get
    return reader.some([event])[0].text if event is not None else None
