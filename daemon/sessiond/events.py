"""Events to rows: tool calls joined with their results, in whatever order the two come."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import apsw

from sess_schema import archive
from sessiond.sessions import Session
from sessiond.slices import Turn
from sessiond.sources.base import LINK_PROMPT, Event, Record, Result, SessionSpec
from sessiond.sources.commits import find_commits

# CSI and OSC sequences. The archive keeps them for those who show colours.
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
FAILED = "is_error"  # the token by which a failed call is found, as grepping a transcript would


@dataclass(slots=True, eq=False)
class Row:
    """An event on its way into `events` and `event_texts`."""

    id: int
    session_id: int
    turn_id: int
    block: int
    type: str
    label: str | None
    tool: str | None
    status: str | None
    ts: int | None
    summary: str | None
    call_id: str | None
    pointer: str | None
    text: str
    input: str
    output: str = ""
    marks: str = ""
    images: int = 0
    duration_ms: int | None = None
    result_turn_id: int | None = None
    overflow: str | None = None
    result_pointer: str | None = None
    files: tuple[tuple[str, str], ...] = ()
    stored: bool = False  # it is in the index already and must be replaced there
    queued: bool = False


class EventWriter:
    """Collects the events of a slice, joins what belongs together, writes them at once."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self._first_new: int | None = None
        self._next_id = 0
        self._changed: list[int] = []  # older events whose text must be indexed again
        self._rows: list[Row] = []
        self._calls: dict[str, list[Row]] = {}
        self._prompts: list[tuple[Session, Session, str]] = []
        self._shared: set[tuple[int, int]] = set()  # (session, turn it has a copy of)
        self._attachments: str | None = None

    def forget(self) -> None:
        self._first_new, self._changed = None, []
        self._rows, self._calls, self._prompts = [], {}, []

    def begin(self, spec: SessionSpec, turns: list[Turn]) -> None:
        """Look up the stored calls that this slice may complete."""
        self._attachments = spec.attachments
        self._rows, self._calls, self._prompts = [], {}, []
        self._shared.clear()
        wanted = set()
        for turn in turns:
            for event in turn.record.events:
                if event.call_id:
                    wanted.add(event.call_id)
            for result in turn.record.results:
                wanted.add(result.call_id)
        if not wanted:
            return
        for row in self._stored(
            "call_id IN (SELECT value FROM json_each(?)) ORDER BY e.id", json.dumps(list(wanted))
        ):
            if row.call_id is not None:
                self._calls.setdefault(row.call_id, []).append(row)

    def _stored(self, where: str, value: str) -> list[Row]:
        found = []
        for values in self._db.execute(
            "SELECT e.id, session_id, turn_id, block, type, label, tool, status, ts, summary,"
            " call_id, pointer, text, input, output, marks, images, duration_ms,"
            " result_turn_id, overflow, result_pointer"
            " FROM events e JOIN event_texts t ON t.id = e.id"
            f" WHERE {where}",
            (value,),
        ):
            row = Row(*values)
            row.stored = True
            found.append(row)
        return found

    def add(self, session: Session, turn_id: int, record: Record) -> list[Event]:
        """Take the events of a new turn; returns those that are new events of the session."""
        new: list[Event] = []
        for block, event in enumerate(record.events):
            if event.call_id and self._complete_orphan(session, turn_id, block, record, event):
                continue
            self._add_row(session, turn_id, block, record, event)
            new.append(event)
        for block, result in enumerate(record.results, len(record.events)):
            call = self._call_of(session, result)
            if call is not None and call.status == "pending":
                self._join(call, turn_id, record.ts, result)
                continue
            # No call was seen yet, or a fork answers a call that the original answered too.
            event = Event(
                "tool_use",
                tool=call.tool if call else None,
                summary=call.summary if call else None,
                call_id=result.call_id,
            )
            row = self._add_row(session, turn_id, block, record, event)
            row.label = "answer" if call else "orphan"
            self._join(row, turn_id, record.ts, result)
            row.duration_ms = result.duration_ms
            new.append(event)
        return new

    def _add_row(
        self, session: Session, turn_id: int, block: int, record: Record, event: Event
    ) -> Row:
        self._first_new_id()
        self._next_id += 1
        row = Row(
            self._next_id,
            session.id,
            turn_id,
            block,
            event.type,
            event.label,
            event.tool,
            event.status,
            record.ts,
            event.summary,
            event.call_id,
            event.pointer,
            event.text,
            event.input,
            event.output,
            images=event.images,
            duration_ms=event.duration_ms,
            files=event.files,
        )
        self._rows.append(row)
        if event.call_id is not None:
            self._calls.setdefault(event.call_id, []).append(row)
        return row

    def _complete_orphan(
        self, session: Session, turn_id: int, block: int, record: Record, event: Event
    ) -> bool:
        """A call whose result came first."""
        for row in self._calls.get(event.call_id or "", ()):
            if row.session_id == session.id and row.label == "orphan":
                row.label, row.turn_id, row.block = event.label, turn_id, block
                row.tool, row.summary, row.pointer = event.tool, event.summary, event.pointer
                row.input, row.files, row.ts = event.input, event.files, record.ts
                self._replace_later(row)
                return True
        return False

    def _call_of(self, session: Session, result: Result) -> Row | None:
        """The call of this session, or the one it shares with the session it was forked from.

        Some gateways number calls anew in each answer, so the newest open call counts.
        """
        calls = [
            row
            for row in self._calls.get(result.call_id, ())
            if row.label != "orphan" and self._belongs(session, row)
        ]
        calls.sort(key=lambda row: (row.session_id == session.id, row.status == "pending", row.id))
        return calls[-1] if calls else None

    def _belongs(self, session: Session, row: Row) -> bool:
        return (
            row.session_id == session.id
            or (session.id, row.turn_id) in self._shared
            or self._db.execute(
                "SELECT 1 FROM turns WHERE copy_of = ? AND session_id = ?",
                (row.turn_id, session.id),
            ).get
            is not None
        )

    def _join(self, row: Row, turn_id: int, ts: int | None, result: Result) -> None:
        row.result_turn_id, row.result_pointer = turn_id, result.pointer
        row.status = result.status
        row.output = result.output
        row.images += result.images
        row.marks = FAILED if result.status in ("error", "denied") else ""
        row.duration_ms = result.duration_ms
        if row.duration_ms is None and ts is not None and row.ts is not None and ts >= row.ts:
            row.duration_ms = ts - row.ts
        if result.overflow and self._attachments:
            row.overflow = f"{self._attachments}/{result.overflow}"
            row.output = self._overflow_text(row.overflow) or row.output
        self._replace_later(row)

    def move(self, old: int, new: int, session_id: int) -> None:
        """A turn handed its events over; the rows at hand must not bring the old owner back."""
        for rows in self._calls.values():
            for row in rows:
                if row.turn_id == old:
                    row.turn_id, row.session_id = new, session_id
                if row.result_turn_id == old:
                    row.result_turn_id = new

    def share(self, session: Session, turn_id: int) -> None:
        """The session holds a copy of a turn that another one owns."""
        self._shared.add((session.id, turn_id))

    def _replace_later(self, row: Row) -> None:
        if row.stored and not row.queued:
            row.queued = True
            self._rows.append(row)

    def _overflow_text(self, path: str) -> str | None:
        """The full output, if its file was archived before the line that mentions it."""
        for (source_id,) in self._db.execute(
            "SELECT id FROM sources WHERE kind = 'attachment' AND path = ?", (path,)
        ):
            return b"".join(archive.source_bytes(self._db, source_id)).decode("utf-8", "replace")
        return None

    def fill_overflow(self, path: str, text: str) -> None:
        """The file of an overflowed output arrived after the line that mentions it."""
        for row in self._stored("overflow = ?", path):
            row.output = text
            self._replace_later(row)
        self.flush()

    def await_prompt(self, parent: Session, child: Session, record: Record) -> None:
        """Records inside the parent's file name no call; the prompt they begin with does."""
        text = next((event.text for event in record.events if event.text), "")
        if text and child.link_rank <= LINK_PROMPT:
            self._prompts.append((parent, child, text))

    def _link_prompts(self) -> None:
        for parent, child, text in self._prompts:
            for (call_id,) in self._db.execute(
                "SELECT call_id FROM events e JOIN event_texts t ON t.id = e.id"
                " WHERE session_id = ? AND tool IN ('Task', 'Agent') AND instr(input, ?)"
                " ORDER BY e.id DESC LIMIT 1",
                (parent.id, _clean(text)),
            ):
                child.call_id, child.link_rank = call_id, LINK_PROMPT
        self._prompts = []

    def flush(self) -> None:
        """Write the collected events; the full text follows at `index`."""
        db, rows = self._db, self._rows
        old = [row for row in rows if row.stored]
        if old:
            self._remove(old)
        db.executemany(
            "INSERT INTO events (id, session_id, turn_id, block, result_turn_id, type, label,"
            " tool, status, ts, duration_ms, summary, images, call_id, pointer, overflow,"
            " result_pointer)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [_event_values(row) for row in rows],
        )
        db.executemany(
            "INSERT INTO event_texts (id, text, input, output, marks) VALUES (?, ?, ?, ?, ?)",
            [
                (row.id, _clean(row.text), _clean(row.input), _clean(row.output), row.marks)
                for row in rows
            ],
        )
        db.executemany(
            "INSERT OR IGNORE INTO files (event_id, path, action) VALUES (?, ?, ?)",
            [(row.id, _clean(path), action) for row in rows for path, action in row.files],
        )
        db.executemany(
            "INSERT OR IGNORE INTO commits (event_id, sha, branch, subject) VALUES (?, ?, ?, ?)",
            [
                (row.id, sha, branch, _clean(subject))
                for row in rows
                if row.output and "git" in row.input
                for sha, branch, subject in find_commits(row.output)
            ],
        )
        for row in rows:
            row.stored, row.queued = True, False  # a later result replaces it
        self._rows = []
        self._link_prompts()

    def _remove(self, rows: list[Row]) -> None:
        """Take stored events out, from the full text too if they are in it already."""
        first_new = self._first_new_id()
        for row in rows:
            if row.id < first_new:
                self._db.execute(
                    "INSERT INTO event_index (event_index, rowid, text, input, output, marks)"
                    " SELECT 'delete', id, text, input, output, marks FROM event_texts"
                    " WHERE id = ?",
                    (row.id,),
                )
                self._changed.append(row.id)
        ids = [(row.id,) for row in rows]
        self._db.executemany("DELETE FROM events WHERE id = ?", ids)
        self._db.executemany("DELETE FROM event_texts WHERE id = ?", ids)

    def index(self) -> None:
        """Put everything that the transaction wrote into the full text, as its last act.

        Any statement in between that opens a savepoint would make FTS5 flush what it has
        collected, and a bulk load would drown in small segments.
        """
        if self._first_new is None:
            return
        copy = (
            "INSERT INTO event_index (rowid, text, input, output, marks)"
            " SELECT id, text, input, output, marks FROM event_texts WHERE"
        )
        self._db.execute(f"{copy} id >= ?", (self._first_new,))
        self._db.executemany(f"{copy} id = ?", [(changed,) for changed in set(self._changed)])

    def _first_new_id(self) -> int:
        """The first event id that this transaction gives out."""
        if self._first_new is None:
            self._next_id = self._db.execute("SELECT coalesce(max(id), 0) FROM events").get
            self._first_new = self._next_id + 1
        return self._first_new


def _event_values(row: Row) -> tuple[Any, ...]:
    return (
        row.id, row.session_id, row.turn_id, row.block, row.result_turn_id, row.type, row.label,
        row.tool, row.status, row.ts, row.duration_ms, row.summary, row.images, row.call_id,
        row.pointer, row.overflow, row.result_pointer,
    )  # fmt: skip


def _clean(text: str) -> str:
    """Text as it is searched: SQLite's functions stop at a NUL, and colours glue to words."""
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    if "\x1b" in text:  # `ESC[31mFAILED` would be found as `31mFAILED` only
        text = _ANSI.sub("", text)
    return text
