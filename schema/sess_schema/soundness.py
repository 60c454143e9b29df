"""Whether the index is what it should be: every archived byte, every reference, every sum.

Readers run these checks (`sess check`, `sess doctor`), and the writer runs them before and after
it repairs something (`sessiond repair`). Also where the bytes of the index are.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from sess_common import upkeep
from sess_schema import archive, page_sums, sums
from sess_schema.archive import Chunk, Damaged, Loss
from sess_schema.ids import SourceId
from sess_schema.queries.views import digests

# What a finding is about, and therefore what mends it.
STRUCTURE = "structure"  # pages of the database: only `salvage` helps
ARCHIVE = "archive"  # archived bytes are damaged or missing
FULL_TEXT = "full text"
REFERENCES = "references"
SUMS = "sums"
LIVE_FILE = "live file"  # differs from the archive although nothing says that it changed

# (table, column, referenced table); NULL refers to nothing.
REFERENCED = (
    ("records", "source_id", "sources"),
    ("records", "session_id", "sessions"),
    ("records", "copy_of", "records"),
    ("events", "session_id", "sessions"),
    ("events", "record_id", "records"),
    ("events", "result_record_id", "records"),
    ("events", "id", "event_texts"),
    ("event_texts", "id", "events"),
    ("files", "event_id", "events"),
    ("commits", "event_id", "events"),
    ("edits", "event_id", "events"),
    ("usage", "session_id", "sessions"),
    ("usage", "record_id", "records"),
    ("usage_sums", "session_id", "sessions"),
    ("event_sums", "session_id", "sessions"),
    ("spans", "session_id", "sessions"),
    ("digests", "session_id", "sessions"),
    ("leaf_titles", "session_id", "sessions"),
    ("database_rows", "record_id", "records"),
)
_OPTIONAL = {("records", "copy_of"), ("events", "result_record_id")}  # rows do without these
_FREE = "free"
_OTHER = "other"
_PARTS = {
    "chunks": "archive",
    "event_texts": "texts",
    "event_index": "full text",
    "records": "records",
    "database_rows": "records",
    "events": "events",
    "files": "events",
    "edits": "events",
    "commits": "events",
    "usage": "usage",
    "usage_sums": "sums",
    "event_sums": "sums",
    "spans": "sums",
    "digests": "sums",
}

_MOST_PROBLEMS = 100


class Finding(NamedTuple):
    """One thing that is wrong."""

    about: str
    message: str
    source: SourceId | None = None  # whose bytes are affected
    chunk: int | None = None
    loss: Loss | None = None  # if nothing can bring them back


class Looked(NamedTuple):
    """How much was looked at."""

    chunks: int = 0
    of_chunks: int = 0
    bytes: int = 0
    files: int = 0
    accepted: int = 0  # bytes that are known to be lost


Progress = Callable[[int, int], None]


def _silent(_done: int, _of: int) -> None: ...


def structure(
    db: apsw.Connection, *, deep: bool = True, progress: Progress = _silent
) -> list[Finding]:
    """Damaged pages, rows missing from an index, full text that contradicts itself."""
    damaged = [Finding(STRUCTURE, line) for line in page_sums.damage(db.filename, progress)]
    if damaged:  # SQLite may not even say that they are, and takes long to say more
        return damaged
    pragma = "integrity_check" if deep else "quick_check"
    try:
        problems = [
            str(problem)
            for (text,) in db.execute(f"PRAGMA {pragma}({_MOST_PROBLEMS})")
            for problem in str(text).splitlines()
        ]
    except apsw.Error as error:
        return [Finding(STRUCTURE, f"cannot be read: {error}")]
    if problems == ["ok"]:
        return []
    return [
        Finding(FULL_TEXT if "fts5" in problem.lower() else STRUCTURE, problem)
        for problem in problems
    ]


def rows(db: apsw.Connection) -> list[Finding]:
    """Dangling references, and sums that are not those of their rows."""
    findings = [Finding(REFERENCES, problem) for problem in broken_references(db)]
    compared = sums.differences(db) | {"digests": digests.differences(db)}
    for table, wrong in compared.items():
        if wrong:
            rows = "row" if wrong == 1 else "rows"
            findings.append(Finding(SUMS, f"{wrong:,} {rows} of {table} not what they sum up"))
    return findings


class ArchiveCheck:
    """Reads archived chunks, all or a share, and compares them with their files."""

    def __init__(
        self, db: apsw.Connection, share: float = 1.0, only: Sequence[int] | None = None
    ) -> None:
        """`only`: the sources to look at."""
        self._db = db
        self._share = share
        self._only = only
        self._accepted = archive.accepted_losses(db)
        self._named: set[Loss] = set()
        self.looked = Looked()

    def findings(self, progress: Progress = _silent) -> Iterator[Finding]:
        total = int(self._db.execute("SELECT count(*) FROM chunks").get or 0)
        self.looked = Looked(of_chunks=total)
        masked = archive.has_masks(self._db)
        sources: list[Any] = self._db.execute(
            "SELECT id, path, kind, part_of IS NOT NULL, offset, state, dev, inode, size, mtime_ns,"
            " ctime_ns FROM sources ORDER BY id"
        ).fetchall()
        for source, path, kind, is_part, offset, state, *stat in sources:
            if self._only is not None and source not in self._only:
                continue
            chunks = [
                Chunk(*row)
                for row in self._db.execute(
                    "SELECT id, retired, offset, length, source_id FROM chunks"
                    " WHERE source_id = ? ORDER BY retired, offset",
                    (source,),
                )
            ]
            live = [chunk for chunk in chunks if chunk.retired == archive.LIVE]
            if not is_part:
                whole = 0 if kind == "database" else offset
                yield from self._missing(_gaps(source, path, live, whole))
            compare = None
            if not is_part and kind != "database" and state == "live":
                compare = _LiveFile.open(path, tuple(stat), masked=masked)
            try:
                for chunk in chunks:
                    progress(self.looked.chunks, total)
                    yield from self._chunk(source, path, chunk, compare)
            finally:
                if compare is not None:
                    compare.close()
                    self._count(files=1)
        yield from self.missing(parts_only=True)
        yield from self._remembered()

    def missing(self, *, parts_only: bool = False) -> Iterator[Finding]:
        """Bytes that no piece has; for this, no piece is read."""
        if not parts_only:
            files: list[Any] = self._db.execute(
                "SELECT id, path, offset FROM sources"
                " WHERE part_of IS NULL AND kind <> 'database' ORDER BY id"
            ).fetchall()
            for source, path, end in files:
                live = archive.chunks(self._db, source, archive.LIVE)
                yield from self._missing(_gaps(source, path, live, end))
        yield from self._missing(_records_without_bytes(self._db, self._only))
        if not parts_only:
            yield from self._remembered()

    def _missing(self, findings: Iterable[Finding]) -> Iterator[Finding]:
        """What is not known to be lost."""
        for finding in findings:
            if finding.loss is not None and finding.loss in self._accepted:
                self._count(accepted=finding.loss.size)
            else:
                if finding.loss is not None:
                    self._named.add(finding.loss)
                yield finding

    def _remembered(self) -> Iterator[Finding]:
        """Losses of an earlier repair that leave no gap."""
        for loss, told in (archive.losses(self._db) | shrunk(self._db)).items():
            if loss not in self._named:
                yield Finding(ARCHIVE, f"{told} are lost", loss=loss)

    def _chunk(
        self, source: SourceId, path: str, chunk: Chunk, compare: _LiveFile | None
    ) -> Iterator[Finding]:
        if self._share < 1 and random.random() >= self._share:  # noqa: S311 - a sample
            return
        where = f"{path}: bytes {chunk.offset:,} to {chunk.end:,}"
        if chunk.retired > 0:
            where += f" of generation {chunk.retired - 1}"
        try:
            raw = archive.chunk_bytes(self._db, chunk)
        except Damaged:
            raw = b""
        self._count(chunks=1, bytes=len(raw))
        if len(raw) != chunk.length:
            loss = Loss(path, chunk.retired, chunk.offset, chunk.end)
            yield Finding(ARCHIVE, f"{where} are damaged", source, chunk.id, loss)
        elif compare is not None and chunk.retired <= 0 and not compare.has(chunk.offset, raw):
            yield Finding(LIVE_FILE, f"{where} are not what the file has", source, chunk.id)

    def _count(self, **more: int) -> None:
        self.looked = self.looked._replace(
            **{name: getattr(self.looked, name) + count for name, count in more.items()}
        )


def shrunk(db: apsw.Connection) -> archive.Lost:
    """Files that the index had when its size was noted: it never forgets that there was one."""
    folder, name = os.path.split(db.filename)
    known = upkeep.last(Path(folder), upkeep.SIZE) if name == "index.db" else None
    before, now = int((known or {}).get("files", 0)), _files(db)
    if now >= before:
        return {}
    loss = Loss(name, archive.UNPLACED, now, before)
    return {} if loss in archive.accepted_losses(db) else {loss: _shrunk_by(loss)}


def _shrunk_by(loss: Loss) -> str:
    return f"{loss.path}: {loss.size:,} of the {loss.end:,} files that it had"


def keep_size(db: apsw.Connection, *, smaller: bool = False) -> None:
    """Note how many files it has; fewer than before are a loss, unless that is meant."""
    folder, name = os.path.split(db.filename)
    if name != "index.db":
        return
    if not smaller and (lost := shrunk(db)):
        archive.note_losses(db, lost)
    files = _files(db)
    if (upkeep.last(Path(folder), upkeep.SIZE) or {}).get("files") != files:
        upkeep.note(Path(folder), upkeep.SIZE, ok=True, files=files)


def _files(db: apsw.Connection) -> int:
    return int(db.execute("SELECT count(*) FROM sources WHERE part_of IS NULL").get)


def _gaps(source: SourceId, path: str, chunks: list[Chunk], end: int) -> Iterator[Finding]:
    """Bytes that no chunk has, or two have."""
    at = 0
    for chunk in chunks:
        if chunk.offset > at:
            yield _gap(source, path, at, chunk.offset)
        elif chunk.offset < at:
            yield Finding(
                ARCHIVE,
                f"{path}: bytes {chunk.offset:,} to {at:,} are archived twice",
                source,
                chunk.id,
            )
        at = max(at, chunk.end)
    if at < end:
        yield _gap(source, path, at, end)


def _gap(source: SourceId, path: str, at: int, end: int) -> Finding:
    loss = Loss(path, archive.LIVE, at, end)
    return Finding(ARCHIVE, f"{path}: bytes {at:,} to {end:,} are missing", source, loss=loss)


def _records_without_bytes(
    db: apsw.Connection, only: Sequence[int] | None = None
) -> Iterator[Finding]:
    """Each record of a conversation in a document or database is a piece of its own."""
    for source, path, line, offset, length in db.execute(
        "SELECT s.id, s.path, t.line, t.offset, t.length FROM sources s JOIN records t"
        " ON t.source_id = s.id AND t.retired = 0 WHERE s.part_of IS NOT NULL AND NOT EXISTS"
        " (SELECT 1 FROM chunks c WHERE c.source_id = s.id AND c.retired = 0"
        " AND c.offset = t.offset) ORDER BY s.id, t.offset"
    ):
        if only is None or source in only:
            loss = Loss(path, archive.LIVE, offset, offset + length + 1)  # with its newline
            yield Finding(ARCHIVE, f"{path}: record {line} is missing", source, loss=loss)


class _LiveFile:
    """A file that, judging by its stat, is what was archived."""

    def __init__(self, fd: int, *, masked: bool) -> None:
        self._fd = fd
        self._masked = masked

    @classmethod
    def open(cls, path: str, stat: tuple[int, ...], *, masked: bool) -> _LiveFile | None:
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return None
        now = os.fstat(fd)
        seen = (now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns)
        # The next sync reads what changed; an emptied file keeps its bytes.
        if seen != stat or now.st_size == 0:
            os.close(fd)
            return None
        return cls(fd, masked=masked)

    def has(self, offset: int, raw: bytes) -> bool:
        return archive.is_same(os.pread(self._fd, len(raw), offset), raw, masked=self._masked)

    def close(self) -> None:
        os.close(self._fd)


def broken_references(db: apsw.Connection) -> list[str]:
    """One line for each kind of dangling reference, including foreign keys."""
    counts = [(_dangling(db, *reference), *reference) for reference in REFERENCED]
    enforced = db.execute(
        'SELECT "table", parent, count(*) FROM pragma_foreign_key_check GROUP BY 1, 2'
    )
    return [
        *(
            f"{n:,} of {table}.{column} are not in {parent}"
            for n, table, column, parent in counts
            if n
        ),
        *(f"{n:,} of {table} are not in {parent}" for table, parent, n in enforced),
    ]


def dangling(db: apsw.Connection) -> int:
    """How many rows refer to rows that do not exist."""
    return sum(_dangling(db, *reference) for reference in REFERENCED)


def remove_dangling(db: apsw.Connection) -> None:
    """Remove rows that refer to rows that do not exist, until there are none."""
    while dangling(db):
        for table, column, parent in REFERENCED:
            where = _is_dangling(table, column, parent)
            if (table, column) in _OPTIONAL:
                db.execute(f"UPDATE {table} SET {column} = NULL WHERE {where}")
            else:
                db.execute(f"DELETE FROM {table} WHERE {where}")


def _dangling(db: apsw.Connection, table: str, column: str, parent: str) -> int:
    where = _is_dangling(table, column, parent)
    return int(db.execute(f"SELECT count(*) FROM {table} WHERE {where}").get or 0)


def _is_dangling(table: str, column: str, parent: str) -> str:
    return (
        f"{table}.{column} IS NOT NULL"
        f" AND NOT EXISTS (SELECT 1 FROM {parent} p WHERE p.id = {table}.{column})"
    )


def full_text(db: apsw.Connection) -> list[Finding]:
    """Whether the full text has exactly the words of the texts; needs the writer's connection."""
    try:
        db.execute("INSERT INTO event_index (event_index, rank) VALUES ('integrity-check', 1)")
    except apsw.Error as error:
        return [Finding(FULL_TEXT, f"the full-text index does not match the texts: {error}")]
    return []


# -- where the bytes are


def bytes_by_part(db: apsw.Connection) -> dict[str, int]:
    """Bytes of each part with its indexes, the largest first; `free` is what deletions left.

    Reads every page, so only where somebody asks for it.
    """
    tables = dict(db.execute("SELECT name, tbl_name FROM sqlite_schema WHERE rootpage"))
    sizes: dict[str, int] = {}
    for name, size in db.execute("SELECT name, pgsize FROM dbstat WHERE aggregate = TRUE"):
        table = tables.get(name, name)
        if table.startswith("event_index_"):
            table = "event_index"
        part = _PARTS.get(table, _OTHER)
        sizes[part] = sizes.get(part, 0) + size
    sizes[_FREE] = db.pragma("freelist_count") * db.pragma("page_size")
    return dict(sorted(sizes.items(), key=lambda item: -item[1]))


def transcript_bytes(db: apsw.Connection) -> int:
    """Bytes that were read from files; conversations in databases and documents have none."""
    size: int = db.execute("SELECT coalesce(sum(offset), 0) FROM sources WHERE part_of IS NULL").get
    return size
