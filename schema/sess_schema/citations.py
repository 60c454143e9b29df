"""Stable citations: `SESSION#EVENT` names the same event on every machine and after a rebuild.

An event's key is derived from the id the agent gave its record and what the event is in it: the
call with its id, or the first, second ... event of its type. A record that grows as it is written
keeps the keys of its events. Row numbers, paths and reading order do not matter. The first eight
digits are printed, or more where all keys of a session are at hand and two begin alike.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

import apsw

from sess_common.classes import TYPE_CHECKING, dataclass
from sess_common.errors import SessError
from sess_schema import shown
from sess_schema.ids import EventId, SessionId

if TYPE_CHECKING:
    from typing import Any

try:  # hashlib also loads OpenSSL, which takes as long as a search
    from _blake2 import blake2s
except ImportError:
    from hashlib import blake2s

SHORTEST = 8  # hex digits printed, at least
_SHORTEST_TYPED = 4
_BYTES = 6
_CANDIDATES = 5
_DIGITS = frozenset("0123456789abcdef")

# Texts are read only for records without an id; outputs never, because they may arrive later.
# Rewritten records sort last: they never take a key from a record that is in the file now.
_EVENTS = (
    f"SELECT e.id, {shown.CURRENT}, coalesce(t.native_id, (SELECT"
    " concat_ws(char(10), t.offset, iif(t.ts_from IS NULL, t.ts, ''), t.kind, x.text, x.input)"
    " FROM event_texts x WHERE x.id = e.id)), e.type, e.record_id, e.block, e.unjoined, e.call_id"
    f" FROM {shown.EVENTS} WHERE {{}} ORDER BY 2 DESC, t.offset, e.id"
)
# To number the events of a type in their record: looked up for each event, it would take the
# square of their number.
_BLOCKS = (
    f"SELECT DISTINCT e.record_id, e.type, e.block FROM {shown.EVENTS} WHERE {{}}"
    " AND e.unjoined IS NULL"
)
_ALL = "t.session_id = ?1"
# Events that may share a name: those of the same record, and of other records with its id.
_RECORD = (
    "SELECT t.native_id, t.native_key, t.offset FROM events e JOIN records t ON t.id = e.record_id"
    " WHERE e.id = ?2 AND +t.session_id = ?1"
)
_COPIED_RECORD = (
    "SELECT t.native_id, t.native_key, t.offset FROM events e"
    " JOIN records t ON t.copy_of = e.record_id"
    " WHERE e.id = ?2 AND +t.session_id = ?1 ORDER BY t.retired > 0, t.offset LIMIT 1"
)
_OF_RECORD = "t.native_key = ?3 AND t.native_id = ?2 AND +t.session_id = ?1"
_OF_PLACE = "t.session_id = ?1 AND t.offset = ?2 AND t.native_id IS NULL"
_OWNER = "SELECT t.session_id FROM events e JOIN records t ON t.id = e.record_id WHERE e.id = ?"


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of one session's events."""

    of: dict[EventId, str]
    live: frozenset[EventId]  # events currently in the transcript
    ordered: list[str]

    def short(self, event: EventId) -> str:
        """The shortest prefix of a key that is unique within the session."""
        key = self.of[event]
        at = bisect_left(self.ordered, key)
        near = self.ordered[max(0, at - 1) : at] + self.ordered[at + 1 : at + 2]
        length = SHORTEST
        while length < len(key) and any(other.startswith(key[:length]) for other in near):
            length += 1
        return key[:length]


class Citations:
    """Keys of single events."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        # Of the last record: many hits in a row may be in one.
        self._last: tuple[tuple[Any, ...], dict[EventId, str]] = ((), {})

    def key(self, event: EventId, session: SessionId | None = None) -> str:
        """The full key; without `session`, in the session that wrote the event."""
        if session is None:
            session = SessionId(self._db.execute(_OWNER, (event,)).get)
        record = self._db.execute(_RECORD, (session, event)).fetchone()
        record = record or self._db.execute(_COPIED_RECORD, (session, event)).fetchone()
        native_id, native_key, offset = record or (None, None, None)
        by_place = native_id is None
        where = _OF_PLACE if by_place else _OF_RECORD
        values = (session, offset) if by_place else (session, native_id, native_key)
        if self._last[0] != values or event not in self._last[1]:
            self._last = values, _assigned(self._db, where, values)[0]
        return self._last[1][event]

    def short(self, event: EventId, session: SessionId | None = None) -> str:
        """What is printed after the `#`.

        Whether another event of the session begins alike is not looked up: reading all its keys
        takes longer than a search, and `resolve` names both where it happens.
        """
        return self.key(event, session)[:SHORTEST]


def of_session(db: apsw.Connection, session: SessionId) -> Keys:
    of, live = _assigned(db, _ALL, (session,))
    return Keys(of, frozenset(live), sorted(of.values()))


def _assigned(
    db: apsw.Connection, where: str, values: tuple[Any, ...]
) -> tuple[dict[EventId, str], set[EventId]]:
    """The key of each event, and the events currently in the transcript."""
    blocks: dict[tuple[int, str], list[int]] = {}
    for owner, kind, block in db.execute(_BLOCKS.format(where), values):
        blocks.setdefault((owner, kind), []).append(block)
    for numbers in blocks.values():
        numbers.sort()
    of: dict[EventId, str] = {}
    live: set[EventId] = set()
    used: dict[str, int] = {}
    rows = db.execute(_EVENTS.format(where), values)
    for event, is_live, record, kind, owner, block, unjoined, call_id in rows:
        if event in of:
            continue
        if unjoined is not None:
            name = f"{record}/result/{call_id}"
        elif call_id is not None:
            name = f"{record}/call/{call_id}"
        else:
            name = f"{record}/{kind}/{bisect_left(blocks[owner, kind], block)}"
        # An agent may give two records the same id: events of the second get a suffix.
        used[name] = number = used.get(name, 0) + 1
        of[event] = _digest(name if number == 1 else f"{name}#{number}")
        if is_live:
            live.add(event)
    return of, live


def resolve(
    db: apsw.Connection, session: SessionId, typed: str, *, superseded: bool = False
) -> EventId | None:
    """The event of a session whose key begins like this; None if there is none."""
    if len(typed) < _SHORTEST_TYPED:
        raise SessError(
            f"event key too short: #{typed}", hint=f"give at least {_SHORTEST_TYPED} digits"
        )
    keys = of_session(db, session)
    events = keys.of if superseded else keys.live
    matching = sorted(event for event in events if keys.of[event].startswith(typed.lower()))
    if len(matching) > 1:
        raise SessError(f"#{typed} matches {len(matching)} events: {_listed(keys, matching)}")
    return matching[0] if matching else None


def looks_like_one(text: str) -> bool:
    """Whether a text can follow the `#`."""
    return 0 < len(text) <= 2 * _BYTES and _DIGITS.issuperset(text.lower())


def _listed(keys: Keys, events: Iterable[EventId]) -> str:
    names = sorted(f"#{keys.short(event)}" for event in events)
    more = len(names) - _CANDIDATES
    return ", ".join(names[:_CANDIDATES]) + (f" and {more} more" if more > 0 else "")


def _digest(text: str) -> str:
    return blake2s(text.encode("utf-8", "replace"), digest_size=_BYTES).hexdigest()
