"""One transaction on the index: everything that was read is written, or nothing is."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import apsw

from sess_schema import sums
from sessiond.engines.slices import Slice
from sessiond.prices.pricing import Pricer
from sessiond.reading.tracked import Tracked
from sessiond.sourcekit.base import SessionSpec
from sessiond.writing.bills import Bills
from sessiond.writing.chunks import Chunks
from sessiond.writing.copies import Copies
from sessiond.writing.events import EventWriter
from sessiond.writing.mirrors import Mirrors
from sessiond.writing.rewrite import Rewriting
from sessiond.writing.session_facts import SessionFacts
from sessiond.writing.sessions import Sessions
from sessiond.writing.supersede import Superseding
from sessiond.writing.turn_rows import TurnRows
from sessiond.writing.turns import TurnWriter
from sessiond.writing.usage import UsageWriter

if TYPE_CHECKING:
    from sessiond.writing.conversations import ConversationWriter


class Transaction:
    """Holds everything that is pending until the commit."""

    def __init__(self, db: apsw.Connection, pricer: Pricer) -> None:
        self.db = db
        self.chunks = Chunks(db)
        self.sessions = sessions = Sessions(db)
        self.facts = facts = SessionFacts(db, sessions)
        self.events = events = EventWriter(db, sessions, self.chunks)
        self.usage = usage = UsageWriter(db, sessions, pricer=pricer)
        self.bills = Bills(db, pricer)
        rows = TurnRows(db, self._turns_written)
        self.copies = copies = Copies(
            db, rows, sessions=sessions, events=events, usage=usage, facts=facts
        )
        self._mirrors = Mirrors(db, copies, facts)
        self.turns = TurnWriter(
            db,
            rows,
            sessions=sessions,
            copies=copies,
            mirrors=self._mirrors,
            superseding=Superseding(db, rows, copies=copies, events=events, facts=facts),
            events=events,
            usage=usage,
            facts=facts,
        )
        self.rewriting = Rewriting(db, sessions=sessions, copies=copies, events=events, facts=facts)

    @cached_property
    def conversations(self) -> ConversationWriter:
        """Of documents and databases; most transactions are only of logs."""
        from sessiond.writing.conversation_lines import Lines  # noqa: PLC0415
        from sessiond.writing.conversations import ConversationWriter  # noqa: PLC0415
        from sessiond.writing.revision import Revision  # noqa: PLC0415

        events, copies, usage = self.events, self.copies, self.usage
        return ConversationWriter(
            self.db,
            Lines(self.db, self.turns, self.chunks, copies=copies, events=events, usage=usage),
            Revision(self.db, events.rows, copies, usage),
            sessions=self.sessions,
            mirrors=self._mirrors,
            events=events,
            bills=self.bills,
            facts=self.facts,
        )

    def _turns_written(self) -> None:
        self.usage.turns_written()
        self.events.flush()

    def flush(self) -> None:
        """Write everything that waits for the commit. The order matters."""
        self.facts.renew(self.events.reshaped)  # needs every record, its owner, and every join
        self.sessions.save()  # includes the titles and counts
        self.facts.place()  # compares saved sessions
        self.usage.save()  # compares the ages of saved sessions
        self.bills.apply()  # needs every response
        sums.renew(self.db)  # needs the final events and usage
        # Last: any statement that opens a savepoint would make FTS5 flush what it has collected.
        self.events.rows.index()

    def add_slice(self, source: Tracked, spec: SessionSpec, slice_: Slice) -> None:
        """Write one slice of a log and move the source's checkpoint past it."""
        source.save_identity(self.db)
        self.chunks.add(source, slice_)
        self.chunks.add_problems(source, slice_.problems)
        if slice_.turns:
            self.turns.write(source, spec, slice_.turns)
        source.save_progress(self.db, slice_.progress)

    def replace_attachment(self, source: Tracked, fd: int) -> int:
        """Archive an overflowed output and complete the event that waits for it.

        Returns the number of warnings.
        """
        whole = self.chunks.replace(source, fd)
        self.events.fill_overflow(source.path)
        return 0 if whole else 1

    def refresh(self, source: Tracked, spec: SessionSpec) -> None:
        """Update the session from a sidecar that came after the transcript's last line."""
        if source.progress.lines:
            self.sessions.get(source.agent, spec)


class Store:
    """The writing side of the index. The caller begins and commits transactions."""

    def __init__(self, db: apsw.Connection, pricer: Pricer | None = None) -> None:
        self.db = db
        self._pricer = pricer or Pricer()
        self._open: Transaction | None = None

    @property
    def transaction(self) -> Transaction:
        """The open transaction."""
        assert self._open is not None, "no transaction is open"
        return self._open

    def begin(self) -> None:
        self.db.execute("BEGIN IMMEDIATE")
        self._open = Transaction(self.db, self._pricer)

    def commit(self, *, flushed: bool = False) -> None:
        if not flushed:
            self.transaction.flush()
        self.db.execute("COMMIT")
        self._open = None

    def roll_back(self) -> None:
        self._open = None
        if self.db.in_transaction:
            self.db.execute("ROLLBACK")
