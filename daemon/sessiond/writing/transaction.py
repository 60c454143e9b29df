"""One transaction on the index: everything that was read is written, or nothing is."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

import apsw

from sess_common.errors import caused_by_data
from sess_schema import sums
from sess_schema.ground import GroundLost, Overtaken
from sessiond.engines.steps import Fail, Finish, Slice, Step, Vanish
from sessiond.prices import Pricer
from sessiond.reading import tail
from sessiond.reading.tracked import Tracked
from sessiond.sourcekit.base import SessionSpec
from sessiond.writing.copies import Copies
from sessiond.writing.events import EventWriter
from sessiond.writing.record_rows import Chunks, RecordRows
from sessiond.writing.records import Mirrors, RecordWriter, Rewriting, Superseding
from sessiond.writing.sessions import SessionFacts, Sessions
from sessiond.writing.usage import Bills, UsageWriter

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
        rows = RecordRows(db, self._records_written)
        self.copies = copies = Copies(
            db, rows, sessions=sessions, events=events, usage=usage, facts=facts
        )
        self._mirrors = Mirrors(db, copies, facts)
        self.records = RecordWriter(
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
        from sessiond.writing.conversation_records import Lines, Revision
        from sessiond.writing.conversations import ConversationWriter

        events, copies, usage = self.events, self.copies, self.usage
        return ConversationWriter(
            self.db,
            Lines(self.db, self.records, self.chunks, copies=copies, events=events, usage=usage),
            Revision(self.db, events.rows, copies, usage),
            sessions=self.sessions,
            mirrors=self._mirrors,
            events=events,
            bills=self.bills,
            facts=self.facts,
        )

    def _records_written(self) -> None:
        self.usage.records_written()
        self.events.flush()

    def flush(self) -> None:
        """Write everything that waits for the commit. The order matters."""
        self.facts.renew(self.events.reshaped)  # needs every record, its owner, and every join
        self.sessions.save()  # includes the titles and counts
        self.facts.place()  # compares saved sessions
        self.usage.save()  # compares the ages of saved sessions
        self.facts.order_models()  # needs every response
        self.bills.apply()  # needs every response
        sums.renew(self.db)  # needs the final events and usage
        # Last: any statement that opens a savepoint would make FTS5 flush what it has collected.
        self.events.rows.index()

    def add_slice(self, source: Tracked, spec: SessionSpec, slice_: Slice) -> None:
        """Write one slice of a log and move the source's checkpoint past it."""
        source.save_identity(self.db)
        self.chunks.add(source, slice_)
        self.chunks.add_problems(source, slice_.problems)
        if slice_.records:
            self.records.write(source, spec, slice_.records)
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


COMMIT_BYTES = 32 << 20
COMMIT_SECONDS = 2.0


class Stopped(Exception):
    """The daemon must stop in the middle of a file that is read in one transaction."""


class SourceCrash(Exception):
    """Writing one source failed; the others continue without it."""

    def __init__(self, step: Step, error: Exception) -> None:
        super().__init__(f"{type(error).__name__}: {error}")
        self.step = step
        # A file that changed while we read it is not broken, and neither is the parser.
        self.raced = isinstance(error, FileNotFoundError | tail.Unreadable)


class UnknownCulprit(Exception):
    """The commit of several sources failed because of the data of one of them."""


class Batch:
    """The open transaction and the steps in it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.alone = False  # each source gets its own transaction, to find the one that fails
        self._started = 0.0
        self._bytes = 0
        self._last: Step | None = None
        self._mixed = False  # it has steps of several files

    @contextmanager
    def step(self, step: Step) -> Iterator[None]:
        """Write a step in the open transaction, or in a new one."""
        if not self._started:
            self._store.begin()
            self._started = time.monotonic()
            self._bytes, self._mixed = 0, False
        elif self._last is not None and step.file.path != self._last.file.path:
            self._mixed = True
        self._last = Step(step.file, step.row)
        try:
            yield
        except Stopped:
            raise
        except Exception as error:
            if _of_the_index(error):
                raise
            raise SourceCrash(self._last, error) from error
        self._bytes += step.weight

    def is_due(self, step: Step) -> bool:
        late = time.monotonic() - self._started > COMMIT_SECONDS
        ends = self.alone and isinstance(step, Finish | Fail | Vanish)
        return late or ends or self._bytes > COMMIT_BYTES

    def commit(self) -> None:
        if not self._started:
            return
        assert self._last is not None
        try:
            self._store.commit()
        except Exception as error:
            if _of_the_index(error):
                raise
            if self._mixed:
                raise UnknownCulprit from error
            raise SourceCrash(self._last, error) from error
        self._started = 0.0

    def roll_back(self) -> None:
        self._started = 0.0
        self._store.roll_back()


def _of_the_index(error: Exception) -> bool:
    if isinstance(error, apsw.Error):
        return not caused_by_data(error)
    return isinstance(error, GroundLost | Overtaken)
