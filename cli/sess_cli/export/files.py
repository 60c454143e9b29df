"""Files written completely or not at all, readable only by their owner."""

from __future__ import annotations

import atexit
import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from secrets import token_hex
from typing import BinaryIO

from sess_schema.errors import SessError

_PRIVATE, _PRIVATE_FOLDER = 0o600, 0o700
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def check_target(path: str) -> None:
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise SessError(f'no such directory: "{folder}"', hint=f'`mkdir -p "{folder}"`')
    if os.path.isdir(path):
        raise SessError(f'"{path}" is a directory', hint="name a file in it")
    if os.path.exists(path) and not os.path.isfile(path):  # it would be replaced
        raise SessError(f'"{path}" is not a regular file', hint="`-o -` writes to stdout")


def make_folder(path: str) -> None:
    os.makedirs(path, mode=_PRIVATE_FOLDER, exist_ok=True)


@contextmanager
def new_file(path: str) -> Iterator[BinaryIO]:
    with new_path(path) as partial, open(partial, "wb") as file:
        yield file


@contextmanager
def new_path(path: str) -> Iterator[str]:
    """The name of a temporary file next to `path`, which replaces it at the end."""
    check_target(path)
    folder = os.path.dirname(os.path.abspath(path))
    partial = os.path.join(folder, f".sess-{token_hex(6)}")
    _unfinished.add(partial)
    try:
        try:
            os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _PRIVATE))
        except OSError as error:  # the error should name the file that was asked for
            raise OSError(error.errno, error.strerror, path) from None
        yield partial
        os.chmod(partial, _PRIVATE)
        os.replace(partial, path)
    except OSError as error:
        if error.errno in _NO_SPACE:
            raise SessError(
                f'no space left for "{path}"', hint="free some, or write elsewhere with `-o`"
            ) from error
        raise
    finally:
        _remove(partial)


def _remove(partial: str) -> None:
    with suppress(OSError):
        os.unlink(partial)
    _unfinished.discard(partial)


# A signal may arrive before the `try` begins or after its `finally` has run.
_unfinished: set[str] = set()


@atexit.register
def _remove_unfinished() -> None:
    for partial in [*_unfinished]:
        _remove(partial)
