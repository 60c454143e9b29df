"""The log of edits: what each one changed, and a snapshot of the file before it.

An edit is `ID.json` in `edits/` below the data directory, and its snapshot `ID.zst`; both private.
The entry is there before the file changes, as `ID.begun`, so that a crash leaves nothing that
cannot be undone.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

from sess_cli import settings
from sess_common import lock, paths
from sess_common.errors import Exit, SessError

BEGUN, DONE, UNDONE = "begun", "done", "undone"
PIECE = 4 << 20
_WAIT_FOR_OTHERS = 10.0
_SHORTEST_ID = 4
_DAY = 86_400
_held: list[lock.WriterLock] = []


@dataclass(frozen=True, slots=True)
class Content:
    """Size and digest of a file's bytes."""

    size: int
    digest: str

    def fits(self, fd: int) -> bool:
        """Whether the open file begins with these bytes."""
        return os.fstat(fd).st_size >= self.size and digest_of(fd, self.size) == self.digest


@dataclass(frozen=True, slots=True)
class Edit:
    """One change of one file."""

    id: str
    group: str  # edits of one command; they are undone together
    ts: int
    command: str
    path: str  # the file itself, not a link to it
    session: str | None
    agent: str | None
    state: str
    before: Content | None  # None: there was no file
    after: Content | None  # None: the file was removed
    lines: bool  # what is appended later is kept when this is undone
    mode: int
    owner: tuple[int, int]
    left: tuple[int, ...] = ()  # the file's stat after the edit
    undoes: str | None = None
    cut: tuple[str, ...] = ()  # records that were chosen
    pulled: tuple[str, ...] = ()  # records that had to go with them
    expired: bool = False  # the snapshot is gone
    name: str = ""  # the path as the index has it, which may be a link


@dataclass(frozen=True, slots=True)
class Change:
    """What a command is about to do, as it goes into the log."""

    command: str
    session: str | None = None
    agent: str | None = None
    cut: Sequence[str] = ()
    pulled: Sequence[str] = ()
    undoes: str | None = None
    group: str | None = None  # a `new_id` shared by the edits of one command
    lines: bool = True
    name: str = ""


def folder() -> Path:
    return paths.home().data / "edits"


@contextmanager
def editing() -> Iterator[bool]:
    """Only one process edits at a time; yields False where this one holds the lock already."""
    if _held:
        yield False
        return
    paths.make_private(folder())
    held = lock.acquire(folder() / "lock", wait=_WAIT_FOR_OTHERS)
    if held is None:
        raise SessError("another edit is running", hint="try again when it has ended")
    _held.append(held)
    try:
        yield True
    finally:
        _held.clear()
        held.release()


def new_id() -> str:
    while (folder() / f"{(made := secrets.token_hex(4))}.json").exists():
        pass
    return made


def now() -> int:
    return time.time_ns() // 1_000_000


# -- snapshots


def take_snapshot(edit: str, fd: int, size: int, mark: int | None = None) -> list[Content]:
    """Keep the first `size` bytes of an open file. Returns what it has up to `mark` and `size`."""
    import zstandard

    path = folder() / f"{edit}.zst"
    digest = sha256()
    packer = zstandard.ZstdCompressor(level=1, write_checksum=True)
    with _private(path) as out:
        with packer.stream_writer(out, closefd=False) as stream:
            contents = []
            at = 0
            for end in (size if mark is None else mark, size):
                for piece in pieces(fd, at, end):
                    digest.update(piece)
                    stream.write(piece)
                at = end
                contents.append(Content(end, digest.hexdigest()))
        out.flush()
        os.fsync(out.fileno())
    return contents


def snapshot(edit: Edit) -> Iterator[bytes]:
    """The bytes from before an edit; an error at the end if they are not what they were."""
    import zstandard

    assert edit.before is not None
    damaged = SessError(
        f"the snapshot of edit {edit.id} is damaged",
        hint="`sess restore --list` shows what the archive has of this file",
        code=Exit.INDEX_UNUSABLE,
    )
    digest, size = sha256(), 0
    try:
        with open(folder() / f"{edit.id}.zst", "rb") as file:
            reader = zstandard.ZstdDecompressor().stream_reader(file)
            while piece := reader.read(PIECE):
                digest.update(piece)
                size += len(piece)
                yield piece
    except (zstandard.ZstdError, FileNotFoundError) as error:
        raise damaged from error
    if Content(size, digest.hexdigest()) != edit.before:
        raise damaged


def pieces(fd: int, start: int, end: int) -> Iterator[bytes]:
    """The bytes of an open file; fewer if it has become shorter."""
    while start < end and (piece := os.pread(fd, min(PIECE, end - start), start)):
        yield piece
        start += len(piece)


def digest_of(fd: int, size: int) -> str:
    digest = sha256()
    for piece in pieces(fd, 0, size):
        digest.update(piece)
    return digest.hexdigest()


# -- entries


def write(edit: Edit) -> None:
    """Add or replace an entry, whole or not at all."""
    path = folder() / f"{edit.id}{'.begun' if edit.state == BEGUN else '.json'}"
    beside = path.with_suffix(".part")
    with _private(beside) as out:
        out.write(json.dumps(asdict(edit)).encode("utf-8", "surrogatepass"))
        out.flush()
        os.fsync(out.fileno())
    os.replace(beside, path)
    if edit.state != BEGUN:
        path.with_suffix(".begun").unlink(missing_ok=True)
    sync_folder(path.parent)


def drop(edit: str) -> None:
    """Forget an edit that did not happen, or that nobody may undo any more."""
    for suffix in (".part", ".begun", ".json", ".zst"):
        (folder() / f"{edit}{suffix}").unlink(missing_ok=True)


def entries() -> list[Edit]:
    """All edits, the newest first."""
    edits = [_read(path) for path in folder().glob("*.json")]
    return sorted(edits, key=lambda edit: (edit.ts, edit.id), reverse=True)


def begun() -> list[Edit]:
    """Edits that are going on, or that a crash has interrupted."""
    edits = []
    for path in folder().glob("*.begun"):
        if path.with_suffix(".json").exists():
            path.unlink(missing_ok=True)
        else:
            edits.append(_read(path))
    return edits


def by_id(given: str) -> Edit | None:
    """The edit that an id or its beginning names."""
    if len(given) < _SHORTEST_ID or not given.isalnum():
        return None
    ids = [path.stem for path in folder().glob(f"{given}*.json")]
    if len(ids) > 1 and given not in ids:
        raise SessError(f'"{given}" matches {len(ids)} edits: {", ".join(ids[:5])}')
    return _read(folder() / f"{given if given in ids else ids[0]}.json") if ids else None


def expire() -> None:
    """Remove the snapshots that are older than config.toml says."""
    limit = time.time() - settings.read().keep_days * _DAY
    for path in folder().glob("*.zst"):
        if path.stat().st_mtime < limit:
            path.unlink()
            edit = by_id(path.stem)
            if edit is not None:
                write(replace(edit, expired=True))


def discard(sessions: set[str], files: set[str]) -> None:
    """Remove everything that is kept of these sessions and files, for `sess forget`."""
    if not folder().is_dir():
        return
    with editing():
        for edit in entries():
            if edit.session in sessions or edit.path in files:
                drop(edit.id)


def sync_folder(path: str | Path) -> None:
    """Make names in a directory durable, where the system can."""
    with contextlib.suppress(OSError):
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _read(path: Path) -> Edit:
    try:
        values: dict[str, Any] = json.loads(path.read_bytes().decode("utf-8", "surrogatepass"))
        known = {field.name for field in fields(Edit)}
        values = {name: value for name, value in values.items() if name in known}
        for name in ("before", "after"):
            values[name] = Content(**values[name]) if values[name] else None
        for name in ("owner", "left", "cut", "pulled"):
            values[name] = tuple(values[name])
        return Edit(**values)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise SessError(
            f'cannot read "{path}"', hint="this entry of the log of edits is damaged"
        ) from error


def _private(path: Path) -> IO[bytes]:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o600), "wb")
