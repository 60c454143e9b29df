"""Records in several places: forks, resumes, hard links, replays after a compaction."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import apsw

from sess_schema.ids import RecordId, SessionId, SourceId, short_key
from sessiond.engines.steps import PlacedRecord, hash64
from sessiond.reading.tracked import Tracked
from sessiond.sourcekit.base import Event
from sessiond.writing.event_rows import Numbers, clean
from sessiond.writing.events import EventWriter
from sessiond.writing.record_rows import TWIN, RecordRows, Twin
from sessiond.writing.sessions import Session, SessionFacts, Sessions
from sessiond.writing.usage import UsageWriter

_IMAGE = "[image]"  # the text of a prompt without words
_REMEMBERED = 100_000  # blocks; more are read again when they are asked for
# Whether a session has the record `o` or a copy. Without the plus sign SQLite would read all of it.
_HERE = (
    "(o.session_id = ?2 AND o.retired = 0 OR EXISTS (SELECT 1 FROM records t"
    " WHERE t.copy_of = o.id AND +t.session_id = ?2 AND t.retired = 0))"
)
_SHOWN = (
    "SELECT e.record_id, e.type, x.text, x.input, e.images, o.digest"
    " FROM events e JOIN event_texts x ON x.id = e.id JOIN records o ON o.id = e.record_id"
    f" WHERE e.ts = ?1 AND e.retired = 0 AND e.unjoined IS NULL AND {_HERE} ORDER BY e.record_id"
)
_ANSWERED = (
    "SELECT e.result_record_id, e.status, x.output, e.overflow, o.digest"
    " FROM events e JOIN event_texts x ON x.id = e.id JOIN records o ON o.id = e.result_record_id"
    f" WHERE e.call_key = short_key(?3) AND e.call_id = ?3 AND e.answered = ?1 AND e.retired = 0"
    f" AND {_HERE}"
    " ORDER BY e.result_record_id"
)


class _Moment:
    """Records, oldest first, by what they say: blocks by their words, whole records by digest."""

    def __init__(self) -> None:
        self._said: dict[int, dict[RecordId, int]] = {}
        self._images: dict[str, dict[RecordId, int]] = {}  # by type of event: images in a block
        self._whole: dict[int, RecordId] = {}

    def add(self, record_id: RecordId, digest: int, words: int) -> None:
        self._said.setdefault(words, {})[record_id] = 0
        self._whole.setdefault(digest, record_id)

    def add_images(self, record_id: RecordId, type_: str, images: int) -> None:
        pictured = self._images.setdefault(type_, {})
        pictured[record_id] = max(images, pictured.get(record_id, 0))

    def with_words(self, words: int) -> dict[RecordId, int]:
        return self._said.get(words, {})

    def with_images(self, type_: str) -> dict[RecordId, int]:
        return self._images.get(type_, {})

    def whole(self, digest: int) -> RecordId | None:
        return self._whole.get(digest)


class Replays:
    """Finds what a compaction or a resumed session repeats: a new id, but the time and the words.

    What a session shows at one moment is read once and then kept up to date, so that a file with
    one time on every line is read in a time that grows with its length, and not with its square.
    Records that are not written yet are compared as they are: to write them first, for each moment,
    would make many small statements of a slice.
    """

    def __init__(self, db: apsw.Connection, rows: RecordRows) -> None:
        self._db = db
        self._rows = rows
        # By session, time and, of results, call.
        self._moments: dict[tuple[SessionId, int, str | None], _Moment] = {}
        self._blocks = 0
        self._source: SourceId | None = None
        # New records by session and time, in the index or not.
        self._recent: dict[tuple[SessionId, int], list[PlacedRecord]] = {}
        self._must_flush = True

    def begin(self, source_id: SourceId | None) -> None:
        """Another source may have changed anything; slices of one change only what they add."""
        self._recent = {}
        self._must_flush = False
        if source_id != self._source:
            self._source = source_id
            self._forget_moments()

    def forget(self) -> None:
        """What sessions show changed in another way than by a new record."""
        self._forget_moments()
        self._must_flush = True

    def _forget_moments(self) -> None:
        if self._moments:
            self._moments = {}
            self._blocks = 0

    def original(self, session: Session, placed: PlacedRecord) -> RecordId | None:
        """The stored record that one repeats, or repeats some blocks of."""
        record = placed.record
        assert record.ts is not None
        shown = self._shown(session.id, record.ts) if record.events else None
        answers = [self._answers(session.id, record.ts, r.call_id) for r in record.results]
        for moment in (shown, *answers):
            whole = moment.whole(placed.digest) if moment else None
            if whole is not None:
                return whole
        # For each block the records that have it, and how many images it must have at least.
        blocks: list[tuple[dict[RecordId, int], int]] = []
        for event in record.events:
            assert shown is not None
            if _is_image(event):
                blocks.append((shown.with_images(event.type), event.images))
            else:
                blocks.append((shown.with_words(_words(event.type, event.text, event.input)), 0))
        for result, answered in zip(record.results, answers, strict=True):
            words = _result(result.status, result.output, result.overflow)
            blocks.append((answered.with_words(words), 0))
        fewest, _ = min(blocks, key=lambda block: len(block[0]))
        return next(
            (
                record_id
                for record_id in fewest
                if all(records.get(record_id, -1) >= images for records, images in blocks)
            ),
            None,
        )

    def add(self, session: Session, placed: PlacedRecord) -> None:
        """A new record that is no copy: later ones may repeat it."""
        record = placed.record
        if record.ts is None:
            return
        self._recent.setdefault((session.id, record.ts), []).append(placed)
        if not self._moments:
            return
        if record.events and (shown := self._moments.get((session.id, record.ts, None))):
            self._show(shown, placed)
        for call_id in {result.call_id for result in record.results}:
            if answered := self._moments.get((session.id, record.ts, call_id)):
                self._answer(answered, placed, call_id)

    def _unwritten(self, session_id: SessionId, ts: int) -> list[PlacedRecord]:
        recent = self._recent.get((session_id, ts), ())
        return [placed for placed in recent if self._rows.is_unwritten(placed.id)]

    def _show(self, moment: _Moment, placed: PlacedRecord) -> None:
        for event in placed.record.events:
            self._say(moment, placed.id, placed.digest, event)

    def _answer(self, moment: _Moment, placed: PlacedRecord, call_id: str) -> None:
        for result in placed.record.results:
            if result.call_id == call_id and placed.record.ts_from is None:
                words = _result(result.status, result.output, result.overflow)
                moment.add(placed.id, placed.digest, words)
                self._blocks += 1

    def _say(self, moment: _Moment, record_id: RecordId, digest: int, event: Event) -> None:
        moment.add(record_id, digest, _words(event.type, event.text, event.input))
        moment.add_images(record_id, event.type, event.images)
        self._blocks += 1

    def _shown(self, session_id: SessionId, ts: int) -> _Moment:
        key = session_id, ts, None
        if (known := self._moments.get(key)) is not None:
            return known
        moment = self._new(key)
        for record_id, type_, text, input_, images, digest in self._read(_SHOWN, ts, session_id):
            moment.add(record_id, digest, _words(type_, text, input_))
            moment.add_images(record_id, type_, images)
        for placed in self._unwritten(session_id, ts):
            self._show(moment, placed)
        return moment

    def _answers(self, session_id: SessionId, ts: int, call_id: str) -> _Moment:
        key = session_id, ts, call_id
        if (known := self._moments.get(key)) is not None:
            return known
        moment = self._new(key)
        for record_id, status, output, overflow, digest in self._read(
            _ANSWERED, ts, session_id, call_id
        ):
            moment.add(record_id, digest, _result(status, output, overflow))
        for placed in self._unwritten(session_id, ts):
            self._answer(moment, placed, call_id)
        return moment

    def _new(self, key: tuple[SessionId, int, str | None]) -> _Moment:
        if self._blocks > _REMEMBERED:
            self._forget_moments()
        return self._moments.setdefault(key, _Moment())

    def _read(self, query: str, *values: object) -> Iterator[tuple[Any, ...]]:
        if self._must_flush:
            self._rows.flush()
            self._must_flush = False
        for row in self._db.execute(query, values):
            self._blocks += 1
            yield row


def _is_image(event: Event) -> bool:
    """Whether the words of a prompt with an image are in another block."""
    return bool(event.images) and event.text == _IMAGE


def _words(type_: str, text: str, input_: str) -> int:
    return _hash(type_, clean(text), clean(input_))


def _result(status: str | None, output: str, overflow: str | None) -> int:
    """An output that overflowed into a file is identified by the file's name."""
    named = os.path.basename(overflow) if overflow else None
    return _hash(status or "", *((named, "file") if named else (clean(output), "")))


def _hash(*parts: str) -> int:
    return hash64(*[part.encode("utf-8", "replace") for part in parts])


_EVENTS = "(SELECT id FROM events WHERE record_id IN purged)"
_NUMBERS = (
    "SELECT id, record_id, iif(unjoined IS NULL, type, 'result'), coalesce(call_id, row_number()"
    " OVER (PARTITION BY record_id, type, call_id IS NULL ORDER BY block) - 1)"
    " FROM events WHERE record_id IN purged"
)


@dataclass(slots=True)
class Alike:
    """Records with one id and the same words, oldest first."""

    twins: deque[Twin] = field(default_factory=deque)
    returning: deque[Twin] = field(default_factory=deque)  # they left the file that is being read


Twins = dict[tuple[str | None, int], Alike]  # by native id and digest


@dataclass(slots=True, eq=False)
class Copies:
    """Finds the twins of records; one of them owns the events.

    Whatever is read first, it is the one in the session that started first.
    """

    db: apsw.Connection
    rows: RecordRows
    sessions: Sessions
    events: EventWriter
    usage: UsageWriter
    facts: SessionFacts
    # All twins of the current slice by id and by native id, if one of its records retires any.
    _retires: bool = field(init=False, default=False)
    _by_id: dict[RecordId, Twin] = field(init=False, default_factory=dict)
    _by_name: dict[str, list[Twin]] = field(init=False, default_factory=dict)
    _replays: Replays = field(init=False)

    def __post_init__(self) -> None:
        self._replays = Replays(self.db, self.rows)

    def begin(self, source: Tracked, records: list[PlacedRecord]) -> Twins:
        """Stored records of the agent by native id and digest, which a fork or a link may copy."""
        self._by_id, self._by_name = {}, {}
        self._replays.begin(source.id)
        self._retires = any(placed.record.retires for placed in records)
        known: Twins = {}
        named = [
            short_key(placed.record.native_id) for placed in records if placed.record.native_id
        ]
        nameless = [placed.digest for placed in records if not placed.record.native_id]
        for condition, wanted in (
            ("native_key IN (SELECT value FROM json_each(?))", named),
            ("native_id IS NULL AND digest IN (SELECT value FROM json_each(?))", nameless),
        ):
            if not wanted:
                continue
            for native_id, digest, *rest in self.db.execute(
                f"SELECT native_id, digest, {TWIN} FROM records WHERE {condition}"
                " AND (SELECT agent FROM sources s WHERE s.id = source_id) = ? ORDER BY id",
                (json.dumps(wanted), source.agent),
            ):
                twin = Twin(*rest)
                self._note(native_id, twin)
                alike = known.setdefault((native_id, digest), Alike())
                alike.twins.append(twin)
                if twin.retired and twin.source_id == source.id:
                    alike.returning.append(twin)
        return known

    def add(
        self, session: Session, twin: Twin, placed: PlacedRecord, original: Twin | None
    ) -> None:
        """Add a record of the current slice that is not in the index yet."""
        if self._retires:
            self._note(placed.record.native_id, twin)
        if original is None:
            self._replays.add(session, placed)
        elif original.session_id != session.id or twin.copy_of is None:
            self._replays.forget()  # the session shows what another one says, or owns it now

    def _note(self, native_id: str | None, twin: Twin) -> None:
        self._by_id[twin.id] = twin
        if native_id is not None:
            self._by_name.setdefault(native_id, []).append(twin)

    def standing(
        self, native_id: str, source_id: SourceId | None, session_id: SessionId
    ) -> list[RecordId]:
        """Records of a log that are shown and have a native id of the current slice."""
        return [
            twin.id
            for twin in self._by_name.get(native_id, ())
            if twin.source_id == source_id and twin.session_id == session_id and not twin.is_gone
        ]

    def mark_back(self, twin: Twin) -> None:
        """A record that had left its file is in it again."""
        twin.retired = twin.superseded = 0
        self._replays.forget()

    def replayed(self, session: Session, placed: PlacedRecord) -> Twin | None:
        """Find the original of a record that a compaction repeats: new id, same time and text."""
        record = placed.record
        if (
            record.ts is None
            or record.ts_from is not None
            or session.ended_at is None
            or record.ts >= session.ended_at
            or not (record.events or record.results)
        ):
            return None
        record_id = self._replays.original(session, placed)
        return None if record_id is None else self.rows.twin(record_id)

    def owner_of(
        self, session: Session, placed: PlacedRecord, record_id: RecordId, twin: Twin | None
    ) -> RecordId | None:
        """The record that owns the events of a new copy; None if it owns them itself.

        It takes them over from a twin if its session started first or the twin has left.
        """
        if twin is None:
            return None
        owner = self._root(twin)
        if owner.session_id == session.id and not owner.is_gone:
            return owner.id
        new = (False, int(placed.record.forked), *session.age())
        above = self.sessions.by_id(owner.session_id)
        old = (owner.is_gone, owner.forked, *above.age())
        if new >= old:
            return owner.id
        self.events.replace_words(owner.id, placed.record)
        self.hand_over(owner.id, owner.session_id, record_id, session.id, placed.record.ts)
        owner.copy_of = record_id
        if placed.record.native_id:
            self.facts.records_arrived([placed.record.native_id], above, session)
        return None

    def _root(self, twin: Twin) -> Twin:
        """The record that owns a copy's events."""
        while twin.copy_of is not None:
            twin = self.rows.twin(twin.copy_of)
        return twin

    def hand_over(
        self,
        old: RecordId,
        old_session: SessionId,
        new: RecordId,
        session_id: SessionId,
        ts: int | None,
    ) -> None:
        """Make another record, of the time `ts`, the owner of a copy's events and usage."""
        db = self.db
        self._replays.forget()
        self.usage.save()
        self.events.change_owner(old, new, session_id)
        self.facts.count_again(old_session, session_id)
        db.execute(
            "UPDATE events SET record_id = ?, session_id = ?, retired = 0 WHERE record_id = ?",
            (new, session_id, old),
        )
        db.execute("UPDATE events SET result_record_id = ? WHERE result_record_id = ?", (new, old))
        db.execute("UPDATE usage SET record_id = ? WHERE record_id = ?", (new, old))
        db.execute("UPDATE records SET copy_of = ? WHERE copy_of = ?", (new, old))
        db.execute("UPDATE records SET copy_of = NULL WHERE id = ?", (new,))
        db.execute("UPDATE records SET copy_of = ? WHERE id = ?", (new, old))
        self.events.take_time((old, old_session), (new, session_id), ts)

    def supersede(self, record_id: RecordId, session_id: SessionId, generation: int) -> None:
        """Retire a record that a later record of its file replaced or took back."""
        self.db.execute("UPDATE records SET superseded = 1 WHERE id = ?", (record_id,))
        if record_id in self._by_id:
            self._by_id[record_id].superseded = 1
        self.retire(record_id, session_id, generation)

    def retire(self, record_id: RecordId, session_id: SessionId, generation: int) -> None:
        """Retire a record that left its source; a copy inherits its events, if there is one."""
        self._replays.forget()
        copies: list[tuple[bool, Any, RecordId, SessionId, int | None]] = [
            (bool(superseded), self.sessions.by_id(holder).age(), copy, holder, ts)
            for copy, holder, ts, superseded in self.db.execute(
                "SELECT id, session_id, ts, superseded FROM records"
                " WHERE copy_of = ? AND retired = 0",
                (record_id,),
            )
        ]
        # Events that nobody shows are those of the first session that did, as all others are.
        here = (True, self.sessions.by_id(session_id).age(), record_id, session_id, None)
        superseded, _, heir, holder, ts = min((*copies, here))
        if heir != record_id:
            self.hand_over(record_id, session_id, heir, holder, ts)
            if record_id in self._by_id:
                self._by_id[record_id].copy_of = heir
        if superseded:
            self.db.execute("UPDATE events SET retired = ? WHERE record_id = ?", (generation, heir))
            if heir != record_id:
                self.events.mark(heir, gone=True)

    def purge(self, records: str) -> None:
        """Remove the records that a query selects, with their events and usage.

        What is read again keeps its numbers. Copies that stay inherit the events; the ids of the
        records remain in the temporary table `purged`.
        """
        db = self.db
        rows = self.events.rows
        rows.first_new_id()  # count on from the highest numbers, removed or not
        self.rows.new_id()
        db.execute("CREATE TEMP TABLE IF NOT EXISTS purged (id INTEGER PRIMARY KEY)")
        db.execute("DELETE FROM purged")
        db.execute(f"INSERT INTO purged {records}")
        copied: list[Any] = db.execute(
            "SELECT DISTINCT t.id, t.session_id FROM records c JOIN records t ON t.id = c.copy_of"
            " WHERE t.id IN purged AND c.id NOT IN purged AND c.retired = 0"
        ).fetchall()
        for record_id, session_id in copied:
            self.retire(record_id, session_id, 0)
        numbers: Numbers = {
            (record_id, type_, name): id_ for id_, record_id, type_, name in db.execute(_NUMBERS)
        }
        rows.unindex(numbers.values())
        rows.reuse(numbers)
        places = db.execute("SELECT source_id, offset, id FROM records WHERE id IN purged")
        self.rows.reuse({(source, offset): id_ for source, offset, id_ in places})
        for table in ("files", "commits", "edits"):
            db.execute(f"DELETE FROM {table} WHERE event_id IN {_EVENTS}")
        db.execute(f"DELETE FROM event_texts WHERE id IN {_EVENTS}")
        for table, column in (("events", "record_id"), ("usage", "record_id"), ("records", "id")):
            db.execute(f"DELETE FROM {table} WHERE {column} IN purged")
