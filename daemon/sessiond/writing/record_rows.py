"""Records as rows, their bytes in the archive, and problems in the warnings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any
from zlib import crc32

import apsw

from sess_schema import archive
from sess_schema.ids import NO_SOURCE, RecordId, SessionId, SourceId, short_key
from sessiond.engines.steps import PlacedRecord, Problem, Slice
from sessiond.reading.tail import Checkpoint, read_at
from sessiond.reading.tracked import Progress, Tracked
from sessiond.sourcekit.bounds import searchable
from sessiond.writing.event_rows import clean

_INSERT = (
    "INSERT INTO records (id, source_id, session_id, offset, length, line, kind, role,"
    " native_id, native_key, parent_id, ts, ts_from, digest, forked, copy_of)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
TWIN = "id, session_id, source_id, retired, superseded, forked, copy_of"


def same_moment(one: str, other: str) -> str:
    """In SQL: two records say the same at the same time, as copies with other ids do."""
    return (
        f"{one}.ts = {other}.ts AND {one}.digest & 65535 = {other}.digest & 65535"
        f" AND {one}.digest = {other}.digest"
    )


@dataclass(slots=True)
class Twin:
    """A record with the same content as one that is being read; the fields are `TWIN`."""

    id: RecordId
    session_id: SessionId
    source_id: SourceId
    retired: int
    superseded: int
    forked: int
    copy_of: RecordId | None

    @property
    def is_gone(self) -> bool:
        """Whether it is no longer in its file, or a later record replaced it."""
        return bool(self.retired or self.superseded)


class RecordRows:
    """The rows of a transaction."""

    def __init__(self, db: apsw.Connection, on_flush: Callable[[], None]) -> None:
        self._db = db
        self._on_flush = on_flush  # what waits for records to be in the index
        self._next_id: int | None = None
        self._rows: list[tuple[Any, ...]] = []
        self._unwritten: dict[RecordId, Twin] = {}
        # Of removed records, by source and offset.
        self._ids: dict[tuple[SourceId, int], RecordId] = {}

    def new_id(self) -> RecordId:
        if self._next_id is None:
            self._next_id = self._db.execute("SELECT coalesce(max(id), 0) FROM records").get
        self._next_id += 1
        return RecordId(self._next_id)

    def reuse(self, ids: dict[tuple[SourceId, int], RecordId]) -> None:
        """Give records that are added again the ids under which they were removed."""
        self._ids = ids

    def id_at(self, source: Tracked, offset: int) -> RecordId:
        """The id of a record that is being added."""
        record_id = self._ids.pop((source.id or NO_SOURCE, offset), None)
        return record_id or self.new_id()

    def add(self, source: Tracked, session_id: SessionId, placed: PlacedRecord) -> Twin:
        """Collect a row; return it as what later records may repeat."""
        record = placed.record
        self._rows.append(
            (
                placed.id, source.id, session_id, placed.offset, placed.length, placed.line,
                record.kind, record.role, record.native_id,
                short_key(record.native_id) if record.native_id is not None else None,
                record.parent_id, record.ts, record.ts_from, placed.digest, int(record.forked),
                placed.copy_of,
            )
        )  # fmt: skip
        twin = Twin(
            placed.id, session_id, source.id or NO_SOURCE, 0, 0, int(record.forked), placed.copy_of
        )
        self._unwritten[placed.id] = twin
        return twin

    def is_unwritten(self, record_id: RecordId) -> bool:
        return record_id in self._unwritten

    def twin(self, record_id: RecordId) -> Twin:
        return self._unwritten.get(record_id) or Twin(
            *next(self._db.execute(f"SELECT {TWIN} FROM records WHERE id = ?", (record_id,)))
        )

    def flush(self) -> None:
        """Write the collected rows, and what belongs to them."""
        self._db.executemany(_INSERT, self._rows)
        self._rows = []
        self._unwritten.clear()
        self._on_flush()


# The last chunk is written again with each line until it is full. Enough full ones become one of
# ordinary size, which compresses better.
TAIL_CHUNK, SMALL_CHUNK = 8 << 10, 64 << 10
CHUNK_SIZE = 1 << 20
MOST_WARNINGS, MOST_REASONS = 50, 20  # rows of each reason, and reasons, of one source
LONGEST_REASON = 200
OTHER_REASONS = "unusual in other ways"
LONGEST_ATTACHMENT = 32 << 20  # the rest is archived but not searchable


class Chunks:
    """Writes `chunks` and `warnings`."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db

    def add(self, source: Tracked, slice_: Slice) -> None:
        self.drop_unfinished(source)
        if slice_.unfinished:
            self._add_pieces(source, archive.PENDING, slice_.start, slice_.unfinished)
            preview = clean(slice_.unfinished[:400].decode("utf-8", "replace")[:100])
            why = "unfinished last line"
            self._db.execute(
                "INSERT INTO warnings (source_id, line, offset, retired, reason, preview)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (source.id, slice_.progress.lines + 1, slice_.start, archive.PENDING, why, preview),
            )
            source.has_pending = True
        if not slice_.size or self._archived_before(source, slice_):
            return
        if slice_.packed is not None:
            self._add_chunk(source, archive.LIVE, slice_.start, slice_.size, slice_.packed)
        elif slice_.size >= SMALL_CHUNK or not self._grow_chunk(source, slice_):
            self._add_pieces(source, archive.LIVE, slice_.start, slice_.raw)

    def drop_unfinished(self, source: Tracked) -> None:
        """Forget the unfinished last line of an earlier read; it is read again."""
        if source.has_pending:
            for table in ("chunks", "warnings"):
                self._db.execute(
                    f"DELETE FROM {table} WHERE source_id = ? AND retired = ?",
                    (source.id, archive.PENDING),
                )
            source.has_pending = False

    def _archived_before(self, source: Tracked, slice_: Slice) -> bool:
        """Whether the start of a slice of a rewritten file is archived; archives the rest."""
        if source.archived_to <= slice_.start:
            return False
        rest = slice_.raw[source.archived_to - slice_.start :]
        if rest:
            self._add_pieces(source, archive.LIVE, source.archived_to, rest)
        return True

    def _grow_chunk(self, source: Tracked, slice_: Slice) -> bool:
        """Append to a short last chunk: many one-line chunks would compress badly."""
        if slice_.start == 0:
            return False
        last = self._db.execute(
            "SELECT id, offset, length, data FROM chunks"
            " WHERE source_id = ? AND retired = 0 ORDER BY offset DESC LIMIT 1",
            (source.id,),
        ).fetchone()
        if last is None or last[1] + last[2] != slice_.start:
            return False
        if last[2] >= TAIL_CHUNK:
            if last[2] < SMALL_CHUNK:
                self._join_small(source)
            return False
        try:
            raw = archive.unpack(last[3]) + slice_.raw
        except archive.Damaged:
            return False
        self._put(last[0], len(raw), archive.pack(raw))
        return True

    def _join_small(self, source: Tracked) -> None:
        """Make one chunk of the small ones at the end, if they are enough for it."""
        small: list[tuple[int, int, int, bytes]] = []
        for chunk in self._db.execute(
            "SELECT id, offset, length, data FROM chunks"
            " WHERE source_id = ? AND retired = 0 ORDER BY offset DESC LIMIT ?",
            (source.id, SMALL_CHUNK // TAIL_CHUNK),
        ):
            if chunk[2] >= SMALL_CHUNK or (small and chunk[1] + chunk[2] != small[-1][1]):
                break
            small.append(chunk)
        if sum(length for _, _, length, _ in small) < SMALL_CHUNK:
            return
        small.reverse()
        try:
            pieces = [archive.unpack(data) for *_, data in small]
            joined = archive.pack(b"".join(pieces))
            if crc32(archive.unpack(joined)) != reduce(lambda crc, raw: crc32(raw, crc), pieces, 0):
                return  # the pieces are what was read, whatever happened on the way
        except archive.Damaged:
            return
        length = sum(map(len, pieces))
        self._db.executemany("DELETE FROM chunks WHERE id = ?", [(key,) for key, *_ in small[1:]])
        self._put(small[0][0], length, joined)

    def _put(self, chunk_id: int, length: int, packed: bytes) -> None:
        self._db.execute(
            "UPDATE chunks SET length = ?, data = ? WHERE id = ?", (length, packed, chunk_id)
        )

    def _add_pieces(self, source: Tracked, retired: int, offset: int, raw: bytes) -> None:
        for at in range(0, len(raw), CHUNK_SIZE):
            piece = raw[at : at + CHUNK_SIZE]
            self._add_chunk(source, retired, offset + at, len(piece), archive.pack(piece))

    def _add_chunk(
        self, source: Tracked, retired: int, offset: int, length: int, packed: bytes
    ) -> None:
        self._db.execute(
            "INSERT INTO chunks (source_id, retired, offset, length, data) VALUES (?, ?, ?, ?, ?)",
            (source.id, retired, offset, length, packed),
        )

    def add_problems(self, source: Tracked, problems: Sequence[Problem]) -> None:
        """Keep the first warnings of each reason; the last one kept counts the others."""
        if not problems:
            return
        kept, repeated = self._warned(source), Counter[int]()
        for problem in problems:
            reason = problem.reason[:LONGEST_REASON]
            if reason not in kept and len(kept) >= MOST_REASONS:
                reason = OTHER_REASONS
            rows = kept.setdefault(reason, [])
            if len(rows) < MOST_WARNINGS:
                self._db.execute(
                    "INSERT INTO warnings (source_id, line, offset, reason, preview)"
                    " VALUES (?, ?, ?, ?, ?)",
                    (source.id, problem.line, problem.offset, reason, clean(problem.preview)),
                )
                rows.append(self._db.last_insert_rowid())
            else:
                repeated[rows[-1]] += 1
        self._db.executemany(
            "UPDATE warnings SET times = times + ? WHERE id = ?",
            [(times, row) for row, times in repeated.items()],
        )

    def _warned(self, source: Tracked) -> dict[str, list[int]]:
        """The stored warnings of a source by reason."""
        kept: dict[str, list[int]] = {}
        for row, reason in self._db.execute(
            "SELECT id, reason FROM warnings WHERE source_id = ? AND retired = 0 ORDER BY id",
            (source.id,),
        ):
            kept.setdefault(reason, []).append(row)
        return kept

    def replace(self, source: Tracked, fd: int) -> bool:
        """Archive a file that is not read by line; return whether all of it is searchable."""
        if source.id is not None:
            source.generation += 1
            self._db.execute(
                "UPDATE chunks SET retired = ? WHERE source_id = ? AND retired = 0",
                (source.generation, source.id),
            )
        source.save_identity(self._db)
        offset = 0
        while piece := read_at(fd, CHUNK_SIZE, offset):
            self._add_pieces(source, archive.LIVE, offset, piece)
            offset += len(piece)
        source.save_progress(self._db, Progress(Checkpoint(offset)))
        if offset <= LONGEST_ATTACHMENT:
            return True
        reason = f"only the first {LONGEST_ATTACHMENT >> 20} MiB of this output are searchable"
        self.add_problems(source, [Problem(0, 0, reason, "")])
        return False

    def replace_document(self, source: Tracked, data: bytes, offset: int) -> None:
        """Archive a piece of a document; records that left it stay with their conversations."""
        source.save_identity(self._db)
        if offset == 0 and source.progress.checkpoint.offset:
            self._db.execute("DELETE FROM chunks WHERE source_id = ?", (source.id,))
        self._add_pieces(source, archive.LIVE, offset, data)
        source.save_progress(self._db, Progress(Checkpoint(offset + len(data))))

    def text_of(self, path: str) -> str | None:
        """The text of an archived attachment, up to the limit; None if there is none."""
        for (source_id,) in self._db.execute(
            "SELECT id FROM sources WHERE kind = 'attachment' AND path = ?", (path,)
        ):
            text = bytearray()
            for piece in archive.source_bytes(self._db, source_id):
                text += piece[: LONGEST_ATTACHMENT - len(text)]
                if len(text) == LONGEST_ATTACHMENT:
                    break
            return searchable(text.decode("utf-8", "replace"))
        return None
