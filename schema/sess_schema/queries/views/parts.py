"""What each session adds to a view: from digests, and counted where there are none.

A view is made of such parts, and so is a digest: the writer keeps what a reader would count.
Digests of sessions that go on would be made again for every line. So they are made for sessions
that others have followed, as soon as these have enough events to be worth it.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import apsw

from sess_schema.ids import SessionId
from sess_schema.queries.stats import Stats
from sess_schema.queries.views.error_rules import VERSION as RULES

# Sessions, and by part what each adds to it.
Counted = Iterator[tuple[int, dict[str, Any]]]
Packed = str | list[int]
Count = Callable[[apsw.Connection, Stats], Counted]

FACT = "digests"  # how those that are stored were made
MADE = f"1, rules {RULES}"
LEFT = 5000  # events that readers count
NEWEST = 8  # sessions that are left alone, however long they are
_AT_ONCE = 10_000  # events in a transaction
_MANY = 4  # if one session in so many is wanted, reading all is faster
EXTENT = "extent"  # first and last time of a session, and whether something in it has none


def of(db: apsw.Connection, asked: Stats, part: str, count: Count) -> Iterator[tuple[int, Any]]:
    """The selected sessions, and what each adds to a part."""
    kept, left = _divided(db, asked)
    for session, data in _stored(db, part, kept):
        yield session, json.loads(data)
    if left is None or left:
        for session, adds in count(db, asked if left is None else replace(asked, only=left)):
            if part in adds:
                yield session, adds[part]


def _stored(db: apsw.Connection, part: str, kept: set[int]) -> Iterator[tuple[int, str]]:
    number = db.execute("SELECT count(*) FROM sessions").get
    if _MANY * len(kept) < number:
        yield from db.execute(
            "SELECT d.session_id, d.data FROM json_each(?) CROSS JOIN digests d"
            " ON d.part = ? AND d.session_id = value",
            (json.dumps(sorted(kept)), part),
        )
        return
    for session, data in db.execute("SELECT session_id, data FROM digests WHERE part = ?", (part,)):
        if session in kept:
            yield session, data


def packed(numbers: list[int]) -> Packed:
    """Many numbers, sorted, as text that is read in a tenth of the time of JSON."""
    numbers.sort()
    if numbers and not 0 <= numbers[0] <= numbers[-1] < 1 << 32:
        return numbers
    return struct.pack(f"<{len(numbers)}I", *numbers).hex()


def unpacked(stored: Iterable[Packed]) -> list[int]:
    """All numbers of these, sorted."""
    texts, numbers = list[str](), list[int]()
    for packed_numbers in stored:
        if isinstance(packed_numbers, str):
            texts.append(packed_numbers)
        else:
            numbers += packed_numbers
    raw = bytes.fromhex("".join(texts))
    numbers += struct.unpack(f"<{len(raw) // 4}I", raw)
    numbers.sort()
    return numbers


def are_valid(db: apsw.Connection) -> bool:
    return bool(db.execute("SELECT value FROM facts WHERE name = ?", (FACT,)).get == MADE)


def _divided(db: apsw.Connection, asked: Stats) -> tuple[set[int], list[int] | None]:
    """Sessions whose digests count, and those to count; None for all that are selected."""
    whole = asked.models or asked.session is not None or asked.only is not None
    if whole or not are_valid(db):
        return set(), None
    where, values = replace(asked, since=None, until=None).condition(db, "")
    chosen = {key for (key,) in db.execute(f"SELECT s.id FROM sessions s WHERE {where}", values)}
    left = chosen & {key for (key,) in db.execute("SELECT session_id FROM undigested")}
    kept = chosen - left
    if asked.since is not None or asked.until is not None:
        for session, extent in db.execute(
            "SELECT session_id, data FROM digests WHERE part = ?", (EXTENT,)
        ):
            inside = _inside(asked, *json.loads(extent))
            if session in kept and not inside:
                kept.remove(session)
                if inside is None:
                    left.add(session)
    return kept, sorted(left)


def _inside(asked: Stats, first: int | None, last: int | None, undated: bool) -> bool | None:
    """Whether a window has all of a session or nothing; None: a part."""
    since, until = asked.since, asked.until
    if first is None or last is None:
        return False
    if (since is not None and last < since) or (until is not None and first >= until):
        return False
    begins = since is None or first >= since
    ends = until is None or last < until
    return True if begins and ends and not undated else None


def begin_anew(db: apsw.Connection) -> None:
    """Let readers count until all are made again, if another version made them."""
    if not are_valid(db):
        with db:
            clear(db)
            db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (FACT, MADE))


def clear(db: apsw.Connection) -> None:
    db.execute("DELETE FROM digests")
    db.execute("INSERT OR IGNORE INTO undigested SELECT id FROM sessions")


def due(db: apsw.Connection) -> Iterator[list[SessionId]]:
    """The sessions whose digests are to be made, in parts for a transaction each."""
    changed: list[Any] = db.execute(
        "SELECT s.id, s.events FROM undigested u JOIN sessions s ON s.id = u.session_id"
        " ORDER BY s.ended_at DESC, s.id DESC"
    ).fetchall()
    followed, events = list[tuple[SessionId, int]](), 0
    for number, (session, count) in enumerate(changed):
        events += count
        if number >= NEWEST and events > LEFT:
            followed.append((session, count))
    if sum(count for _, count in followed) <= LEFT:
        return
    together, events = list[SessionId](), 0
    for session, count in followed:
        together.append(session)
        events += count
        if events >= _AT_ONCE:
            yield together
            together, events = [], 0
    if together:
        yield together
