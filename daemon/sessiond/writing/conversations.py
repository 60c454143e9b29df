"""Conversations in a database or document: their records are added, changed, moved and removed.

Each conversation is a separate source (`database#conversation`), archived as one line per record
(`conversation_records.py`) in the order of the conversation.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

import apsw

from sess_schema.ids import RecordId
from sessiond.reading.tail import storable
from sessiond.reading.tracked import GONE, LIVE, Tracked, now_ms
from sessiond.sourcekit.base import Conversation, Item, Record, SessionSpec
from sessiond.sourcekit.bounds import bound
from sessiond.sourcekit.folders import common_folder
from sessiond.sourcekit.foreign import NO_PLACE
from sessiond.writing.conversation_records import Lines, Revision
from sessiond.writing.events import EventWriter
from sessiond.writing.records import Mirrors, bare
from sessiond.writing.sessions import Session, SessionFacts, Sessions
from sessiond.writing.usage import Bills

_FILES = "files"  # `project_from`: the directory that holds all files its calls touched


@dataclass(slots=True, eq=False)
class ConversationWriter:
    """Writes what changed in conversations."""

    db: apsw.Connection
    lines: Lines
    revision: Revision
    sessions: Sessions
    mirrors: Mirrors
    events: EventWriter
    bills: Bills
    facts: SessionFacts

    def apply(self, whole: Tracked, part: Tracked, change: Conversation) -> int:
        """Bring one conversation up to date; return how many records were written."""
        for item in change.items:
            if item.record is not None:
                bound(item.record)
        if change.gone:
            self._leave(whole, part, change)
            return 0
        if not change.order and part.id is None:  # started, but still empty; or only a name
            self.sessions.rename(part.agent, change.spec)
            self._remember(whole, [(item, None) for item in change.items])
            return 0
        # The keys of a document's records begin with their conversation's.
        fresh = part.id is None and whole.kind == "document"
        session, outranked = self._session(whole, part, change)
        opened = session.opened_at
        written = self._records(whole, part, session, change, fresh=fresh)
        self._forget(whole, change.removed)
        self._move(whole, change.moved)
        self._finish(part, session, change, opened, outranked=outranked)
        return written

    def _records(
        self,
        whole: Tracked,
        part: Tracked,
        session: Session,
        change: Conversation,
        *,
        fresh: bool,
    ) -> int:
        keys = [item.key for item in change.items] + change.removed
        stored, stale = self._stored(whole, keys) if not fresh else ({}, set())
        again = list[RecordId]()
        lost = [stored[key] for key in change.removed if key in stored]
        seen: list[tuple[Item, RecordId | None]] = []
        new: list[tuple[Item, Record]] = []
        for item in change.items:
            record_id = stored.get(item.key)
            if item.record is None:
                lost += [record_id] if record_id else []
                seen.append((item, None))
                continue
            self.lines.date_record(item.record, item.key, change)
            stale_item = item.key in stale
            if record_id and self.revision.apply(session, record_id, item.record, stale=stale_item):
                self.lines.rewrite(part, record_id, item)
                for link in item.record.links:  # it may name its subagent only later
                    self.sessions.link(part.agent, change.spec, session, link)
                seen.append((item, record_id))
            else:
                if record_id:
                    (again if stale_item else lost).append(record_id)
                new.append((item, item.record))
        self.lines.retire(part, session, lost)
        self.lines.discard(part, session, again)
        if not fresh:  # first move the old ones, then add the new ones between them
            self.lines.arrange(whole, part, change)
        seen += self.lines.add(part, change, new)
        self._remember(whole, seen)
        return sum(record_id is not None for _, record_id in seen)

    # -- the session

    def _session(self, whole: Tracked, part: Tracked, change: Conversation) -> tuple[Session, bool]:
        """The session, and whether a better source has it."""
        new = part.id is None
        part.part_of = whole.id
        part.save_identity(self.db)
        plain = bare(change.spec)
        session = self.sessions.get(part.agent, plain)
        if new:
            self.mirrors.enroll(part.id, session.id, change.spec.fallback)
            hid = self.mirrors.retire(session.id)
            if hid and not self._is_outranked(part, session, change.spec):
                self.sessions.unlearn(session)  # what worse sources gave
        outranked = self._is_outranked(part, session, change.spec)
        if outranked:
            change.spec = plain
        else:
            self.sessions.get(part.agent, change.spec)
            self._learn(session, change)
        for child_id in change.children:
            child = self.sessions.named(part.agent, child_id)
            if child.parent_id is None and child.id != session.id:
                child.kind, child.parent_id = "subagent", session.id
        return session, outranked

    def _is_outranked(self, part: Tracked, session: Session, spec: SessionSpec) -> bool:
        return self.mirrors.is_outranked(part.id, session.id, spec.fallback)

    @staticmethod
    def _learn(session: Session, change: Conversation) -> None:
        if change.project and change.project_rank >= session.project_rank:
            session.project, session.project_rank = change.project, change.project_rank
            session.project_from = None
        session.git_branch = change.git_branch or session.git_branch
        session.mode = change.mode or session.mode
        if change.model and change.model not in session.models:
            session.models.append(change.model)

    def _finish(
        self,
        part: Tracked,
        session: Session,
        change: Conversation,
        opened: int | None,
        *,
        outranked: bool,
    ) -> None:
        """Recompute the session's facts from its rows."""
        self.events.flush()
        ((first, last, count),) = self.db.execute(
            "SELECT min(ts) FILTER (WHERE ts_from IS NOT 'session'),"
            " max(ts) FILTER (WHERE ts_from IS NOT 'session'), count(*)"
            " FILTER (WHERE source_id = ?)"
            " FROM records WHERE session_id = ? AND retired = 0",
            (part.id, session.id),
        )
        if not outranked:
            session.started_at = first if first is not None else change.created_at
            # Without events its log is elsewhere, and this is only what it used.
            session.opened_at = session.started_at if self._has_events(session, part) else opened
            session.ended_at = last if last is not None else change.updated_at or change.created_at
            if session.project_rank == 0 and not session.has_project:
                touched = common_folder(self._touched(session))
                session.project = touched or session.project
                session.project_from = _FILES if touched else session.project_from
            self.facts.renew_prompt(session)
            self.bills.add(session, change.model, change.costs)
        self.facts.count_again(session.id)
        if outranked:
            count = len(change.order)  # all are hidden
        changed = change.updated_at or last or change.created_at or 0
        self.db.execute(
            "UPDATE sources SET generation = ?, lines = ?, mtime_ns = ?, read_at = ? WHERE id = ?",
            (part.generation, count, storable(changed * 1_000_000), now_ms(), part.id),
        )
        if part.state != LIVE or part.error:
            part.save_state(self.db, LIVE)

    def _has_events(self, session: Session, part: Tracked) -> bool:
        return bool(
            self.db.execute(
                "SELECT EXISTS (SELECT 1 FROM records t JOIN events e"
                " ON e.record_id = coalesce(t.copy_of, t.id)"
                " WHERE t.session_id = ? AND t.source_id = ?)",
                (session.id, part.id),
            ).get
        )

    def _touched(self, session: Session) -> Iterable[str]:
        for (path,) in self.db.execute(
            "SELECT DISTINCT f.path FROM events e JOIN files f ON f.event_id = e.id"
            " WHERE e.session_id = ? AND e.retired = 0",
            (session.id,),
        ):
            yield path

    # -- `database_rows`

    def _stored(self, whole: Tracked, keys: list[str]) -> tuple[dict[str, RecordId], set[str]]:
        """The ids of the records with these keys, and the keys that only an older edition read."""
        records, stale = dict[str, RecordId](), set[str]()
        for key, record_id, place in self.db.execute(
            "SELECT r.key, r.record_id, r.place FROM json_each(?) k CROSS JOIN database_rows r"
            " ON r.source_id = ? AND r.key = k.value WHERE r.record_id IS NOT NULL",
            (json.dumps(keys), whole.id),
        ):
            records[key] = record_id
            if place < NO_PLACE:
                stale.add(key)
        return records, stale

    def _remember(self, whole: Tracked, items: Iterable[tuple[Item, RecordId | None]]) -> None:
        self.db.executemany(
            "INSERT OR REPLACE INTO database_rows"
            " (source_id, key, place, digest, record_id, alias, ts) VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                (whole.id, item.key, item.place, item.digest, record_id, item.alias, item.ts)
                for item, record_id in items
            ],
        )

    def _forget(self, whole: Tracked, keys: list[str]) -> None:
        if keys:
            self.db.executemany(
                "DELETE FROM database_rows WHERE source_id = ? AND key = ?",
                [(whole.id, key) for key in keys],
            )

    def _move(self, whole: Tracked, moved: list[tuple[str, int]]) -> None:
        if moved:
            self.db.executemany(
                "UPDATE database_rows SET place = ? WHERE source_id = ? AND key = ?",
                [(place, whole.id, key) for key, place in moved],
            )

    def _leave(self, whole: Tracked, part: Tracked, change: Conversation) -> None:
        """The whole conversation left the database: retire nothing of it."""
        self._remember(whole, [(item, None) for item in change.items])
        self._move(whole, [(key, NO_PLACE) for key in change.removed])
        if part.id is not None:
            part.save_state(self.db, GONE)
