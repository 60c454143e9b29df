"""Sessions: found or created once, changed in memory, written at commit.

Title, counts and project are known only at the end of a transaction, and do not depend on which
file was read first. A title may name a record of another session, and goes to the session that owns
the record; each is kept as a row, and titles are chosen again when one, its record or the owner
changes.
A session whose records name no project has one from the folder of its files; another session there
may show what the folder's name means.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields

import apsw

from sess_schema import shown
from sess_schema.ids import SessionId
from sessiond.sourcekit import base
from sessiond.sourcekit.folders import ProjectFolder
from sessiond.sourcekit.values import is_weak, prompt_title


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

    def learn(self, record: base.Record) -> None:
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
        if rank == base.TITLE_PROMPT:
            if self.first_prompt is None or (is_weak(self.first_prompt) and not is_weak(text)):
                self.first_prompt = text
            if self.title_rank <= base.TITLE_PROMPT:
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

    def age(self) -> tuple[int, bool, str, str]:
        """Sort key: of two sessions with the same record, the one started first is the original.

        A subagent may begin with all that its parent said.
        """
        opened = self.opened_at if self.opened_at is not None else 1 << 62
        return opened, self.kind == "subagent", self.native_id, self.home


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

    def with_new_models(self) -> Iterator[Session]:
        """Sessions to save of which several models are known, and not the same as before."""
        at = COLUMNS.index("models")
        for session in self._by_id.values():
            saved = self._saved.get(session.id)
            if len(session.models) > 1 and (not saved or saved[at] != json.dumps(session.models)):
                yield session

    def by_id(self, session_id: SessionId) -> Session:
        cached = self._by_id.get(session_id)
        return cached or next(self._load("id = ?", (session_id,)))

    def get(self, agent: str, spec: base.SessionSpec) -> Session:
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
            session.entitle(spec.title, base.TITLE_AI)
        if spec.resume:
            session.resume = json.dumps(spec.resume, separators=(",", ":"))
        if spec.call_id:
            self._link(session, spec.call_id, base.LINK_META)
        return session

    def unlearn(self, session: Session) -> None:
        """Forget what its sources said about it as a whole."""
        session.unlearn()
        self.placed.pop(session.id, None)

    def named(self, agent: str, native_id: str) -> Session:
        """A session that another one mentions, read or not."""
        return self._find_or_make(agent, native_id, "")

    def rename(self, agent: str, spec: base.SessionSpec) -> None:
        """Take a title that was found apart from the records of a session."""
        key = (agent, spec.native_id, spec.home)
        if spec.title is None:
            return
        cached = self._by_key.get(key)
        named = "agent = ? AND native_id = ? AND home = ?"
        for session in [cached] if cached else self._load(named, key):
            session.entitle(spec.title, base.TITLE_AI)

    def sidechain(self, parent: Session, native_id: str) -> Session:
        """A subagent whose records are in its parent's file."""
        session = self._find_or_make(parent.agent, native_id, parent.native_id)
        session.become("subagent")
        session.parent_id = parent.id
        return session

    def link(self, agent: str, spec: base.SessionSpec, session: Session, link: base.Link) -> None:
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


_COUNTS = (
    "SELECT count(*), count(*) FILTER (WHERE type = 'user' AND ?2 <> 'subagent'),"
    " count(*) FILTER (WHERE type = 'tool_use' AND unjoined IS NULL)"
    f" FROM events WHERE id IN ({shown.IDS.replace('?', '?1')})"
)
FROM_FOLDER, FROM_NAME = (
    "folder",
    "name",
)  # `project_from`: decoded from the folder's name; that name itself
# Sessions with a file in a folder or below it.
_INSIDE = (
    "FROM sessions s JOIN session_sources m ON m.session_id = s.id"
    " JOIN sources r ON r.id = m.source_id WHERE r.path > ? AND r.path < ?"
)


class SessionFacts:
    """Collects which sessions changed, and renews their facts before the commit."""

    def __init__(self, db: apsw.Connection, sessions: Sessions) -> None:
        self._db = db
        self._sessions = sessions
        self._retitled: set[SessionId] = set()
        self._reprompted: set[SessionId] = set()
        self._recounted: set[SessionId] = set()
        self._any_leaf: bool | None = None  # whether there are titles that name a record
        self._remodelled: set[SessionId] = set()

    def renew(self, reshaped: Iterable[SessionId]) -> None:
        """Choose titles, which needs every record and its owner, and count; joins are final."""
        self._choose_titles()
        self._remodelled.update(self._recounted, reshaped)
        self._remodelled.update(session.id for session in self._sessions.with_new_models())
        self._count(reshaped)

    def order_models(self) -> None:
        """List models by their first response, whatever was read first; responses are final."""
        for session_id in self._remodelled:
            session = self._sessions.by_id(session_id)
            if len(session.models) < 2:
                continue
            began = dict(
                self._db.execute(
                    "SELECT model, min(ts) FROM usage WHERE session_id = ? AND ts IS NOT NULL"
                    " GROUP BY model",
                    (session_id,),
                )
            )
            known = [model for model in session.models if model in began]
            ordered = iter(sorted(known, key=lambda model: (began[model], model)))
            models = [next(ordered) if model in began else model for model in session.models]
            if models != session.models:
                session.models = models
                self._db.execute(
                    "UPDATE sessions SET models = ? WHERE id = ?", (json.dumps(models), session_id)
                )
        self._remodelled.clear()

    # -- titles

    def entitle(self, session: Session, title: base.Title, position: int) -> None:
        if title.rank != base.TITLE_SUMMARY or title.leaf is None:
            session.entitle(title.text, title.rank)
            return
        self._db.execute(
            "INSERT OR REPLACE INTO leaf_titles (leaf, session_id, position, title)"
            " VALUES (?, ?, ?, ?)",
            (title.leaf, session.id, position, title.text),
        )
        self._any_leaf = True
        self._retitled.add(session.id)
        self._retitled.update(self._owners([title.leaf]))

    def take_back_titles(self, session_id: SessionId) -> None:
        """Drop a session's titles: its file is read again from the first byte."""
        self._db.execute("DELETE FROM leaf_titles WHERE session_id = ?", (session_id,))
        self._retitled.add(session_id)

    def records_arrived(self, native_ids: Iterable[str], *sessions: Session) -> None:
        """Records were added to sessions or changed their owner."""
        if self._any_leaf is None:
            self._any_leaf = bool(self._db.execute("SELECT EXISTS (SELECT 1 FROM leaf_titles)").get)
        if not self._any_leaf:
            return
        holders = self._db.execute(
            "SELECT session_id FROM leaf_titles WHERE leaf IN (SELECT value FROM json_each(?))",
            (json.dumps(list(native_ids)),),
        )
        session_ids = {session_id for (session_id,) in holders}
        if session_ids:
            self._retitled |= session_ids | {session.id for session in sessions}

    def prompts_changed(self, session: Session) -> None:
        """Mark a session in which a later record took prompts back or replaced them."""
        self._reprompted.add(session.id)

    def renew_prompt(self, session: Session) -> None:
        """Find the first prompt that is shown; it is the title unless there is a better one."""
        session.first_prompt = None
        if session.title_rank <= base.TITLE_PROMPT:
            session.title, session.title_rank = None, 0
        for text, label in self._db.execute(
            f"SELECT x.text, e.label FROM {shown.EVENTS} JOIN event_texts x ON x.id = e.id"
            f" WHERE t.session_id = ? AND {shown.CURRENT} AND e.type = 'user' {shown.IN_ORDER}",
            (session.id,),
        ):
            title = prompt_title(text, label)
            if title:
                session.entitle(title, base.TITLE_PROMPT)
            if title and not is_weak(title):
                break

    def _choose_titles(self) -> None:
        for session_id in self._reprompted:
            self.renew_prompt(self._sessions.by_id(session_id))
        self._reprompted.clear()
        for session_id in self._retitled:
            session = self._sessions.by_id(session_id)
            if session.title_rank >= base.TITLE_AI:
                continue
            summary = self._summary_of(session)
            if summary is not None:
                session.title, session.title_rank = summary, base.TITLE_SUMMARY
            else:
                session.title = session.first_prompt
                session.title_rank = base.TITLE_PROMPT if session.first_prompt else 0
        self._retitled.clear()

    def _summary_of(self, session: Session) -> str | None:
        """The last title for a record that the session owns."""
        owned = [
            (self._sessions.by_id(holder).native_id, position, str(title))
            for holder, position, title in self._db.execute(
                "SELECT l.session_id, l.position, l.title FROM leaf_titles l"
                " JOIN records t ON t.native_id = l.leaf"
                " WHERE t.session_id = ? AND t.copy_of IS NULL",
                (session.id,),
            )
        ]
        return max(owned)[-1] if owned else None

    def _owners(self, native_ids: list[str]) -> set[SessionId]:
        return {
            session_id
            for (session_id,) in self._db.execute(
                "SELECT session_id FROM records WHERE copy_of IS NULL"
                " AND native_key IN (SELECT short_key(value) FROM json_each(?1))"
                " AND native_id IN (SELECT value FROM json_each(?1))",
                (json.dumps(native_ids),),
            )
        }

    # -- counts

    def count_again(self, *session_ids: SessionId) -> None:
        """Copies, joins or replaced records changed; other sessions count what arrives."""
        self._recounted.update(session_ids)

    def _count(self, also: Iterable[SessionId]) -> None:
        for session_id in self._recounted.union(also):
            session = self._sessions.by_id(session_id)
            session.records = self._db.execute(
                "SELECT count(*) FROM records WHERE session_id = ?", (session_id,)
            ).get
            counts = self._db.execute(_COUNTS, (session_id, session.kind))
            session.events, session.prompts, session.tool_calls = next(iter(counts))
        self._recounted.clear()

    # -- projects

    def place(self) -> None:
        """Give every saved session of this transaction a project, as far as one is known."""
        folders: dict[ProjectFolder, list[SessionId]] = defaultdict(list)
        for session_id, (folder, had_project) in self._sessions.placed.items():
            session = self._sessions.by_id(session_id)
            if session.project is None:
                folders[folder].append(session_id)
            elif session.project_from is None and not had_project:
                folders[folder] += ()  # it may explain the name to others
        for folder, without in folders.items():
            inside = folder.path + os.sep, folder.path + chr(ord(os.sep) + 1)
            guessed = self._db.execute(
                f"SELECT DISTINCT s.id {_INSIDE} AND s.project_from IN (?, ?)",
                (*inside, FROM_FOLDER, FROM_NAME),
            )
            wanting = [*without, *(session_id for (session_id,) in guessed)]
            if not wanting:
                continue
            projects = self._db.execute(
                f"SELECT DISTINCT s.project {_INSIDE} AND s.project_from IS NULL"
                " AND s.project IS NOT NULL",
                inside,
            )
            project = folder.project([path for (path,) in projects])
            self._db.execute(
                "UPDATE sessions SET project = ?, project_from = ?"
                " WHERE id IN (SELECT value FROM json_each(?))",
                (
                    project or folder.name,
                    FROM_FOLDER if project else FROM_NAME,
                    json.dumps(wanting),
                ),
            )
