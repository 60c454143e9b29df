"""A disk in a machine whose power fails: of what was not synced, any part may be lost.

Each write since the last sync of its file may be there or not, sector by sector, in any
combination; so may a file that was deleted. What was synced is there.
"""

from __future__ import annotations

import random
from pathlib import Path

import apsw
from tests.faults.disk import ShimFile, take_out

SECTOR = 512


class Cut(apsw.IOError):
    """The power is off."""


class Power(apsw.VFS):
    """The power fails at call `at`, and stays off until `restore`."""

    def __init__(self, at=0, seed=0) -> None:
        self.at, self.calls, self.off = at, 0, False
        self.chance = random.Random(seed)
        self.durable: dict[str, bytearray] = {}
        self.pending: dict[str, list[tuple[int, bytes | None]]] = {}
        self.deleted: dict[str, bytearray] = {}
        self.base = apsw.vfs_names()[0]
        self.name = "failing-power"
        super().__init__(self.name, self.base, makedefault=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        take_out(self)

    def use(self):
        self.calls += 1
        if self.off or self.calls == self.at:
            self.off = True
            raise Cut("the power is off")

    def xOpen(self, name, flags):  # noqa: N802 - SQLite's name
        return _File(self, name, flags)

    def xDelete(self, path, sync_directory):  # noqa: N802
        self.use()
        content = self.durable.pop(path, bytearray())
        self.pending.pop(path, None)
        self.deleted = {**self.deleted, path: content} if not sync_directory else {}
        super().xDelete(path, sync_directory)

    def synced(self, path):
        content = self.durable.setdefault(path, bytearray())
        for change in self.pending.pop(path, []):
            _apply(content, *change)
        self.deleted.pop(path, None)

    def restore(self, folder: Path):
        """What is on the disk when the machine starts again."""
        self.off, self.at = False, 0
        for path, content in self.durable.items():
            for offset, data in self.pending.get(path, []):
                if data is None:
                    if self.chance.random() < 0.5:
                        _apply(content, offset, None)
                    continue
                keep = self.chance.choice((0.0, 0.5, 0.9, 1.0))
                for start in range(0, len(data), SECTOR):
                    if self.chance.random() < keep:
                        _apply(content, offset + start, data[start : start + SECTOR])
            Path(path).write_bytes(content)
        for path, content in self.deleted.items():
            if content and not Path(path).exists() and self.chance.random() < 0.5:
                Path(path).write_bytes(content)
        for shared in folder.glob("*-shm"):
            shared.unlink()
        self.durable.clear()
        self.pending.clear()
        self.deleted.clear()


def _apply(content, offset, data):
    """Write data, or with None cut the file off."""
    if data is None:
        del content[offset:]
        content.extend(bytes(offset - len(content)))
    else:
        content.extend(bytes(max(0, offset - len(content))))
        content[offset : offset + len(data)] = data


class _File(ShimFile):
    def __init__(self, power, name, flags) -> None:
        self._power = power
        self._path = name.filename() if isinstance(name, apsw.URIFilename) else name
        super().__init__(power.base, name, flags)
        if self._path and self._path not in power.durable:
            power.durable[self._path] = bytearray(Path(self._path).read_bytes())

    def xWrite(self, data, offset):  # noqa: N802
        self._power.use()
        self._power.pending.setdefault(self._path, []).append((offset, bytes(data)))
        super().xWrite(data, offset)

    def xTruncate(self, size):  # noqa: N802
        self._power.use()
        self._power.pending.setdefault(self._path, []).append((size, None))
        super().xTruncate(size)

    def xSync(self, _flags):  # noqa: N802
        self._power.use()
        self._power.synced(self._path)
