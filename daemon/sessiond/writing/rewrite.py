"""Rereads a rewritten file: records that it still has keep their rows, the others are retired.

The whole file is read again in one transaction. Unchanged bytes stay in the archive; the others are
kept beside the new ones under the number of the generation that replaced them.
"""

from __future__ import annotations

import apsw

from sess_schema.ids import NO_SOURCE
from sessiond.reading.tracked import Progress, Tracked
from sessiond.writing.copies import Copies
from sessiond.writing.events import EventWriter
from sessiond.writing.session_facts import SessionFacts
from sessiond.writing.sessions import Sessions


class Rewriting:
    """Retires what a file said before it was rewritten."""

    def __init__(
        self,
        db: apsw.Connection,
        *,
        sessions: Sessions,
        copies: Copies,
        events: EventWriter,
        facts: SessionFacts,
    ) -> None:
        self._db = db
        self._sessions = sessions
        self._copies = copies
        self._events = events
        self._facts = facts

    def rewind(self, source: Tracked, kept: int) -> None:
        """Retire every turn of the source, to read it again from the first byte."""
        db = self._db
        source.generation += 1
        db.execute(
            "UPDATE chunks SET retired = ? WHERE source_id = ? AND retired = 0 AND offset >= ?",
            (source.generation, source.id, kept),
        )
        self.retire_records(source)
        source.archived_to = kept
        source.save_progress(db, Progress())

    def retire_records(self, source: Tracked) -> None:
        """Retire every turn of the source under its generation."""
        db, new = self._db, source.generation
        db.execute(
            "UPDATE turns SET retired = ? WHERE source_id = ? AND retired = 0 AND session_id IN"
            " (SELECT session_id FROM session_sources WHERE source_id = ?)",
            (new, source.id, source.id),
        )
        db.execute(
            "UPDATE warnings SET retired = ? WHERE source_id = ? AND retired = 0", (new, source.id)
        )
        # Sessions that only this file has are read from scratch.
        alone = db.execute(
            "SELECT session_id FROM session_sources s WHERE source_id = ?1 AND NOT EXISTS"
            " (SELECT 1 FROM session_sources o WHERE o.session_id = s.session_id"
            " AND o.source_id <> ?1)",
            (source.id,),
        )
        for (session_id,) in list(alone):
            self._sessions.by_id(session_id).unlearn()
            self._facts.take_back_titles(session_id)

    def finish(self, source: Tracked) -> None:
        """After rereading: hand over or retire the events of turns that are gone."""
        db = self._db
        members = "SELECT session_id FROM session_sources WHERE source_id = ?"
        lost = db.execute(
            "SELECT id, session_id FROM turns WHERE source_id = ? AND retired = ?"
            f" AND copy_of IS NULL AND session_id IN ({members})",
            (source.id, source.generation, source.id),
        )
        for turn_id, session_id in list(lost):
            self._copies.retire(turn_id, session_id, source.generation)
        self._events.detach_lost(source.id or NO_SOURCE, source.generation)
        self._facts.count_again(*(key for (key,) in db.execute(members, (source.id,))))
