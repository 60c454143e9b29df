"""What the index knows of walks over all places: whether the first one ended, and what the last one could not read."""

from __future__ import annotations

from collections.abc import Iterable

import apsw

from sess_common.classes import TYPE_CHECKING

if TYPE_CHECKING:
    import apsw


_FIRST_FACT = "first_walk_unfinished"


def begin_first(db: apsw.Connection) -> None:
    db.execute("INSERT INTO facts VALUES (?, '')", (_FIRST_FACT,))


def end_first(db: apsw.Connection) -> None:
    """Everything was read once."""
    if is_first_unfinished(db):
        db.execute("DELETE FROM facts WHERE name = ?", (_FIRST_FACT,))


def is_first_unfinished(db: apsw.Connection) -> bool:
    return db.execute("SELECT 1 FROM facts WHERE name = ?", (_FIRST_FACT,)).get is not None


_SKIPPED_FACT = "skipped"
_ENTRIES = (
    "SELECT j.value ->> 0 AS path, j.value ->> 1 AS reason FROM facts f, json_each(f.value) j"
    f" WHERE f.name = '{_SKIPPED_FACT}'"
)


def keep_skipped(db: apsw.Connection, found: Iterable[tuple[str, str]]) -> None:
    """Replace the list; nothing is written if it is the same."""
    import json  # searches do without it

    entries = sorted({_printable(path): why for path, why in found}.items())
    new, old = (
        json.dumps(entries),
        db.execute("SELECT value FROM facts WHERE name = ?", (_SKIPPED_FACT,)),
    )
    if new != (old.get or "[]"):
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
