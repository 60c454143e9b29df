"""Who works and who waits: what sessions that go on do this minute, as far as it can be known.

The index says what happened last; the processes of this machine say whether the agent still runs.
Where neither tells whether an agent works or waits, that is said, too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from sess_cli.resuming import arguments
from sess_common import times
from sess_schema import kinds, labels, numbers, shown
from sess_schema.ids import SessionId
from sess_schema.queries import sessions
from sess_schema.queries.sessions import SessionRow

WORKING, WAITING, UNKNOWN = "working", "waiting", "unknown"
# What a waiting session waits for.
QUESTION, PLAN, PROMPT = "question", "plan", "prompt"
_RECENT = 2 * times.HOUR  # without a process, what was said before is over
_FRESH = 10 * times.MINUTE  # the same, where processes cannot be told
_SOON = 5 * times.SECOND  # a question that is answered by a rule
_THINKS = 3 * times.MINUTE  # without a word; a call runs longer without one
_RUNS = times.MINUTE
_PROC = Path("/proc")
_LAST = (
    "SELECT e.id, e.type, e.label, e.tool, e.kind, e.status, e.summary,"
    " coalesce(e.answered, e.ts), substr(x.text, 1, 400)"
    f" FROM {shown.EVENTS} JOIN event_texts x ON x.id = e.id"
    f" WHERE t.session_id = ? AND {shown.CURRENT}"
    f" AND (e.type <> 'system' OR e.label = '{labels.INTERRUPTED}') AND e.type <> 'summary'"
    " ORDER BY t.source_id DESC, t.offset DESC, e.block DESC LIMIT 20"
)


class _Event(NamedTuple):
    id: int
    type: str
    label: str | None
    tool: str | None
    kind: str | None
    status: str | None
    summary: str | None
    ts: int | None
    text: str


class Process(NamedTuple):
    pid: int
    names: frozenset[str]  # of the program, and of the script that it runs
    folder: str


@dataclass(frozen=True, slots=True)
class Live:
    """A session that goes on."""

    row: SessionRow
    title: str
    state: str
    waits_for: str | None
    doing: str
    since: int | None
    cost_nano: int
    tokens: int
    subagents: int
    pid: int | None

    def as_object(self) -> dict[str, Any]:
        return {
            "session": self.row.session,
            "agent": self.row.agent,
            "project": self.row.project,
            "title": self.title,
            "state": self.state,
            "waits_for": self.waits_for,
            "doing": self.doing,
            "since": times.iso(self.since),
            "cost_usd": self.cost_nano / 1e9,
            "tokens": self.tokens,
            "subagents": self.subagents,
            "pid": self.pid,
        }


def read(db: apsw.Connection, now: int, running: Sequence[Process] | None) -> list[Live]:
    """The sessions that go on, those that wait first; `running` is None where nobody can tell."""
    listing = sessions.Listing(since=now - _RECENT, limit=0)
    rows = [*listing.rows(db)]
    pids = _pids(rows, running)
    sums = numbers.of_many(db, rows)
    live = []
    for row in rows:
        if row.key not in pids:
            program = arguments(row)
            known = running is not None and bool(program)
            if known or (row.ended or 0) < now - _FRESH:
                continue
        events = [_Event(*columns) for columns in db.execute(_LAST, (row.key,))]
        if not events:
            continue
        state, waits_for, doing, since = _state(events, now)
        total = sums[row.key].total
        live.append(
            Live(
                row,
                sessions.title_of(db, row),
                state,
                waits_for,
                doing,
                since,
                total.cost_nano,
                total.tokens,
                _working_children(db, row.key, now),
                pids.get(row.key),
            )
        )
    order = {WAITING: 0, UNKNOWN: 1, WORKING: 2}
    return sorted(live, key=lambda one: (order[one.state], -(one.since or 0)))


def _state(events: Sequence[_Event], now: int) -> tuple[str, str | None, str, int | None]:
    """State, what is waited for, what it does, and since when; `events` has the last one first."""
    last = events[0]
    age = now - (last.ts or now)
    pending = [event for event in events if event.type == "tool_use" and event.status == "pending"]
    asked = next((one for one in pending if one.kind in (kinds.QUESTION, kinds.PLAN)), None)
    if asked is not None and now - (asked.ts or now) >= _SOON:
        what = QUESTION if asked.kind == kinds.QUESTION else PLAN
        return WAITING, what, asked.summary or asked.tool or what, asked.ts
    if pending:
        call = pending[0]
        doing = (
            f"{call.tool or 'a call'}: {call.summary}" if call.summary else call.tool or "a call"
        )
        started = now - (call.ts or now)
        # A call without a result runs, or waits for somebody's permission.
        return WORKING if started < _RUNS else UNKNOWN, None, doing, call.ts
    if last.label == labels.INTERRUPTED or last.status == "denied":
        return WAITING, PROMPT, "was interrupted", last.ts
    if last.type == "assistant":
        return WAITING, PROMPT, sessions.one_line(last.text), last.ts
    doing = "thinks"
    if last.type == "tool_use":
        doing = f"thinks after {last.tool or 'a call'}"
    return WORKING if age < _THINKS else UNKNOWN, None, doing, last.ts


def _working_children(db: apsw.Connection, key: SessionId, now: int) -> int:
    count: int = db.execute(
        "SELECT count(*) FROM sessions WHERE parent_id = ? AND ended_at >= ?", (key, now - _RUNS)
    ).get
    return count


# -- processes


def processes() -> list[Process] | None:
    """The programs of this user; None where the system does not tell."""
    if not _PROC.is_dir():
        return None
    return [*_processes()]


def _processes() -> Iterator[Process]:
    own = os.getuid()
    for folder in _PROC.iterdir():
        if not folder.name.isdigit():
            continue
        try:
            if folder.stat().st_uid != own:
                continue
            words = (folder / "cmdline").read_bytes().split(b"\0")[:3]
            place = os.readlink(folder / "cwd")
        except OSError:
            continue
        names = frozenset(os.path.basename(word).decode("utf-8", "replace") for word in words)
        yield Process(int(folder.name), names, place)


def _pids(rows: Sequence[SessionRow], running: Sequence[Process] | None) -> dict[SessionId, int]:
    """Each process belongs to the session of its program and folder that spoke last."""
    pids: dict[SessionId, int] = {}
    free = {process.pid: process for process in running or ()}
    for row in rows:  # the latest first
        command = arguments(row)
        for process in free.values():
            if command and command[0] in process.names and process.folder == row.directory:
                pids[row.key] = process.pid
                del free[process.pid]
                break
    return pids


def line(live: Sequence[Live]) -> str:
    """For a status bar."""
    counts = {
        state: sum(one.state == state for one in live) for state in (WORKING, WAITING, UNKNOWN)
    }
    names = {WORKING: "working", WAITING: "waiting", UNKNOWN: "unknown"}
    parts = [f"{count} {names[state]}" for state, count in counts.items() if count]
    waiting = next((one for one in live if one.state == WAITING), None)
    if waiting is not None:
        parts.append(f"{waiting.waits_for}: {sessions.cut(waiting.title, 40)}")
    return " · ".join(parts) or "no session"
