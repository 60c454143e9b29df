"""Sources as the daemon knows them: one row of `sources` each, kept in memory between passes."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field

import apsw

from sessiond.slices import Progress
from sessiond.tail import Checkpoint, Stat

LIVE, GONE, PARKED, UNREADABLE = "live", "gone", "parked", "unreadable"
PARK_AFTER = 3  # crashes of the same file


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(slots=True)
class Tracked:
    """One file that an agent writes, and how far it was read."""

    path: str
    agent: str
    kind: str
    id: int | None = None
    state: str = LIVE
    error: str | None = None
    failures: int = 0
    generation: int = 1
    stat: Stat | None = None
    progress: Progress = field(default_factory=Progress)
    has_pending: bool = False
    archived_to: int = 0  # beyond the offset only while a rewritten file is read again

    def save_identity(self, db: apsw.Connection) -> None:
        if self.id is None:
            # No RETURNING: it makes SQLite open a savepoint, and FTS5 flush to disk for it.
            db.execute(
                "INSERT INTO sources (agent, kind, path, state_since) VALUES (?, ?, ?, ?)",
                (self.agent, self.kind, self.path, now_ms()),
            )
            self.id = db.last_insert_rowid()

    def save_progress(self, db: apsw.Connection, progress: Progress) -> None:
        mark = progress.checkpoint
        db.execute(
            "UPDATE sources SET offset = ?, lines = ?, blank_lines = ?, head_hash = ?,"
            " tail_hash = ?, oversize_from = ?, parser_state = ?, generation = ?, read_at = ?"
            " WHERE id = ?",
            (
                mark.offset,
                progress.lines,
                progress.blank_lines,
                mark.head_hash,
                mark.tail_hash,
                mark.oversize_from,
                json.dumps(progress.parser_state),
                self.generation,
                now_ms(),
                self.id,
            ),
        )
        self.progress = progress

    def save_stat(self, db: apsw.Connection, stat: Stat) -> None:
        """The file was read to its end as it was when `stat` was taken, and it is readable."""
        self.save_identity(db)
        db.execute(
            "UPDATE sources SET dev = ?, inode = ?, size = ?, mtime_ns = ?, ctime_ns = ?"
            " WHERE id = ?",
            (stat.dev, stat.inode, stat.size, stat.mtime_ns, stat.ctime_ns, self.id),
        )
        self.stat = stat
        if self.state != LIVE or self.error or self.failures:
            self.save_state(db, LIVE)

    def save_state(self, db: apsw.Connection, state: str, error: str | None = None) -> None:
        self.save_identity(db)
        if state == LIVE:
            self.failures = 0
        db.execute(
            "UPDATE sources SET state = ?, state_since = iif(state = ?, state_since, ?),"
            " error = ?, failures = ? WHERE id = ?",
            (state, state, now_ms(), error, self.failures, self.id),
        )
        self.state, self.error = state, error

    def save_path(self, db: apsw.Connection, path: str) -> None:
        db.execute("UPDATE sources SET path = ? WHERE id = ?", (path, self.id))
        self.path = path


def load_all(db: apsw.Connection) -> dict[str, Tracked]:
    """Every source of the index by path."""
    tracked = {}
    for (
        source_id, agent, kind, path, state, error, failures, generation, dev, inode, size,
        mtime_ns, ctime_ns, offset, lines, blank_lines, head_hash, tail_hash, oversize_from,
        parser_state, has_pending,
    ) in db.execute(
        "SELECT id, agent, kind, path, state, error, failures, generation, dev, inode, size,"
        " mtime_ns, ctime_ns, offset, lines, blank_lines, head_hash, tail_hash, oversize_from,"
        " parser_state,"
        " EXISTS (SELECT 1 FROM chunks WHERE source_id = sources.id AND retired = -1)"
        " FROM sources"
    ):  # fmt: skip
        tracked[path] = Tracked(
            path,
            agent,
            kind,
            source_id,
            state,
            error,
            failures,
            generation,
            Stat(dev, inode, size, mtime_ns, ctime_ns) if ctime_ns else None,
            Progress(
                Checkpoint(offset, head_hash, tail_hash, oversize_from),
                lines,
                blank_lines,
                json.loads(parser_state or "{}"),
            ),
            bool(has_pending),
        )
    return tracked
