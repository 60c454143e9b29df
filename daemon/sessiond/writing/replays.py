"""Finds the record that a compaction or a resumed session repeats, whole or in part.

Such a record has a new id, but the time and the words of the original. What a session shows at one
moment is read once and then kept up to date, so that a file with one time on every line is read in
a time that grows with its length, and not with the square of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import apsw

from sess_schema.ids import RecordId, SessionId, SourceId
from sessiond.engines.slices import Turn, hash64
from sessiond.sourcekit.base import Event
from sessiond.writing.event_rows import clean
from sessiond.writing.sessions import Session
from sessiond.writing.turn_rows import TurnRows

_IMAGE = "[image]"  # the text of a prompt without words
_REMEMBERED = 100_000  # blocks; more are read again when they are asked for
# Whether a session has the turn `o` or a copy. Without the plus sign SQLite would read the session.
_HERE = (
    "(o.session_id = ?2 AND o.retired = 0 OR EXISTS (SELECT 1 FROM turns t"
    " WHERE t.copy_of = o.id AND +t.session_id = ?2 AND t.retired = 0))"
)
_SHOWN = (
    "SELECT e.turn_id, e.type, x.text, x.input, e.images, o.digest"
    " FROM events e JOIN event_texts x ON x.id = e.id JOIN turns o ON o.id = e.turn_id"
    f" WHERE e.ts = ?1 AND e.retired = 0 AND e.unjoined IS NULL AND {_HERE} ORDER BY e.turn_id"
)
_ANSWERED = (
    "SELECT e.result_turn_id, e.status, x.output, e.overflow, o.digest"
    " FROM events e JOIN event_texts x ON x.id = e.id JOIN turns o ON o.id = e.result_turn_id"
    f" WHERE e.call_key = short_key(?3) AND e.call_id = ?3 AND e.answered = ?1 AND e.retired = 0"
    f" AND {_HERE}"
    " ORDER BY e.result_turn_id"
)


class _Moment:
    """Turns, oldest first, by what they say: blocks by their words, whole records by digest."""

    def __init__(self) -> None:
        self._said: dict[int, dict[RecordId, int]] = {}
        self._images: dict[str, dict[RecordId, int]] = {}  # by type of event: images in a block
        self._whole: dict[int, RecordId] = {}

    def add(self, turn_id: RecordId, digest: int, words: int) -> None:
        self._said.setdefault(words, {})[turn_id] = 0
        self._whole.setdefault(digest, turn_id)

    def add_images(self, turn_id: RecordId, type_: str, images: int) -> None:
        pictured = self._images.setdefault(type_, {})
        pictured[turn_id] = max(images, pictured.get(turn_id, 0))

    def with_words(self, words: int) -> dict[RecordId, int]:
        return self._said.get(words, {})

    def with_images(self, type_: str) -> dict[RecordId, int]:
        return self._images.get(type_, {})

    def whole(self, digest: int) -> RecordId | None:
        return self._whole.get(digest)


class Replays:
    """What sessions show at the moments of the records that are being read."""

    def __init__(self, db: apsw.Connection, rows: TurnRows) -> None:
        self._db = db
        self._rows = rows
        # By session, time and, of results, call.
        self._moments: dict[tuple[SessionId, int, str | None], _Moment] = {}
        self._blocks = 0
        self._source: SourceId | None = None

    def begin(self, source_id: SourceId | None) -> None:
        """Another source may have changed anything; slices of one change only what they add."""
        if source_id != self._source:
            self._source = source_id
            self.forget()

    def forget(self) -> None:
        """What sessions show changed in another way than by a new record."""
        if self._moments:
            self._moments = {}
            self._blocks = 0

    def original(self, session: Session, turn: Turn) -> RecordId | None:
        """The turn that a record repeats, or repeats some blocks of."""
        record = turn.record
        assert record.ts is not None
        shown = self._shown(session.id, record.ts) if record.events else None
        answers = [self._answers(session.id, record.ts, r.call_id) for r in record.results]
        for moment in (shown, *answers):
            whole = moment.whole(turn.digest) if moment else None
            if whole is not None:
                return whole
        # For each block the turns that have it, and how many images it must have at least.
        blocks: list[tuple[dict[RecordId, int], int]] = []
        for event in record.events:
            assert shown is not None
            if _is_image(event):
                blocks.append((shown.with_images(event.type), event.images))
            else:
                blocks.append((shown.with_words(_words(event.type, event.text, event.input)), 0))
        for result, answered in zip(record.results, answers, strict=True):
            said = _result(result.status, result.output, result.overflow)
            blocks.append((answered.with_words(said), 0))
        fewest, _ = min(blocks, key=lambda block: len(block[0]))
        return next(
            (
                turn_id
                for turn_id in fewest
                if all(turns.get(turn_id, -1) >= images for turns, images in blocks)
            ),
            None,
        )

    def add(self, session: Session, turn: Turn) -> None:
        """A new record that is no copy: later ones may repeat it."""
        record = turn.record
        if not self._moments or record.ts is None:
            return
        if record.events and (shown := self._moments.get((session.id, record.ts, None))):
            for event in record.events:
                self._say(shown, turn.id, turn.digest, event)
        if record.ts_from is not None:
            return
        for result in record.results:
            if answered := self._moments.get((session.id, record.ts, result.call_id)):
                said = _result(result.status, result.output, result.overflow)
                answered.add(turn.id, turn.digest, said)
                self._blocks += 1

    def _say(self, moment: _Moment, turn_id: RecordId, digest: int, event: Event) -> None:
        moment.add(turn_id, digest, _words(event.type, event.text, event.input))
        moment.add_images(turn_id, event.type, event.images)
        self._blocks += 1

    def _shown(self, session_id: SessionId, ts: int) -> _Moment:
        key = session_id, ts, None
        if (known := self._moments.get(key)) is not None:
            return known
        moment = self._new(key)
        for turn_id, type_, text, input_, images, digest in self._read(_SHOWN, ts, session_id):
            moment.add(turn_id, digest, _words(type_, text, input_))
            moment.add_images(turn_id, type_, images)
        return moment

    def _answers(self, session_id: SessionId, ts: int, call_id: str) -> _Moment:
        key = session_id, ts, call_id
        if (known := self._moments.get(key)) is not None:
            return known
        moment = self._new(key)
        for turn_id, status, output, overflow, digest in self._read(
            _ANSWERED, ts, session_id, call_id
        ):
            moment.add(turn_id, digest, _result(status, output, overflow))
        return moment

    def _new(self, key: tuple[SessionId, int, str | None]) -> _Moment:
        if self._blocks > _REMEMBERED:
            self.forget()
        return self._moments.setdefault(key, _Moment())

    def _read(self, query: str, *values: object) -> Iterator[tuple[Any, ...]]:
        self._rows.flush()
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
