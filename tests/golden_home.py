"""Homes with the files of one agent, laid out from `tests/golden/AGENT/home`.

What lies there is what the agent writes below HOME, with these exceptions:

- `X.db.sql` (any name that ends with `.sql`) makes the database `X.db` by running its statements,
  which may use `zstd('text')` for compressed values and `x'..'` for binary ones;
- `X.zst` is written compressed, `X.hex` is written as the bytes that it spells;
- `{HOME}` stands for the home.

`facts.json` beside it says what must be read from them: see `facts`. `"roots"` in it are folders
below HOME that a person would have to add in config.toml.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import apsw
import zstandard
from tests.conftest import World, opened

from sessiond.config import Config
from sessiond.ingest import Ingest
from sessiond.reading.territory import Territory
from sessiond.service.startup import note_agents
from sessiond.sources import all_sources, source_classes
from sessiond.writing.transaction import Store

GOLDEN = Path(__file__).parent / "golden"
SECRET = "SYNTHETIC-SECRET"
_TIME = "strftime('%Y-%m-%dT%H:%M:%fZ', s.{}_at / 1000.0, 'unixepoch')"
_SQL, _PACKED, _HEX = ".sql", ".zst", ".hex"


@dataclass(frozen=True)
class Part:
    """One file of a home: its path below HOME, and what makes it."""

    path: str
    data: bytes = b""
    statements: tuple[str, ...] = ()  # of a database

    @property
    def is_database(self) -> bool:
        return bool(self.statements)


def agents() -> list[str]:
    return sorted(folder.parent.name for folder in GOLDEN.glob("*/home"))


@cache
def expected(agent: str) -> dict:
    told: dict = json.loads((GOLDEN / agent / "facts.json").read_text("utf-8"))
    return told


def parts_of(agent: str, root: Path) -> list[Part]:
    """The files of an agent's golden home, for a home at `root`."""
    home = GOLDEN / agent / "home"
    found = []
    for file in sorted(path for path in home.rglob("*") if path.is_file()):
        path = str(file.relative_to(home))
        data = file.read_bytes().replace(b"{HOME}", str(root).encode())
        if path.endswith(_SQL):
            found.append(Part(path.removesuffix(_SQL), statements=_statements(data.decode())))
        elif path.endswith(_HEX):
            found.append(Part(path.removesuffix(_HEX), bytes.fromhex(data.decode())))
        else:
            packed = zstandard.ZstdCompressor().compress(data) if path.endswith(_PACKED) else data
            found.append(Part(path, packed))
    return found


def _statements(sql: str) -> tuple[str, ...]:
    found, pending = [], ""
    for line in sql.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            found.append(pending)
            pending = ""
    assert not pending.strip(), pending
    return tuple(found)


def database(path: Path) -> apsw.Connection:
    """A writer of an agent's database, as the agent would open it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    db = apsw.Connection(str(path))

    def packed(*texts: Any) -> bytes:
        return zstandard.ZstdCompressor().compress(texts[0].encode())

    db.create_scalar_function("zstd", packed, 1)
    return db


class GoldenWorld(World):
    """A home with the files of one agent, and an index outside of it."""

    def __init__(self, folder: Path, agent: str, index: str = "index") -> None:
        self.agent = agent
        self.root = folder.resolve() / "home"
        self.state = folder.resolve() / index
        self.state.mkdir(mode=0o700)
        shutil.rmtree(self.root, ignore_errors=True)
        self.root.mkdir()
        self.parts = parts_of(agent, self.root)
        self.skipped: list[list[str]] = []  # by the one read of `clean`
        roots = [str(self.root / root) for root in expected(agent).get("roots", ())]
        environ = {"HOME": str(self.root), "TZ": "UTC"}
        self.sources = [
            made(roots if made.agent == agent else (), environ, "linux")
            for made in source_classes()
        ]
        self.source = next(one for one in self.sources if one.agent == agent)
        self._roots: dict[str, list[str]] = {}
        self.env = {"HOME": str(self.root), "SESSIOND_HOME": str(self.state), "TZ": "UTC"}
        self.env |= {name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ}

    def forget(self, index: str) -> None:
        """Begin a new index of the same home."""
        self.state = self.state.with_name(index)
        self.state.mkdir(mode=0o700)

    def places(self):
        """Those of the agent, and of others whose roots are in this home."""
        found = [one for one in self.sources if one is self.source or self._is_here(one)]
        return Territory(found).places

    def _is_here(self, source) -> bool:
        roots = self._roots.setdefault(source.agent, [])
        if not roots:
            roots += source.roots() or [os.devnull + "/none"]
        return any(map(os.path.lexists, roots))

    def ingest(self, *, settle=True):
        with closing(opened(self.state / "index.db")) as db:
            note_agents(db, all_sources(Config()))
            return Ingest(Store(db), settle=settle).reconcile(self.places())

    def file(self, part: Part) -> Path:
        return self.root / part.path

    def kind(self, part: Part) -> str | None:
        """What the file is for its agent, whose roots must be around it."""
        path = str(self.file(part)).removesuffix(_PACKED)
        place = Territory([self.source]).place_of(path)
        return self.source.kind_of(path) if place else None

    def lay(self, part: Part, data: bytes | None = None) -> None:
        """Write a file whole."""
        path = self.file(part)
        path.parent.mkdir(parents=True, exist_ok=True)
        if part.is_database and data is None:
            with closing(database(path)) as db:
                for statement in part.statements:
                    db.execute(statement)
        else:
            path.write_bytes(part.data if data is None else data)

    def lay_all(self) -> None:
        for part in self.parts:
            self.lay(part)


def clean(folder: Path, agent: str, index: str = "clean") -> GoldenWorld:
    """A home that was read once."""
    world = GoldenWorld(folder, agent, index)
    world.lay_all()
    summary = world.ingest()
    home = str(world.root)
    world.skipped = sorted([path.replace(home, "{HOME}"), why] for path, why in summary.skipped)
    return world


def facts(world: GoldenWorld) -> dict:
    """What the index says about each session; what is empty, zero or unknown is left out.

    Tokens have one meaning for all agents: input without cache, output with reasoning. `cost_usd`
    is what the agent recorded itself. `copied` counts records that another session had first.
    """
    told = {}
    rows = world.sql(
        "SELECT s.id, s.native_id, s.agent, s.kind, p.native_id, s.project,"
        f" coalesce(s.title, s.first_prompt), s.git_branch, s.models, {_TIME.format('started')},"
        f" {_TIME.format('ended')}, s.prompts, s.call_id IS NOT NULL FROM sessions s"
        " LEFT JOIN sessions p ON p.id = s.parent_id ORDER BY s.native_id, s.home"
    )
    for key, name, agent, kind, parent, project, title, branch, models, *rest in rows:
        started, ended, prompts, linked = rest
        session = {
            "kind": kind,
            "parent": parent,
            "linked": bool(linked),
            "project": project,
            "title": title,
            "branch": branch,
            "started": started,
            "ended": ended,
            "models": json.loads(models or "[]"),
            "prompts": prompts,
            **_events(world, key),
            **_spent(world, key),
        }
        if agent != world.agent:
            session["agent"] = agent
        if name in told:
            name = f"{name} of {agent}"  # noqa: PLW2901
        told[name] = {what: value for what, value in session.items() if value}
    home = json.dumps(str(world.root))[1:-1]
    found = {"sessions": json.loads(json.dumps(told).replace(home, "{HOME}"))}
    warnings = world.sql("SELECT reason, sum(times) FROM warnings WHERE retired = 0 GROUP BY 1")
    if warnings:
        found["warnings"] = dict(warnings)
    return found


def _events(world: GoldenWorld, session: int) -> dict:
    rows = world.sql(
        "SELECT type, tool, kind, status, count(*) FROM events"
        " WHERE session_id = ? AND retired = 0 AND unjoined IS NULL GROUP BY 1, 2, 3, 4",
        session,
    )
    types: dict[str, int] = {}
    tools: dict[str, int] = {}
    states: dict[str, int] = {}
    for type_, tool, kind, status, count in rows:
        types[type_] = types.get(type_, 0) + count
        if type_ == "tool_use":
            name = f"{kind}: {tool}"
            tools[name] = tools.get(name, 0) + count
            states[status] = states.get(status, 0) + count
    of_event = "JOIN events e ON e.id = x.event_id WHERE e.session_id = ? AND e.retired = 0"
    count = "SELECT count(*) FROM"
    (unjoined,) = world.sql(
        f"{count} events WHERE session_id = ? AND retired = 0 AND unjoined IS NOT NULL", session
    )
    (files,) = world.sql(f"{count} files x {of_event}", session)
    (edits,) = world.sql(f"{count} edits x {of_event}", session)
    (copied,) = world.sql(
        f"{count} records WHERE session_id = ? AND retired = 0 AND copy_of IS NOT NULL", session
    )
    return {
        "events": types,
        "tools": tools,
        "failed": states.get("error", 0),
        "denied": states.get("denied", 0),
        "pending": states.get("pending", 0),
        "unjoined": unjoined[0],
        "files": files[0],
        "edits": edits[0],
        "copied": copied[0],
    }


def _spent(world: GoldenWorld, session: int) -> dict:
    names = ("input", "cache_read", "cache_write", "output", "reasoning")
    sums = ", ".join(f"coalesce(sum({name}_tokens), 0)" for name in names)
    ((responses, cost, *counts),) = world.sql(
        f"SELECT count(*), sum(cost_usd), {sums} FROM usage WHERE session_id = ? AND counted",
        session,
    )
    tokens = {name: count for name, count in zip(names, counts, strict=True) if count}
    return {"responses": responses, "tokens": tokens, "cost_usd": cost and round(cost, 9)}
