"""Walks the disk to find files to read; the walk is authoritative, file events are only hints."""

from __future__ import annotations

import contextlib
import os
import stat
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sessiond.reading import tail
from sessiond.reading.tail import Stat
from sessiond.reading.territory import KINDS, Ambiguous, Claim, Place, claims_at, decide, is_below
from sessiond.reading.tracked import Tracked
from sessiond.sourcekit import disk
from sessiond.sourcekit.base import Source


@dataclass(slots=True, frozen=True)
class Candidate:
    """A file that may have new data."""

    agent: Source
    path: str
    kind: str
    stat: Stat
    sidecar_ns: int = 0


@dataclass(slots=True)
class Survey:
    """Everything that a walk found."""

    files: list[Candidate] = field(default_factory=list)
    directories: int = 0
    skipped: list[tuple[str, str]] = field(default_factory=list)  # (path, reason)


def survey(places: Sequence[Place], roots: frozenset[str] = frozenset()) -> Survey:
    """Walk directories and single files without following links.

    A directory in `roots` is a separate place and is not walked from another one.
    """
    seen = Survey()
    for place in places:
        _visit(place, roots, seen)
    seen.files = list({file.path: file for file in seen.files}.values())
    seen.skipped = list(dict.fromkeys(seen.skipped))
    _sort(seen.files)
    return seen


def _sort(files: list[Candidate]) -> None:
    """The newest first: they are asked for most, and a first load of gigabytes takes minutes.

    Attachments come before the log that mentions them, and databases last: the first read of one
    may take minutes, too. The order changes nothing in the end.
    """
    logs = {
        os.path.splitext(file.path)[0]: file.stat.mtime_ns
        for file in files
        if file.kind == "transcript"
    }

    def place(file: Candidate) -> tuple[bool, int, int, str]:
        when, folder = file.stat.mtime_ns, file.path
        if file.kind == "attachment":
            while (above := os.path.dirname(folder)) != folder:
                folder = above
                if folder in logs:  # it lies in a folder with the name of its log
                    when = logs[folder]
                    break
        return file.kind != "database", when, -KINDS.index(file.kind), file.path

    files.sort(key=place, reverse=True)


def _visit(place: Place, roots: frozenset[str], seen: Survey) -> None:
    path = tail.log_file(place.path)
    try:
        facts = disk.lstat_of(path)
    except OSError as error:
        seen.skipped.append((place.path, _reason(error)))
        return
    if not stat.S_ISDIR(facts.st_mode):
        claims = claims_at(place, place.sources, tail.log_name(path))
        if place.kind is not None:
            claims = [(source, place.kind) for source in place.sources]
        _consider(claims, path, facts, seen)
        return
    for entry, sources in _reached(path, place.sources, roots, seen):
        try:
            if claims := claims_at(place, sources, tail.log_name(entry.path)):
                _consider(claims, entry.path, entry.stat(follow_symlinks=False), seen)
            elif entry.is_symlink() and entry.is_dir():
                seen.skipped.append((entry.path, "is a symbolic link to a directory"))
        except OSError as error:
            seen.skipped.append((entry.path, _reason(error)))


def _reached(
    root: str, owners: Sequence[Source], roots: frozenset[str], seen: Survey
) -> Iterator[tuple[os.DirEntry[str], Sequence[Source]]]:
    """Every file below a directory, and the agents that enter the directory it is in."""
    pending = [(root, owners)]
    while pending:
        directory, sources = pending.pop()
        try:
            entries = disk.entries(directory)
        except OSError as error:
            seen.skipped.append((directory, _reason(error)))
            continue
        seen.directories += 1  # an unreadable one cannot be watched either
        names = {entry.name for entry in entries}
        for entry in entries:
            try:
                if entry.is_dir(follow_symlinks=False):
                    enter = tuple(one for one in sources if one.enters(entry.path))
                    if enter and entry.path not in roots:
                        pending.append((entry.path, enter))
                    continue
            except OSError as error:
                seen.skipped.append((entry.path, _reason(error)))
                continue
            plain = tail.log_name(entry.name)
            if plain == entry.name or plain not in names:  # else the plain file is read
                yield entry, sources


class Unclaimed(NamedTuple):
    """Files in an agent's place whose names end alike, and that no rule claims."""

    place: str
    ending: str  # empty: they have none
    files: int
    newest: str


def unclaimed(places: Sequence[Place]) -> Iterator[Unclaimed]:
    """What the walk passes over: a new kind of conversation would be among it."""
    roots = frozenset(place.path for place in places)
    for place in places:
        if place.foreign or place.kind is not None:
            continue
        passed, beside = dict[str, os.DirEntry[str]](), set[str]()
        for entry, sources in _reached(place.path, place.sources, roots, Survey()):
            path = tail.log_name(entry.path)
            claiming = [source for source in sources if source.kind_of(path)]
            beside.update(other for source in claiming for other in source.sidecars(path))
            if not claiming and _storable(path):
                passed[path] = entry
        found = defaultdict[str, list[tuple[int, str]]](list)
        for path in passed.keys() - beside:
            with contextlib.suppress(OSError):
                facts = passed[path].stat(follow_symlinks=False)
                if facts.st_size and stat.S_ISREG(facts.st_mode):
                    ending = os.path.splitext(path)[1]
                    found[ending].append((facts.st_mtime_ns, passed[path].path))
        for ending, files in sorted(found.items(), key=lambda one: (-len(one[1]), one[0])):
            yield Unclaimed(place.path, ending, len(files), max(files)[1])


def _consider(claims: Sequence[Claim], path: str, facts: os.stat_result, seen: Survey) -> None:
    """Record a file that an agent may have written, or the reason for skipping it."""
    name = tail.log_name(path)
    if stat.S_ISLNK(facts.st_mode):
        seen.skipped.append((path, "is a symbolic link"))
    elif not stat.S_ISREG(facts.st_mode):
        seen.skipped.append((path, "is not a regular file"))
    elif not _storable(path):
        seen.skipped.append((path, "has a name that is not UTF-8"))
    else:
        try:
            claimed = decide(claims, name)
        except Ambiguous as error:
            seen.skipped.append((path, str(error)))
            return
        if claimed is None:
            seen.skipped.append((path, "is not a known transcript format"))
            return
        source, kind = claimed
        seen.files.append(Candidate(source, name, kind, Stat.of(facts), _sidecar(source, name)))


def _sidecar(source: Source, path: str) -> int:
    """When the most recent of its sidecars changed."""
    newest = 0
    for beside in source.sidecars(path):
        try:
            facts = disk.lstat_of(beside)
        except OSError:
            continue
        if facts.st_size:  # opening a database creates an empty WAL beside it
            newest = max(newest, tail.storable(facts.st_mtime_ns))
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
    """Sources below the walked places whose files no longer exist."""
    present = {file.path for file in files}
    for path, source in tracked.items():
        if (
            source.state in ("gone", "forgotten")
            or path in present
            or source.id is None
            or source.part_of
        ):
            continue
        if any(is_below(path, place) for place in places):
            try:
                facts = disk.lstat_of(tail.log_file(path))
            except (FileNotFoundError, NotADirectoryError):
                yield source
            except OSError:
                continue
            else:
                if not stat.S_ISREG(facts.st_mode):  # something else took its name
                    yield source
