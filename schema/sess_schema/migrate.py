"""Numbered migrations, each recorded in the transaction that applies it.

`migrations/NNNN_name.sql`, and where SQL is not enough, `NNNN_name.py` next to it, whose
`apply(db, progress)` runs after the SQL. Released migrations are never edited and import none of
our modules, because the rest of the program changes and what they did must not.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import cache

import apsw

from sess_schema.classes import TYPE_CHECKING
from sess_schema.errors import REPAIR, Exit, SessError
from sess_schema.progress import Progress, unseen, while_running

if TYPE_CHECKING:
    from pathlib import Path

APPLICATION_ID = 0x53455353  # "SESS"
_SQL = ".sql"
_FOLDER = os.path.join(os.path.dirname(__file__), "migrations")


@cache
def migrations() -> list[tuple[int, str, str]]:
    """(number, name, SQL) in order."""
    found = []
    for name in _names():
        with open(os.path.join(_FOLDER, name), encoding="utf-8") as file:
            found.append((int(name[:4]), name.removesuffix(_SQL), file.read()))
    return found


@cache
def latest() -> int:
    return int(_names()[-1][:4])


def _names() -> list[str]:
    return sorted(name for name in os.listdir(_FOLDER) if name.endswith(_SQL))


def refuse_strangers(db: apsw.Connection, path: str | Path) -> None:
    """Refuse another program's database, or one from a newer version of ours."""
    application = db.pragma("application_id")
    if application != APPLICATION_ID:
        empty = db.execute("SELECT count(*) FROM sqlite_schema").get == 0
        if application == 0 and empty:
            return
        raise SessError(
            f'"{path}" belongs to another program',
            hint="move it away, or set SESSIOND_HOME to another directory",
            code=Exit.INDEX_UNUSABLE,
        )
    version = db.pragma("user_version")
    if version > latest():
        raise SessError(
            f'index "{path}" was written by a newer sessiond '
            f"(schema {version}; this one supports up to {latest()})",
            hint="upgrade with `pip install --upgrade sessiond`",
            code=Exit.INDEX_UNUSABLE,
        )


def refuse_older(db: apsw.Connection, path: str | Path) -> None:
    """A reader cannot upgrade; the writer does so at its next start."""
    version = db.pragma("user_version")
    if version < 0:
        raise SessError(f'index "{path}" is damaged', hint=REPAIR, code=Exit.INDEX_UNUSABLE)
    if version < latest():
        raise SessError(
            f'index "{path}" has schema {version}; this sess needs {latest()}',
            hint="run `sessiond sync` (or `sessiond restart`), which upgrades it",
            code=Exit.INDEX_UNUSABLE,
        )


def upgrade(db: apsw.Connection, progress: Progress = unseen) -> None:
    """Apply what is missing: leaves the old schema or the newest, never one in between."""
    before = db.pragma("user_version")
    missing = [one for one in migrations() if one[0] > before]
    if not missing:
        return
    with db:
        db.execute(
            "CREATE TABLE IF NOT EXISTS migrations ("
            "number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL"
            ") STRICT"
        )
        for number, name, sql in missing:
            _apply(db, name, sql, progress if before else unseen)  # a new index has no rows
            db.execute(
                "INSERT INTO migrations (number, name, applied_at) VALUES (?, ?, ?)",
                (number, name, int(time.time() * 1000)),
            )
        if before:
            from sess_schema import sums  # noqa: PLC0415 - few openings upgrade

            sums.renew(db)  # what the migrations changed, as any writer does before it commits
        else:
            from sess_schema import first_index  # noqa: PLC0415 - few openings make an index

            first_index.begin(db)
        db.pragma("application_id", APPLICATION_ID)
        db.pragma("user_version", missing[-1][0])


def _apply(db: apsw.Connection, name: str, sql: str, progress: Progress) -> None:
    text = f"upgrading the index ({name})"
    with while_running(db, progress, text):
        db.execute(sql)
        code = _code(name)
        if code is not None:
            code(db, lambda done, total: progress(f"{text}: {done:,} of {total:,}"))


def _code(name: str) -> Callable[[apsw.Connection, Callable[[int, int], None]], None] | None:
    """The function that goes with the SQL. A name that starts with a digit cannot be imported."""
    path = os.path.join(_FOLDER, f"{name}.py")
    if not os.path.exists(path):
        return None
    from importlib.util import module_from_spec, spec_from_file_location  # noqa: PLC0415

    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    function: Callable[..., None] = module.apply
    return function
