"""Databases of other programs: which conversations changed, and which of their records."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from typing import Any

import apsw

from sessiond.engines.documents import reduce
from sessiond.engines.steps import ChangeConversation, Fail, Finish, KeepState, Step, Vanish, hash64
from sessiond.reading.survey import Candidate
from sessiond.reading.tracked import GONE, LIVE, Tracked
from sessiond.sourcekit import base, disk
from sessiond.sourcekit.foreign import (
    NO_PLACE,
    Changed,
    Foreign,
    ForeignError,
    KnownRow,
    KnownRows,
    prefix_of,
)
from sessiond.sourcekit.values import as_line

# File times have a coarse resolution: a write in the same tick as our read leaves no trace.
CLOCK_STEP_NS = 50_000_000


def read_database(file: Candidate, source: Tracked, index: apsw.Connection) -> Iterator[Step]:
    """Yield a step for each changed conversation, then the final steps."""
    assert file.agent.databases is not None
    last_write = max(file.stat.mtime_ns, file.sidecar_ns)
    unsettled = time.time_ns() - last_write < CLOCK_STEP_NS
    known = KnownRows(index, source)
    for live in (False, True):
        state = dict(source.parser_state(index)) if source.id else {}
        try:
            with Foreign(file.path, live=live) as foreign:
                for conversation in file.agent.databases.conversations(foreign, known, state):
                    yield ChangeConversation(file, source, conversation)
        except Changed:
            continue
        except ForeignError as error:
            if source.id is not None and not os.path.lexists(file.path):
                yield Vanish(file, source)
            else:
                yield Fail(file, source, str(error))
            return
        except apsw.Error:  # of the index
            raise
        except Exception as error:
            yield Fail(file, source, f"{type(error).__name__}: {error}", crashed=True)
            return
        partial = state.pop(base.LOOK_AGAIN, False)
        yield KeepState(file, source, state)
        yield Finish(file, source, file.stat, unsettled=unsettled, partial=partial, empty=True)
        return


def return_parts(index: apsw.Connection, source: Tracked, parts: Sequence[Tracked]) -> None:
    """Mark the conversations that a reappeared database still has as live."""
    if source.state != GONE:
        return
    present = {
        source_id
        for (source_id,) in index.execute(
            "SELECT DISTINCT t.source_id FROM database_rows r JOIN records t ON t.id = r.record_id"
            " WHERE r.source_id = ? AND r.place <> ?",
            (source.id, NO_PLACE),
        )
    }
    for part in parts:
        if part.state == GONE and part.id in present:
            part.save_state(index, LIVE)


HEAD = "head:"  # key of the row that keeps the mark of a conversation
SMALL = 10_000  # rows; smaller databases are counted each time
COUNT_EVERY = 300.0  # seconds between counts of a larger one
ACTIVE_FOR = 600_000  # milliseconds after a change in which more changes are likely
_SETTLED = 2_000  # milliseconds; a row may change again within the resolution of its time
_UNSETTLED = -2  # place of a record that changed a moment ago
_MOST_ACTIVE = 64
_BATCH = 32  # records fetched at once
_PIECE = 8 << 20  # bytes of a conversation handed over at once


class TableReader:
    """Reads databases of one layout."""

    def __init__(self, layout: base.Layout) -> None:
        self._layout = layout

    def conversations(
        self, foreign: Foreign, known: KnownRows, state: dict[str, Any]
    ) -> Iterator[base.Conversation]:
        yield from _ReadRows(self._layout, foreign, known, state).conversations()


class _ReadRows:
    """One read of one database."""

    def __init__(
        self, layout: base.Layout, foreign: Foreign, known: KnownRows, state: dict[str, Any]
    ) -> None:
        self._layout = layout
        self._db = foreign
        self._known = known
        self._state = state
        self._now = time.time_ns() // 1_000_000
        self._active = list[str]()
        self._tables = layout.tables(foreign)
        heads = layout.heads(foreign)
        self._heads = {
            name: _mark_of_row(mark) for name, mark in heads if isinstance(name, str) and name
        }
        self._is_first = known.is_empty
        self._before = known.under(HEAD)
        self._counts = dict[str, int]()  # rows of each conversation, if all were counted

    def conversations(self) -> Iterator[base.Conversation]:
        touched = self._touched()
        for conversation in touched:
            yield from self._conversation(conversation)
        for key, row in self._before.items():
            name = key.removeprefix(HEAD)
            if row.place != NO_PLACE and name not in self._heads:
                yield self._gone(name)
        self._state["active"] = self._active[:_MOST_ACTIVE]

    # -- which conversations to compare

    def _touched(self) -> list[str]:
        stat = disk.stat_of(self._db.path)
        file = [stat.st_dev, stat.st_ino]
        if self._state.get("file", file) != file:  # another file took the name
            self._state.clear()
            self._before_is_void()
        self._state["file"] = file
        touched = {name: None for name in self._heads if self._is_new(name)}
        touched |= dict.fromkeys(self._above())
        touched |= dict.fromkeys(self._state.get("active", ()))
        if self._is_due():
            touched |= dict.fromkeys(self._miscounted())
        else:
            self._state[base.LOOK_AGAIN] = True
        return [name for name in touched if name in self._heads]

    def _before_is_void(self) -> None:
        for row in self._before.values():
            row.digest = ~row.digest

    def _is_new(self, name: str) -> bool:
        row = self._before.get(HEAD + name)
        return row is None or row.digest != self._heads[name] or row.place == NO_PLACE

    def _is_due(self) -> bool:
        state = self._state
        return (
            state.get("rows", 0) <= SMALL
            or not 0 <= self._now / 1000 - state.get("counted_at", 0) < COUNT_EVERY
        )

    def _above(self) -> Iterator[str]:
        """Conversations with rows above the largest rowid of the last read."""
        tops: dict[str, int] = self._state.setdefault("tops", {})
        for table, column in self._tables:
            ((top,),) = self._db.rows(f"SELECT max(rowid) FROM {table}")
            last, tops[table] = tops.get(table), top or 0
            if last is None:
                continue
            if (top or 0) < last:  # rows at the end were deleted, and their rowids are used again
                self._state.pop("rows", None)
            for (name,) in self._db.rows(
                f"SELECT DISTINCT {column} FROM {table} WHERE rowid > ?", (last,)
            ):
                yield name

    def _miscounted(self) -> Iterator[str]:
        """Conversations with another number of rows than when they were last listed."""
        counts = self._counts = dict.fromkeys(self._heads, 0)
        for table, column in self._tables:
            for name, count in self._db.rows(
                f"SELECT {column}, count(*) FROM {table} GROUP BY {column}"
            ):
                if name in counts:
                    counts[name] += count
        self._state["rows"] = sum(counts.values())
        self._state["counted_at"] = self._now / 1000
        for name, count in counts.items():
            row = self._before.get(HEAD + name)
            if row is not None and row.place not in (NO_PLACE, count):
                yield name

    def _count(self, conversation: str) -> int:
        if conversation in self._counts:
            return self._counts[conversation]
        return sum(
            self._db.rows(f"SELECT count(*) FROM {table} WHERE {column} = ?", (conversation,))[0][0]
            for table, column in self._tables
        )

    # -- one conversation

    def _conversation(self, name: str) -> Iterator[base.Conversation]:
        count = self._count(name)
        head = base.Item(HEAD + name, count, self._heads[name])
        try:
            change = self._layout.whole(self._db, name)
        except base.NotReady as error:
            yield self._broken(name, head, str(error))
            return
        if change is None:
            yield self._gone(name)
            return
        if change.items:
            reduce(change, self._known, prefix_of(name))
            change.items.append(head)
            yield change
            return
        known = {} if self._is_first else self._known.under(prefix_of(name))
        listed = {prefix_of(name) + row.key: row for row in self._layout.listing(self._db, name)}
        newest = max((row.changed_at or 0 for row in listed.values()), default=0)
        if self._now - newest < ACTIVE_FOR:
            self._active.append(name)
        missing = [key for key, row in known.items() if key not in listed and row.place != NO_PLACE]
        dropped = [
            key for key in missing if self._layout.is_dropped(key.removeprefix(prefix_of(name)))
        ]
        change.order = [*(self._known.in_order(dropped) if dropped else ()), *listed]
        change.removed = [key for key in missing if key not in dropped]
        wanted = [key for key, row in listed.items() if self._differs(known.get(key), row)]
        if not wanted and not change.removed and not self._is_new(name):
            if self._before[HEAD + name].place != count:
                change.moved = [(HEAD + name, count)]
                yield change
            return
        for start in range(0, len(wanted), _BATCH):
            self._add(change, name, wanted[start : start + _BATCH], listed, known)
            if sum(len(item.raw) for item in change.items) > _PIECE:
                yield change
                again = self._layout.whole(self._db, name)
                if again is None:
                    return
                change, again.order = again, change.order
        change.items.append(head)
        yield change

    def _differs(self, known: KnownRow | None, row: base.Listed) -> bool:
        return known is None or known.place == _UNSETTLED or known.place != self._place(row)

    def _place(self, row: base.Listed) -> int:
        if row.changed_at is not None and self._now - row.changed_at < _SETTLED:
            return _UNSETTLED
        return abs(_mark_of_row(row.mark)) + 1

    def _add(
        self,
        change: base.Conversation,
        name: str,
        wanted: list[str],
        listed: dict[str, base.Listed],
        known: dict[str, KnownRow],
    ) -> None:
        keys = [key.removeprefix(prefix_of(name)) for key in wanted]
        for short, value in self._layout.fetch(self._db, name, keys):
            key = prefix_of(name) + short
            raw = as_line(value)
            item = base.Item(key, self._place(listed[key]), hash64(raw), raw)
            before = known.get(key)
            if before is not None and before.digest == item.digest and before.place != NO_PLACE:
                if before.place != item.place:
                    change.moved.append((key, item.place))
                continue
            item.record = self._layout.record(value)
            change.items.append(item)

    def _broken(self, name: str, head: base.Item, problem: str) -> base.Conversation:
        """A note in a conversation that cannot be decoded, after what is known of it."""
        key = prefix_of(name) + "broken"
        note = base.Item(
            key, 0, 0, as_line({"unreadable": name}), base.Record("broken", warnings=[problem])
        )
        known = [one for one in self._known.under(prefix_of(name)) if one != key]
        order = [*self._known.in_order(known), key]
        return base.Conversation(base.SessionSpec(name), order=order, items=[note, head])

    def _gone(self, name: str) -> base.Conversation:
        """The whole conversation was deleted; the index keeps it."""
        keys = [*self._known.under(prefix_of(name)), HEAD + name]
        return base.Conversation(base.SessionSpec(name), gone=True, removed=keys)


def _mark_of_row(value: Any) -> int:
    return hash64(repr(value).encode("utf-8", "replace"))
