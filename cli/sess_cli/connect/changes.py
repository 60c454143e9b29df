"""Plans, shows, makes and undoes changes of settings files.

What a file was before is kept beside the index, so that `--undo` brings its bytes back. Where the
agent or a person has changed the file since, only what was added is taken out again.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sess_cli.connect.settings_text import NotUnderstood
from sess_common import paths
from sess_common.errors import SessError

_FOLDER = "connect"


@dataclass(frozen=True, slots=True)
class Change:
    """One file, before and after."""

    path: Path
    before: bytes | None  # None: there is no such file
    after: bytes

    @property
    def is_needed(self) -> bool:
        return self.before != self.after

    def diff(self) -> Iterator[str]:
        old = (self.before or b"").decode("utf-8", "replace").splitlines()
        new = self.after.decode("utf-8", "replace").splitlines()
        name = str(self.path)
        yield from difflib.unified_diff(
            old, new, name if self.before is not None else "/dev/null", name, lineterm="", n=2
        )


def planned(edits: Sequence[Any]) -> list[Change]:
    """What each file becomes; a file that cannot be understood is refused, and none is changed."""
    changes = []
    for edit in edits:
        path = edit.path.resolve() if edit.path.is_symlink() else edit.path
        try:
            before = path.read_bytes() if path.exists() else None
            after = edit.change((before or b"").decode("utf-8"))
        except (NotUnderstood, UnicodeDecodeError) as error:
            raise SessError(
                f'cannot understand "{edit.path}": {error}',
                hint="mend it, or use --print and add the lines yourself; nothing was changed",
            ) from None
        except OSError as error:
            raise SessError(f'cannot read "{edit.path}": {error.strerror}') from None
        changes.append(Change(path, before, after.encode()))
    return changes


def make(agent: str, changes: Sequence[Change]) -> None:
    """Write the files, after their bytes of before were kept."""
    folder = _folder(agent)
    paths.make_private(folder.parent.parent)
    paths.make_private(folder.parent)
    paths.make_private(folder)
    done = _manifest(agent)
    for change in changes:
        if not change.is_needed:
            continue
        entry = done.setdefault(str(change.path), {"made": [], "before": None})
        if "after" not in entry:
            entry["before"] = None if change.before is None else _keep(folder, change.before)
            entry["made"] = [str(one) for one in _missing_folders(change.path)]
        entry["after"] = _keep(folder, change.after)
        _save(agent, done)
        change.path.parent.mkdir(parents=True, exist_ok=True)
        _replace(change.path, change.after)


def undo(agent: str) -> list[str]:
    """Bring the files back as they were; what was done to each."""
    done = _manifest(agent)
    if not done:
        raise SessError(f"nothing to undo: {agent} was not connected by `sess connect`")
    told = []
    for name, entry in reversed([*done.items()]):
        told.append(_undone(agent, Path(name), entry))
    shutil.rmtree(_folder(agent), ignore_errors=True)
    return told


def _undone(agent: str, path: Path, entry: dict[str, Any]) -> str:
    after = _kept(agent, entry["after"]) or b""
    before = _kept(agent, entry["before"])
    now = path.read_bytes() if path.exists() else None
    if now is None:
        return f"{path}: is gone"
    if now == after:
        if before is None:
            path.unlink()
            for folder in reversed(entry["made"]):
                with contextlib.suppress(OSError):  # others have put something there
                    Path(folder).rmdir()
            return f"{path}: deleted, as it was not there before"
        _replace(path, before)
        return f"{path}: as before"
    taken = _without(now, before or b"", after)
    if taken is None:
        raise SessError(
            f'"{path}" was changed since: what was added cannot be told apart',
            hint=f"the file of before is in {_folder(agent)}",
        )
    _replace(path, taken)
    return f"{path}: took out what was added, as the file was changed since"


def _without(now: bytes, before: bytes, after: bytes) -> bytes | None:
    """The text without what `after` had more than `before`, if that stands in it once."""
    head = _common(before, after)
    tail = _common(before[head:][::-1], after[head:][::-1])
    added = after[head : len(after) - tail]
    removed = before[head : len(before) - tail]
    if not added.strip() or now.count(added) != 1:
        return None
    return now.replace(added, removed)


def _common(one: bytes, other: bytes) -> int:
    """How many bytes both begin with."""
    pairs = zip(one, other, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


# -- files


def _folder(agent: str) -> Path:
    return paths.home().data / _FOLDER / agent


def _manifest(agent: str) -> dict[str, Any]:
    try:
        manifest = json.loads((_folder(agent) / "files.json").read_bytes())
    except (OSError, ValueError):
        return {}
    return manifest if isinstance(manifest, dict) else {}


def _save(agent: str, manifest: dict[str, Any]) -> None:
    _replace(_folder(agent) / "files.json", json.dumps(manifest, indent=1).encode(), mode=0o600)


def _keep(folder: Path, content: bytes) -> str:
    name = hashlib.sha256(content).hexdigest()[:24]
    _replace(folder / name, content, mode=0o600)
    return name


def _kept(agent: str, name: str | None) -> bytes | None:
    return None if name is None else (_folder(agent) / name).read_bytes()


def _missing_folders(path: Path) -> list[Path]:
    missing = [folder for folder in path.parents if not folder.exists()]
    return missing[::-1]


def _replace(path: Path, content: bytes, mode: int | None = None) -> None:
    """A new file renamed over the old one, with its rights: an agent reads the one or the other."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None or path.exists():
            temporary.chmod(path.stat().st_mode & 0o777 if mode is None else mode)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
