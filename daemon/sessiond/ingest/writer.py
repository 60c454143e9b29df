"""Writes the steps of a pass into the open transaction, and counts what fails."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from sessiond.engines.excluding import excluded_project
from sessiond.engines.lines import read_new
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
from sessiond.ingest.known import Known
from sessiond.reading import tail
from sessiond.reading.exclude import Exclude
from sessiond.reading.tail import Stat
from sessiond.reading.tracked import (
    EXCLUDED,
    FORGOTTEN,
    GONE,
    LIVE,
    PARK_AFTER,
    UNREADABLE,
    Tracked,
)
from sessiond.writing import comparing
from sessiond.writing.transaction import Stopped, Store

if TYPE_CHECKING:
    from sessiond.sourcekit.masking import Masker


class StepWriter:
    """Writes what the engines read, whatever kind of file it is of."""

    def __init__(
        self,
        store: Store,
        *,
        settle: bool = True,
        exclude: Exclude | None = None,
        mask: Masker | None = None,
    ) -> None:
        self._store = store
        self._known = Known(store.db)
        self._settle_all = settle  # take an unfinished last line as it is, however recent
        self.exclude = exclude or Exclude()
        self.mask = mask  # what is written is masked first
        self.stop = threading.Event()
        self.on_progress: Callable[[Summary], None] = lambda _summary: None

    def _write(self, step: Step, summary: Summary) -> None:
        now = self._store.transaction
        source = step.row
        self._known.sources[source.path] = source
        if self.exclude.projects and self._leave_out(step):
            return
        match step:
            case AddSlice(spec=spec, slice_=slice_):
                now.add_slice(source, spec, slice_)
                if source.failures:  # only failures in a row count
                    source.save_state(now.db, LIVE)
                summary.records += len(slice_.records)
                summary.warnings += len(slice_.problems)
                slice_.records.clear()  # their texts may be large, and indexing takes memory too
            case CompareLog():
                self._compare(step, summary)
            case ReplaceAttachment():
                summary.warnings += self._replace_attachment(source)
            case RefreshSession(spec=spec):
                now.refresh(source, spec)
            case ChangeConversation(conversation=conversation):
                source.save_identity(now.db)
                part_source = self._known.part(source, conversation.spec)
                if part_source.state == FORGOTTEN:
                    return
                if self.mask is not None:
                    self.mask.conversation(conversation)
                summary.records += now.conversations.apply(source, part_source, conversation)
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
        source, project = step.row, excluded_project(self.exclude, step)
        if project is not None and source.kind != "database":
            source.save_state(self._store.db, EXCLUDED, project)
        return project is not None or source.state == EXCLUDED

    def _return_parts(self, source: Tracked) -> None:
        from sessiond.engines.databases import return_parts

        return_parts(self._store.db, source, self._known.parts_of(source))

    def _finish(self, step: Finish, summary: Summary) -> None:
        now, source = self._store.transaction, step.row
        if step.empty:
            now.chunks.drop_unfinished(source)
        if step.unsettled or step.partial:  # without a stat the file is read again
            summary.unsettled += [source.path] if step.unsettled else []
            if source.state != LIVE:
                source.save_state(now.db, LIVE)
        else:
            source.save_stat(now.db, step.stat, step.file.sidecar_ns)

    def _fail(self, step: Fail, summary: Summary) -> None:
        source, problem = step.row, self._told(step.problem)
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

    def _compare(self, step: Step, summary: Summary) -> None:
        """Compare a changed log with its archive: append to it, or reread it as a rewrite."""
        source = step.row
        fd, stat = tail.open_log(source.path)  # what is compared is what is read
        try:
            kept = comparing.common_prefix(self._store.db, source, fd)
            rewritten = kept < source.progress.checkpoint.offset
            if rewritten:
                self._store.transaction.rewriting.rewind(source, kept)
            else:
                comparing.mark_again(self._store.db, source, fd)
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
            self._store.transaction.rewriting.finish(source)
            source.archived_to = 0

    def _replace_attachment(self, source: Tracked) -> int:
        fd = tail.open_regular(source.path)
        try:
            size = os.fstat(fd).st_size
            if size != source.progress.checkpoint.offset or size != comparing.common_prefix(
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
        source = self._known.sources.setdefault(step.file.path, self._known.of(step.file))
        problem = self._told(problem)
        with self._store.db:
            self._count_crash(source, step.file.stat, problem)
        summary.skipped.append((source.path, problem))
