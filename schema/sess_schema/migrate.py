"""Numbered migrations, each recorded in the transaction that applies it.

`migrations/NNNN_name.sql`, and where SQL is not enough, `NNNN_name.py` next to it, whose
`apply(db, progress)` runs after the SQL. The first one makes the tables. Released migrations are
never edited and import none of our modules, because the rest of the program changes and what they
did must not.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import apsw

from sess_common.classes import TYPE_CHECKING
from sess_common.errors import REPAIR, Exit, SessError
from sess_common.progress import Progress, unseen, while_running

if TYPE_CHECKING:
    from pathlib import Path

APPLICATION_ID = 0x53455344  # "SESD"
PRE_RELEASE_ID = 0x53455353  # "SESS": the ten versions before the first release
_SQL = ".sql"
# Where migrations are. Tests add a folder of their own, to upgrade an index of today.
FOLDERS = [os.path.join(os.path.dirname(__file__), "migrations")]


class PreRelease(SessError):
    """An index from before the first release."""

    def __init__(self, path: str | Path) -> None:
        import shlex  # for an error

        super().__init__(
            f'index "{path}" was made before the first release',
            hint=f"`sessiond salvage {shlex.quote(str(path))}` loads its archive into a new index",
            code=Exit.INDEX_UNUSABLE,
        )


def migrations() -> list[tuple[int, str, str]]:
    """(number, path without suffix, SQL) in order."""
    every = []
    for path in _paths():
        with open(path, encoding="utf-8") as file:
            every.append((_number(path), path.removesuffix(_SQL), file.read()))
    return every


def latest() -> int:
    return _number(_paths()[-1])


def _paths() -> list[str]:
    return [
        os.path.join(folder, name)
        for folder in FOLDERS
        for name in sorted(os.listdir(folder))
        if name.endswith(_SQL)
    ]


def _number(path: str) -> int:
    return int(os.path.basename(path)[:4])


def refuse_strangers(db: apsw.Connection, path: str | Path) -> None:
    """Refuse another program's database, or one from before or after what we can read."""
    application = db.pragma("application_id")
    if application == PRE_RELEASE_ID:
        raise PreRelease(path)
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
        from sess_common import installation  # every command comes by here

        raise SessError(
            f'index "{path}" was written by a newer sessiond '
            f"(schema {version}; this one supports up to {latest()})",
            hint=f"upgrade with `{installation.upgrading()}`",
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
    if before == latest():
        return
    missing = [migration for migration in migrations() if migration[0] > before]
    with db:
        for number, path, sql in missing:
            # A new index has no rows: nobody waits.
            _apply(db, path, sql, progress if before else unseen)
            db.execute(
                "INSERT INTO migrations (number, name, applied_at) VALUES (?, ?, ?)",
                (number, os.path.basename(path), int(time.time() * 1000)),
            )
        if before:
            from sess_schema import sums  # few openings upgrade

            sums.renew(db)  # what the migrations changed, as any writer does before it commits
        else:
            from sess_schema.queries import sources  # few openings make an index

            sources.begin_first_walk(db)
        db.pragma("application_id", APPLICATION_ID)
        db.pragma("user_version", missing[-1][0])


def _apply(db: apsw.Connection, path: str, sql: str, progress: Progress) -> None:
    text = f"upgrading the index ({os.path.basename(path)})"
    with while_running(db, progress, text):
        db.execute(sql)
        code = _code(path)
        if code is not None:
            code(db, lambda done, total: progress(f"{text}: {done:,} of {total:,}"))


def _code(path: str) -> Callable[[apsw.Connection, Callable[[int, int], None]], None] | None:
    """The function that goes with the SQL. A name that starts with a digit cannot be imported."""
    if not os.path.exists(f"{path}.py"):
        return None
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location(os.path.basename(path), f"{path}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    function: Callable[..., None] = module.apply
    return function
