"""One transaction on the index: everything that was read is written, or nothing is."""

from __future__ import annotations

import apsw

from sess_schema import sums
from sessiond.engines.slices import Slice
from sessiond.prices.pricing import Pricer
from sessiond.reading.tracked import Tracked
from sessiond.sourcekit.base import SessionSpec
from sessiond.writing import projects
from sessiond.writing.bills import Bills
from sessiond.writing.chunks import Chunks
from sessiond.writing.copies import Copies
from sessiond.writing.counters import Counters
from sessiond.writing.events import EventWriter
from sessiond.writing.sessions import Sessions
from sessiond.writing.titles import Titles
from sessiond.writing.turns import TurnWriter
from sessiond.writing.usage import UsageWriter


class Transaction:
    """Holds everything that is pending until the commit."""

    def __init__(self, db: apsw.Connection, pricer: Pricer) -> None:
        self.db = db
        self.enrolled: set[tuple[int | None, int]] = set()  # sources with the sessions they have
        self.chunks = Chunks(db)
        self.sessions = Sessions(db)
        self.counters = Counters(db, self.sessions)
        self.events = EventWriter(db, self.sessions, self.chunks)
        self.titles = Titles(db, self.sessions)
        self.usage = UsageWriter(db, self.sessions, pricer=pricer)
        self.bills = Bills(db, pricer)
        self.copies = Copies(self)
        self.turns = TurnWriter(self)

    def flush(self) -> None:
        """Write everything that waits for the commit. The order matters."""
        self.titles.choose()  # needs every record and its owner
        self.counters.recount(self.events.reshaped)  # needs every join
        self.sessions.save()  # includes the titles and counts
        projects.settle(self.db, self.sessions)  # compares saved sessions
        self.usage.save()  # compares the ages of saved sessions
        self.bills.settle()  # needs every response
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
