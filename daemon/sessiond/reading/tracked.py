"""Sources as rows of `sources`, kept in memory between passes."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import apsw

from sess_schema import __version__
from sess_schema.ground import Overtaken
from sess_schema.ids import SourceId
from sessiond.reading.tail import Checkpoint, Stat

LIVE, GONE, PARKED, UNREADABLE = "live", "gone", "parked", "unreadable"
FORGOTTEN = "forgotten"  # by the owner: neither read nor marked as gone
EXCLUDED = "excluded"  # its project is; `error` names it
PARK_AFTER = 3  # crashes of the same file
WHOLES = ("document", "database")  # kinds whose conversations are separate sources


_stat_values = attrgetter("dev", "inode", "size", "mtime_ns", "ctime_ns")


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(slots=True)
class Progress:
    """Everything that must commit with the rows of a slice."""

    checkpoint: Checkpoint = field(default_factory=Checkpoint)
    lines: int = 0
    blank_lines: int = 0
    parser_state: dict[str, Any] | None = field(default_factory=dict)  # None: not loaded


@dataclass(slots=True)
class Tracked:
    """One file that an agent writes, and how far it was read."""

    path: str
    agent: str
    kind: str
    id: SourceId | None = None
    state: str = LIVE
    error: str | None = None
    failures: int = 0
    generation: int = 1
    stat: Stat | None = None
    sidecar_ns: int = 0
    parked_by: str | None = None
    progress: Progress = field(default_factory=Progress)
    has_pending: bool = False
    archived_to: int = 0  # beyond the offset only while a rewritten file is read again
    part_of: SourceId | None = None  # the document or database that holds this conversation
    edition: int = 0  # of the reader that read it; 0 for parts, which are read with their whole

    @property
    def is_whole(self) -> bool:
        return self.kind in WHOLES

    def save_identity(self, db: apsw.Connection) -> None:
        if self.id is None:
            # No RETURNING: it makes SQLite open a savepoint, and FTS5 flush to disk for it.
            db.execute(
                "INSERT INTO sources (agent, kind, path, state_since, part_of, edition)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (self.agent, self.kind, self.path, now_ms(), self.part_of, self.edition),
            )
            self.id = SourceId(db.last_insert_rowid())

    def save_progress(self, db: apsw.Connection, progress: Progress) -> None:
        mark = progress.checkpoint
        db.execute(
            "UPDATE sources SET offset = ?, lines = ?, blank_lines = ?, head_hash = ?,"
            " tail_hash = ?, oversize_from = ?, parser_state = ?, generation = ?, read_at = ?"
            " WHERE id = ? AND offset = ?",
            (
                mark.offset, progress.lines, progress.blank_lines, mark.head_hash, mark.tail_hash,
                mark.oversize_from, json.dumps(progress.parser_state or {}), self.generation,
                now_ms(), self.id, self.progress.checkpoint.offset,
            ),
        )  # fmt: skip
        if db.changes() != 1:
            raise Overtaken(self.path)
        self.progress = progress

    def save_reader_state(self, db: apsw.Connection, state: dict[str, Any]) -> None:
        """Save the state that the reader of a database gets next time."""
        self.save_identity(db)
        db.execute(
            "UPDATE sources SET parser_state = ?, read_at = ? WHERE id = ?",
            (json.dumps(state), now_ms(), self.id),
        )
        self.progress.parser_state = state

    def save_stat(self, db: apsw.Connection, stat: Stat, sidecar_ns: int) -> None:
        """The file is readable and was read to its end, as of `stat`."""
        self.sidecar_ns = sidecar_ns
        self._write_stat(db, stat)
        if self.state != LIVE or self.error or self.failures:
            self.save_state(db, LIVE)

    def park(self, db: apsw.Connection, stat: Stat, error: str) -> None:
        """Skip the file until it changes or sessiond is upgraded."""
        self._write_stat(db, stat)
        self.save_state(db, PARKED, error)
        db.execute("UPDATE sources SET parked_by = ? WHERE id = ?", (__version__, self.id))
        self.parked_by = __version__

    def still_parked(self, stat: Stat) -> bool:
        return self.state == PARKED and self.stat == stat and self.parked_by == __version__

    def parser_state(self, db: apsw.Connection) -> dict[str, Any]:
        """The parser's saved state, loaded only when the file is read."""
        if self.progress.parser_state is None:
            stored = db.execute("SELECT parser_state FROM sources WHERE id = ?", (self.id,)).get
            self.progress.parser_state = json.loads(stored or "{}")
        return self.progress.parser_state

    def _write_stat(self, db: apsw.Connection, stat: Stat) -> None:
        self.save_identity(db)
        dev, inode, *rest = _stat_values(stat)
        db.execute(
            "UPDATE sources SET size = ?, mtime_ns = ?, ctime_ns = ?, sidecar_ns = ? WHERE id = ?",
            (*rest, self.sidecar_ns, self.id),
        )
        # An indexed column that is set is written to its index, too, even if it does not change.
        if self.stat is None or (self.stat.dev, self.stat.inode) != (stat.dev, stat.inode):
            db.execute("UPDATE sources SET dev = ?, inode = ? WHERE id = ?", (dev, inode, self.id))
        self.stat = stat

    def save_state(self, db: apsw.Connection, state: str, error: str | None = None) -> None:
        self.save_identity(db)
        if state == LIVE and error is None:
            self.failures = 0
        db.execute(
            "UPDATE sources SET state = ?, state_since = iif(state = ?, state_since, ?),"
            " error = ?, failures = ? WHERE id = ?",
            (state, state, now_ms(), error, self.failures, self.id),
        )
        self.state, self.error = state, error

    def save_edition(self, db: apsw.Connection, edition: int) -> None:
        db.execute("UPDATE sources SET edition = ? WHERE id = ?", (edition, self.id))
        self.edition = edition

    def save_path(self, db: apsw.Connection, path: str) -> None:
        db.execute("UPDATE sources SET path = ? WHERE id = ?", (path, self.id))
        self.path = path


def load_all(db: apsw.Connection) -> dict[str, Tracked]:
    """Every source of the index by path."""
    unfinished = {
        source_id for (source_id,) in db.execute("SELECT source_id FROM chunks WHERE retired = -1")
    }
    tracked = {}
    for (
        source_id, agent, kind, path, state, error, failures, generation, dev, inode, size,
        mtime_ns, ctime_ns, sidecar_ns, parked_by, offset, lines, blank_lines, head_hash,
        tail_hash, oversize_from, part_of, edition,
    ) in db.execute(
        "SELECT id, agent, kind, path, state, error, failures, generation, dev, inode, size,"
        " mtime_ns, ctime_ns, sidecar_ns, parked_by, offset, lines, blank_lines, head_hash,"
        " tail_hash, oversize_from, part_of, edition FROM sources"
    ):  # fmt: skip
        stat = Stat(dev, inode, size, mtime_ns, ctime_ns) if ctime_ns else None
        mark = Checkpoint(offset, head_hash, tail_hash, oversize_from)
        tracked[path] = Tracked(
            path, agent, kind, source_id, state, error, failures, generation, stat, sidecar_ns,
            parked_by, Progress(mark, lines, blank_lines, None), source_id in unfinished,
            part_of=part_of, edition=edition,
        )  # fmt: skip
    return tracked
