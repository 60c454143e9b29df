"""Loads what was found in a damaged index into another one.

Logs and outputs come first, as if an older edition had read them: the next pass reads logs from the
archive. Conversations of documents and databases follow after that pass, if it did not find them in
a file that still exists.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import apsw

from sess_common import decode
from sess_schema import archive, marks
from sess_schema.archive import Loss, Lost
from sess_schema.ids import NO_SOURCE, SourceId
from sess_schema.marks import Mark
from sessiond.engines.lines import read_archived
from sessiond.engines.steps import PlacedRecord, content_digest
from sessiond.reading import tail
from sessiond.reading.territory import HEAD_BYTES
from sessiond.reading.tracked import FORGOTTEN, GONE, WHOLES, Tracked, now_ms
from sessiond.salvage.finds import FoundSource, Piece
from sessiond.sourcekit.base import Event, Record, SessionSpec, Source
from sessiond.sourcekit.values import strings
from sessiond.writing.conversation_records import PLACE_BITS
from sessiond.writing.transaction import Store, Transaction

if TYPE_CHECKING:
    from sessiond.sourcekit.masking import Masker


UNREAD = 0  # no edition: the log is read from the archive
SALVAGED = "salvaged"  # label of records that only their text is known of


@dataclass(slots=True)
class Loaded:
    """What came of it."""

    sources: int = 0
    pieces: int = 0
    known: int = 0  # sources that the index has already
    lost: Lost = field(default_factory=dict)  # with what to say of each

    def lose(self, source: FoundSource, name: str) -> None:
        """Name the bytes that are missing, as far as it is known that they existed."""
        if source.doubtful:
            told = f"{name}: its name and agent were on a damaged page, and may be others"
            self.lost[Loss(name, archive.UNPLACED, 0, 0)] = told
        if source.part_of is not None:
            for piece in source.lost:
                loss = Loss(name, piece.retired, piece.offset, piece.end)
                self.lost[loss] = f"{name}: record {piece.offset >> PLACE_BITS}"
            return
        if source.kind == "transcript":
            known = {piece.retired for piece in (*source.chunks, *source.lost)}
            for number in range(2, source.generation + 1):
                if number not in known:
                    loss = Loss(name, number, 0, 0)
                    self.lost[loss] = f"{name}: all of generation {number - 1}"
        for retired in sorted({archive.LIVE, *(piece.retired for piece in source.chunks)}):
            if retired != archive.PENDING:
                self._lose_gaps(source, name, retired)
        for piece in source.lost:
            if piece.retired > 0 or not source.read_to:
                self._lose_bytes(name, piece.retired, piece.offset, piece.end)

    def _lose_gaps(self, source: FoundSource, name: str, retired: int) -> None:
        pieces = [piece for piece in source.chunks if piece.retired == retired]
        live = retired == archive.LIVE
        at = 0 if live else pieces[0].offset
        for piece in pieces:
            if piece.offset > at:
                self._lose_bytes(name, retired, at, piece.offset)
            at = max(at, piece.end)
        if live and at < source.read_to:
            self._lose_bytes(name, retired, at, source.read_to)

    def _lose_bytes(self, name: str, retired: int, offset: int, end: int) -> None:
        generation = f" of generation {retired - 1}" if retired > 0 else ""
        told = f"{name}: bytes {offset:,} to {end:,}{generation}"
        self.lost[Loss(name, max(retired, archive.LIVE), offset, end)] = told


def load_files(
    store: Store,
    sources: Iterable[FoundSource],
    agents: Mapping[str, Source],
    folder: str,
    mask: Masker | None = None,
) -> Loaded:
    """Load logs, overflowed outputs and documents; each is loaded whole or not at all."""
    loaded = Loaded()
    for source in sources:
        if source.part_of is not None or source.kind == "database":
            continue
        if source.path is None:
            _name(source, agents, folder)
        assert source.path is not None
        with _at_once(store):
            if _load_file(store, source, agents, mask):
                loaded.sources += 1
                loaded.pieces += len(source.chunks)
            else:
                loaded.known += 1
            loaded.lose(source, source.path)
    return loaded


def add_pieces(
    store: Store, sources: Iterable[FoundSource], agents: Mapping[str, Source], folder: str
) -> Lost:
    """Fill the gaps of an index whose other rows were copied; what is still missing."""
    loaded, db = Loaded(), store.db
    for source in sources:
        with _at_once(store):
            path = db.execute("SELECT path FROM sources WHERE id = ?", (source.id,)).get
            if path is None:
                path = _add_source(db, source, agents, folder)
            there = {
                number: archive.chunks(db, SourceId(source.id), number)
                for number in {piece.retired for piece in source.chunks}
            }
            _insert(
                db,
                SourceId(source.id),
                [
                    piece
                    for piece in source.chunks
                    if not any(
                        one.offset < piece.end and piece.offset < one.end
                        for one in there[piece.retired]
                    )
                ],
            )
        loaded.lose(source, path)
    return loaded.lost


def _add_source(
    db: apsw.Connection, source: FoundSource, agents: Mapping[str, Source], folder: str
) -> str:
    if (
        source.path is None
        or db.execute("SELECT 1 FROM sources WHERE path = ?", (source.path,)).get
    ):
        _name(source, agents, folder)
    path = source.path or ""
    live = [piece.end for piece in source.chunks if piece.retired == archive.LIVE]
    db.execute(
        "INSERT INTO sources (id, agent, kind, path, state, state_since, generation, offset,"
        " edition, part_of) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, ?)",
        (
            source.id,
            source.agent or "unknown",
            source.kind,
            path,
            FORGOTTEN if source.state == FORGOTTEN else GONE,
            now_ms(),
            source.generation,
            0 if source.part_of is not None else max([source.read_to, *live]),
            source.part_of,
        ),
    )
    return path


@contextmanager
def _at_once(store: Store) -> Iterator[None]:
    store.begin()
    try:
        yield
        store.commit()
    except BaseException:
        store.roll_back()
        raise


def _name(source: FoundSource, agents: Mapping[str, Source], folder: str) -> None:
    """The row that names the file is lost: its agent can be told from the content."""
    source.path = os.path.join(folder, "lost+found", f"{source.id}.jsonl")
    source.doubtful = True
    live = [piece for piece in source.chunks if piece.retired == archive.LIVE]
    head = archive.unpack(live[0].data)[:HEAD_BYTES] if live and live[0].offset == 0 else b""
    able = [name for name, agent in agents.items() if _claims(agent, source.path, head)]
    source.agent = able[0] if len(able) == 1 else "unknown"


def _claims(agent: Source, path: str, head: bytes) -> bool:
    try:
        return bool(head) and agent.claims(path, head)
    except Exception:
        return False


def _load_file(
    store: Store, source: FoundSource, agents: Mapping[str, Source], mask: Masker | None
) -> bool:
    """Return False if the index has all of it."""
    db = store.db
    source_id = db.execute("SELECT id FROM sources WHERE path = ?", (source.path,)).get
    if source_id is not None:
        added = _add_earlier(db, source_id, source)
        if added:
            _read_earlier(store, source, agents, mask)
        return added
    if source.state == FORGOTTEN and not source.chunks:
        _remember_forgotten(db, source)
        return False
    if not source.chunks or _is_better_read(source, masked=archive.has_masks(db)):
        return False
    live = [piece for piece in source.chunks if piece.retired == archive.LIVE]
    end = max([source.read_to, *(piece.end for piece in live)])
    db.execute(
        "INSERT INTO sources (agent, kind, path, state, state_since, generation, offset, edition)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, 0)",
        (source.agent, source.kind, source.path, GONE, now_ms(), source.generation, end),
    )
    _insert(db, SourceId(db.last_insert_rowid()), source.chunks)
    if any(piece.retired > 0 for piece in source.chunks):
        _read_earlier(store, source, agents, mask)
    return True


def _remember_forgotten(db: apsw.Connection, source: FoundSource) -> None:
    """What was to be forgotten is not read again."""
    db.execute(
        "INSERT INTO sources (agent, kind, path, state, state_since, edition)"
        " VALUES (?, ?, ?, ?, ?, 0)",
        (source.agent, source.kind, source.path, FORGOTTEN, now_ms()),
    )


def _is_better_read(source: FoundSource, *, masked: bool) -> bool:
    """Whether pieces are lost that the file still has, with all the others."""
    at = 0
    for piece in source.chunks:
        if piece.retired > 0:
            return False
        at += piece.length
    if at >= source.read_to:
        return False
    try:
        fd, _ = tail.open_log(source.path or "")
    except (OSError, tail.Unreadable):
        return False
    try:
        return all(
            archive.is_same(
                tail.read_at(fd, one.length, one.offset), archive.unpack(one.data), masked=masked
            )
            for one in source.chunks
        )
    finally:
        os.close(fd)


def _read_earlier(
    store: Store, source: FoundSource, agents: Mapping[str, Source], mask: Masker | None
) -> None:
    agent = agents.get(source.agent or "")
    if source.kind == "transcript" and agent is not None:
        ((key, generation),) = store.db.execute(
            "SELECT id, generation FROM sources WHERE path = ?", (source.path,)
        )
        log = Tracked(source.path or "", agent.agent, source.kind, key, generation=generation)
        read_earlier(store.transaction, agent, log, mask)


def _add_earlier(db: apsw.Connection, source_id: SourceId, source: FoundSource) -> bool:
    """The file was read again since: keep what it contained before, if that is not there."""
    there = {
        (length, bytes(data))
        for length, data in db.execute(
            "SELECT length, data FROM chunks WHERE source_id = ?", (source_id,)
        )
    }
    now = archive.current(db, source_id)
    live = [piece for piece in source.chunks if piece.retired == archive.LIVE]
    filling = [
        one for one in live if not any(at.offset < one.end and one.offset < at.end for at in now)
    ]
    if filling and source.read_to:  # what a repair has lost, an older copy may have
        _insert(db, source_id, filling)
        db.execute("UPDATE sources SET edition = 0 WHERE id = ?", (source_id,))
    text = b"".join(archive.laid_out(db, archive.current(db, source_id)))
    missing = []
    if not all(text[piece.offset : piece.end] == archive.unpack(piece.data) for piece in live):
        missing += [piece._replace(retired=source.generation + 1) for piece in live]
    missing += [piece for piece in source.chunks if piece.retired > 0]
    missing = [piece for piece in missing if (piece.length, piece.data) not in there]
    if not missing:
        return bool(filling)
    # They are older than all that the index has, and numbered without gaps.
    numbers = {old: new for new, old in enumerate(sorted({one.retired for one in missing}), 2)}
    missing = [piece._replace(retired=numbers[piece.retired]) for piece in missing]
    newer = len(numbers)
    for table in ("chunks", "records", "warnings"):
        db.execute(
            f"UPDATE {table} SET retired = retired + ? WHERE source_id = ? AND retired > 0",
            (newer, source_id),
        )
    db.execute("UPDATE sources SET generation = generation + ? WHERE id = ?", (newer, source_id))
    _insert(db, source_id, missing)
    return True


def _insert(db: apsw.Connection, source: SourceId, pieces: Iterable[Piece]) -> None:
    db.executemany(
        "INSERT INTO chunks (source_id, retired, offset, length, data) VALUES (?, ?, ?, ?, ?)",
        [(source, one.retired, one.offset, one.length, one.data) for one in pieces],
    )


def load_marks(store: Store, own_marks: Iterable[Mark]) -> int:
    """Load what people noted about sessions, unless the index has something newer."""
    loaded = 0
    with store.db:
        for mark in sorted(own_marks, key=itemgetter(-1), reverse=True):
            loaded += marks.restore(store.db, mark)
    return loaded


# -- conversations


def load_conversations(
    store: Store,
    sources: list[FoundSource],
    agents: Mapping[str, Source],
    folder: str,
    mask: Masker | None = None,
) -> Loaded:
    """Load conversations that the index lacks; call it after a pass over existing files."""
    loaded = Loaded()
    by_id = {source.id: source for source in sources}
    for source in sources:
        if source.part_of is None or source.kind in WHOLES:
            continue
        path = source.path or os.path.join(folder, "lost+found", f"{source.id}#{source.id}")
        if store.db.execute("SELECT 1 FROM sources WHERE path = ?", (path,)).get is not None:
            loaded.known += 1
            continue
        if source.chunks:
            with _at_once(store):
                whole = by_id.get(source.part_of)
                _load_conversation(store, source, path, whole, agents, mask=mask)
            loaded.sources += 1
            loaded.pieces += len(source.chunks)
            told = f"{path}: all but the texts of its records, such as titles, calls and costs,"
            loaded.lost[Loss(path, archive.UNPLACED, 0, 0)] = told
        loaded.lose(source, path)
    return loaded


def _load_conversation(
    store: Store,
    source: FoundSource,
    path: str,
    whole: FoundSource | None,
    agents: Mapping[str, Source],
    *,
    mask: Masker | None,
) -> None:
    db = store.db
    agent = source.agent or "unknown"
    part = Tracked(path, agent, "transcript", part_of=_whole(db, path, agent, whole))
    part.generation = source.generation
    part.save_identity(db)
    _insert(db, part.id or NO_SOURCE, source.chunks)
    spec = SessionSpec(path.rpartition("#")[2], fallback=source.fallback)
    parser = None
    if agent in agents:
        try:
            parser = agents[agent].parser(spec, {})
        except Exception:
            parser = None  # it has no logs: the text of its records is all there is

    def placed_of(number: int, piece: Piece) -> PlacedRecord:
        raw = archive.unpack(piece.data).rstrip(b"\r\n")
        record = _record(parser, raw)
        if mask is not None:
            mask.record(record)
        record.session = None
        return PlacedRecord(piece.offset, len(raw), number, record, content_digest(record))

    read_left(store.transaction, part, spec, source.chunks, placed_of)
    records = [placed_of(number, piece) for number, piece in enumerate(_live(source), 1)]
    store.transaction.records.write(part, spec, records)
    part.save_state(db, GONE)
    db.execute(
        "UPDATE sources SET lines = ?, generation = ? WHERE id = ?",
        (len(records), source.generation, part.id),
    )


def _live(source: FoundSource) -> list[Piece]:
    return [piece for piece in source.chunks if piece.retired == archive.LIVE]


def _whole(db: apsw.Connection, path: str, agent: str, whole: FoundSource | None) -> SourceId:
    """The source of the document or database, which may be gone."""
    whole_path = path.rpartition("#")[0]
    whole_id = db.execute("SELECT id FROM sources WHERE path = ?", (whole_path,)).get
    if whole_id is not None:
        return SourceId(whole_id)
    tracked = Tracked(whole_path, agent, whole.kind if whole else "database")
    tracked.save_identity(db)
    tracked.save_state(db, GONE)
    return tracked.id or NO_SOURCE


def _record(parser: Any, raw: bytes) -> Record:
    """The record of an archived line, or at least its text."""
    try:
        value, _ = decode.decode(raw)
    except ValueError:
        value = raw.decode("utf-8", "replace")
    if parser is not None and isinstance(value, dict):
        try:
            record: Record = parser.parse(value)
        except Exception:
            record = Record(SALVAGED)
        if record.events or record.results:
            return record
    text = "\n".join(strings(value)).strip()
    return Record(SALVAGED, events=[Event("system", text, label=SALVAGED)] if text else [])


# -- what was in a file or conversation before


def read_earlier(
    transaction: Transaction, agent: Source, log: Tracked, mask: Masker | None = None
) -> None:
    """Read the earlier contents of an archived log, and mark it to be read again."""
    db, latest = transaction.db, log.generation
    contents = archive.earlier(db, log.id or NO_SOURCE)
    if not contents:
        return
    transaction.rewriting.retire_records(log)  # those that it has now, if it was read before
    for number in sorted(contents):
        _read_records(transaction, agent, log, contents[number], mask)
        log.generation = number + 1
        transaction.rewriting.retire_records(log)
        transaction.rewriting.finish(log)
    log.generation = latest
    log.save_edition(db, UNREAD)


def _read_records(
    transaction: Transaction,
    agent: Source,
    log: Tracked,
    chunks: list[archive.Chunk],
    mask: Masker | None,
) -> None:
    with tempfile.TemporaryFile(dir=os.path.dirname(transaction.db.filename)) as file:
        try:
            file.writelines(archive.laid_out(transaction.db, chunks))
        except archive.Damaged:
            archive.met.pop()  # the next check names it
        file.flush()
        spec, slices = read_archived(agent, log.path, file.fileno(), mask)
        for slice_ in slices:
            if slice_.records:
                transaction.records.write(log, spec, slice_.records)


def read_left(
    transaction: Transaction,
    part: Tracked,
    spec: SessionSpec,
    pieces: list[Piece],
    placed_of: Callable[[int, Piece], PlacedRecord],
) -> None:
    """Read the records that left a conversation, by the generation that they left in."""
    db, latest = transaction.db, part.generation
    for number in sorted({piece.retired for piece in pieces if piece.retired > 0}):
        gone = [piece for piece in pieces if piece.retired == number]
        records = [placed_of(line, piece) for line, piece in enumerate(gone, 1)]
        transaction.records.write(part, spec, records)
        part.generation = number
        session = transaction.sessions.get(part.agent, spec)
        for placed in records:
            transaction.copies.retire(placed.id, session.id, number)
            db.execute("UPDATE records SET retired = ? WHERE id = ?", (number, placed.id))
        transaction.events.detach_lost(part.id or NO_SOURCE, number)
    part.generation = latest
