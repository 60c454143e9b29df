"""The events that a slice may complete: calls by their id, and results that found none.

Some gateways use few call ids again and again. So only the newest events with an id are looked at
where looking at all would make the time grow with their square.
"""

from __future__ import annotations

import json
from bisect import insort
from collections.abc import Iterable, Iterator
from operator import attrgetter

from sess_schema.ids import SessionId
from sess_schema.short_keys import short_key
from sessiond.writing.event_rows import EventRows, Row

ORPHAN, ANSWER = "orphan", "answer"  # results that are separate events
_LOADED = 1000  # events with ids of a slice, at least
_LOADED_EACH = 4  # for each id: a call, its result, and those of forks
_NEWEST = 64
_NAMED = (
    "call_key IN (SELECT value FROM json_each(?1)) AND call_id IN (SELECT value FROM json_each(?2))"
)
_STORED = f"e.id IN (SELECT id FROM events WHERE {_NAMED} ORDER BY id DESC LIMIT ?3) ORDER BY e.id"
# Of those, what a slice of one session may touch: its own events, results that found no call, and
# what forks share or are about to share.
_STORED_NEAR = (
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
        most = max(_LOADED, _LOADED_EACH * len(ids))
        near = () if session_id is None else (session_id, json.dumps(list(twins)))
        query = _STORED if session_id is None else _STORED_NEAR
        for row in self._rows.stored(query, *_named(ids), most, *near):
            self.add(row)

    def reload(self, call_id: str) -> None:
        """Read the events with an id again."""
        for state in (None, ORPHAN, ANSWER):
            self._known.pop((call_id, state), None)
        for row in self._rows.stored(_STORED, *_named([call_id]), _LOADED):
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
        found = [
            row
            for state in (ORPHAN, ANSWER)
            for row in self._known.get((call_id, state), [])[-_NEWEST:]
            if not row.retired
        ]
        return sorted(found, key=_by_id)


def _named(ids: list[str]) -> tuple[str, str]:
    """What `_NAMED` asks for."""
    return json.dumps([short_key(call_id) for call_id in ids]), json.dumps(ids)
