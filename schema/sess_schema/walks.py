"""What the index knows of full walks: whether the first one ended, what the last could not read.

Half of a first index would answer "nothing found". So a new one has a mark, which the first walk
over all places removes when it ends; a walk that was killed leaves it to the next one.
"""

from __future__ import annotations

from collections.abc import Iterable

import apsw

_FIRST_FACT = "first_walk_unfinished"
_SKIPPED_FACT = "skipped"
_ENTRIES = (
    "SELECT j.value ->> 0 AS path, j.value ->> 1 AS reason FROM facts f, json_each(f.value) j"
    f" WHERE f.name = '{_SKIPPED_FACT}'"
)


def begin_first(db: apsw.Connection) -> None:
    db.execute("INSERT INTO facts VALUES (?, '')", (_FIRST_FACT,))


def end_first(db: apsw.Connection) -> None:
    """Everything was read once."""
    if is_first_unfinished(db):
        db.execute("DELETE FROM facts WHERE name = ?", (_FIRST_FACT,))


def is_first_unfinished(db: apsw.Connection) -> bool:
    return db.execute("SELECT 1 FROM facts WHERE name = ?", (_FIRST_FACT,)).get is not None


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
