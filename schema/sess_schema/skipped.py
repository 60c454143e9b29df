"""What the last full walk could not read, and why: a fact in the index, so that all can tell."""

from __future__ import annotations

from collections.abc import Iterable

import apsw

_FACT = "skipped"
_ENTRIES = (
    "SELECT j.value ->> 0 AS path, j.value ->> 1 AS reason FROM facts f, json_each(f.value) j"
    f" WHERE f.name = '{_FACT}'"
)


def keep(db: apsw.Connection, found: Iterable[tuple[str, str]]) -> None:
    """Replace the list; nothing is written if it is the same."""
    import json  # searches do without it

    entries = sorted({_printable(path): why for path, why in found}.items())
    new, old = json.dumps(entries), db.execute("SELECT value FROM facts WHERE name = ?", (_FACT,))
    if new != (old.get or "[]"):
        with db:
            db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (_FACT, new))


def places(db: apsw.Connection) -> list[tuple[str, str]]:
    """(path, reason) of what is no source: directories, links, pipes, files of unknown format."""
    return [
        (str(path), str(reason))
        for path, reason in db.execute(
            f"SELECT e.path, e.reason FROM ({_ENTRIES}) e WHERE NOT EXISTS"
            " (SELECT 1 FROM sources s WHERE s.path = e.path AND s.error IS NOT NULL)"
        )
    ]


def databases(db: apsw.Connection) -> list[tuple[str, str, str]]:
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
