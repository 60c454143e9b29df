"""What is on disk against what is in the index: a walk by stat is the truth, events are hints."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sessiond.reading.tail import Stat
from sessiond.reading.tracked import Tracked
from sessiond.sourcekit.base import Source

_KINDS = ("attachment", "transcript", "database")


@dataclass(slots=True, frozen=True)
class Candidate:
    """A file that may have something new."""

    source: Source
    path: str
    kind: str
    stat: Stat
    sidecar_ns: int = 0


@dataclass(slots=True)
class Survey:
    """Everything that a walk saw."""

    files: list[Candidate] = field(default_factory=list)
    directories: int = 0
    skipped: list[tuple[str, str]] = field(default_factory=list)  # (path, why)


def roots_of(sources: Sequence[Source]) -> list[tuple[Source, str]]:
    """Each root once, with links resolved; a root inside another is left to the outer one."""
    found: dict[str, Source] = {}
    for source in sources:
        for root in source.roots():
            found.setdefault(os.path.realpath(root), source)
    return [
        (source, root)
        for root, source in found.items()
        if not any(root != other and root.startswith(other + os.sep) for other in found)
    ]


def survey(places: Sequence[tuple[Source, str]]) -> Survey:
    """Walk directories, or take single files, without following links."""
    seen = Survey()
    for source, place in places:
        _visit(source, place, seen)
    # Of two agents that are asked about the same place, the first takes the file.
    seen.files = list({file.path: file for file in reversed(seen.files)}.values())
    seen.skipped = list(dict.fromkeys(seen.skipped))
    # Attachments first: a line that mentions one then finds it. Old files first: an original
    # is read before its fork. Databases last: the first reading of one may take minutes.
    seen.files.sort(key=lambda file: (_KINDS.index(file.kind), file.stat.mtime_ns, file.path))
    return seen


def reaches(source: Source, root: str, path: str) -> bool:
    """Whether a walk from the root comes to the path."""
    folder = os.path.dirname(path)
    while len(folder) > len(root):
        if not source.enters(folder):
            return False
        folder = os.path.dirname(folder)
    return True


def _visit(source: Source, place: str, seen: Survey) -> None:
    try:
        found = os.lstat(place)
    except OSError as error:
        seen.skipped.append((place, _reason(error)))
        return
    if not stat.S_ISDIR(found.st_mode):
        _consider(source, place, found, seen)
        return
    pending = [place]
    while pending:
        directory = pending.pop()
        try:
            entries = list(os.scandir(directory))
        except OSError as error:
            seen.skipped.append((directory, _reason(error)))
            continue
        seen.directories += 1  # one that cannot be read cannot be watched either
        for entry in entries:
            try:
                if entry.is_dir(follow_symlinks=False):
                    if source.enters(entry.path):
                        pending.append(entry.path)
                elif source.classify(entry.path) in _KINDS:
                    _consider(source, entry.path, entry.stat(follow_symlinks=False), seen)
                elif entry.is_symlink() and entry.is_dir():
                    seen.skipped.append((entry.path, "is a symbolic link to a directory"))
            except OSError as error:
                seen.skipped.append((entry.path, _reason(error)))


def _consider(source: Source, path: str, found: os.stat_result, seen: Survey) -> None:
    kind = source.classify(path)
    if kind not in _KINDS:
        seen.skipped.append((path, "is not a transcript that sessiond knows"))
    elif stat.S_ISLNK(found.st_mode):
        seen.skipped.append((path, "is a symbolic link"))
    elif not stat.S_ISREG(found.st_mode):
        seen.skipped.append((path, "is not a regular file"))
    elif not _storable(path):
        seen.skipped.append((path, "has a name that is not UTF-8"))
    else:
        seen.files.append(Candidate(source, path, kind, Stat.of(found), _sidecar(source, path)))


def _sidecar(source: Source, path: str) -> int:
    """When the last of the files beside it changed."""
    newest = 0
    for beside in source.sidecars(path):
        try:
            found = os.lstat(beside)
        except OSError:
            continue
        if found.st_size:  # whoever opens a database makes an empty log beside it
            newest = max(newest, found.st_mtime_ns)
    return newest


def _storable(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def vanished(
    tracked: dict[str, Tracked], files: Sequence[Candidate], places: Sequence[str]
) -> Iterator[Tracked]:
    """Sources below the places that were walked, whose files are no longer there."""
    present = {file.path for file in files}
    for path, source in tracked.items():
        if source.state == "gone" or path in present or source.id is None or source.part_of:
            continue
        if any(path == place or path.startswith(place + os.sep) for place in places):
            try:
                found = os.lstat(path)
            except (FileNotFoundError, NotADirectoryError):
                yield source
            except OSError:
                continue
            else:
                if not stat.S_ISREG(found.st_mode):  # something else took its name
                    yield source
