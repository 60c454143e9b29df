"""Files that somebody handed over (`sess import`): read like an agent's own, and followed."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterable
from pathlib import Path

import apsw

from sess_common import paths
from sessiond.reading.territory import Handed
from sessiond.reading.tracked import FORGOTTEN
from sessiond.sourcekit.files import KeptFile

_LIST = "list.jsonl"
_LARGEST = 16 << 20
_UNSAFE = re.compile(r"[^\w.-]+")
_LONGEST_NAME = 100


def listed(home: paths.Home) -> list[Handed]:
    """Every file that was handed over, in order."""
    return _lists.of(str(home.imports / _LIST))


def _read(data: bytes) -> list[Handed]:
    found: dict[str, Handed] = {}
    for line in data.splitlines():
        try:
            entry = json.loads(line)
            found[entry["path"]] = Handed(entry["path"], entry["agent"], entry["kind"])
        except (ValueError, TypeError, KeyError):  # a torn line of a full disk
            continue
    return list(found.values())


_lists = KeptFile(_read, _LARGEST)


def add(home: paths.Home, file: Handed) -> None:
    """Follow a file from now on."""
    paths.make_private(home.imports)
    line = json.dumps({"path": file.path, "agent": file.agent, "kind": file.kind}).encode() + b"\n"
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    fd = os.open(home.imports / _LIST, flags, 0o600)
    try:
        os.write(fd, line)  # one write: two imports at once do not mix
        os.fsync(fd)
    finally:
        os.close(fd)


def keep(home: paths.Home, name: str, pieces: Iterable[bytes]) -> str:
    """Save what came from elsewhere; the same bytes always get the same path."""
    paths.make_private(home.imports)
    digest = hashlib.sha256()
    fd, temporary = tempfile.mkstemp(dir=home.imports, prefix=".receiving-")
    try:
        with open(fd, "wb") as file:
            for piece in pieces:
                digest.update(piece)
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        folder = home.imports / digest.hexdigest()[:16]
        paths.make_private(folder)
        target = folder / safe_name(name)
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return os.path.realpath(target)


def throw_away(path: str) -> None:
    """Delete a saved file that nobody wants to follow."""
    Path(path).unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # the same bytes have another name, too
        Path(path).parent.rmdir()


def discard(home: paths.Home, db: apsw.Connection) -> None:
    """Delete the saved files of which every session was forgotten."""
    for (path,) in list(db.execute("SELECT path FROM sources WHERE state = ?", (FORGOTTEN,))):
        if Path(path).is_relative_to(os.path.realpath(home.imports)):
            Path(path).unlink(missing_ok=True)


def safe_name(name: str) -> str:
    """A file name out of foreign text."""
    return _UNSAFE.sub("-", name).strip(".-")[-_LONGEST_NAME:] or "file"
