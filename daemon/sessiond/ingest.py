"""One pass: every file that changed is read, parsed and written, whatever happens to the others.

One thread does all of it. Parsing in a second one was measured slower, because the many short
statements of the writer then wait for the interpreter each time; committing in a second one
gained nothing.
"""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import apsw

from sess_schema.errors import sqlite_error
from sessiond.engines.databases import read_database, return_parts
from sessiond.engines.slices import SliceReader
from sessiond.engines.steps import Step, Summary
from sessiond.reading import tail
from sessiond.reading.survey import Candidate, Survey, survey, vanished
from sessiond.reading.tail import Stat
from sessiond.reading.tracked import GONE, LIVE, PARK_AFTER, PARKED, UNREADABLE, Tracked, load_all
from sessiond.sourcekit.base import SessionSpec, Source
from sessiond.writing import rewrite
from sessiond.writing.conversations import PartWriter
from sessiond.writing.store import Store

COMMIT_BYTES = 32 << 20
COMMIT_SECONDS = 2.0
HEAD = 64 << 10
SETTLE_SECONDS = 2.0


class Stopped(Exception):
    """The daemon was told to stop in the middle of a file that must be read in one go."""


class SourceCrash(Exception):
    """Writing one source failed for a reason of its own; the others go on without it."""

    def __init__(self, step: Step, error: Exception) -> None:
        super().__init__(f"{type(error).__name__}: {error}")
        self.step = step
        # A file that changed under our hands is no fault of it or of the parser.
        self.raced = isinstance(error, FileNotFoundError | tail.Unreadable)


class Ingest:
    """Keeps the index up to date with the files of all sources."""

    def __init__(self, store: Store, *, settle: bool = True) -> None:
        self._store = store
        self._parts = PartWriter(store)
        self._settle_all = settle  # take an unfinished last line as it is, however fresh
        self._tracked: dict[str, Tracked] | None = None
        self.stop = threading.Event()
        self.on_progress: Callable[[Summary], None] = lambda _summary: None
        self._begun = 0.0
        self._uncommitted = 0

    @property
    def tracked(self) -> dict[str, Tracked]:
        """Every source by path, as the index knows it; read again after a failure."""
        if self._tracked is None:
            self._tracked = load_all(self._store.db)
        return self._tracked

    @contextmanager
    def _undone_on_error(self) -> Iterator[None]:
        """A failure undoes what was not committed, in the index and in memory."""
        try:
            yield
        except BaseException as error:
            # First: the rollback may fail as well, and memory must not be ahead of the index.
            self._tracked, self._begun = None, 0.0
            try:
                self._store.roll_back()
            except apsw.Error as second:
                error = error if isinstance(error, apsw.Error) else second
            if isinstance(error, apsw.Error):
                raise sqlite_error(error, self._store.db.filename) from error
            raise

    def reconcile(
        self, places: Sequence[tuple[Source, str]], *, roots: bool = True, force: bool = False
    ) -> Summary:
        """Bring everything below the given places up to date; a root may be absent."""
        there = [place for place in places if not roots or os.path.lexists(place[1])]
        seen = survey(there)
        summary = self.ingest(seen, force=force)
        with self._undone_on_error():
            gone = vanished(self.tracked, seen.files, [place for _, place in places])
            summary.gone += self._mark_gone(list(gone))
        return summary

    def mark_deleted(self, paths: Sequence[str]) -> int:
        """Files that a hint says were deleted or moved away."""
        with self._undone_on_error():
            known = [self.tracked[path] for path in paths if path in self.tracked]
            return self._mark_gone(
                [s for s in known if s.state != GONE and not os.path.lexists(s.path)]
            )

    def _mark_gone(self, gone: list[Tracked]) -> int:
        if gone:
            with self._store.db:
                for source in gone:
                    source.save_state(self._store.db, GONE)
                    for part in self._parts_of(source):
                        part.save_state(self._store.db, GONE)
        return len(gone)

    def _parts_of(self, source: Tracked) -> list[Tracked]:
        if source.kind != "database":
            return []
        return [part for part in self.tracked.values() if part.part_of == source.id]

    def ingest(self, seen: Survey, *, force: bool = False) -> Summary:
        summary = Summary(len(seen.files), directories=seen.directories)
        summary.skipped += seen.skipped
        with self._undone_on_error():
            files = [file for file in seen.files if force or self._changed(file)]
            self._find_moved(files)
        summary.changed = len(files)
        summary.total_bytes = sum(self._unread(file) for file in files)
        crashed: set[str] = set()
        while True:
            try:
                self._pass([file for file in files if file.path not in crashed], summary)
            except Stopped:
                return summary
            except SourceCrash as crash:
                crashed.add(crash.step.file.path)
                with self._undone_on_error():
                    if crash.raced:
                        summary.skipped.append((crash.step.file.path, "changed while it was read"))
                    else:
                        self._note_crash(crash.step, str(crash), summary)
                    files = [file for file in files if self._changed(file)]
                continue
            return summary

    def _changed(self, file: Candidate) -> bool:
        known = self.tracked.get(file.path)
        return (
            known is None
            or known.stat != file.stat
            or known.sidecar_ns != file.sidecar_ns
            or known.state in (GONE, UNREADABLE)
            or (known.state == PARKED and not known.still_parked(file.stat))
        )

    def _unread(self, file: Candidate) -> int:
        known = self.tracked.get(file.path)
        if known and known.kind == "database" and known.stat:
            return 0
        return max(0, file.stat.size - (known.progress.checkpoint.offset if known else 0))

    def _find_moved(self, files: Sequence[Candidate]) -> None:
        """A file under a new path whose old path is gone is the same source."""
        for file in files:
            if file.path in self.tracked or file.kind == "database":
                continue
            same_inode = self._store.db.execute(
                "SELECT path FROM sources WHERE inode = ? AND dev = ?",
                (file.stat.inode, file.stat.dev),
            )
            for (path,) in list(same_inode):
                known = self.tracked[path]
                if (
                    os.path.basename(path) == os.path.basename(file.path)
                    and not os.path.lexists(path)
                    and self._still_same(known, file.path)
                ):
                    with self._store.db:
                        known.save_path(self._store.db, file.path)
                    self.tracked[file.path] = self.tracked.pop(path)
                    break

    @staticmethod
    def _still_same(known: Tracked, path: str) -> bool:
        """Inode numbers are reused; the bytes decide."""
        try:
            fd = tail.open_regular(path)
        except (OSError, tail.Unreadable):
            return False
        try:
            tail.verify(known.progress.checkpoint, fd)
        except tail.Rewritten:
            return False
        finally:
            os.close(fd)
        return True

    # -- the writer's side

    def _pass(self, files: Sequence[Candidate], summary: Summary) -> None:
        # The collector would walk millions of live rows to find no cycle: a twelfth of the time.
        gc.disable()
        try:
            with self._undone_on_error():
                for step in self._read(files):
                    self._begin()
                    try:
                        self._write(step, summary)
                    except (apsw.Error, Stopped):
                        raise
                    except Exception as error:
                        raise SourceCrash(step, error) from error
                    self._commit_if_due()
                    if self.stop.is_set():
                        break
                self._commit()
        finally:
            gc.enable()

    def _begin(self) -> None:
        if not self._begun:
            self._store.begin()
            self._begun = time.monotonic()
            self._uncommitted = 0

    def _commit(self) -> None:
        if self._begun:
            self._store.commit()
            self._begun = 0.0

    def _commit_if_due(self) -> None:
        late = time.monotonic() - self._begun > COMMIT_SECONDS
        if late or self._uncommitted > COMMIT_BYTES:
            self._commit()

    def _write(self, step: Step, summary: Summary) -> None:
        db = self._store.db
        source = step.source
        self.tracked[source.path] = source
        if step.compare or step.rewritten:
            self._compare(step, summary)
        elif step.attachment:
            summary.warnings += self._replace_attachment(source)
        elif step.part is not None and step.spec is not None:
            self._store.apply(source, step.spec, step.part)
            summary.turns += len(step.part.turns)
            summary.warnings += len(step.part.problems)
        elif step.conversation is not None:
            source.save_identity(db)
            part = self._part(source, step.conversation.spec)
            summary.turns += self._parts.apply(source, part, step.conversation)
        elif step.state is not None:
            return_parts(db, source, self._parts_of(source))
            source.save_reader_state(db, step.state)
        elif step.spec is not None:
            self._store.refresh(source, step.spec)
        elif step.gone:
            source.save_state(db, GONE)
            summary.gone += 1
        elif step.problem is not None:
            if step.crashed:
                self._count_crash(source, step.file.stat, step.problem)
            else:
                source.failures += 1
                source.save_state(db, UNREADABLE, step.problem)
            if source.kind == "database":
                summary.failed[source.path] = source.failures
            summary.skipped.append((source.path, step.problem))
        if step.stat is not None:
            if step.part is None:
                self._store.chunks.drop_unfinished(source)
            if step.unsettled or step.partial:  # without its stat the file is looked at again
                summary.unsettled += [source.path] if step.unsettled else []
                if source.state != LIVE:
                    source.save_state(db, LIVE)
            else:
                source.save_stat(db, step.stat, step.file.sidecar_ns)
        self._uncommitted += step.weight
        summary.read_bytes += step.weight
        self.on_progress(summary)

    def _part(self, database: Tracked, spec: SessionSpec) -> Tracked:
        """The conversation of a database as a source of its own."""
        path = f"{database.path}#{spec.native_id}"
        if path not in self.tracked:
            self.tracked[path] = Tracked(path, database.agent, "transcript", part_of=database.id)
        return self.tracked[path]

    def _compare(self, step: Step, summary: Summary) -> None:
        """Set a changed file against its archive: append to it, or read it again as a rewrite."""
        source = step.source
        fd = tail.open_regular(source.path)
        try:
            kept = rewrite.common_prefix(self._store, source, fd)
        finally:
            os.close(fd)
        rewritten = kept < source.progress.checkpoint.offset
        if rewritten:
            rewrite.rewind(self._store, source, kept)
        for again in self._read_file(step.file, source, compared=True):
            if self.stop.is_set():
                raise Stopped
            if rewritten and (again.gone or again.rewritten or again.problem):
                raise tail.Unreadable("changed again while it was read")
            self._write(again, summary)
        if rewritten:
            rewrite.settle(self._store, source)
            source.archived_to = 0

    def _replace_attachment(self, source: Tracked) -> int:
        fd = tail.open_regular(source.path)
        try:
            size = os.fstat(fd).st_size
            if size != source.progress.checkpoint.offset or size != rewrite.common_prefix(
                self._store, source, fd
            ):
                return self._store.replace_attachment(source, fd)
        finally:
            os.close(fd)
        return 0

    def _count_crash(self, source: Tracked, stat: Stat, problem: str) -> None:
        source.failures += 1
        if source.failures < PARK_AFTER:
            source.save_state(self._store.db, source.state, problem)
        else:
            source.park(self._store.db, stat, problem)

    def _note_crash(self, step: Step, problem: str, summary: Summary) -> None:
        source = self.tracked.setdefault(
            step.file.path, Tracked(step.file.path, step.source.agent, step.file.kind)
        )
        with self._store.db:
            self._count_crash(source, step.file.stat, problem)
        summary.skipped.append((source.path, problem))

    # -- the reader's side

    def _read(self, files: Sequence[Candidate]) -> Iterator[Step]:
        for file in files:
            if self.stop.is_set():
                return
            known = self.tracked.get(file.path)
            if known is not None and known.still_parked(file.stat):
                continue
            source = known or Tracked(file.path, file.source.agent, file.kind)
            if file.kind == "database":
                yield from read_database(file, source, self._store.db)
            else:
                yield from self._read_file(file, source)

    def _read_file(
        self, file: Candidate, source: Tracked, *, compared: bool = False
    ) -> Iterator[Step]:
        """Everything new in one file; its last step carries the stat taken before the reading."""
        try:
            fd = tail.open_regular(file.path)
        except FileNotFoundError:
            if source.id is not None:
                yield Step(file, source, gone=True)
            return
        except tail.Unreadable as error:
            yield Step(file, source, problem=str(error))
            return
        try:
            stat = Stat.of(os.fstat(fd))
            if source.stat == stat and source.state != UNREADABLE and not compared:
                yield Step(file, source, self._identify(file, fd), stat=stat)
            elif file.kind == "attachment":
                yield Step(file, source, attachment=True, stat=stat)
            elif not compared and self._must_compare(source, stat):
                yield Step(file, source, compare=True)
            else:
                yield from self._read_transcript(file, source, fd, stat)
        except tail.Rewritten:
            yield Step(file, source, rewritten=True)
        except OSError as error:
            yield Step(file, source, problem=(error.strerror or str(error)).lower())
        except Exception as error:
            yield Step(file, source, problem=f"{type(error).__name__}: {error}", crashed=True)
        finally:
            os.close(fd)

    @staticmethod
    def _must_compare(source: Tracked, stat: Stat) -> bool:
        """Only an append makes a file larger in place; anything else may be a rewrite."""
        old = source.stat
        return old is not None and (stat.inode != old.inode or stat.size <= old.size)

    def _read_transcript(
        self, file: Candidate, source: Tracked, fd: int, stat: Stat
    ) -> Iterator[Step]:
        progress = source.progress
        tail.verify(progress.checkpoint, fd)
        if stat.size == 0:
            yield Step(file, source, stat=stat)
            return
        spec = self._identify(file, fd)
        assert spec is not None
        parser = file.source.parser(spec, source.parser_state(self._store.db))
        last: Step | None = None
        for part in SliceReader(fd, spec, parser, progress).slices():
            if last is not None:
                yield last
            last = Step(file, source, spec, part)
            if part.unfinished and not self._settled(stat):
                part.unfinished = b""
                last.unsettled = True
        last = last or Step(file, source, spec)
        last.stat = stat
        yield last

    @staticmethod
    def _identify(file: Candidate, fd: int) -> SessionSpec | None:
        if file.kind != "transcript":
            return None
        return file.source.identify(file.path, tail.read_at(fd, HEAD, 0))

    def _settled(self, stat: Stat) -> bool:
        return self._settle_all or time.time() - stat.mtime_ns / 1e9 > SETTLE_SECONDS
