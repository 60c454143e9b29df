"""A database file that keeps only pages it has not seen: what a backup is copied into."""

# ruff: noqa: N802, ARG002 - SQLite names these methods and their arguments

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from hashlib import blake2b
from typing import Any, BinaryIO

import apsw

from sess_common.errors import Exit, SessError
from sess_schema import archive


def verified(fd: int, page: str, place: tuple[int, int]) -> bytes:
    offset, length = place
    try:
        raw = archive.unpack(os.pread(fd, length, offset))
    except archive.Damaged as error:
        raise lost(page) from error
    if hash_of(raw) != page:
        raise lost(page)
    return raw


def lost(page: str) -> SessError:
    return SessError(
        f"page {page} of the backup is damaged or missing",
        hint="an earlier backup in the folder may be intact: `--at NAME`",
        code=Exit.INDEX_UNUSABLE,
    )


def hash_of(raw: bytes) -> str:
    return blake2b(raw, digest_size=16).hexdigest()


class PageSink:
    """The file that SQLite copies into: keeps the hash of each page, and packs new ones."""

    def __init__(self, out: BinaryIO, read_known: Callable[[str], bytes], known: set[str]) -> None:
        self._out = out
        self._read_known = read_known
        self._known = known
        self._pages: dict[int, str] = {}  # by number, from 0
        self._size = 0
        self.page_size = 0
        self.new: dict[str, tuple[int, int]] = {}

    @contextmanager
    def connection(self) -> Iterator[apsw.Connection]:
        """A database whose pages end here."""
        vfs = _Vfs(f"sess-backup-{os.getpid()}-{id(self)}", self)
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


class _Vfs(apsw.VFS):
    """Opens the sink whatever is asked for."""

    def __init__(self, name: str, sink: PageSink) -> None:
        self.vfs_name = name
        self._sink = sink
        super().__init__(name, base="")

    def xOpen(self, name: Any, flags: list[int]) -> Any:
        return self._sink

    def xAccess(self, path: str, flags: int) -> bool:
        return False

    def xDelete(self, path: str, sync: bool) -> None: ...

    def xFullPathname(self, name: str) -> str:
        return name
