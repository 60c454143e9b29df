"""Connections to the index. Every setting is a function whose docstring gives the reason."""

from __future__ import annotations

import contextlib
import os
import stat

import apsw

from sess_common import receipt
from sess_common.classes import TYPE_CHECKING
from sess_common.errors import REPAIR, Exit, SessError, sqlite_error
from sess_common.paths import absolute, create_private_file
from sess_common.progress import Progress, unseen
from sess_schema import migrate, page_sums

if TYPE_CHECKING:
    from pathlib import Path

    from sess_common.paths import Home

OLDEST_SQLITE = 3_051_003


def refuse_old_sqlite() -> None:
    """Before 3.51.3 a checkpoint during a write may corrupt a WAL database."""
    if apsw.SQLITE_VERSION_NUMBER < OLDEST_SQLITE:
        from sess_common import installation  # every command comes by here

        raise SessError(
            f"SQLite {apsw.sqlite_lib_version()} has a bug that can damage the index",
            hint=f"`{installation.upgrading('apsw')}`",
            code=Exit.INDEX_UNUSABLE,
        )


def write_ahead(db: apsw.Connection) -> None:
    """Readers neither block nor wait."""
    db.pragma("journal_mode", "wal")


def sync_fully(db: apsw.Connection) -> None:
    """A committed checkpoint survives a power cut, so nothing is read twice.

    "extra" is "full", and syncs the folder after the journal from before WAL mode is deleted: if
    that came back, it would take back the whole index.
    """
    db.pragma("synchronous", "extra")


def wait_for_locks(db: apsw.Connection, seconds: float) -> None:
    """Another process's checkpoint or recovery is short; wait for it."""
    db.set_busy_timeout(int(seconds * 1000))


def strict_sql(db: apsw.Connection) -> None:
    """A misspelt column must be an error, not a string; views must not call functions."""
    db.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
    db.config(apsw.SQLITE_DBCONFIG_DQS_DDL, 0)
    db.pragma("trusted_schema", 0)


def check_references(db: apsw.Connection) -> None:
    """A chunk without its source could never be restored."""
    db.pragma("foreign_keys", 1)


def keep_the_log(db: apsw.Connection, keep: bool) -> None:
    """Closing what turns out not to be ours must not move its WAL into the file."""
    db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, int(keep))


def bound_the_log(db: apsw.Connection) -> None:
    """After a bulk load the WAL shrinks instead of staying at its peak size."""
    db.pragma("journal_size_limit", 64 << 20)


def write_back_rarely(db: apsw.Connection) -> None:
    """Most commits change the same pages: each is written back once for 16 MB of the WAL."""
    db.wal_autocheckpoint((16 << 20) // db.pragma("page_size"))


def cache(db: apsw.Connection, megabytes: int) -> None:
    """Keeps hot index pages in memory; the 2 MB default thrashes during a bulk load."""
    db.pragma("cache_size", -megabytes * 1024)


def read_mapped(db: apsw.Connection) -> None:
    """No call for each page where most is read. What was read counts as memory of the process: a
    scan of all texts is as fast without, and would cost as much memory as there are texts."""
    db.pragma("mmap_size", 16 << 20)


def temporary_in_memory(db: apsw.Connection) -> None:
    """Sorting must not leave transcript text in a shared temporary directory."""
    db.pragma("temp_store", "memory")


def never_write(db: apsw.Connection) -> None:
    """A second safeguard besides opening read-only."""
    db.pragma("query_only", 1)


def _keep_older(db: apsw.Connection, path: Path, progress: Progress) -> None:
    """An upgrade is one transaction; a copy of what was there before is kept all the same."""
    if 0 < db.pragma("user_version") < migrate.latest():
        from sess_schema import backups  # few openings upgrade

        backups.before_upgrade(db, path, progress)


def interrupted_repair(path: Path) -> Path | None:
    """The kept copy of a damaged index whose repair was interrupted."""
    from pathlib import Path  # only for the writer

    try:
        return Path(os.fsdecode(path.with_name("repairing").read_bytes()))
    except FileNotFoundError:
        return None


def refuse_damaged(path: Path) -> None:
    """What stands in the place of the index until a repair is finished must not be written to."""
    if path.name == "index.db" and interrupted_repair(path) is not None:
        raise SessError(
            "a repair of the index was interrupted",
            hint="`sessiond repair` finishes it",
            code=Exit.INDEX_UNUSABLE,
        )


def _refuse_emptied(path: Path) -> None:
    """An empty file is a new index only where none was before; to begin anew, it is deleted."""
    if path.name != "index.db" or not os.path.exists(path) or os.path.getsize(path):
        return
    from sess_common import upkeep  # few files are empty

    if (upkeep.last(path.parent, upkeep.SIZE) or {}).get("files"):
        raise SessError(
            f'index "{path}" is empty, and was not',
            hint="`sessiond repair` brings back what it can, and names the rest",
            code=Exit.INDEX_UNUSABLE,
        )


def _refuse_lost_log(db: apsw.Connection, before: page_sums.Log) -> None:
    """SQLite drops all of a WAL behind a damaged place without a word.

    One transaction at its end may be what a power cut left of it; that is read again.
    """
    if not before.ends:
        return
    kept, _ = db.wal_checkpoint()
    lost = [end for end in before.ends if end > kept]
    if len(lost) > 1 and page_sums.log_of(f"{db.filename}-wal") == before:
        keep_the_log(db, keep=True)
        raise SessError(
            f'the write-ahead log of index "{db.filename}" is damaged',
            hint=REPAIR,
            code=Exit.INDEX_UNUSABLE,
        )


def refuse_links(path: str | Path) -> None:
    """Nothing is read or written through a link that somebody planted in place of a file of ours.

    Of other parts of the path, links are followed: homes are often behind some.
    """
    for name in (os.fspath(path), f"{path}-wal", f"{path}-shm", f"{path}-journal"):
        if os.path.islink(name):
            raise SessError(
                f'"{name}" is a symbolic link',
                hint="put the file itself there, or let SESSIOND_HOME name the directory it is in",
                code=Exit.INDEX_UNUSABLE,
            )


def _make_companions_writable(path: Path) -> None:
    """WAL and its index got the mode that the index had when a reader made them.

    By name: closing a descriptor of theirs would drop the locks of this process.
    """
    for name in (f"{path}-wal", f"{path}-shm"):
        with contextlib.suppress(OSError):
            mode = os.lstat(name).st_mode
            if stat.S_ISREG(mode) and mode & 0o600 != 0o600:
                os.chmod(name, 0o600)


def open_writer(path: Path, progress: Progress = unseen) -> apsw.Connection:
    """The only writing connection: creates the index and upgrades its schema."""
    from sess_schema import ids  # only for the writer

    refuse_old_sqlite()
    refuse_links(path)
    refuse_damaged(path)
    db: apsw.Connection | None = None
    try:
        _refuse_emptied(path)
        create_private_file(path)
        _make_companions_writable(path)
        before = page_sums.log_of(f"{path}-wal")
        db = page_sums.opened(os.fspath(path))
        if db.readonly("main"):  # such a connection stays read-only when the file no longer is
            raise apsw.ReadOnlyError("the file cannot be written")
        wait_for_locks(db, 5)
        keep_the_log(db, True)
        migrate.refuse_strangers(db, path)
        keep_the_log(db, False)
        sync_fully(db)
        write_ahead(db)
        _refuse_lost_log(db, before)
        strict_sql(db)
        check_references(db)
        bound_the_log(db)
        write_back_rarely(db)
        cache(db, 32)
        temporary_in_memory(db)
        ids.register_short_key(db)
        _keep_older(db, path, progress)
        migrate.upgrade(db, progress)
    except (apsw.Error, OSError) as error:
        if db is not None:
            with contextlib.suppress(apsw.Error):  # on a full disk the final checkpoint fails, too
                db.close()
        raise sqlite_error(error, str(path)) from error
    except SessError:
        if db is not None:
            db.close()
        raise
    return db


def open_reader(path: str | Path, *, any_schema: bool = False) -> apsw.Connection:
    """A connection that cannot write. It works even if no file can be created next to the index,

    because the directory is read-only or the disk is full.
    """
    refuse_old_sqlite()
    refuse_links(path)
    if not os.path.exists(path):
        raise SessError(
            f'no index at "{path}" yet',
            hint="run `sessiond sync`",
            code=Exit.INDEX_UNUSABLE,
        )
    try:
        try:
            return _read_only(path, any_schema=any_schema)
        except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.IOError):
            wal = f"{path}-wal"
            if os.path.exists(wal) and os.path.getsize(wal):
                raise
            return _read_only(path, "&immutable=1", any_schema=any_schema)
    except (apsw.Error, OSError) as error:
        raise sqlite_error(error, str(path)) from error


def _as_uri(path: str | Path) -> str:
    """As SQLite reads it: what has a meaning in a URI is escaped."""
    text = absolute(os.fspath(path))
    if os.sep != "/" or not text.isprintable():
        from pathlib import Path  # drives, backslashes, bytes that are no text

        return Path(text).as_uri()
    return f"file:{text.replace('%', '%25').replace('?', '%3f').replace('#', '%23')}"


def _read_only(path: str | Path, option: str = "", *, any_schema: bool) -> apsw.Connection:
    db = apsw.Connection(
        f"{_as_uri(path)}?mode=ro{option}",
        flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI,
    )
    try:
        wait_for_locks(db, 2)
        migrate.refuse_strangers(db, path)
        if not any_schema:
            migrate.refuse_older(db, path)
        strict_sql(db)
        cache(db, 16)
        read_mapped(db)
        temporary_in_memory(db)
        never_write(db)
    except BaseException:
        db.close()
        raise
    return db


def reader_if_unchanged(home: Home) -> apsw.Connection | None:
    """A reader of the index, if another pass would find nothing to do."""
    number = receipt.number_if_unchanged(home)
    if number is None:
        return None
    try:
        db = open_reader(home.index_file)
    except SessError:
        return None  # the pass says what is wrong, or mends it
    if is_in_state(db, number):
        return db
    db.close()
    return None


def is_in_state(db: apsw.Connection, number: str) -> bool:
    """Whether the index is in that state."""
    return bool(db.execute("SELECT value FROM facts WHERE name = ?", (receipt.FACT,)).get == number)
