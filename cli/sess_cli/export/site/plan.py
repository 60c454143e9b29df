"""The manifest of a site, and what has to be redrawn."""

from __future__ import annotations

import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from hashlib import blake2s
from typing import Any

import apsw

from sess_schema import __version__, marks
from sess_schema.queries.sessions import SessionRow

MANIFEST = ".sessiond-site.json"
FORMAT = 3
NO_PROJECT = "no project"
_UNSAFE = re.compile(r"[^0-9A-Za-z._-]+")
_PAGE = re.compile(r"sessions/[0-9A-Za-z_-][0-9A-Za-z._-]*\.html")
_LONGEST_NAME = 48
_PER_BUNDLE = 24  # sessions per bundle of search texts


@dataclass(slots=True)
class ListedSession:
    """A session of the site, as the lists show it and the next run recognises it."""

    key: str  # a digest of agent, home and id
    file: str  # relative to the site, with forward slashes
    bundle: int
    print: str  # a digest of everything its page shows
    listed: bool  # by `sess list`, too; the lists of the site fold the others away
    project: str
    title: str
    agent: str
    branch: str
    started: int | None
    ended: int | None
    prompts: int
    calls: int
    failed: int
    denied: int
    # The same without copies from other sessions: totals count everything once.
    own_prompts: int
    own_calls: int
    own_failed: int
    own_denied: int
    tokens: int
    cost_nano: int
    size: int  # size of its page in bytes
    texts: int  # size of its line in the bundle in bytes
    secrets: int  # how many of those found in any session of the site occur in it


@dataclass(slots=True)
class Manifest:
    sessions: dict[str, ListedSession] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)  # all other files of the site


def load(folder: str) -> Manifest | None:
    """The manifest of the last run; None if missing, damaged, or in another format."""
    try:
        with open(os.path.join(folder, MANIFEST), encoding="utf-8") as file:
            data = json.load(file)
        if data["format"] != FORMAT:
            return None
        entries = [ListedSession(**entry) for entry in data["sessions"]]
        manifest = Manifest({entry.key: entry for entry in entries}, data["files"])
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
    return manifest if _is_sound(manifest) else None


def _is_sound(manifest: Manifest) -> bool:
    """The directory may come from somebody else: no path may lead out of it."""
    types = {"str": str, "int": int, "int | None": int | None, "bool": bool}
    columns = {column.name: types[str(column.type)] for column in fields(ListedSession)}
    return all(isinstance(name, str) for name in manifest.files) and all(
        _PAGE.fullmatch(str(entry.file)) is not None
        and all(isinstance(getattr(entry, name), form) for name, form in columns.items())
        for entry in manifest.sessions.values()
    )


def dump(manifest: Manifest) -> bytes:
    return json.dumps(
        {
            "format": FORMAT,
            "files": sorted(manifest.files),
            "sessions": [asdict(entry) for entry in manifest.sessions.values()],
        },
        separators=(",", ":"),
    ).encode()


def key_of(row: SessionRow) -> str:
    """Without the agent's home path: a site may be published."""
    return digest(f"{row.agent}\n{row.home}\n{row.session}", 12)


def prints(db: apsw.Connection, rows: Iterable[SessionRow], options: str) -> dict[int, str]:
    """A digest, by session, of everything its page may show, without reading events."""
    facts_of: dict[int, list[Any]] = defaultdict(list)
    below: dict[int, list[int]] = defaultdict(list)
    for key, parent, *facts in db.execute(
        f"SELECT s.id, s.parent_id, {marks.title()}, s.project, s.git_branch, s.models, s.records,"
        " s.events, s.prompts, s.tool_calls, s.started_at, s.ended_at, s.call_id, s.agent_type"
        " FROM sessions s"
    ):
        facts_of[key] += facts
        if parent is not None:
            below[parent].append(key)
    for key, *facts in db.execute(
        "SELECT m.session_id, r.id, r.generation, r.offset, r.lines, r.mtime_ns"
        " FROM session_sources m JOIN sources r ON r.id = m.source_id ORDER BY 1, 2"
    ):
        facts_of[key] += facts
    for key, *facts in db.execute(
        "SELECT session_id, sum(cost_nano), sum(requests), sum(output_tokens)"
        " FROM usage_sums GROUP BY 1"
    ):
        facts_of[key] += facts

    def whole(key: int, above: frozenset[int]) -> list[Any]:
        inner = [whole(child, above | {key}) for child in below[key] if child not in above]
        return [facts_of[key], inner]

    return {
        row.key: digest(repr((__version__, options, whole(row.key, frozenset()))), 12)
        for row in rows
    }


class Names:
    """Unique file names for sessions, kept from the last run."""

    def __init__(self, before: Manifest) -> None:
        self._before = before
        self._taken = {entry.file.casefold() for entry in before.sessions.values()}
        self._bundles = Counter(entry.bundle for entry in before.sessions.values())

    def of(self, row: SessionRow) -> tuple[str, int]:
        """(file, bundle of its texts)"""
        earlier = self._before.sessions.get(key_of(row))
        if earlier is not None:
            return earlier.file, earlier.bundle
        name = file_name(f"{row.agent}-{row.session}")
        if f"sessions/{name}.html".casefold() in self._taken:  # many file systems ignore case
            name += f"-{digest(key_of(row))}"
        file = f"sessions/{name}.html"
        self._taken.add(file.casefold())
        bundle = max(self._bundles, default=0)
        if self._bundles[bundle] >= _PER_BUNDLE:
            bundle += 1
        self._bundles[bundle] += 1
        return file, bundle


def file_name(text: str) -> str:
    """Foreign text as a safe file name."""
    return _UNSAFE.sub("-", text).strip("-.")[:_LONGEST_NAME] or "session"


def project_file(project: str) -> str:
    """The file of a project; the digest separates projects with the same name."""
    last = project.replace("\\", "/").rstrip("/").rpartition("/")[2]
    return f"projects/{file_name(last)}-{digest(project)}.html"


def project_names(projects: Iterable[str]) -> dict[str, str]:
    """The last name of each path, and as many names before it as make it unique."""
    split = {path: path.replace("\\", "/").rstrip("/").split("/") for path in projects}
    names = {path: words[-1] or path for path, words in split.items()}
    for length in range(2, 8):
        count = Counter(names.values())
        for path, words in split.items():
            if count[names[path]] > 1 and len(words) >= length:
                names[path] = "/".join(words[-length:])
    return names


def digest(text: str, size: int = 4) -> str:
    return blake2s(text.encode("utf-8", "replace"), digest_size=size).hexdigest()
