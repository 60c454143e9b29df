"""The files behind the sessions, their state, and what walks over all places left out.

Half of an index would answer "nothing found" and mean "not read yet". So a new one has a mark, and
a long walk says in each transaction how far it has come; both go when it ends. A walk that was
killed leaves them to the next one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import apsw

from sess_common.classes import dataclass
from sess_schema.ids import SessionId, SourceId

_SELECT = (
    "SELECT r.id, r.agent, r.kind, r.path, r.state, r.state_since, r.error, r.size,"
    " r.generation, r.part_of IS NOT NULL FROM sources r"
)
# A conversation is restored with the document that it is in, unless it has left it.
_DOCUMENT = (
    "(SELECT w.id FROM sources w WHERE w.id = p.part_of AND w.kind = 'document'"
    " AND EXISTS (SELECT 1 FROM database_rows d JOIN records t ON t.id = d.record_id"
    " WHERE d.source_id = w.id AND d.place <> -1 AND t.source_id = p.id))"
)
_FIRST_FACT, _COVERED_FACT = "first_walk_unfinished", "covered"
_SKIPPED_FACT = "skipped"
_ENTRIES = (
    "SELECT j.value ->> 0 AS path, j.value ->> 1 AS reason FROM facts f, json_each(f.value) j"
    f" WHERE f.name = '{_SKIPPED_FACT}'"
)


@dataclass(frozen=True, slots=True)
class SourceRow:
    """One file written by an agent."""

    id: SourceId
    agent: str
    kind: str
    path: str
    state: str
    state_since: int
    error: str | None
    size: int
    generation: int
    is_part: bool  # a conversation in a document or database


def of_session(db: apsw.Connection, session: SessionId) -> list[SourceRow]:
    """The transcripts and documents of a session, those that still exist first."""
    return _rows(
        db,
        " JOIN session_sources m JOIN sources p ON p.id = m.source_id"
        f" WHERE m.session_id = ? AND p.kind = 'transcript' AND r.id = coalesce({_DOCUMENT}, p.id)"
        " ORDER BY r.state = 'gone', r.id",
        (session,),
    )


def by_path(db: apsw.Connection, path: str) -> SourceRow | None:
    """A source by the exact path it was read from; the path is not opened."""
    rows = _rows(db, " WHERE r.path = ?", (path,))
    return rows[0] if rows else None


def in_state(db: apsw.Connection, state: str, most: int) -> list[SourceRow]:
    return _rows(db, " WHERE r.state = ? ORDER BY r.state_since DESC LIMIT ?", (state, most))


def states(db: apsw.Connection) -> dict[str, int]:
    """How many sources are in each state."""
    return dict(db.execute("SELECT state, count(*) FROM sources GROUP BY state ORDER BY state"))


def warning_counts(db: apsw.Connection) -> list[tuple[str, int, str, int]]:
    """(reason, count, path and line of an example), the most frequent first."""
    return [
        (str(reason), int(count), str(path), int(line))
        for reason, count, path, line in db.execute(
            "SELECT w.reason, sum(w.times) AS n, r.path, min(w.line) FROM warnings w"
            " JOIN sources r ON r.id = w.source_id WHERE w.retired <= 0"
            " GROUP BY w.reason ORDER BY n DESC, w.reason"
        )
    ]


def missing_outputs(db: apsw.Connection) -> list[str]:
    """Files that outputs were put aside into, and that were gone before they could be read."""
    return [
        path
        for (path,) in db.execute(
            "SELECT DISTINCT e.overflow FROM events e LEFT JOIN sources p ON p.path = e.overflow"
            " WHERE e.overflow IS NOT NULL AND e.retired = 0 AND p.id IS NULL ORDER BY 1"
        )
    ]


def unmatched_calls(db: apsw.Connection) -> tuple[int, int]:
    """Calls waiting for a result, and results whose call was never seen."""
    ((pending, orphans),) = db.execute(
        "SELECT count(*) FILTER (WHERE status = 'pending'),"
        " count(*) FILTER (WHERE unjoined = 'orphan') FROM events"
        " WHERE type = 'tool_use' AND retired = 0"
    )
    return int(pending), int(orphans)


def _rows(db: apsw.Connection, rest: str, values: Sequence[object]) -> list[SourceRow]:
    return [SourceRow(*row) for row in db.execute(_SELECT + rest, tuple(values))]


# -- how far a walk has come, and what walks left out


def begin_first_walk(db: apsw.Connection) -> None:
    db.execute("INSERT INTO facts VALUES (?, '')", (_FIRST_FACT,))


def end_walk(db: apsw.Connection) -> None:
    """Everything is read."""
    if db.execute("SELECT 1 FROM facts WHERE name IN (?, ?)", (_FIRST_FACT, _COVERED_FACT)).get:
        db.execute("DELETE FROM facts WHERE name IN (?, ?)", (_FIRST_FACT, _COVERED_FACT))


def is_first_walk_unfinished(db: apsw.Connection) -> bool:
    return db.execute("SELECT 1 FROM facts WHERE name = ?", (_FIRST_FACT,)).get is not None


@dataclass(slots=True, frozen=True)
class Coverage:
    """What an index has while there is more to read: the newest sessions are read first."""

    since: int | None = None  # files written after it are read; 0: all, only databases are not
    done: int = 0  # bytes
    total: int = 0
    later: tuple[str, ...] = ()  # agents whose databases are not read yet


def note_coverage(db: apsw.Connection, coverage: Coverage) -> None:
    """In the transaction that it is about; `end_walk` forgets it."""
    import json

    text = json.dumps([coverage.since, coverage.done, coverage.total, coverage.later])
    db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (_COVERED_FACT, text))


def coverage(db: apsw.Connection) -> Coverage | None:
    """What the index has; None if that is everything."""
    facts = dict(
        db.execute(
            "SELECT name, value FROM facts WHERE name IN (?, ?)", (_FIRST_FACT, _COVERED_FACT)
        )
    )
    if not facts:
        return None
    if _COVERED_FACT not in facts:
        return Coverage()
    import json

    since, done, total, later = json.loads(facts[_COVERED_FACT])
    return Coverage(since, done, total, tuple(later))


def keep_skipped(db: apsw.Connection, places: Iterable[tuple[str, str]]) -> None:
    """Replace the list; nothing is written if it is the same."""
    import json  # searches do without it

    new = json.dumps(sorted({_printable(path): why for path, why in places}.items()))
    old = db.execute("SELECT value FROM facts WHERE name = ?", (_SKIPPED_FACT,)).get
    if new != (old or "[]"):
        with db:
            db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (_SKIPPED_FACT, new))


def skipped_places(db: apsw.Connection) -> list[tuple[str, str]]:
    """(path, reason) of what is no source: directories, links, pipes, files of unknown format."""
    return [
        (str(path), str(reason))
        for path, reason in db.execute(
            f"SELECT e.path, e.reason FROM ({_ENTRIES}) e WHERE NOT EXISTS"
            " (SELECT 1 FROM sources s WHERE s.path = e.path AND s.error IS NOT NULL)"
        )
    ]


def skipped_databases(db: apsw.Connection) -> list[tuple[str, str, str]]:
    """(agent, path, reason) of databases that still cannot be read."""
    return [
        (str(agent), str(path), str(error))
        for agent, path, error in db.execute(
            f"SELECT s.agent, s.path, s.error FROM ({_ENTRIES}) e JOIN sources s ON s.path = e.path"
            " WHERE s.kind = 'database' AND s.error IS NOT NULL AND s.state <> 'gone'"
        )
    ]


def _printable(path: str) -> str:
    """Names that are no UTF-8 cannot be stored as they are."""
    return path.encode("utf-8", "backslashreplace").decode()
