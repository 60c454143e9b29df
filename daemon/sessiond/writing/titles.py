"""Titles that name a record of another session, given to the session that owns the record.

The order of files must not matter, so each such title is kept as a row, and the titles of affected
sessions are chosen again whenever a title, its record or its owner changes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

import apsw

from sess_schema.session import shown
from sessiond.sourcekit.base import TITLE_AI, TITLE_PROMPT, TITLE_SUMMARY, Title
from sessiond.sourcekit.titles import is_weak, prompt_title
from sessiond.writing.sessions import Session, Sessions


class Titles:
    """Collects changes in a transaction and chooses titles at its end."""

    def __init__(self, db: apsw.Connection, sessions: Sessions) -> None:
        self._db = db
        self._sessions = sessions
        self._affected: set[int] = set()
        self._reprompted: set[int] = set()
        self._any: bool | None = None  # whether there are such titles

    def give(self, session: Session, title: Title, position: int) -> None:
        if title.rank != TITLE_SUMMARY or title.leaf is None:
            session.entitle(title.text, title.rank)
            return
        self._db.execute(
            "INSERT OR REPLACE INTO leaf_titles (leaf, session_id, position, title)"
            " VALUES (?, ?, ?, ?)",
            (title.leaf, session.id, position, title.text),
        )
        self._any = True
        self._affected.add(session.id)
        self._affected.update(self._owners([title.leaf]))

    def take_back(self, session_id: int) -> None:
        """Drop a session's titles: its file is read again from the first byte."""
        self._db.execute("DELETE FROM leaf_titles WHERE session_id = ?", (session_id,))
        self._affected.add(session_id)

    def arrived(self, native_ids: Iterable[str], *sessions: Session) -> None:
        """Records were added to sessions or changed their owner."""
        if self._any is None:
            self._any = bool(self._db.execute("SELECT EXISTS (SELECT 1 FROM leaf_titles)").get)
        if not self._any:
            return
        holders = self._db.execute(
            "SELECT session_id FROM leaf_titles WHERE leaf IN (SELECT value FROM json_each(?))",
            (json.dumps(list(native_ids)),),
        )
        found = {session_id for (session_id,) in holders}
        if found:
            self._affected |= found | {session.id for session in sessions}

    def prompts_left(self, session: Session) -> None:
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

    def choose(self) -> None:
        """Choose the title of every affected session."""
        for session_id in self._reprompted:
            self.renew_prompt(self._sessions.by_id(session_id))
        self._reprompted.clear()
        for session_id in self._affected:
            session = self._sessions.by_id(session_id)
            if session.title_rank >= TITLE_AI:
                continue
            summary = self._summary_of(session)
            if summary is not None:
                session.title, session.title_rank = summary, TITLE_SUMMARY
            else:
                session.title = session.first_prompt
                session.title_rank = TITLE_PROMPT if session.first_prompt else 0
        self._affected.clear()

    def _summary_of(self, session: Session) -> str | None:
        """The last title for a record that the session owns."""
        owned = [
            (self._sessions.by_id(holder).native_id, position, str(title))
            for holder, position, title in self._db.execute(
                "SELECT l.session_id, l.position, l.title FROM leaf_titles l"
                " JOIN turns t ON t.native_id = l.leaf"
                " WHERE t.session_id = ? AND t.copy_of IS NULL",
                (session.id,),
            )
        ]
        return max(owned)[-1] if owned else None

    def _owners(self, native_ids: list[str]) -> set[int]:
        return {
            session_id
            for (session_id,) in self._db.execute(
                "SELECT session_id FROM turns WHERE copy_of IS NULL"
                " AND native_key IN (SELECT short_key(value) FROM json_each(?1))"
                " AND native_id IN (SELECT value FROM json_each(?1))",
                (json.dumps(native_ids),),
            )
        }
