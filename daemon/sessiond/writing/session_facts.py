"""What is known of a session only at the end of a transaction: its title, counts and project.

None of it depends on which file was read first. A title may name a record of another session, and
goes to the session that owns the record; each is kept as a row, and titles are chosen again when
one, its record or the owner changes. A session whose records name no project has one from the
folder of its files; another session there may tell what the folder's name means.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable

import apsw

from sess_schema.ids import SessionId
from sess_schema.session import shown
from sessiond.sourcekit.base import TITLE_AI, TITLE_PROMPT, TITLE_SUMMARY, Title
from sessiond.sourcekit.folders import ProjectFolder
from sessiond.sourcekit.titles import is_weak, prompt_title
from sessiond.writing.sessions import Session, Sessions

_COUNTS = (
    "SELECT count(*), count(*) FILTER (WHERE type = 'user' AND ?2 <> 'subagent'),"
    " count(*) FILTER (WHERE type = 'tool_use' AND unjoined IS NULL)"
    f" FROM events WHERE id IN ({shown.IDS.replace('?', '?1')})"
)
FOLDER, NAME = "folder", "name"  # `project_from`: decoded from the folder's name; that name itself
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

    def renew(self, reshaped: Iterable[SessionId]) -> None:
        """Choose titles, which needs every record and its owner, and count; joins are final."""
        self._choose_titles()
        self._count(reshaped)

    # -- titles

    def entitle(self, session: Session, title: Title, position: int) -> None:
        if title.rank != TITLE_SUMMARY or title.leaf is None:
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
        found = {session_id for (session_id,) in holders}
        if found:
            self._retitled |= found | {session.id for session in sessions}

    def prompts_changed(self, session: Session) -> None:
        """Mark a session in which a later record took prompts back or replaced them."""
        self._reprompted.add(session.id)

    def renew_prompt(self, session: Session) -> None:
        """Find the first prompt that is shown; it is the title unless there is a better one."""
        session.first_prompt = None
        if session.title_rank <= TITLE_PROMPT:
            session.title, session.title_rank = None, 0
        for text, label in self._db.execute(
            f"SELECT x.text, e.label FROM {shown.EVENTS} JOIN event_texts x ON x.id = e.id"
            f" WHERE t.session_id = ? AND {shown.CURRENT} AND e.type = 'user' {shown.IN_ORDER}",
            (session.id,),
        ):
            title = prompt_title(text, label)
            if title:
                session.entitle(title, TITLE_PROMPT)
            if title and not is_weak(title):
                break

    def _choose_titles(self) -> None:
        for session_id in self._reprompted:
            self.renew_prompt(self._sessions.by_id(session_id))
        self._reprompted.clear()
        for session_id in self._retitled:
            session = self._sessions.by_id(session_id)
            if session.title_rank >= TITLE_AI:
                continue
            summary = self._summary_of(session)
            if summary is not None:
                session.title, session.title_rank = summary, TITLE_SUMMARY
            else:
                session.title = session.first_prompt
                session.title_rank = TITLE_PROMPT if session.first_prompt else 0
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
                (*inside, FOLDER, NAME),
            )
            wanting = [*without, *(session_id for (session_id,) in guessed)]
            if not wanting:
                continue
            known = self._db.execute(
                f"SELECT DISTINCT s.project {_INSIDE} AND s.project_from IS NULL"
                " AND s.project IS NOT NULL",
                inside,
            )
            project = folder.project([path for (path,) in known])
            self._db.execute(
                "UPDATE sessions SET project = ?, project_from = ?"
                " WHERE id IN (SELECT value FROM json_each(?))",
                (project or folder.name, FOLDER if project else NAME, json.dumps(wanting)),
            )
