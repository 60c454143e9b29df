"""One pass: reads, parses and writes every changed file, even if others fail.

It uses one thread. Parsing in a second thread was measured slower, because the writer's many short
statements then wait for the interpreter each time; committing in a second thread gained nothing.
Where there is much to read, another process parses (`engines/ahead.py`).
"""

from __future__ import annotations

import gc
import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import apsw

from sess_schema import first_index, masks, skipped
from sess_schema.errors import sqlite_error
from sess_schema.queries.views import parts
from sessiond.engines.excluding import compare_rules, excluded_project
from sessiond.engines.lines import read_log, read_new
from sessiond.engines.steps import (
    AddSlice,
    ChangeConversation,
    CompareLog,
    Fail,
    Finish,
    KeepState,
    RefreshSession,
    ReplaceAttachment,
    ReplaceDocument,
    Step,
    Summary,
    Vanish,
)
from sessiond.reading import tail
from sessiond.reading.exclude import Exclude
from sessiond.reading.note import Note
from sessiond.reading.survey import Candidate, Survey, survey, vanished
from sessiond.reading.tail import Stat
from sessiond.reading.territory import Place
from sessiond.reading.tracked import (
    EXCLUDED,
    FORGOTTEN,
    GONE,
    LIVE,
    PARK_AFTER,
    PARKED,
    UNREADABLE,
    Tracked,
    load_all,
    now_ms,
)
from sessiond.sourcekit.base import SessionSpec
from sessiond.writing import moved, rewrite, word_levels
from sessiond.writing.batch import Batch, SourceCrash, Stopped, UnknownCulprit
from sessiond.writing.recheck import Recheck
from sessiond.writing.transaction import Store

if TYPE_CHECKING:
    from sessiond.engines.ahead import ReadAhead
    from sessiond.sourcekit.masking import Masker

DIGEST_SHARE = 0.1  # of the time of a pass; those of a first load take half of that
DIGEST_SECONDS = 0.1  # at least
BULK = 4 << 20  # bytes to read; for less, a second process does not pay
DIED = "sessiond died while it read this file"
RETRY_AFTER = 24 * 3600  # seconds: something else may have killed it


class Ingest:
    """Keeps the index up to date with the files of all sources."""

    def __init__(
        self,
        store: Store,
        *,
        settle: bool = True,
        exclude: Exclude | None = None,
        mask: Masker | None = None,
    ) -> None:
        self._store = store
        self.mask = mask  # what is written is masked first
        self.exclude = exclude or Exclude()
        self._settle_all = settle  # take an unfinished last line as it is, however recent
        self._tracked: dict[str, Tracked] | None = None
        self._parts: dict[int, list[Tracked]] | None = None  # conversations by their whole
        self.stop = threading.Event()
        self.on_progress: Callable[[Summary], None] = lambda _summary: None
        self._batch = Batch(store)
        self._note = Note(f"{os.path.dirname(store.db.filename)}/reading.json")
        self._died_over = self._note.left()
        # The file over which a process died may be one that was read ahead.
        self._alone = self._died_over is not None
        self._retried = False
        self._recheck = Recheck()
        self.walking: AbstractContextManager[Any] = nullcontext()  # around each walk
        self.walked = Survey()

    @property
    def tracked(self) -> dict[str, Tracked]:
        """Every source in the index, by path; loaded again after a failure."""
        if self._tracked is None:
            self._tracked, self._parts = load_all(self._store.db), None
        return self._tracked

    def forget_state(self) -> None:
        """Something else wrote to the index: look again what it knows."""
        self._tracked = None

    @contextmanager
    def _undone_on_error(self) -> Iterator[None]:
        """On failure, undo what was not committed, in the index and in memory."""
        try:
            yield
        except BaseException as error:
            # First: the rollback may fail as well, and memory must not be ahead of the index.
            self._tracked = None
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
        with self.walking:
            there = [place for place in places if not roots or os.path.lexists(place.path)]
            outer = frozenset(place.path for place in places) if roots else frozenset()
            self.walked = seen = survey(there, outer)
        if roots:
            with self._undone_on_error():
                if compare_rules(self._store.db, self.exclude):
                    self.forget_state()
                self._recheck.some(self._store.db, self.tracked)
        summary = self.ingest(seen, force=force, retry=not roots)
        with self._undone_on_error():
            if summary.read_bytes > BULK:
                word_levels.sort_by_size(self._store.db)
            gone = vanished(self.tracked, seen.files, [place.path for place in places])
            summary.gone += self._mark_gone(list(gone))
            if roots and not self.stop.is_set():
                parked = [
                    (s.path, s.error or "") for s in self.tracked.values() if s.state == PARKED
                ]
                skipped.keep(self._store.db, [*parked, *summary.skipped])
                first_index.end(self._store.db)
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
                    if s.state not in (GONE, FORGOTTEN)
                    and not os.path.lexists(tail.log_file(s.path))
                ]
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
        if not source.is_whole or source.id is None:
            return []
        tracked = self.tracked
        if self._parts is None:
            self._parts = defaultdict(list)
            for part in tracked.values():
                if part.part_of is not None:
                    self._parts[part.part_of].append(part)
        return self._parts.get(source.id, [])

    def ingest(self, seen: Survey, *, force: bool = False, retry: bool = False) -> Summary:
        summary = Summary(len(seen.files), directories=seen.directories)
        summary.skipped += seen.skipped
        with self._undone_on_error():
            if self.mask is not None:
                masks.note(self._store.db)
            self._blame_death(seen, summary)
            self._retry_deaths()
            if retry:
                self._unpark(seen)
            wanted = [file for file in seen.files if not self.exclude.has_path(file.path)]
            files = [file for file in wanted if force or self._changed(file)]
            moved.follow(self._store.db, self.tracked, files, self._parts_of)
            files.sort(key=self._failures)  # what made trouble before comes last
        summary.changed = len(files)
        summary.total_bytes = sum(self._unread(file) for file in files)
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
        if known is not None and known.state == FORGOTTEN:
            return False
        if known is not None and known.state == EXCLUDED:
            if self.exclude.has_project(known.error):
                return False
            known.state, known.stat = LIVE, None
        return (
            known is None
            or known.stat != file.stat
            or known.sidecar_ns != file.sidecar_ns
            or known.state in (GONE, UNREADABLE)
            or (known.state == PARKED and not known.still_parked(file.stat))
        )

    def _failures(self, file: Candidate) -> int:
        known = self.tracked.get(file.path)
        return known.failures if known else 0

    def _unpark(self, seen: Survey) -> None:
        for file in seen.files:
            known = self.tracked.get(file.path)
            if known is not None and known.still_parked(file.stat):
                known.parked_by = None

    def _blame_death(self, seen: Survey, summary: Summary) -> None:
        """Park a file over which two processes in a row died."""
        left, self._died_over = self._died_over, None
        if left is None:
            return
        for file in seen.files:
            if file.path == left.path and left.is_suspect():
                source = self.tracked.setdefault(file.path, _new(file))
                source.failures = max(source.failures, PARK_AFTER - 2)
                with self._store.db:
                    self._count_crash(source, file.stat, DIED)
                summary.skipped.append((file.path, DIED))
        self._note.clear()

    def _retry_deaths(self) -> None:
        """Once per start, read again what was parked a day ago for the death of a process."""
        if self._retried:
            return
        self._retried = True
        for (path,) in self._store.db.execute(
            "SELECT path FROM sources WHERE state = ? AND error = ? AND state_since < ?",
            (PARKED, DIED, now_ms() - RETRY_AFTER * 1000),
        ).fetchall():
            source = self.tracked[str(path)]
            with self._store.db:  # with its failures: one more death parks it again
                source.save_state(self._store.db, LIVE, DIED)
            source.stat = None

    def _unread(self, file: Candidate) -> int:
        known = self.tracked.get(file.path)
        if known and known.is_whole and known.stat:
            return 0
        return max(0, file.stat.size - (known.progress.checkpoint.offset if known else 0))

    # -- the writer's side

    def _pass(self, files: Sequence[Candidate], summary: Summary) -> None:
        started = time.process_time()
        # The collector would scan millions of live rows and find no cycle: a twelfth of the time.
        gc.disable()
        gc.freeze()  # what is there before stays: the collections below need not look at it
        try:
            with self._undone_on_error():
                for step in self._read(files):
                    with self._batch.step(step):
                        self._write(step, summary)
                    if self._batch.is_due(step):
                        self._batch.commit()
                        gc.collect()  # the parts of a transaction know it, and it them
                        self._write_note(step.file, step.source)
                    if self.stop.is_set():
                        break
                self._batch.commit()
                self._digest(time.process_time() - started)
        finally:
            self._note.clear()
            gc.unfreeze()
            gc.enable()

    def _digest(self, took: float) -> None:
        """Make digests in a small share of the time of the pass; the next ones go on."""
        if not self.stop.is_set():
            parts.digest(self._store.db, max(DIGEST_SECONDS, DIGEST_SHARE * took))

    def _write_note(self, file: Candidate, source: Tracked) -> None:
        unread = file.stat.size if source.is_whole else self._unread(file)
        self._note.write(file.path, source.progress.checkpoint.offset, unread)

    def _write(self, step: Step, summary: Summary) -> None:
        now = self._store.transaction
        source = step.source
        self.tracked[source.path] = source
        if self.exclude.projects and self._leave_out(step):
            return
        match step:
            case AddSlice(spec=spec, slice_=slice_):
                now.add_slice(source, spec, slice_)
                if source.failures:  # only failures in a row count
                    source.save_state(now.db, LIVE)
                summary.turns += len(slice_.turns)
                summary.warnings += len(slice_.problems)
                slice_.turns.clear()  # their texts may be large, and indexing them takes memory too
            case CompareLog():
                self._compare(step, summary)
            case ReplaceAttachment():
                summary.warnings += self._replace_attachment(source)
            case RefreshSession(spec=spec):
                now.refresh(source, spec)
            case ChangeConversation(conversation=conversation):
                source.save_identity(now.db)
                part_source = self._part(source, conversation.spec)
                if part_source.state == FORGOTTEN:
                    return
                if self.mask is not None:
                    self.mask.conversation(conversation)
                from sessiond.writing.conversations import ConversationWriter  # noqa: PLC0415

                writer = ConversationWriter(now)
                summary.turns += writer.apply(source, part_source, conversation)
            case ReplaceDocument(data=data, offset=offset):
                self._return_parts(source)
                now.chunks.replace_document(source, data, offset)
            case KeepState(state=state):
                self._return_parts(source)
                source.save_reader_state(now.db, state)
            case Finish():
                self._finish(step, summary)
            case Vanish():
                source.save_state(now.db, GONE)
                summary.gone += 1
            case Fail():
                self._fail(step, summary)
        summary.read_bytes += step.weight
        self.on_progress(summary)

    def _leave_out(self, step: Step) -> bool:
        """Whether a step is of an excluded project; of a file, it excludes the rest, too."""
        source, project = step.source, excluded_project(self.exclude, step)
        if project is not None and source.kind != "database":
            source.save_state(self._store.db, EXCLUDED, project)
        return project is not None or source.state == EXCLUDED

    def _return_parts(self, source: Tracked) -> None:
        from sessiond.engines.databases import return_parts  # noqa: PLC0415

        return_parts(self._store.db, source, self._parts_of(source))

    def _finish(self, step: Finish, summary: Summary) -> None:
        now, source = self._store.transaction, step.source
        if step.empty:
            now.chunks.drop_unfinished(source)
        if step.unsettled or step.partial:  # without a stat the file is read again
            summary.unsettled += [source.path] if step.unsettled else []
            if source.state != LIVE:
                source.save_state(now.db, LIVE)
        else:
            source.save_stat(now.db, step.stat, step.file.sidecar_ns)

    def _fail(self, step: Fail, summary: Summary) -> None:
        source, problem = step.source, self._told(step.problem)
        if step.crashed:
            self._count_crash(source, step.file.stat, problem)
        else:
            source.failures += 1
            source.save_state(self._store.db, UNREADABLE, problem)
        if source.is_whole:
            summary.failed[source.path] = source.failures
        summary.skipped.append((source.path, problem))

    def _told(self, problem: str) -> str:
        """A problem may quote the file."""
        return problem if self.mask is None else self.mask.text(problem)

    def _part(self, database: Tracked, spec: SessionSpec) -> Tracked:
        """The source of a conversation in a document or database."""
        path = f"{database.path}#{spec.native_id}"
        if path not in self.tracked:
            part = Tracked(path, database.agent, "transcript", part_of=database.id)
            self.tracked[path] = part
            if self._parts is not None and database.id is not None:
                self._parts[database.id].append(part)
        return self.tracked[path]

    def _compare(self, step: Step, summary: Summary) -> None:
        """Compare a changed log with its archive: append to it, or reread it as a rewrite."""
        source = step.source
        fd, stat = tail.open_log(source.path)  # what is compared is what is read
        try:
            kept = rewrite.common_prefix(self._store.db, source, fd)
            rewritten = kept < source.progress.checkpoint.offset
            if rewritten:
                rewrite.rewind(self._store.transaction, source, kept)
            else:
                rewrite.mark_again(self._store.db, source, fd)
            for again in read_new(
                step.file,
                source,
                fd,
                stat,
                self._store.db,
                settle_all=self._settle_all,
                mask=self.mask,
            ):
                if self.stop.is_set():
                    raise Stopped
                if isinstance(again, CompareLog) or (rewritten and isinstance(again, Fail)):
                    raise tail.Unreadable("changed again while it was read")
                self._write(again, summary)
        finally:
            os.close(fd)
        if rewritten:
            rewrite.finish(self._store.transaction, source)
            source.archived_to = 0

    def _replace_attachment(self, source: Tracked) -> int:
        fd = tail.open_regular(source.path)
        try:
            size = os.fstat(fd).st_size
            if size != source.progress.checkpoint.offset or size != rewrite.common_prefix(
                self._store.db, source, fd
            ):
                if self.mask is not None:
                    masked = self.mask.copy(fd)
                    os.close(fd)
                    fd = masked
                return self._store.transaction.replace_attachment(source, fd)
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
        source = self.tracked.setdefault(step.file.path, _new(step.file))
        problem = self._told(problem)
        with self._store.db:
            self._count_crash(source, step.file.stat, problem)
        summary.skipped.append((source.path, problem))

    # -- the reader's side

    def _read(self, files: Sequence[Candidate]) -> Iterator[Step]:
        ahead = self._read_ahead(files)
        try:
            yield from self._read_each(files, ahead)
        finally:
            if ahead is not None:
                ahead.close()

    def _read_ahead(self, files: Sequence[Candidate]) -> ReadAhead | None:
        """A process that parses logs meanwhile, if there is much to read."""
        if self._alone or sum(map(self._unread, files)) < BULK:
            return None
        from sessiond.engines import ahead  # noqa: PLC0415 - few passes read so much

        logs = [file for file in files if file.kind == "transcript"]
        if not ahead.is_possible() or sum(map(self._unread, logs)) < BULK:
            return None
        known = [(file, self.tracked.get(file.path) or _new(file)) for file in logs]
        return ahead.ReadAhead(known, self._store.db, settle=self._settle_all, mask=self.mask)

    def _read_each(self, files: Sequence[Candidate], ahead: ReadAhead | None) -> Iterator[Step]:
        for file in files:
            if self.stop.is_set():
                return
            known = self.tracked.get(file.path)
            if known is not None and known.still_parked(file.stat):
                continue
            source = known or _new(file)
            if source.failures:  # whatever happens, the others are in the index
                self._batch.commit()
            self._write_note(file, source)
            if file.kind == "database":
                # Most passes read logs only; the other engines are loaded when they are needed.
                from sessiond.engines.databases import read_database  # noqa: PLC0415

                yield from read_database(file, source, self._store.db)
            elif file.kind == "document":
                from sessiond.engines.documents import read_document  # noqa: PLC0415

                yield from read_document(file, source, self._store.db, self.mask)
            elif ahead is not None:
                yield from ahead.steps(file, source, self._store.db)
            else:
                yield from read_log(
                    file, source, self._store.db, settle_all=self._settle_all, mask=self.mask
                )


def _new(file: Candidate) -> Tracked:
    return Tracked(file.path, file.source.agent, file.kind, edition=file.source.edition)
