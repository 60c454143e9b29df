"""Copies of the index, made while the daemon writes, and read back page by page.

A file holds one copy. A folder holds snapshots: each adds only pages that no earlier one has, in a
pack of its own, and a manifest that lists the hash of every page. A snapshot exists when its
manifest does, so a copy that was interrupted leaves nothing that counts.
"""

# ruff: noqa: N802, ARG002 - SQLite names the methods of a file and their arguments

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import apsw

from sess_common.errors import Exit, SessError
from sess_common.progress import Progress, unseen
from sess_schema import archive, page_sums, soundness

_MANIFEST, _PACK = ".manifest", ".pack"
_STEP = 1000  # pages between two reports of progress
_PRIVATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


class Snapshot(NamedTuple):
    """What a folder says about one of its snapshots."""

    name: str
    pages: list[str]  # hashes, in order
    page_size: int
    new: dict[str, tuple[int, int]]  # pages in its own pack: offset and length


class Made(NamedTuple):
    """What a backup wrote."""

    path: Path
    pages: int
    new_pages: int
    written: int


def copy_to_file(db: apsw.Connection, target: Path, progress: Progress = unseen) -> Made:
    """One consistent copy in a new private file, verified before it gets its name."""
    beside = target.with_name(f".{target.name}.{os.getpid()}.part")
    os.close(os.open(beside, _PRIVATE, 0o600))
    try:
        _refuse_damaged(db, Path(db.filename))
        with closing(page_sums.opened(str(beside))) as copy:
            _copy(db, copy, progress)
            copy.pragma("journal_mode", "delete")
            _refuse_damaged(copy, beside)
            pages = copy.pragma("page_count")
        _sync(beside)
        os.link(beside, target)  # fails if the name has been taken since
    finally:
        beside.unlink()
    return Made(target, pages, pages, target.stat().st_size)


def before_upgrade(db: apsw.Connection, path: Path, progress: Progress = unseen) -> Path | None:
    """Keep a copy of an index that is about to be upgraded, if the disk has room for it."""
    version = db.pragma("user_version")
    target = path.with_name(f"index-schema{version}.db")
    if target.exists():
        return target
    free = os.statvfs(path.parent).f_bavail * os.statvfs(path.parent).f_frsize
    if free < 2 * path.stat().st_size:
        progress("no room for a copy before the upgrade")
        return None
    with suppress(OSError):
        for older in path.parent.glob("index-schema*.db"):
            older.unlink()
        return copy_to_file(db, target, progress).path
    return None


def _refuse_damaged(copy: apsw.Connection, path: Path) -> None:
    wrong = soundness.structure(copy, deep=False)
    if wrong:
        raise SessError(
            f'"{path}" is damaged: {wrong[0].message}',
            hint="`sess check` tells whether the index is, too",
            code=Exit.INDEX_UNUSABLE,
        )


def _copy(db: apsw.Connection, copy: apsw.Connection, progress: Progress) -> None:
    with copy.backup("main", db, "main") as running:
        while not running.done:
            running.step(_STEP)
            if running.remaining:
                progress(f"copying, {running.page_count - running.remaining:,} pages done")


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


# -- snapshots


def snapshots(folder: Path) -> list[Snapshot]:
    """The oldest first."""
    return [_snapshot(path) for path in sorted(folder.glob(f"*{_MANIFEST}"))]


def _snapshot(path: Path) -> Snapshot:
    try:
        value: dict[str, Any] = json.loads(archive.unpack(path.read_bytes()))
        new = {name: (place[0], place[1]) for name, place in value["new"].items()}
        return Snapshot(path.stem, value["pages"], value["page_size"], new)
    except (archive.Damaged, ValueError, LookupError, TypeError) as error:
        raise SessError(
            f'"{path}" is damaged', hint="move it away to use the others", code=Exit.INDEX_UNUSABLE
        ) from error


def add_snapshot(db: apsw.Connection, folder: Path, progress: Progress = unseen) -> Made:
    """A snapshot of the index that writes only pages that the folder does not have."""
    earlier = snapshots(folder)
    kept = {snapshot.name for snapshot in earlier}
    for left in (*folder.glob(f"*{_PACK}"), *folder.glob("*.part")):
        if left.stem not in kept:
            left.unlink()  # of a backup that was interrupted
    name = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    if name in kept:
        raise SessError(f'"{folder}" has a backup of this second', hint="try again")
    pack = folder / f"{name}{_PACK}"
    with os.fdopen(os.open(pack, _PRIVATE, 0o600), "w+b") as out:
        known = {page for snapshot in earlier for page in snapshot.new}
        with closing(_Store(earlier, folder)) as store:
            _refuse_damaged(db, Path(db.filename))
            sink = _PageSink(out, store.read, known, summed=db.reserve_bytes("main") > 0)
            with sink.connection() as copy:
                _copy(db, copy, progress)
        out.flush()
        os.fsync(out.fileno())
        progress("verifying the copy")
        for page, place in sink.new.items():
            verified(out.fileno(), page, place)
    pages = sink.ordered()
    manifest = {"pages": pages, "page_size": sink.page_size, "new": sink.new}
    beside, target = folder / f"{name}.part", folder / f"{name}{_MANIFEST}"
    with os.fdopen(os.open(beside, _PRIVATE, 0o600), "wb") as file:
        file.write(archive.pack(json.dumps(manifest).encode()))
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, target)
    written = pack.stat().st_size + target.stat().st_size
    return Made(target, len(pages), len(sink.new), written)


def pages_of(folder: Path, wanted: str | None = None) -> Iterator[bytes]:
    """The pages of a snapshot, the last one unless named, each compared with its hash."""
    every = snapshots(folder)
    chosen = [snapshot for snapshot in every if wanted in (None, snapshot.name)]
    if not chosen:
        known = ", ".join(one.name for one in every) or "none"
        raise SessError(
            f'no backup "{wanted}" in "{folder}"' if wanted else f'no backup in "{folder}"',
            hint=f"there are: {known}",
            code=Exit.NOTHING_FOUND,
        )
    with closing(_Store(every, folder)) as store:
        yield from map(store.read, chosen[-1].pages)


def pieces_of(path: Path) -> Iterator[bytes]:
    """A backup in one file."""
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            yield piece


class _Store:
    """Reads pages out of the packs of a folder."""

    def __init__(self, every: list[Snapshot], folder: Path) -> None:
        self._places = {page: (one.name, place) for one in every for page, place in one.new.items()}
        self._folder = folder
        self._open: dict[str, int] = {}

    def read(self, page: str) -> bytes:
        try:
            name, place = self._places[page]
            if name not in self._open:
                path = self._folder / f"{name}{_PACK}"
                self._open[name] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except (KeyError, OSError) as error:
            raise _lost(page) from error
        return verified(self._open[name], page, place)

    def close(self) -> None:
        for fd in self._open.values():
            os.close(fd)


def verified(fd: int, page: str, place: tuple[int, int]) -> bytes:
    offset, length = place
    try:
        raw = archive.unpack(os.pread(fd, length, offset))
    except archive.Damaged as error:
        raise _lost(page) from error
    if hash_of(raw) != page:
        raise _lost(page)
    return raw


def _lost(page: str) -> SessError:
    return SessError(
        f"page {page} of the backup is damaged or missing",
        hint="an earlier backup in the folder may be intact: `--at NAME`",
        code=Exit.INDEX_UNUSABLE,
    )


def hash_of(raw: bytes) -> str:
    return blake2b(raw, digest_size=16).hexdigest()


# -- a database file that keeps only pages it has not seen


class VirtualFile:
    """A database that is no file, and that nobody else opens."""

    def xClose(self) -> None: ...

    def xSync(self, flags: int) -> None: ...
    def xLock(self, level: int) -> None: ...
    def xUnlock(self, level: int) -> None: ...

    def xCheckReservedLock(self) -> bool:
        return False

    def xFileControl(self, op: int, pointer: int) -> bool:
        return False

    def xSectorSize(self) -> int:
        return 4096

    def xDeviceCharacteristics(self) -> int:
        return 0


class _PageSink(VirtualFile):
    """The file that SQLite copies into: keeps the hash of each page, and packs new ones."""

    def __init__(
        self, out: BinaryIO, read_known: Callable[[str], bytes], known: set[str], *, summed: bool
    ) -> None:
        self._out = out
        self._summed = summed  # the pages have checksums; those in the WAL have old ones
        self._read_known = read_known
        self._known = known
        self._pages: dict[int, str] = {}  # by number, from 0
        self._size = 0
        self.page_size = 0
        self.new: dict[str, tuple[int, int]] = {}

    @contextmanager
    def connection(self) -> Iterator[apsw.Connection]:
        """A database whose pages end here."""
        vfs = VirtualFiles(f"sess-backup-{os.getpid()}-{id(self)}", self)
        try:
            with closing(apsw.Connection("backup", vfs=vfs.vfs_name)) as db:
                db.pragma("journal_mode", "off")
                db.pragma("synchronous", "off")
                yield db
        finally:
            vfs.unregister()

    def ordered(self) -> list[str]:
        return [self._pages[number] for number in range(self._size // self.page_size)]

    def xWrite(self, data: bytes, offset: int) -> None:
        raw = bytes(data)
        self.page_size = self.page_size or len(raw)
        if self._summed:
            raw = page_sums.sealed(raw, offset // self.page_size)
        page = hash_of(raw)
        self._pages[offset // self.page_size] = page
        self._size = max(self._size, offset + len(raw))
        if page not in self._known:
            self._known.add(page)
            packed = archive.pack(raw)
            at = self._out.seek(0, os.SEEK_END)
            self._out.write(packed)
            self.new[page] = at, len(packed)

    def xRead(self, amount: int, offset: int) -> bytes:
        if not self.page_size or offset // self.page_size not in self._pages:
            return b""
        page = self._pages[offset // self.page_size]
        if page in self.new:
            self._out.flush()
            raw = verified(self._out.fileno(), page, self.new[page])
        else:
            raw = self._read_known(page)
        inside = offset % self.page_size
        return raw[inside : inside + amount]

    def xTruncate(self, size: int) -> None:
        self._size = size

    def xFileSize(self) -> int:
        return self._size


class VirtualFiles(apsw.VFS):
    """Opens this one whatever is asked for."""

    def __init__(self, name: str, file: VirtualFile) -> None:
        self.vfs_name = name
        self._file = file
        super().__init__(name, base="")

    def xOpen(self, name: Any, flags: list[int]) -> Any:
        return self._file

    def xAccess(self, path: str, flags: int) -> bool:
        return False

    def xDelete(self, path: str, sync: bool) -> None: ...

    def xFullPathname(self, name: str) -> str:
        return name
