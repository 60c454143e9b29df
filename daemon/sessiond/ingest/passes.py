"""One pass: reads, parses and writes every changed file, even if others fail.

It uses one thread. Parsing in a second thread was measured slower, because the writer's many short
statements then wait for the interpreter each time; committing in a second thread gained nothing.
Where there is much to read, another process parses (`engines/ahead.py`).
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import apsw

from sess_common.errors import sqlite_error
from sess_schema import archive, soundness
from sess_schema.queries import sources
from sess_schema.queries.views import digests
from sessiond.config import Exclude
from sessiond.engines.lines import read_log
from sessiond.engines.steps import Step, Summary
from sessiond.ingest import comparing
from sessiond.ingest.comparing import Recheck
from sessiond.ingest.writer import StepWriter, compare_rules
from sessiond.reading import tail, tracked
from sessiond.reading.survey import Candidate, Survey, survey, vanished
from sessiond.reading.territory import Place
from sessiond.reading.tracked import Tracked
from sessiond.sourcekit import disk
from sessiond.writing.transaction import Batch, SourceCrash, Stopped, Store, UnknownCulprit

if TYPE_CHECKING:
    from sessiond.engines.ahead import ReadAhead
    from sessiond.sourcekit.masking import Masker


DIGEST_SHARE = 0.1  # of the time of a pass; those of a first load take half of that
DIGEST_SECONDS = 0.1  # at least
BULK = 4 << 20  # bytes to read; for less, a second process does not pay
FIRST_COMMITS = (0.3, 0.7, 1.2)  # seconds: whoever waits gets an answer from the newest files
READ_MEANWHILE = 1 << 20  # bytes, until the second process has started
LOOK_AGAIN = 5.0  # seconds of a long walk after which what was just written is read first
_LOOK_SHARE = 0.05  # of the time, at most
_CLOCK_SLACK = 2_000_000_000  # nanoseconds; another machine may have the files
_MERGED_AT_ONCE = 64  # pages of full text
DIED = "sessiond died while it read this file"
RETRY_AFTER = 3600  # seconds: something else may have killed it
MAY_KILL = 1 << 20  # bytes to read that may have used up the memory; less can only have hung
HUNG_SECONDS = 60


class Ingest(StepWriter):
    """Keeps the index up to date with the files of all sources."""

    def __init__(
        self,
        store: Store,
        *,
        settle: bool = True,
        exclude: Exclude | None = None,
        mask: Masker | None = None,
    ) -> None:
        super().__init__(store, settle=settle, exclude=exclude, mask=mask)
        self._batch = Batch(store)
        self._note = Note(f"{os.path.dirname(store.db.filename)}/reading.json")
        self._died_over = self._note.left()
        # The file over which a process died may be one that was read ahead.
        self._alone = self._died_over is not None
        self._retry_at = 0.0  # on the monotonic clock
        self.untried: set[str] = set()  # parked in this pass: the next one tries again
        # Whether a process of its own can read the file, which somebody may have killed before.
        self.survives: Callable[[Candidate], bool] = lambda _file: False
        self._suspect: str | None = None  # committed step by step: a kill undoes little
        self._recheck = Recheck()
        self.walking: AbstractContextManager[Any] = nullcontext()  # around each walk
        self.walked = Survey()
        self._walk: Walk | None = None  # of all places, while it goes on

    @property
    def tracked(self) -> dict[str, Tracked]:
        return self._known.sources

    def forget_state(self) -> None:
        """Something else wrote to the index: look again what it knows."""
        self._known.forget()

    @contextmanager
    def _undone_on_error(self) -> Iterator[None]:
        """On failure, undo what was not committed, in the index and in memory."""
        try:
            yield
        except BaseException as error:
            # First: the rollback may fail as well, and memory must not be ahead of the index.
            self._known.forget()
            try:
                self._batch.roll_back()
            except apsw.Error as second:
                error = error if isinstance(error, apsw.Error) else second
            if isinstance(error, apsw.Error):
                raise sqlite_error(error, self._store.db.filename) from error
            raise

    def reconcile(
        self, places: Sequence[Place], *, roots: bool = True, force: bool = False
    ) -> Summary:
        """Bring everything below the given places up to date.

        Roots may be missing. Other places were asked for by name: parked files get another try.
        """
        walk = Walk(places, roots=roots)
        with self.walking:
            self.walked = seen = walk.look()
        if roots:
            with self._undone_on_error():
                if compare_rules(self._store.db, self.exclude):
                    self.forget_state()
                self._recheck.some(self._store.db, self.tracked)
        self._walk = walk if roots else None
        try:
            summary = self.ingest(seen, force=force, retry=not roots)
        finally:
            self._walk = None
        with self._undone_on_error():
            if summary.read_bytes > BULK:
                self._merge_words(all_in_one=sources.is_first_walk_unfinished(self._store.db))
            gone = vanished(self.tracked, seen.files, [place.path for place in places])
            summary.gone += self._mark_gone(list(gone))
            if roots and not self.stop.is_set():
                parked = [
                    (s.path, s.error or "")
                    for s in self.tracked.values()
                    if s.state == tracked.PARKED
                ]
                sources.keep_skipped(self._store.db, [*parked, *summary.skipped])
                sources.end_walk(self._store.db)
                soundness.keep_size(self._store.db)
        return summary

    def is_settled(self) -> bool:
        """Whether there would be nothing to read if the last walk were repeated."""
        wanted = [file for file in self.walked.files if not self.exclude.has_path(file.path)]
        return not any(map(self._changed, wanted))

    def mark_deleted(self, paths: Sequence[str]) -> int:
        """Mark files that a hint reports as deleted or moved."""
        with self._undone_on_error():
            known = [self.tracked[path] for path in paths if path in self.tracked]
            return self._mark_gone(
                [
                    s
                    for s in known
                    if s.state not in (tracked.GONE, tracked.FORGOTTEN)
                    and not os.path.lexists(tail.log_file(s.path))
                ]
            )

    def _mark_gone(self, gone: list[Tracked]) -> int:
        if gone:
            with self._store.db:
                for source in gone:
                    source.save_state(self._store.db, tracked.GONE)
                    for part in self._known.parts_of(source):
                        part.save_state(self._store.db, tracked.GONE)
        return len(gone)

    def ingest(self, seen: Survey, *, force: bool = False, retry: bool = False) -> Summary:
        summary = Summary(len(seen.files), directories=seen.directories)
        summary.skipped += seen.skipped
        with self._undone_on_error():
            if self.mask is not None:
                archive.note_masks(self._store.db)
            self._blame_death(seen, summary)
            self._retry_deaths(seen)
            if retry:
                self._unpark(seen)
            wanted = [file for file in seen.files if not self.exclude.has_path(file.path)]
            files = [file for file in wanted if force or self._changed(file)]
            comparing.follow_moves(self._store.db, self.tracked, files, self._known.parts_of)
            files.sort(key=self._known.failures)  # what made trouble before comes last
        summary.changed = len(files)
        summary.total_bytes = sum(self._known.unread(file) for file in files)
        crashed: set[str] = set()
        self._batch.alone = False
        while True:
            try:
                self._pass([file for file in files if file.path not in crashed], summary)
            except Stopped:
                return summary
            except UnknownCulprit:
                self._batch.alone = True
            except SourceCrash as crash:
                crashed.add(crash.step.file.path)
                with self._undone_on_error():
                    if crash.raced:
                        summary.skipped.append((crash.step.file.path, "changed while it was read"))
                    else:
                        self._note_crash(crash.step, str(crash), summary)
            else:
                return summary
            with self._undone_on_error():
                files = [file for file in files if self._changed(file)]

    def _changed(self, file: Candidate) -> bool:
        known = self.tracked.get(file.path)
        if known is not None and known.state == tracked.FORGOTTEN:
            return False
        if known is not None and known.state == tracked.EXCLUDED:
            if self.exclude.has_project(known.error):
                return False
            known.state, known.stat = tracked.LIVE, None
        return (
            known is None
            or known.stat != file.stat
            or known.sidecar_ns != file.sidecar_ns
            or known.state in (tracked.GONE, tracked.UNREADABLE)
            or (known.state == tracked.PARKED and not known.still_parked(file.stat))
        )

    def _unpark(self, seen: Survey) -> None:
        for file in seen.files:
            known = self.tracked.get(file.path)
            if known is not None and known.still_parked(file.stat):
                known.parked_by = None

    def _blame_death(self, seen: Survey, summary: Summary) -> None:
        """Park a file over which two processes in a row died."""
        self.untried = set()
        left, self._died_over = self._died_over, None
        if left is None:
            return
        for file in seen.files:
            if file.path == left.path and left.is_suspect():
                source = self.tracked.setdefault(file.path, self._known.of(file))
                self._suspect = file.path
                source.failures = max(source.failures, tracked.PARK_AFTER - 2)
                with self._store.db:
                    self._count_crash(source, file.stat, DIED)
                self.untried.add(file.path)
                summary.skipped.append((file.path, DIED))
        self._note.clear()

    def _retry_deaths(self, seen: Survey) -> None:
        """Read again what was parked for the death of a process, if another survives it."""
        if time.monotonic() < self._retry_at:
            return
        for file in seen.files:
            source = self.tracked.get(file.path)
            if source is None or source.error != DIED or not source.still_parked(file.stat):
                continue
            if file.path in self.untried:
                continue
            if not self.survives(file):
                self._retry_at = time.monotonic() + RETRY_AFTER
                continue
            source.failures = tracked.PARK_AFTER - 2  # two more deaths park it again
            with self._store.db:
                source.save_state(self._store.db, tracked.LIVE, DIED)
            source.stat = None

    def _pass(self, files: Sequence[Candidate], summary: Summary) -> None:
        started = time.process_time()
        # The collector would scan millions of live rows and find no cycle: a twelfth of the time.
        gc.disable()
        gc.freeze()  # what is there before stays: the collections below need not look at it
        try:
            with self._undone_on_error():
                self._write_all(self._read(files), files, summary)
                self._digest(time.process_time() - started)
        finally:
            self._note.clear()
            gc.unfreeze()
            gc.enable()

    def _write_all(
        self, read: Iterator[Step], files: Sequence[Candidate], summary: Summary
    ) -> None:
        began, soon = time.monotonic(), list(FIRST_COMMITS)
        for step in read:
            with self._batch.step(step):
                self._write(step, summary)
            early = soon and time.monotonic() - began > soon[0]
            if early or self._batch.is_due(step) or step.file.path == self._suspect:
                del soon[:1]
                self._commit(step.file, files, summary)
                self._write_note(step.file, step.row)
            if self.stop.is_set():
                break
        self._batch.commit()

    def _commit(self, at: Candidate, files: Sequence[Candidate], summary: Summary) -> None:
        """Commit what was read up to a file, and read what was written meanwhile."""
        walk = self._walk
        if walk is not None and summary.total_bytes > BULK:
            sources.note_coverage(self._store.db, self._coverage(at, files, summary))
        self._batch.commit()
        gc.collect()  # the parts of a transaction know it, and it them
        if walk is None or not walk.is_due() or self.stop.is_set():
            return
        self._walk = None  # of what is new now, nothing is newer
        try:
            changed = [
                file
                for file in walk.look_for_newer()
                if file.path != at.path
                and not self.exclude.has_path(file.path)
                and self._changed(file)
            ]
            summary.total_bytes += sum(map(self._known.unread, changed))
            self._write_all(self._read_each(changed, None), changed, summary)
        finally:
            self._walk = walk

    def _coverage(
        self, at: Candidate, files: Sequence[Candidate], summary: Summary
    ) -> sources.Coverage:
        later = {file.agent.agent for file in files if file.kind == "database"}
        since = 0 if at.kind == "database" else at.stat.mtime_ns
        for file in files:  # what made trouble before comes last
            if file.path == self._suspect != at.path:
                since = max(since, file.stat.mtime_ns)
        done = min(summary.read_bytes, summary.total_bytes)
        return sources.Coverage(since // 1_000_000, done, summary.total_bytes, tuple(sorted(later)))

    def _merge_words(self, *, all_in_one: bool) -> None:
        """Merge the large pieces of full text that a load leaves where FTS5 puts small ones.

        The next lines would have them merged with pieces of one line each. In steps, so that the
        pages of what was merged are used again.
        """
        db, step = self._store.db, "INSERT INTO event_index (event_index, rank) VALUES ('merge', ?)"
        pages = -_MERGED_AT_ONCE if all_in_one else _MERGED_AT_ONCE
        changes = 2  # fewer: there was nothing to merge
        while changes >= 2 and not self.stop.is_set():
            before = db.total_changes()
            db.execute(step, (pages,))
            changes, pages = db.total_changes() - before, _MERGED_AT_ONCE

    def _digest(self, took: float) -> None:
        """Make digests in a small share of the time of the pass; the next ones go on."""
        if not self.stop.is_set():
            digests.make(self._store.db, max(DIGEST_SECONDS, DIGEST_SHARE * took))

    def _write_note(self, file: Candidate, source: Tracked) -> None:
        unread = file.stat.size if source.is_whole else self._known.unread(file)
        self._note.write(file.path, source.progress.checkpoint.offset, unread)

    def _read(self, files: Sequence[Candidate]) -> Iterator[Step]:
        ahead = self._read_ahead(files)
        try:
            yield from self._read_each(files, ahead)
        finally:
            if ahead is not None:
                ahead.close()

    def _read_ahead(self, files: Sequence[Candidate]) -> ReadAhead | None:
        """A process that parses logs meanwhile, if there is much to read."""
        if self._alone or sum(map(self._known.unread, files)) < BULK:
            return None
        from sessiond.engines import ahead  # few passes read so much

        logs = [file for file in files if file.kind == "transcript"]
        if not ahead.is_possible() or sum(map(self._known.unread, logs)) < BULK:
            return None
        known, near = list[tuple[Candidate, Tracked]](), 0
        for file in logs:
            near += self._known.unread(file)
            if near > READ_MEANWHILE:
                known.append((file, self._known.of(file)))
        return ahead.ReadAhead(known, self._store.db, settle=self._settle_all, mask=self.mask)

    def _read_each(self, files: Sequence[Candidate], ahead: ReadAhead | None) -> Iterator[Step]:
        for file in files:
            if self.stop.is_set():
                return
            known = self.tracked.get(file.path)
            if known is not None and known.still_parked(file.stat):
                continue
            source = known or self._known.of(file)
            if source.failures:  # whatever happens, the others are in the index
                self._batch.commit()
            self._write_note(file, source)
            if ahead is not None and file.kind not in tracked.WHOLES:
                yield from ahead.read(file, source, self._store.db)
            else:
                db, settle_all = self._store.db, self._settle_all
                yield from steps_of(file, source, db, settle_all=settle_all, mask=self.mask)


def steps_of(
    file: Candidate, source: Tracked, db: apsw.Connection, *, settle_all: bool, mask: Masker | None
) -> Iterator[Step]:
    """What the engine for its kind reads of a file."""
    if file.kind == "database":
        # Most passes read logs only; the other engines are loaded when they are needed.
        from sessiond.engines.databases import read_database

        yield from read_database(file, source, db)
    elif file.kind == "document":
        from sessiond.engines.documents import read_document

        yield from read_document(file, source, db, mask)
    else:
        yield from read_log(file, source, db, settle_all=settle_all, mask=mask)


class Walk:
    """Looks at places, and again while what it saw is read."""

    def __init__(self, places: Sequence[Place], *, roots: bool) -> None:
        self._places = places
        self._roots = roots
        self._looked = 0
        self._next = 0.0

    def look(self) -> Survey:
        began, self._looked = time.monotonic(), time.time_ns()
        roots, places = self._roots, self._places
        there = [place for place in places if not roots or disk.lexists(place.path)]
        outer = frozenset(place.path for place in places) if roots else frozenset()
        seen = survey(there, outer)
        now = time.monotonic()
        self._next = now + max(LOOK_AGAIN, (now - began) / _LOOK_SHARE)
        return seen

    def look_for_newer(self) -> list[Candidate]:
        """What was written since the last look, except into databases, which may take minutes."""
        before = self._looked - _CLOCK_SLACK
        return [
            file
            for file in self.look().files
            if file.kind != "database" and max(file.stat.mtime_ns, file.sidecar_ns) >= before
        ]

    def is_due(self) -> bool:
        return time.monotonic() >= self._next


@dataclass(slots=True, frozen=True)
class Reading:
    path: str
    offset: int
    unread: int
    at: float  # on the monotonic clock, which begins again with the machine

    def is_suspect(self) -> bool:
        """Whether the file may be why the process died, and not a kill at a bad moment."""
        return self.unread >= MAY_KILL or time.monotonic() - self.at > HUNG_SECONDS


class Note:
    """The file that is being read, for the next start if the process dies over it.

    Not synced: it is for a process that is killed, not for a power cut.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._fd: int | None = None  # open during a pass
        self._length = 0

    def left(self) -> Reading | None:
        """What a process that died was reading."""
        try:
            with open(self._path, "rb", opener=_open_note) as file:
                raw = file.read(1 << 16)
            self._length = len(raw)
            return Reading(**json.loads(raw))
        except (OSError, ValueError, TypeError):
            return None

    def write(self, path: str, offset: int, unread: int) -> None:
        reading = {"path": path, "offset": offset, "unread": unread, "at": time.monotonic()}
        text = json.dumps(reading).encode()
        with contextlib.suppress(OSError):  # a full disk: do without
            if self._fd is None:
                self._fd = _open_note(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC)
            self._length = max(self._length, len(text))
            os.pwrite(self._fd, text.ljust(self._length), 0)

    def clear(self) -> None:
        with contextlib.suppress(OSError):
            if self._length:
                os.truncate(self._path if self._fd is None else self._fd, 0)
        self._length = 0
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def _open_note(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o600)
