"""Events as rows: loads, collects, writes and indexes them."""

from __future__ import annotations

import json
import re
from bisect import insort
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import apsw

from sess_common import escape
from sess_schema import edits, kinds, search_index, sums
from sess_schema.edits import Edit
from sess_schema.ids import EventId, RecordId, SessionId, short_key
from sess_schema.search_index import marks_for
from sess_schema.session import COLUMNS, FACTS, StoredEvent
from sessiond.sourcekit.base import Event, Record

_LOAD = (
    f"SELECT {', '.join(f'e.{name}' for name in COLUMNS)}, c.retired OR c.superseded,"
    " r.session_id, r.retired OR r.superseded"
    " FROM events e JOIN records c ON c.id = e.record_id"
    " LEFT JOIN records r ON r.id = e.result_record_id"
)
_LOADED = (*COLUMNS, "call_retired", "result_session", "result_retired")
_LAST_ID = "SELECT coalesce(max(id), 0) FROM events"
_STORE = (
    f"INSERT INTO events ({', '.join(COLUMNS)}, call_key)"
    f" VALUES ({', '.join('?' * len(COLUMNS))}, ?)"
)
_STORE_TEXTS = "INSERT INTO event_texts (id, text, input, output, marks) VALUES (?, ?, ?, ?, ?)"
_LOOK = f"SELECT id, {', '.join(COLUMNS)} FROM events"
_LOOK_AT_TEXTS = "SELECT id, text, input, output, marks FROM event_texts"
_CHANGE_TEXTS = "UPDATE event_texts SET text = ?, input = ?, output = ?, marks = ? WHERE id = ?"
_STORE_FILES = "INSERT OR IGNORE INTO files (event_id, path, action) VALUES (?, ?, ?)"
_STORE_COMMITS = (
    "INSERT OR IGNORE INTO commits (event_id, sha, branch, subject) VALUES (?, ?, ?, ?)"
)
# FTS5 flushes what it has collected at each statement, and where a row comes before the last one.
_LISTED = "id IN (SELECT value FROM json_each(?)) ORDER BY id"
_columns_of = attrgetter(*COLUMNS)
_facts_of = attrgetter(*FACTS)
_STORE_EDITS = (
    "INSERT INTO edits (event_id, number, path, added, removed, data) VALUES (?, ?, ?, ?, ?, ?)"
)


# `Row.awaits_person` in SQL.
AWAITS_PERSON = f"(status IS 'denied' OR kind IS '{kinds.QUESTION}')"


@dataclass(slots=True, eq=False, kw_only=True)
class Row(StoredEvent):
    """An event that is being written."""

    # The current state of the records of the call and the result.
    call_retired: int = 0
    result_session: SessionId | None = None
    result_retired: int | None = None
    files: tuple[tuple[str, str], ...] = ()
    edits: tuple[Edit, ...] | None = ()  # None: as they are stored
    stored: bool = False  # in the index already, to be replaced there
    loaded: bool = True  # the texts are in memory
    queued: bool = False

    def awaits_person(self) -> bool:
        """Whether its time is known to be a person's: a question, or a call that was refused."""
        return self.status == "denied" or self.kind == kinds.QUESTION


def row_of(
    event_id: EventId,
    session_id: SessionId,
    place: tuple[RecordId, int],
    record: Record,
    event: Event,
) -> Row:
    """A new event; its place is its record and its number in it."""
    record_id, block = place
    return Row(
        *_facts_of(event),
        id=event_id,
        session_id=session_id,
        record_id=record_id,
        block=block,
        ts=record.ts,
        chars=event.chars(),
        files=event.files,
        edits=event.edits,
    )


def content_of(row: Row) -> tuple[object, ...]:
    """What its record says, as it is stored."""
    facts = (getattr(row, name) for name in FACTS)
    return row.ts, *(clean(fact) if isinstance(fact, str) else fact for fact in facts)


# Ids of events by record, type (or `result`), and call or place among those of its type.
Numbers = dict[tuple[RecordId, str, str | int], EventId]


class EventRows:
    """The rows of a transaction; full text is indexed last."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self._first_new: int | None = None
        self._next_id = 0
        self._rows: list[Row] = []
        self._changed: set[EventId] = set()  # older events whose text must be indexed again
        self._numbers: Numbers = {}  # of removed events that may be added again

    def stored(self, where: str, *values: Any) -> list[Row]:
        """Rows from the index, without their texts."""
        rows = []
        for columns in self._db.execute(f"{_LOAD} WHERE {where}", values):
            stored: dict[str, Any] = dict(zip(_LOADED, columns, strict=True))
            rows.append(Row(**stored, stored=True, loaded=False, edits=None))
        return rows

    def load(self, row: Row) -> None:
        """Load the texts of a stored row; most rows do not need them."""
        if not row.loaded:
            row.loaded = True
            texts = self._db.execute(
                "SELECT text, input, output FROM event_texts WHERE id = ?", (row.id,)
            )
            row.text, row.input, row.output = next(iter(texts))

    def edits(self, row: Row) -> tuple[Edit, ...]:
        """The edits of a row, read from the index if not in memory."""
        if row.edits is None:
            row.edits = tuple(edits.of_event(self._db, row.id))
        return row.edits

    def add(self, row: Row) -> None:
        self._rows.append(row)

    def replace(self, row: Row) -> None:
        """Queue a changed row, unless it is not written yet."""
        if row.stored and not row.queued:
            row.queued = True
            self._rows.append(row)

    def drop(self, row: Row) -> None:
        if row.queued or not row.stored:
            self._rows.remove(row)
        if row.stored:
            self.remove([row])
            self._db.execute("DELETE FROM edits WHERE event_id = ?", (row.id,))

    def flush(self) -> None:
        """Write the collected events; `index` adds the full text."""
        db, rows = self._db, self._rows
        if not rows:
            return
        for row in rows:
            if row.awaits_person():
                row.duration_ms = None
        old = [row for row in rows if row.stored]
        new = rows
        if old:
            self._change(old)
            new = [row for row in rows if not row.stored]
            db.executemany(
                "DELETE FROM edits WHERE event_id = ?",
                [(row.id,) for row in old if row.edits is not None],
            )
        db.executemany(_STORE, [(*_columns_of(row), _call_key(row)) for row in new])
        sums.note_events(db, ((row.session_id, row.ts, row.answered) for row in rows))
        search_index.note_blocks(db, ((row.id, row.ts) for row in rows))
        db.executemany(_STORE_TEXTS, [_texts(row) for row in new])
        files = [(row.id, clean(path), action) for row in rows for path, action in row.files]
        commits = [
            (row.id, sha, branch, clean(subject))
            for row in rows
            if row.output and may_commit(row.kind, row.input)
            for sha, branch, subject in find_commits(row.output)
        ]
        changed = [
            columns for row in rows if row.edits for columns in _edit_rows(row.id, row.edits)
        ]
        for insert, found in (
            (_STORE_FILES, files),
            (_STORE_COMMITS, commits),
            (_STORE_EDITS, changed),
        ):
            if found:  # most slices of small files have none
                db.executemany(insert, found)
        for row in rows:
            row.stored, row.queued = True, False  # a later result replaces it
        self._rows = []

    def _change(self, rows: list[Row]) -> None:
        """Write what changed of stored events: every index that is left alone is a page less."""
        ids = json.dumps([row.id for row in rows])
        stored, texts = (
            {
                columns[0]: columns[1:]
                for columns in self._db.execute(f"{select} WHERE {_LISTED}", (ids,))
            }
            for select in (_LOOK, _LOOK_AT_TEXTS)
        )
        said = [(row.id, told) for row in rows if (told := _texts(row)[1:]) != texts[row.id]]
        self.unindex(id_ for id_, _ in said)
        self._db.executemany(_CHANGE_TEXTS, [(*told, id_) for id_, told in said])
        for row in rows:
            before, after = stored[row.id], _columns_of(row)
            changed = [at for at, value in enumerate(after) if value != before[at]]
            if changed:
                self._db.execute(
                    f"UPDATE events SET {', '.join(f'{COLUMNS[at]} = ?' for at in changed)}"
                    " WHERE id = ?",
                    (*(after[at] for at in changed), row.id),
                )

    def remove(self, rows: list[Row]) -> None:
        """Delete stored events, also from the full text if they are in it already."""
        self.unindex(row.id for row in rows)
        ids = [(row.id,) for row in rows]
        self._db.executemany("DELETE FROM events WHERE id = ?", ids)
        self._db.executemany("DELETE FROM event_texts WHERE id = ?", ids)

    def unindex(self, ids: Iterable[EventId]) -> None:
        """Take the texts of events out of the full text; `index` adds what is stored then."""
        first_new = self.first_new_id()
        indexed = [id_ for id_ in ids if id_ < first_new and id_ not in self._changed]
        if indexed:
            self._db.execute(
                "INSERT INTO event_index (event_index, rowid, text, input, output, marks)"
                " SELECT 'delete', id, text, input, output, marks FROM event_texts"
                f" WHERE {_LISTED}",
                (json.dumps(indexed),),
            )
            self._changed.update(indexed)

    def index(self) -> None:
        """Add everything that the transaction wrote to the full text, as its last step.

        Any later statement that opens a savepoint would make FTS5 flush what it has
        collected, and a bulk load would produce too many small segments.
        """
        if self._first_new is None:
            return
        copy = (
            "INSERT INTO event_index (rowid, text, input, output, marks)"
            " SELECT id, text, input, output, marks FROM event_texts WHERE"
        )
        if self._changed:
            self._db.execute(f"{copy} {_LISTED}", (json.dumps([*self._changed]),))
        self._db.execute(f"{copy} id >= ?", (self._first_new,))

    def new_id(self) -> EventId:
        self.first_new_id()
        self._next_id += 1
        return EventId(self._next_id)

    def reuse(self, numbers: Numbers) -> None:
        """Give events that are added again the ids under which they were removed."""
        self._numbers = numbers

    def id_of(self, record_id: RecordId, events: list[Event], block: int) -> EventId:
        """The id of one of a record's events."""
        if not self._numbers:
            return self.new_id()
        event = events[block]
        name = event.call_id or sum(
            one.type == event.type and one.call_id is None for one in events[:block]
        )
        return self._numbers.pop((record_id, event.type, name), None) or self.new_id()

    def id_of_result(self, record_id: RecordId, call_id: str) -> EventId:
        """The id of a result that is an event of its own."""
        return self._numbers.pop((record_id, "result", call_id), None) or self.new_id()

    def first_new_id(self) -> int:
        """The first event id that this transaction assigns."""
        if self._first_new is None:
            self._next_id = self._db.execute(_LAST_ID).get
            self._first_new = self._next_id + 1
        return self._first_new


def _edit_rows(
    event: EventId, changed: tuple[Edit, ...]
) -> Iterator[tuple[int, int, str, int, int, bytes]]:
    """Rows of `edits`, with line counts."""
    for number, (edit, counts) in enumerate(zip(changed, edits.count(changed), strict=True)):
        yield event, number, clean(edit.path), *counts, edits.pack(edit)


def _call_key(row: Row) -> int | None:
    return None if row.call_id is None else short_key(row.call_id)


def _texts(row: Row) -> tuple[int, str, str, str, str]:
    texts = clean(row.text), clean(row.input), clean(row.output)
    return row.id, *texts, marks_for(row.status, *texts)


def clean(text: str) -> str:
    """Searchable text: SQLite's functions stop at a NUL, and colour codes stick to words."""
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    return escape.without_sequences(text)  # `ESC[31mFAILED` would be found only as `31mFAILED`


# A branch name may contain `]` but not `[` or a space; the bounds keep matching fast.
_REPORT = re.compile(
    r"\[(?:detached HEAD|(?P<branch>[^\s\[]{1,250}))(?: \([^()\n]{1,40}\))?"
    r" (?P<sha>[0-9a-f]{7,64})\] (?P<subject>[^\r\n]*)"
)
# What the same brackets of a log line begin with, which hooks print.
_LEVEL = re.compile(r"(?i)(?:err(?:or)?|warn(?:ing)?|info|debug|trace|notice|fatal|critical)")
# Bounds, atomic groups and possessive repeats keep hostile commands from taking long.
_LONGEST = 1 << 16
_WORD = r"""(?:"[^"\n]{0,200}+"|'[^'\n]{0,200}+'|[^\s"';&|]){1,300}+"""
_COMMITS = re.compile(
    rf"""
    (?:^|[;&|(){{`!]|\b(?:then|do|else|sudo|env|time|command|exec|xargs)\b|\s-\w{{0,3}}c[ \t]*["'])
    [ \t]*
    (?>[A-Za-z_]\w{{0,99}}=(?:{_WORD})?[ \t]+){{0,9}}+
    (?>[\w.~-]*/){{0,30}}git(?:\.exe)?
    (?>[ \t]+(?>-[Cc][ \t]+{_WORD}|--?[\w-]{{1,30}}+(?:={_WORD})?)){{0,9}}+
    [ \t]+(?:am|cherry-pick|ci|commit|merge|pull|rebase|revert)(?![\w-])
    """,
    re.VERBOSE | re.MULTILINE,
)
_RUN = frozenset({kinds.SHELL, kinds.MCP, kinds.OTHER, None})


def may_commit(kind: str | None, command: str) -> bool:
    """Whether the input of a call, one value a line, runs a git command that makes commits."""
    return kind in _RUN and "git" in command and bool(_COMMITS.search(command[:_LONGEST]))


def find_commits(output: str) -> list[tuple[str, str | None, str]]:
    """(sha, branch, subject) of every commit reported at the start of a line, each sha once."""
    commits: dict[str, tuple[str, str | None, str]] = {}
    for at in _bracketed_lines(output):
        report = _REPORT.match(output, at)
        if report is None:
            continue
        sha, branch = report["sha"], report["branch"] or ""
        level = _LEVEL.fullmatch(branch)
        if level and branch.isupper():
            continue
        # `[worker 12345678] started` is a log line; git's next line is indented.
        if not (level or sha.isdigit()) or output.startswith(("\n ", "\r\n "), report.end()):
            commits.setdefault(sha, (sha, report["branch"], report["subject"].strip()))
    return list(commits.values())


def _bracketed_lines(output: str) -> Iterator[int]:
    if output.startswith("["):
        yield 0
    at = output.find("\n[")
    while at >= 0:
        yield at + 1
        at = output.find("\n[", at + 1)


ORPHAN, ANSWER = "orphan", "answer"  # results that are separate events
_MOST_LOADED = 1000  # events with ids of a slice, at least
_LOADED_EACH = 4  # for each id: a call, its result, and those of forks
_NEWEST = 64
_NAMED = (
    "call_key IN (SELECT value FROM json_each(?1)) AND call_id IN (SELECT value FROM json_each(?2))"
)
_CALLS_STORED = (
    f"e.id IN (SELECT id FROM events WHERE {_NAMED} ORDER BY id DESC LIMIT ?3) ORDER BY e.id"
)
# Of those, what a slice of one session may touch: its own events, results that found no call, and
# what forks share or are about to share.
_CALLS_STORED_NEAR = (
    f"e.id IN (SELECT id FROM events WHERE {_NAMED}"
    " AND (session_id = ?4 OR unjoined IS NOT NULL"
    " OR record_id IN (SELECT value FROM json_each(?5))"
    " OR EXISTS (SELECT 1 FROM records WHERE copy_of = record_id))"
    " ORDER BY id DESC LIMIT ?3) ORDER BY e.id"
)
_by_id = attrgetter("id")


class Calls:
    """Rows by call id and state, oldest first."""

    def __init__(self, rows: EventRows) -> None:
        self._rows = rows
        self._known: dict[tuple[str | None, str | None], list[Row]] = {}

    def begin(
        self, wanted: Iterable[str], session_id: SessionId | None = None, twins: Iterable[int] = ()
    ) -> None:
        """Load what is stored with these ids.

        All records are of the session, if one is given, or copies of those twins.
        """
        self._known = {}
        ids = list(wanted)
        if not ids:
            return
        most = max(_MOST_LOADED, _LOADED_EACH * len(ids))
        near = () if session_id is None else (session_id, json.dumps(list(twins)))
        query = _CALLS_STORED if session_id is None else _CALLS_STORED_NEAR
        for row in self._rows.stored(query, *_keys_and_ids(ids), most, *near):
            self.add(row)

    def reload(self, call_id: str) -> None:
        """Read the events with an id again."""
        for state in (None, ORPHAN, ANSWER):
            self._known.pop((call_id, state), None)
        for row in self._rows.stored(_CALLS_STORED, *_keys_and_ids([call_id]), _MOST_LOADED):
            self.add(row)

    def add(self, row: Row) -> None:
        self._known.setdefault((row.call_id, row.unjoined), []).append(row)

    def drop(self, row: Row) -> None:
        self._known[row.call_id, row.unjoined].remove(row)

    def complete(self, orphan: Row) -> None:
        """Make a result that came before its call the event of that call."""
        self.drop(orphan)
        orphan.unjoined = None
        insort(self._known.setdefault((orphan.call_id, None), []), orphan, key=_by_id)

    def __iter__(self) -> Iterator[Row]:
        for rows in self._known.values():
            yield from rows

    def of(self, call_id: str | None) -> Iterator[Row]:
        for state in (None, ORPHAN, ANSWER):
            yield from self._known.get((call_id, state), ())

    def newest_first(self, call_id: str) -> Iterator[Row]:
        """Calls that are in their files."""
        calls = self._known.get((call_id, None), ())
        return (row for row in reversed(calls) if not row.call_retired)

    def newest(self, call_id: str) -> list[Row]:
        calls = self._known.get((call_id, None), [])[-_NEWEST:]
        return [row for row in calls if not row.call_retired]

    def original(self, call_id: str | None) -> Row | None:
        return next(iter(self._known.get((call_id, None), ())), None)

    def orphan(self, call_id: str | None, session_id: SessionId) -> Row | None:
        """The first result of a session whose call did not come yet."""
        for row in self._known.get((call_id, ORPHAN), ()):
            if row.session_id == session_id and not row.call_retired:
                return row
        return None

    def results(self, call_id: str) -> list[Row]:
        """The newest results that are events of their own, oldest first."""
        rows = [
            row
            for state in (ORPHAN, ANSWER)
            for row in self._known.get((call_id, state), [])[-_NEWEST:]
            if not row.retired
        ]
        return sorted(rows, key=_by_id)


def _keys_and_ids(ids: list[str]) -> tuple[str, str]:
    """What `_NAMED` asks for."""
    return json.dumps([short_key(call_id) for call_id in ids]), json.dumps(ids)
