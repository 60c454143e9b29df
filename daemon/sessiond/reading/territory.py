"""Decides which agent a file belongs to: by place, and by content where places overlap.

Files that somebody handed over (`sess import`) are read like an agent's own, and followed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path  # noqa: TID251 - of our own files

import apsw

from sess_common import paths
from sessiond.reading import tail
from sessiond.reading.tracked import FORGOTTEN
from sessiond.sourcekit import disk
from sessiond.sourcekit.base import Source
from sessiond.sourcekit.disk import KeptFile

HEAD_BYTES = 64 << 10  # enough to identify the session of a file
_ANYBODYS = ("transcript", "document")  # many programs write files with such names
KINDS = ("attachment", "transcript", "document", "database")  # in reading order
_LIST = "list.jsonl"
_LARGEST_LIST = 16 << 20
_UNSAFE = re.compile(r"[^\w.-]+")
_LONGEST_NAME = 100


class Ambiguous(Exception):
    """Several agents claim a file; the message names them."""


@dataclass(slots=True, frozen=True)
class Place:
    """A file or a directory, and the agents that may have files there."""

    path: str
    sources: tuple[Source, ...]
    kind: str | None = None  # of a file that was handed over, whatever its name
    foreign: bool = False  # no agent keeps its files there


@dataclass(slots=True, frozen=True)
class Handed:
    """A file that somebody handed over, and what it was recognised as."""

    path: str
    agent: str
    kind: str


class Territory:
    """The roots of all agents. A file belongs to the agents of the innermost root around it."""

    def __init__(self, sources: Sequence[Source], handed: Sequence[Handed] = ()) -> None:
        roots: dict[str, list[Source]] = {}
        for source in sources:
            for root in source.roots():
                owners = roots.setdefault(disk.real(root), [])
                if source not in owners:
                    owners.append(source)
        self.places = [Place(root, tuple(owners)) for root, owners in roots.items()]
        named = {source.agent: source for source in sources}
        self.places += [
            Place(one.path, (named[one.agent],), one.kind) for one in handed if one.agent in named
        ]
        self.roots = frozenset(place.path for place in self.places)

    def place_of(self, path: str) -> Place | None:
        """The innermost place around a path, with the agents whose walk reaches it."""
        around = [place for place in self.places if is_below(path, place.path)]
        if not around:
            return None
        place = max(around, key=lambda one: len(one.path))
        reaching = tuple(source for source in place.sources if _reaches(source, place.path, path))
        return replace(place, sources=reaching) if reaching else None


def is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(root + os.sep)


Claim = tuple[Source, str]  # an agent, and the kind of file for it


def claims_by_name(sources: Sequence[Source], path: str) -> list[Claim]:
    """The agents that a file may belong to, judging by its name and place."""
    return [(source, kind) for source in sources if (kind := source.classify(path)) in KINDS]


def claims_at(place: Place, sources: Sequence[Source], path: str) -> list[Claim]:
    """The same at a place, where it takes more than a name that any program's file may have."""
    claims = claims_by_name(sources, path)
    if not place.foreign or not any(kind in _ANYBODYS for _, kind in claims):
        return claims
    head = head_of(path)
    return [one for one in claims if one[1] not in _ANYBODYS or one[0].claims(path, head)]


def decide(claims: Sequence[Claim], path: str) -> Claim | None:
    """The one of several possible agents that matches a file's content."""
    if len(claims) == 1:
        return claims[0]
    head = head_of(path)
    certain = [claim for claim in claims if claim[0].claims(path, head)]
    if len(certain) > 1:
        names = ", ".join(sorted(source.agent for source, _ in certain))
        raise Ambiguous(f"matches several agents: {names}")
    return certain[0] if certain else None


def recognised(sources: Sequence[Source], path: str) -> list[Claim]:
    """The agents that a file belongs to, judging by its content alone."""
    head = head_of(path)
    return [(one, kind) for one in sources if (kind := one.kind_anywhere(path, head)) in KINDS]


def head_of(path: str) -> bytes:
    try:
        fd, _ = tail.open_log(path)
    except (OSError, tail.Unreadable):
        return b""
    try:
        return tail.read_at(fd, HEAD_BYTES, 0)
    except OSError:
        return b""
    finally:
        os.close(fd)


def _reaches(source: Source, root: str, path: str) -> bool:
    """Whether a walk from the root reaches the path."""
    folder = os.path.dirname(path)
    while len(folder) > len(root):
        if not source.enters(folder):
            return False
        folder = os.path.dirname(folder)
    return True


# -- files that somebody handed over, whose list and copies are our own


def handed_files(home: paths.Home) -> list[Handed]:
    """Every file that was handed over, in order."""
    return _kept_lists.of(str(home.imports / _LIST))


def _read_list(data: bytes) -> list[Handed]:
    files: dict[str, Handed] = {}
    for line in data.splitlines():
        try:
            entry = json.loads(line)
            files[entry["path"]] = Handed(entry["path"], entry["agent"], entry["kind"])
        except (ValueError, TypeError, KeyError):  # a torn line of a full disk
            continue
    return list(files.values())


_kept_lists = KeptFile(_read_list, _LARGEST_LIST)


def follow_handed(home: paths.Home, file: Handed) -> None:
    """Follow a file from now on."""
    paths.make_private(home.imports)
    line = json.dumps({"path": file.path, "agent": file.agent, "kind": file.kind}).encode() + b"\n"
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    fd = os.open(home.imports / _LIST, flags, 0o600)  # noqa: TID251 - written
    try:
        os.write(fd, line)  # one write: two imports at once do not mix
        os.fsync(fd)
    finally:
        os.close(fd)


def save_handed(home: paths.Home, name: str, pieces: Iterable[bytes]) -> str:
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
    return os.path.realpath(target)  # noqa: TID251 - our own


def throw_away_handed(path: str) -> None:
    """Delete a saved file that nobody wants to follow."""
    Path(path).unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # the same bytes have another name, too
        Path(path).parent.rmdir()


def discard_forgotten(home: paths.Home, db: apsw.Connection) -> None:
    """Delete the saved files of which every session was forgotten."""
    imports = os.path.realpath(home.imports)  # noqa: TID251 - our own
    for (path,) in list(db.execute("SELECT path FROM sources WHERE state = ?", (FORGOTTEN,))):
        if Path(path).is_relative_to(imports):
            Path(path).unlink(missing_ok=True)


def safe_name(name: str) -> str:
    """A file name out of foreign text."""
    return _UNSAFE.sub("-", name).strip(".-")[-_LONGEST_NAME:] or "file"
