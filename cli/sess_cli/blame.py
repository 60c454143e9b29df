"""What git knows of a file's lines, and how that meets what agents recorded.

Git says in which commit a line came to be, under which name the file was then, and, where git-ai or
Agent Trace keep notes, which agent they name. Everything else comes from the index.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sess_common.errors import Exit, SessError
from sess_schema.queries import origins
from sess_schema.queries.origins import Change, Origin, Tracing

if TYPE_CHECKING:
    import apsw

_SECONDS = 30  # for git; a blame of a huge history is cut short, and said to be
_SLOW_CLOCKS = 120_000  # ms by which a commit may seem older than the edit that it contains
_UNCOMMITTED = "0" * 40
_MOST_BYTES = 20 << 20
_NOTES = "refs/notes/ai"
_TRACES = ".agent-trace/traces.jsonl"
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")


class Commit(NamedTuple):
    sha: str
    committed: int  # milliseconds
    author: str
    subject: str


class Noted(NamedTuple):
    """What a note beside the code says of a line."""

    source: str  # git-ai, agent-trace
    agent: str | None
    session: str | None


@dataclass(slots=True)
class Line:
    number: int
    text: str
    commit: Commit | None = None  # None: not committed yet, or no repository
    origin: Origin | None = None
    noted: Noted | None = None


@dataclass(slots=True)
class File:
    """A file on the disk, and where it stands in its repository."""

    path: Path
    root: Path | None
    name: str  # within the repository
    lines: list[str]

    @classmethod
    def read(cls, name: str) -> File:
        path = Path(os.path.abspath(os.path.expanduser(name)))
        try:
            if path.is_dir():
                raise SessError(f"{name} is a directory", hint="name a file, or FILE:LINE")
            if path.stat().st_size > _MOST_BYTES:
                raise SessError(f"{name} is larger than {_MOST_BYTES >> 20} MB")
            content = path.read_bytes()
        except OSError as error:
            raise SessError(
                f"cannot read {name}: {error.strerror}", code=Exit.NOTHING_FOUND
            ) from None
        if b"\0" in content:
            raise SessError(f"{name} is not a text file")
        lines = content.decode("utf-8", "replace").replace("\r\n", "\n").split("\n")
        if lines[-1] == "":
            lines.pop()
        file = cls.at(path)
        file.lines = lines
        return file

    @classmethod
    def at(cls, path: Path) -> File:
        """Where a path stands, whatever is there."""
        real = path.resolve()
        top = _git(real.parent, "rev-parse", "--show-toplevel")
        root = Path(top.rstrip("\n")) if top else None
        if root is None or not real.is_relative_to(root):
            return cls(path, None, path.name, [])
        return cls(path, root, str(real.relative_to(root)), [])


def _git(folder: Path, *words: str) -> str | None:
    """What git prints; None if it fails, is missing, or takes too long."""
    try:
        done = subprocess.run(
            ["git", "-c", "core.fsmonitor=false", "--no-optional-locks", *words],
            cwd=folder,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_SECONDS,
            env={**os.environ, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"},
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None


class _Blamed(NamedTuple):
    commit: Commit | None
    name: str  # of the file in that commit
    number: int  # of the line in that commit


def _blame(file: File) -> list[_Blamed]:
    """One for each line, or none at all."""
    assert file.root is not None
    text = _git(file.root, "blame", "--porcelain", "-w", "-M", "-C", "--", file.name)
    commits: dict[str, dict[str, str]] = {}
    blamed: list[_Blamed] = []
    sha, number = "", 0
    for line in (text or "").split("\n"):
        if line.startswith("\t"):
            facts = commits[sha]
            commit = Commit(
                sha,
                int(facts.get("committer-time", "0")) * 1000,
                facts.get("author", ""),
                facts.get("summary", ""),
            )
            known = None if sha == _UNCOMMITTED else commit
            blamed.append(_Blamed(known, facts.get("filename", file.name), number))
        elif (
            (words := line.split(" ", 2)) and len(words[0]) == len(_UNCOMMITTED) and len(words) > 1
        ):
            sha, number = words[0], int(words[1])
            commits.setdefault(sha, {})
        elif sha:
            key, _, value = line.partition(" ")
            commits[sha][key] = value
    return blamed if len(blamed) == len(file.lines) else []


def _former_names(file: File) -> list[str]:
    """The names of the file in its history, the present one first."""
    assert file.root is not None
    listed = _git(
        file.root, "log", "--follow", "--format=", "--name-only", "-z", "-M40%", "--", file.name
    )
    names = [name.strip("\n") for name in (listed or "").split("\0")]
    return list(dict.fromkeys([file.name, *(name for name in names if name)]))


# -- the edits that are of this file


def _changes(db: apsw.Connection, file: File, names: Iterable[str]) -> list[Change]:
    """The edits of the file under these names, also in other clones of the repository."""
    if file.root is None:
        return origins.changes(db, [str(file.path), str(file.path.resolve())])
    paths: list[str] = []
    for name in names:
        paths += [str(file.root / name), *origins.paths_ending(db, name)]
    mine = [path for path in dict.fromkeys(paths) if _is_clone(path, names, file.root)]
    return origins.changes(db, [*mine, str(file.path)])


def _is_clone(path: str, names: Iterable[str], root: Path) -> bool:
    """Whether what stands before the name is this repository, a worktree or a clone of it."""
    for name in names:
        if path == str(root / name):
            return True
        folder = path.removesuffix(name).rstrip("/")
        if folder != path and root.name in folder.split("/"):
            return True
    return False


def changes_of(db: apsw.Connection, name: str) -> list[Change]:
    """The edits of a file in the order in which they happened; it need not exist any more."""
    path = Path(os.path.abspath(os.path.expanduser(name)))
    file = File.at(path)
    return _changes(db, file, _former_names(file) if file.root else [file.name])


def origins_of(db: apsw.Connection, file: File) -> list[Line]:
    """Every line of the file with its commit and the edit that wrote it."""
    lines = [Line(number, text) for number, text in enumerate(file.lines, 1)]
    blamed = _blame(file) if file.root else []
    names = _former_names(file) if file.root else [file.name]
    replays = [origins.replayed(_changes(db, file, names))]
    elsewhere = dict.fromkeys(one.name for one in blamed if one.name not in names)
    replays += [origins.replayed(_changes(db, file, [name])) for name in elsewhere]
    tracing = Tracing(replays, file.lines)
    for line, place in zip(lines, blamed, strict=False):
        line.commit = place.commit
        if place.commit is not None:
            tracing.limit(line.number - 1, place.commit.committed + _SLOW_CLOCKS)
    for line, origin in zip(lines, tracing.origins, strict=True):
        line.origin = origin
    if file.root is not None:
        _add_notes(file, lines, blamed)
    return lines


# -- notes that other tools keep beside the code


def _add_notes(file: File, lines: Sequence[Line], blamed: Sequence[_Blamed]) -> None:
    assert file.root is not None
    places = {(one.commit.sha, one.name) for one in blamed if one.commit is not None}
    noted: dict[tuple[str, str, int], Noted] = {}
    if _git(file.root, "rev-parse", "--verify", "--quiet", _NOTES):
        for sha in {sha for sha, _ in places}:
            note = _git(file.root, "notes", f"--ref={_NOTES}", "show", sha)
            for name, numbers, who in _of_git_ai(note or ""):
                noted |= {(sha, name, number): who for number in numbers}
    for sha, name, numbers, who in _of_agent_trace(file.root / _TRACES):
        noted |= {(sha, name, number): who for number in numbers}
    for line, place in zip(lines, blamed, strict=False):
        if place.commit is not None:
            line.noted = noted.get((place.commit.sha, place.name, place.number))


def _of_git_ai(note: str) -> Iterator[tuple[str, range, Noted]]:
    """An authorship log: below each file's name, prompts with ranges of lines; then JSON."""
    attested, _, facts = note.partition("\n---\n")
    try:
        prompts = json.loads(facts)["prompts"]
    except (ValueError, KeyError, TypeError):
        return
    name = ""
    for row in attested.split("\n"):
        if row and not row[0].isspace():
            name = row.strip().strip('"')
            continue
        prompt, _, ranges = row.strip().partition(" ")
        agent = _field(_field(prompts, prompt), "agent_id")
        if agent is not None:
            who = Noted("git-ai", _text(_field(agent, "tool")), _text(_field(agent, "id")))
            for numbers in _ranges(ranges):
                yield name, numbers, who


def _ranges(text: str) -> Iterator[range]:
    for part in text.split(","):
        if match := _RANGE.fullmatch(part.strip()):
            yield range(int(match[1]), min(int(match[2] or match[1]), 10**6) + 1)


def _of_agent_trace(path: Path) -> Iterator[tuple[str, str, range, Noted]]:
    try:
        if path.stat().st_size > _MOST_BYTES:
            return
        rows = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    for row in rows:
        try:
            record = json.loads(row)
        except ValueError:
            continue
        sha = _text(_field(_field(record, "vcs"), "revision"))
        tool = _text(_field(_field(record, "tool"), "name"))
        for touched in _items(_field(record, "files")):
            for talk in _items(_field(touched, "conversations")):
                url = _text(_field(talk, "url"))
                who = Noted(
                    "agent-trace", tool, url.rstrip("/").rpartition("/")[2] if url else None
                )
                for span in _items(_field(talk, "ranges")):
                    first, last = _field(span, "start_line"), _field(span, "end_line")
                    name = _text(_field(touched, "path"))
                    if sha and name and isinstance(first, int) and isinstance(last, int):
                        yield sha, name, range(first, min(last, 10**6) + 1), who


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
