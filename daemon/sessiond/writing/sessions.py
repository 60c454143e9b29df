"""Sessions: found or created once, changed in memory, written at commit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, fields

import apsw

from sess_schema.ids import SessionId
from sessiond.sourcekit.base import (
    LINK_META,
    TITLE_AI,
    TITLE_PROMPT,
    Link,
    Record,
    SessionSpec,
)
from sessiond.sourcekit.folders import ProjectFolder
from sessiond.sourcekit.titles import is_weak


@dataclass(slots=True)
class Session:
    """A row of `sessions`; the fields are its columns."""

    id: SessionId
    agent: str
    native_id: str
    home: str
    alias: str | None = None
    kind: str = "main"
    parent_id: SessionId | None = None
    call_id: str | None = None
    link_rank: int = 0
    agent_type: str | None = None
    project: str | None = None
    title: str | None = None
    title_rank: int = 0
    first_prompt: str | None = None
    git_branch: str | None = None
    models: list[str] = field(default_factory=list)
    version: str | None = None
    started_at: int | None = None
    ended_at: int | None = None
    records: int = 0
    events: int = 0
    prompts: int = 0
    tool_calls: int = 0
    mode: str | None = None
    project_rank: int = 0
    resume: str | None = None  # a JSON array
    opened_at: int | None = None  # its first dated record in the file, not the earliest
    project_from: str | None = None  # of a project that no record names: folder, name, files

    def learn(self, record: Record) -> None:
        """Take what a record gives about its whole session."""
        self.records += 1
        if record.ts is not None and record.ts_from is None:
            if self.opened_at is None:
                self.opened_at = record.ts
            if self.started_at is None or record.ts < self.started_at:
                self.started_at = record.ts
            if self.ended_at is None or record.ts > self.ended_at:
                self.ended_at = record.ts
        if record.cwd and not self.has_project:
            self.project, self.project_from = record.cwd, None
        if record.git_branch:
            self.git_branch = record.git_branch
        if record.version:
            self.version = record.version
        if record.model and record.model not in self.models:
            self.models.append(record.model)
        if record.mode:
            self.mode = record.mode
        if record.session_alias and not self.alias:
            self.alias = record.session_alias

    @property
    def has_project(self) -> bool:
        """Whether the agent recorded it."""
        return self.project is not None and self.project_from is None

    def become(self, kind: str) -> None:
        self.kind = kind
        if kind == "subagent":
            self.prompts = 0  # what it is asked, no person asks

    def count(self, event_type: str) -> None:
        self.events += 1
        if event_type == "user":
            self.prompts += self.kind != "subagent"
        elif event_type == "tool_use":
            self.tool_calls += 1

    def entitle(self, text: str, rank: int) -> None:
        if rank == TITLE_PROMPT:
            if self.first_prompt is None or (is_weak(self.first_prompt) and not is_weak(text)):
                self.first_prompt = text
            if self.title_rank <= TITLE_PROMPT:
                self.title, self.title_rank = self.first_prompt, rank
        elif rank >= self.title_rank:
            self.title, self.title_rank = text, rank

    def unlearn(self) -> None:
        """Reset what is learnt from its file, which is read again from the first byte."""
        self.project = self.project_from = self.git_branch = self.version = self.alias = None
        self.mode = None
        self.opened_at = self.started_at = self.ended_at = None
        self.title = self.first_prompt = None
        self.title_rank = 0
        self.models = []

    def age(self) -> tuple[int, str, str]:
        """Sort key: of two sessions with the same record, the one started first is the original."""
        opened = self.opened_at if self.opened_at is not None else 1 << 62
        return opened, self.native_id, self.home


COLUMNS = [column.name for column in fields(Session)]
_SELECT = f"SELECT {', '.join(COLUMNS)} FROM sessions"
_ADD = f"INSERT INTO sessions ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"


class Sessions:
    """All sessions touched by the current transaction."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self._by_key: dict[tuple[str, str, str], Session] = {}
        self._by_id: dict[SessionId, Session] = {}
        self._saved: dict[SessionId, tuple[object, ...]] = {}  # rows as they are in the index
        self._next_id: int | None = None
        # By id: the folder of its file, and whether its project was known before.
        self.placed: dict[SessionId, tuple[ProjectFolder, bool]] = {}

    def save(self) -> None:
        """Write new sessions, and of others what changed: an index of the rest stays as it is."""
        for session in self._by_id.values():
            row = self._row(session)
            saved = self._saved.get(session.id)
            if saved is None:
                self._db.execute(_ADD, row)
            elif row != saved:
                changed = [at for at, value in enumerate(row) if value != saved[at]]
                self._db.execute(
                    f"UPDATE sessions SET {', '.join(f'{COLUMNS[at]} = ?' for at in changed)}"
                    " WHERE id = ?",
                    (*(row[at] for at in changed), session.id),
                )
            self._saved[session.id] = row

    def by_id(self, session_id: SessionId) -> Session:
        found = self._by_id.get(session_id)
        return found or next(self._load("id = ?", (session_id,)))

    def get(self, agent: str, spec: SessionSpec) -> Session:
        """The session of a file; a parent that was not read yet becomes an empty row."""
        session = self._find_or_make(agent, spec.native_id, spec.home)
        if spec.kind != "main" or session.parent_id is None:  # a parent may have claimed it
            session.become(spec.kind)
        if spec.parent and session.parent_id is None:
            session.parent_id = self._find_or_make(agent, spec.parent, spec.parent_home).id
        if spec.agent_type:
            session.agent_type = spec.agent_type
        if spec.folder:
            self.placed.setdefault(session.id, (spec.folder, session.has_project))
        if spec.project and not session.has_project:
            session.project, session.project_from = spec.project, None
        if spec.title:
            session.entitle(spec.title, TITLE_AI)
        if spec.resume:
            session.resume = json.dumps(spec.resume, separators=(",", ":"))
        if spec.call_id:
            self._link(session, spec.call_id, LINK_META)
        return session

    def unlearn(self, session: Session) -> None:
        """Forget what its sources said about it as a whole."""
        session.unlearn()
        self.placed.pop(session.id, None)

    def named(self, agent: str, native_id: str) -> Session:
        """A session that another one mentions, read or not."""
        return self._find_or_make(agent, native_id, "")

    def rename(self, agent: str, spec: SessionSpec) -> None:
        """Take a title that was found apart from the records of a session."""
        key = (agent, spec.native_id, spec.home)
        if spec.title is None:
            return
        found = self._by_key.get(key)
        named = "agent = ? AND native_id = ? AND home = ?"
        for session in [found] if found else self._load(named, key):
            session.entitle(spec.title, TITLE_AI)

    def sidechain(self, parent: Session, native_id: str) -> Session:
        """A subagent whose records are in its parent's file."""
        session = self._find_or_make(parent.agent, native_id, parent.native_id)
        session.become("subagent")
        session.parent_id = parent.id
        return session

    def link(self, agent: str, spec: SessionSpec, session: Session, link: Link) -> None:
        """A record of a session names a subagent and the call that started it."""
        if link.home is None:
            home, parent = spec.parent or spec.native_id, session.parent_id or session.id
        else:
            home, parent = link.home, session.id
        child = self._find_or_make(agent, link.native_id, home)
        child.become("subagent")
        if child.parent_id is None and child.id != parent:
            child.parent_id = parent
        self._link(child, link.call_id, link.rank)

    @staticmethod
    def _link(session: Session, call_id: str, rank: int) -> None:
        if rank >= session.link_rank:
            session.call_id, session.link_rank = call_id, rank

    def _find_or_make(self, agent: str, native_id: str, home: str) -> Session:
        key = (agent, native_id, home)
        if key in self._by_key:
            return self._by_key[key]
        for session in self._load("agent = ? AND native_id = ? AND home = ?", key):
            return session
        if self._next_id is None:
            self._next_id = self._db.execute("SELECT coalesce(max(id), 0) FROM sessions").get
        self._next_id += 1
        return self._keep(Session(SessionId(self._next_id), agent, native_id, home))

    def _load(self, where: str, values: tuple[object, ...]) -> Iterator[Session]:
        for row in self._db.execute(f"{_SELECT} WHERE {where}", values):
            session = Session(*row)
            session.models = json.loads(row[COLUMNS.index("models")])
            self._saved.setdefault(session.id, row)
            yield self._keep(session)

    def _keep(self, session: Session) -> Session:
        self._by_id[session.id] = session
        self._by_key[session.agent, session.native_id, session.home] = session
        return session

    @staticmethod
    def _row(session: Session) -> tuple[object, ...]:
        return tuple(
            json.dumps(session.models) if name == "models" else getattr(session, name)
            for name in COLUMNS
        )
