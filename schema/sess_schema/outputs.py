"""The files that people name for writing: every one is opened here, whole or not at all.

Nothing replaces what belongs to sessiond itself or to an agent, whatever is asked for, and nothing
else but an earlier export unless that is asked for.
"""

from __future__ import annotations

import atexit
import errno
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from secrets import token_hex
from typing import BinaryIO

from sess_common import paths
from sess_common.errors import SessError
from sess_schema import connection

NOTE = b"---\nsource: sessiond\n"  # how a note of a tree begins
DATABASE = 0x73657373  # the application_id of exported databases: "sess"
FIGURES = b"# HELP sessiond_"  # how the figures for Prometheus begin
OPENED = "opened.html"  # the page that `sess show --open` leaves beside the index
_PRIVATE = 0o600
_FORCE = "`--force` replaces it"
_HEAD = 4096  # bytes within which an export says who made it
_MARKS = (
    b'<meta name="generator" content="sessiond',
    b'<meta name="generator" content="sess export html',
    b'{"format":"sessiond-session',
    b'{"schema_version":"ATIF-v1.7","extra":{"made_by":"sessiond ',
    b'[{"key":"telemetry.sdk.name","value":{"stringValue":"sessiond"}}',
)
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# A signal may arrive before the `try` begins or after its `finally` has run.
_unfinished: set[str] = set()


def check_target(path: str) -> None:
    """Refuse what is no place for a file."""
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise SessError(f'no such directory: "{folder}"', hint=f'`mkdir -p "{folder}"`')
    if os.path.isdir(path) or not os.path.basename(path):
        raise SessError(f'"{path}" is a directory', hint="name a file in it")
    if os.path.exists(path) and not os.path.isfile(path):  # it would be replaced
        raise SessError(f'"{path}" is not a regular file', hint="`-o -` writes to stdout")


def check_replacing(path: str, *, force: bool, hint: str = _FORCE) -> None:
    """Refuse to replace what is no earlier export, unless told to."""
    if os.path.isdir(path):
        return  # each style knows its own directories
    check_target(path)
    _check_state(path)
    if not os.path.lexists(path):
        return
    _check_transcript(path)
    if not force and not is_export(path):
        raise SessError(f'"{path}" exists already', hint=hint)


def is_export(path: str) -> bool:
    """Whether the file says that it was made by us."""
    try:
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        with open(fd, "rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return False
    if head.startswith(b"SQLite format 3"):
        return head[68:72] == DATABASE.to_bytes(4, "big")
    return head.startswith((NOTE, FIGURES)) or any(mark in head for mark in _MARKS)


def _check_state(path: str) -> None:
    """Nothing replaces the index, its settings or its logs, and nothing takes their names."""
    home = paths.home()
    folder, name = os.path.split(os.path.realpath(path))
    own = {os.path.realpath(place) for place in (home.data, home.config, home.logs)}
    inside = any(folder == place or folder.startswith(place + os.sep) for place in own)
    if inside and name != OPENED and not is_export(path):
        raise SessError(f'"{path}" belongs to sessiond itself', hint="name a file somewhere else")


def _check_transcript(path: str) -> None:
    """What an agent wrote is changed only by commands that take a snapshot first."""
    owner = None
    with suppress(SessError), closing(connection.open_reader(paths.home().index_file)) as db:
        names = (os.path.abspath(path), os.path.realpath(path))
        owner = db.execute("SELECT agent FROM sources WHERE path IN (?, ?)", names).get
    if owner is not None:
        raise SessError(
            f'"{path}" is a transcript of {owner}',
            hint="name another file; `sess restore --in-place` takes a snapshot first",
        )


@contextmanager
def new_file(
    path: str, *, replace: bool = False, mode: int = _PRIVATE, hint: str = _FORCE
) -> Iterator[BinaryIO]:
    """A file that gets its name when it is complete; `replace`: even if the name is taken."""
    asked = new_path(path, replace=replace, mode=mode, hint=hint)
    with asked as partial, open(partial, "wb") as file:
        yield file


@contextmanager
def new_path(
    path: str, *, replace: bool = False, mode: int = _PRIVATE, hint: str = _FORCE
) -> Iterator[str]:
    """The name of a temporary file next to `path`, which becomes it at the end."""
    check_target(path)
    check_replacing(path, force=replace, hint=hint)
    taken = os.path.lexists(path)
    folder = os.path.dirname(os.path.abspath(path))
    partial = os.path.join(folder, f".sess-{token_hex(6)}")
    _unfinished.add(partial)
    try:
        try:
            os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
        except OSError as error:  # the error should name the file that was asked for
            raise OSError(error.errno, error.strerror, path) from None
        yield partial
        os.chmod(partial, mode)
        if taken or replace:
            os.replace(partial, path)
        else:
            _move_to_free_name(partial, path)
    except OSError as error:
        if error.errno in _NO_SPACE:
            raise SessError(
                f'no space left for "{path}"', hint="free some, or write elsewhere with `-o`"
            ) from error
        raise
    finally:
        _remove(partial)


def _move_to_free_name(partial: str, path: str) -> None:
    """A link fails if the name has been taken since; a rename would replace it."""
    try:
        os.link(partial, path)
    except FileExistsError:
        raise SessError(f'"{path}" exists already', hint="`--force` replaces it") from None
    except OSError:  # a file system without hard links
        os.rename(partial, path)


def _remove(partial: str) -> None:
    with suppress(OSError):
        os.unlink(partial)
    _unfinished.discard(partial)


@atexit.register
def _remove_unfinished() -> None:
    for partial in [*_unfinished]:
        _remove(partial)
