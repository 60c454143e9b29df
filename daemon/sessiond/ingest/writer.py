"""Writes the steps of a pass into the open transaction, and counts what fails."""

from __future__ import annotations

import json
import os
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import apsw

from sessiond.config import Exclude
from sessiond.engines import steps
from sessiond.engines.lines import read_new
from sessiond.ingest import comparing
from sessiond.reading import tail, tracked
from sessiond.reading.survey import Candidate
from sessiond.reading.tail import Stat
from sessiond.reading.tracked import Tracked
from sessiond.sourcekit.base import Record, SessionSpec
from sessiond.writing.transaction import Stopped, Store

if TYPE_CHECKING:
    from sessiond.sourcekit.masking import Masker


_EXCLUDED = "excluded_projects"  # a fact: the rules of the last pass


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
        self.on_progress: Callable[[steps.Summary], None] = lambda _summary: None

    def _write(self, step: steps.Step, summary: steps.Summary) -> None:
        now = self._store.transaction
        source = step.row
        self._known.sources[source.path] = source
        if self.exclude.projects and self._leave_out(step):
            return
        match step:
            case steps.AddSlice(spec=spec, slice_=slice_):
                now.add_slice(source, spec, slice_)
                if source.failures:  # only failures in a row count
                    source.save_state(now.db, tracked.LIVE)
                summary.records += len(slice_.records)
                summary.warnings += len(slice_.problems)
                slice_.records.clear()  # their texts may be large, and indexing takes memory too
            case steps.CompareLog():
                self._compare(step, summary)
            case steps.ReplaceAttachment():
                summary.warnings += self._replace_attachment(source)
            case steps.RefreshSession(spec=spec):
                now.refresh(source, spec)
            case steps.ChangeConversation(conversation=conversation):
                source.save_identity(now.db)
                part_source = self._known.part(source, conversation.spec)
                if part_source.state == tracked.FORGOTTEN:
                    return
                if self.mask is not None:
                    self.mask.conversation(conversation)
                summary.records += now.conversations.apply(source, part_source, conversation)
            case steps.ReplaceDocument(data=data, offset=offset):
                self._return_parts(source)
                now.chunks.replace_document(source, data, offset)
            case steps.KeepState(state=state):
                self._return_parts(source)
                source.save_reader_state(now.db, state)
            case steps.Finish():
                self._finish(step, summary)
            case steps.Vanish():
                source.save_state(now.db, tracked.GONE)
                summary.gone += 1
            case steps.Fail():
                self._fail(step, summary)
        summary.read_bytes += step.weight
        self.on_progress(summary)

    def _leave_out(self, step: steps.Step) -> bool:
        """Whether a step is of an excluded project; of a file, it excludes the rest, too."""
        source, project = step.row, excluded_project(self.exclude, step)
        if project is not None and source.kind != "database":
            source.save_state(self._store.db, tracked.EXCLUDED, project)
        return project is not None or source.state == tracked.EXCLUDED

    def _return_parts(self, source: Tracked) -> None:
        from sessiond.engines.databases import return_parts

        return_parts(self._store.db, source, self._known.parts_of(source))

    def _finish(self, step: steps.Finish, summary: steps.Summary) -> None:
        now, source = self._store.transaction, step.row
        if step.empty:
            now.chunks.drop_unfinished(source)
        if step.unsettled or step.partial:  # without a stat the file is read again
            summary.unsettled += [source.path] if step.unsettled else []
            if source.state != tracked.LIVE:
                source.save_state(now.db, tracked.LIVE)
        else:
            source.save_stat(now.db, step.stat, step.file.sidecar_ns)

    def _fail(self, step: steps.Fail, summary: steps.Summary) -> None:
        source, problem = step.row, self._told(step.problem)
        if step.crashed:
            self._count_crash(source, step.file.stat, problem)
        else:
            source.failures += 1
            source.save_state(self._store.db, tracked.UNREADABLE, problem)
        if source.is_whole:
            summary.failed[source.path] = source.failures
        summary.skipped.append((source.path, problem))

    def _told(self, problem: str) -> str:
        """A problem may quote the file."""
        return problem if self.mask is None else self.mask.text(problem)

    def _compare(self, step: steps.Step, summary: steps.Summary) -> None:
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
            db, settle_all = self._store.db, self._settle_all
            for again in read_new(
                step.file, source, fd, stat, db, settle_all=settle_all, mask=self.mask
            ):
                if self.stop.is_set():
                    raise Stopped
                broken = steps.CompareLog | steps.Fail if rewritten else steps.CompareLog
                if isinstance(again, broken):
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
        if source.failures < tracked.PARK_AFTER:
            source.save_state(self._store.db, source.state, problem)
        else:
            source.park(self._store.db, stat, problem)

    def _note_crash(self, step: steps.Step, problem: str, summary: steps.Summary) -> None:
        source = self._known.sources.setdefault(step.file.path, self._known.of(step.file))
        problem = self._told(problem)
        with self._store.db:
            self._count_crash(source, step.file.stat, problem)
        summary.skipped.append((source.path, problem))


class Known:
    """Every source in the index, by path; loaded when it is asked for."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self._sources: dict[str, Tracked] | None = None
        self._parts: dict[int, list[Tracked]] | None = None  # conversations by their whole

    @property
    def sources(self) -> dict[str, Tracked]:
        if self._sources is None:
            self._sources, self._parts = tracked.load_all(self._db), None
        return self._sources

    def forget(self) -> None:
        """The index says something else: load it again."""
        self._sources = None

    def of(self, file: Candidate) -> Tracked:
        """The source of a file, new if nobody has read it yet."""
        return self.sources.get(file.path) or Tracked(
            file.path, file.agent.agent, file.kind, edition=file.agent.edition
        )

    def parts_of(self, source: Tracked) -> list[Tracked]:
        """The conversations of a document or database."""
        if not source.is_whole or source.id is None:
            return []
        sources = self.sources
        if self._parts is None:
            self._parts = defaultdict(list)
            for part in sources.values():
                if part.part_of is not None:
                    self._parts[part.part_of].append(part)
        return self._parts.get(source.id, [])

    def part(self, whole: Tracked, spec: SessionSpec) -> Tracked:
        """The source of one conversation."""
        path = f"{whole.path}#{spec.native_id}"
        if path not in self.sources:
            part = Tracked(path, whole.agent, "transcript", part_of=whole.id)
            self.sources[path] = part
            if self._parts is not None and whole.id is not None:
                self._parts[whole.id].append(part)
        return self.sources[path]

    def unread(self, file: Candidate) -> int:
        """Bytes that are new in it."""
        source = self.sources.get(file.path)
        if source and source.is_whole and source.stat:
            return 0
        return max(0, file.stat.size - (source.progress.checkpoint.offset if source else 0))

    def failures(self, file: Candidate) -> int:
        source = self.sources.get(file.path)
        return source.failures if source else 0


def excluded_project(rules: Exclude, step: steps.Step) -> str | None:
    """The excluded project that a step's content belongs to."""
    if isinstance(step, steps.AddSlice):
        records = (placed.record for placed in step.slice_.records)
        project = step.spec.project or _first_folder(records)
    elif isinstance(step, steps.ChangeConversation):
        change = step.conversation
        records = (item.record for item in change.items if item.record is not None)
        project = change.project or change.spec.project or _first_folder(records)
    else:
        return None
    return project if rules.has_project(project) else None


def _first_folder(records: Iterable[Record]) -> str | None:
    return next((record.cwd for record in records if record.cwd), None)


def compare_rules(db: apsw.Connection, rules: Exclude) -> bool:
    """After a rule was removed, let every document and database be compared as a whole.

    True if the index was changed for it.
    """
    stored = db.execute("SELECT value FROM facts WHERE name = ?", (_EXCLUDED,)).get
    before, now = json.loads(stored or "[]"), list(rules.projects)
    if before == now:
        return False
    with db:
        if set(before) - set(now):
            kinds = ", ".join(f"'{kind}'" for kind in tracked.WHOLES)
            db.execute(
                f"UPDATE sources SET ctime_ns = 0, parser_state = NULL WHERE kind IN ({kinds})"
            )
        db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (_EXCLUDED, json.dumps(now)))
    return True
