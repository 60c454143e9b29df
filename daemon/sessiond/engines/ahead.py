"""A second process that reads and parses logs while the writer writes, for loads of many megabytes.

It has neither the index nor the lock, and hands over one slice after the other through a pipe. If
it fails or is killed, the writer reads on by itself from where the last slice ended; if the writer
is killed, the pipe breaks, and it ends. So what is written is the same with and without it.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import marshal
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import IO, TYPE_CHECKING, Any

import apsw

from sess_common.program import module
from sess_schema.edits import Edit
from sessiond.engines import steps
from sessiond.engines.lines import read_log
from sessiond.reading.survey import Candidate
from sessiond.reading.tail import Checkpoint, Stat
from sessiond.reading.tracked import Progress, Tracked
from sessiond.sourcekit import base
from sessiond.sourcekit.folders import ProjectFolder

if TYPE_CHECKING:
    from subprocess import Popen

    from sessiond.sourcekit.masking import Masker


MOST_WAITING = 16 << 20  # bytes handed over and not taken yet
_LENGTH = 8
_COLLECT_AFTER = 100  # files: their parsers refer to themselves
_PLAIN = 2  # the format of marshal that does not look for repeated objects
_END, _FAILED = ("end",), ("failed",)


class ReadAhead:
    """The process that reads ahead, as the writer sees it."""

    def __init__(
        self,
        files: Sequence[tuple[Candidate, Tracked]],
        index: apsw.Connection,
        *,
        settle: bool,
        mask: Masker | None = None,
    ) -> None:
        self._settle = settle
        self._mask = mask
        self._jobs = {
            file.path: (number, source.progress.checkpoint, source.stat)
            for number, (file, source) in enumerate(files)
        }
        agents = list({id(file.agent): file.agent for file, _ in files}.values())
        numbers = {id(agent): number for number, agent in enumerate(agents)}
        jobs = [(numbers[id(file.agent)], *_job(file, source, index)) for file, source in files]
        patterns = None if mask is None else mask.patterns
        self._process: Popen[bytes] | None = _start(
            marshal.dumps((settle, patterns, [*map(_flat_agent, agents)], jobs))
        )

    def close(self) -> None:
        """End the process, whatever it is doing."""
        process, self._process = self._process, None
        if process is not None:
            assert process.stdout is not None
            process.kill()
            process.stdout.close()
            process.wait()

    def read(
        self, file: Candidate, source: Tracked, index: apsw.Connection
    ) -> Iterator[steps.Step]:
        """What `read_log` yields."""
        number, *expected = self._jobs.get(file.path, (-1,))
        if expected == [source.progress.checkpoint, source.stat]:
            while (values := self._next(number)) not in (_FAILED, _END):
                yield step_of(file, source, values)
            if values == _END:
                return
        yield from read_log(file, source, index, settle_all=self._settle, mask=self._mask)

    def _next(self, number: int) -> tuple[Any, ...]:
        """The next message about a job. Those about earlier jobs are of files that were skipped."""
        while self._process is not None:
            assert self._process.stdout is not None
            message = _receive(self._process.stdout)
            if message is None:
                self.close()
            elif message[0] == number:
                return message[1]
        return _FAILED


def is_possible() -> bool:
    """Whether this machine can run a second process beside the writer."""
    return bool(sys.executable) and _cores() > 1


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _job(file: Candidate, source: Tracked, index: apsw.Connection) -> tuple[Any, ...]:
    source.parser_state(index)
    known = source.id, source.state, flat_stat(source.stat), flat_progress(source.progress)
    return (file.path, file.kind, flat_stat(file.stat), file.sidecar_ns), known


def _flat_agent(agent: base.Source) -> tuple[Any, ...]:
    kind = type(agent)
    environ = None if agent.environ is os.environ else dict(agent.environ)
    return kind.__module__, kind.__qualname__, [*agent.extra_roots], environ, agent.platform


def _start(jobs: bytes) -> Popen[bytes] | None:
    import subprocess  # only for a bulk load

    try:
        process = subprocess.Popen(
            module("sessiond.engines.ahead"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except OSError:  # no more processes, memory or descriptors: the writer reads by itself
        return None
    assert process.stdin is not None
    with contextlib.suppress(OSError), process.stdin as stdin:
        stdin.write(jobs)
    return process


def _receive(pipe: IO[bytes]) -> tuple[int, tuple[Any, ...]] | None:
    """The next message; None if the process has ended."""
    head = pipe.read(_LENGTH)
    length = int.from_bytes(head, "little")
    body = pipe.read(length) if len(head) == _LENGTH else b""
    return marshal.loads(body) if body and len(body) == length else None  # noqa: S302 - our own


# -- what goes through the pipe: steps as flat tuples, which `marshal` moves at little cost

Flat = tuple[Any, ...]


def _values_of(kind: type) -> Any:
    """A function that returns the fields of an instance, in the order of its constructor."""
    return attrgetter(*(field.name for field in fields(kind)))


_record_values, _event_values, _result_values = map(
    _values_of, (base.Record, base.Event, base.Result)
)
_usage_values, _title_values, _link_values = map(_values_of, (base.Usage, base.Title, base.Link))
_retire_values, _edit_values, _problem_values = map(_values_of, (base.Retire, Edit, steps.Problem))
_spec_values, _stat_values, _mark_values = map(_values_of, (base.SessionSpec, Stat, Checkpoint))
_NAMES = [field.name for field in fields(base.Record)]
_EVENTS, _USAGE = _NAMES.index("events"), _NAMES.index("usage")
_EDITS = [field.name for field in fields(base.Event)].index("edits")
_FOLDER = [field.name for field in fields(base.SessionSpec)].index("folder")
# The other lists of a record, with what they hold; most are empty.
_LISTS = [
    (_NAMES.index("results"), _result_values, base.Result),
    (_NAMES.index("advice"), _usage_values, base.Usage),
    (_NAMES.index("titles"), _title_values, base.Title),
    (_NAMES.index("links"), _link_values, base.Link),
    (_NAMES.index("retires"), _retire_values, base.Retire),
]


def flat(step: steps.Step) -> Flat:
    """A step without its file and source, which both sides know."""
    match step:
        case steps.AddSlice(spec=spec, slice_=slice_):
            return "slice", flat_spec(spec), _flat_slice(slice_)
        case steps.RefreshSession(spec=spec):
            return "refresh", flat_spec(spec)
        case steps.Finish():
            return "finish", _stat_values(step.stat), step.unsettled, step.partial, step.empty
        case steps.Fail():
            return "fail", step.problem, step.crashed
        case steps.CompareLog():
            return ("compare",)
        case steps.ReplaceAttachment():
            return ("attachment",)
        case steps.Vanish():
            return ("vanish",)
    raise TypeError(step)


def step_of(file: Candidate, source: Tracked, values: Flat) -> steps.Step:
    """The step that `flat` took apart."""
    match values:
        case "slice", spec, slice_:
            return steps.AddSlice(file, source, spec_of(spec), _slice_of(slice_))
        case "refresh", spec:
            return steps.RefreshSession(file, source, spec_of(spec))
        case "finish", stat, unsettled, partial, empty:
            return steps.Finish(file, source, Stat(*stat), unsettled, partial, empty)
        case "fail", problem, crashed:
            return steps.Fail(file, source, problem, crashed)
        case ("compare",):
            return steps.CompareLog(file, source)
        case ("attachment",):
            return steps.ReplaceAttachment(file, source)
        case ("vanish",):
            return steps.Vanish(file, source)
    raise TypeError(values[0])


def flat_stat(stat: Stat | None) -> Flat | None:
    return None if stat is None else _stat_values(stat)


def flat_spec(spec: base.SessionSpec) -> Flat:
    values = list(_spec_values(spec))
    if spec.folder is not None:
        values[_FOLDER] = tuple(spec.folder)
    return tuple(values)


def spec_of(values: Flat) -> base.SessionSpec:
    parts = list(values)
    if parts[_FOLDER] is not None:
        parts[_FOLDER] = ProjectFolder(*parts[_FOLDER])
    return base.SessionSpec(*parts)


def flat_progress(progress: Progress) -> Flat:
    mark = _mark_values(progress.checkpoint)
    return mark, progress.lines, progress.blank_lines, progress.parser_state


def progress_of(values: Flat) -> Progress:
    mark, lines, blank_lines, state = values
    return Progress(Checkpoint(*mark), lines, blank_lines, state)


def _flat_slice(slice_: steps.Slice) -> Flat:
    return (
        slice_.start,
        b"" if slice_.packed is not None else slice_.raw,
        slice_.packed,
        [(t.offset, t.length, t.line, _flat_record(t.record), t.digest) for t in slice_.records],
        list(map(_problem_values, slice_.problems)),
        flat_progress(slice_.progress),
        slice_.unfinished,
        slice_.size,
    )


def _slice_of(values: Flat) -> steps.Slice:
    start, raw, packed, records, problems, progress, unfinished, size = values
    return steps.Slice(
        start,
        raw,
        packed,
        [
            steps.PlacedRecord(at, length, line, _record_of(r), digest)
            for at, length, line, r, digest in records
        ],
        [steps.Problem(*one) for one in problems],
        progress_of(progress),
        unfinished,
        size,
    )


def _flat_record(record: base.Record) -> list[Any]:
    values = list(_record_values(record))
    if record.events:
        values[_EVENTS] = [_flat_event(event) for event in record.events]
    if record.usage is not None:
        values[_USAGE] = _usage_values(record.usage)
    for at, values_of, _ in _LISTS:
        if values[at]:
            values[at] = list(map(values_of, values[at]))
    return values


def _record_of(values: list[Any]) -> base.Record:
    if values[_EVENTS]:
        values[_EVENTS] = [_event_of(event) for event in values[_EVENTS]]
    if values[_USAGE] is not None:
        values[_USAGE] = base.Usage(*values[_USAGE])
    for at, _, kind in _LISTS:
        if values[at]:
            values[at] = [kind(*one) for one in values[at]]
    return base.Record(*values)


def _flat_event(event: base.Event) -> Flat:
    values: Flat = _event_values(event)
    if event.edits:
        edits = tuple(map(_edit_values, event.edits))
        return *values[:_EDITS], edits, *values[_EDITS + 1 :]
    return values


def _event_of(values: Flat) -> base.Event:
    event = base.Event(*values)
    if event.edits:
        event.edits = tuple([Edit(*one) for one in event.edits])  # type: ignore[misc]
    return event


# -- the process itself


class _Sender:
    """Writes messages in a thread, so that reading goes on while the writer is busy."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        self._changed = threading.Condition()
        threading.Thread(target=self._write, daemon=True).start()

    def send(self, number: int, values: tuple[Any, ...]) -> None:
        message = marshal.dumps((number, values), _PLAIN)
        with self._changed:
            self._changed.wait_for(
                lambda: not self._waiting or self._bytes + len(message) <= MOST_WAITING
            )
            self._waiting.append(message)
            self._bytes += len(message)
            self._changed.notify_all()

    def finish(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting)

    def _write(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting)
                message = self._waiting[0]
            try:
                for part in (len(message).to_bytes(_LENGTH, "little"), message):
                    rest = memoryview(part)
                    while rest:
                        rest = rest[os.write(self._fd, rest) :]
            except OSError:  # the writer is gone, and with it all reason to go on
                os._exit(0)
            with self._changed:
                self._waiting.popleft()
                self._bytes -= len(message)
                self._changed.notify_all()


def _agent_of(values: tuple[Any, ...]) -> base.Source:
    place, name, roots, environ, platform = values
    agent: base.Source = getattr(importlib.import_module(place), name)(
        roots, os.environ if environ is None else environ, platform
    )
    return agent


def _read(
    number: int,
    agent: base.Source,
    job: Sequence[Any],
    sender: _Sender,
    *,
    settle: bool,
    mask: Masker | None,
) -> None:
    (path, kind, stat, sidecar_ns), known = job
    source_id, state, known_stat, progress = known
    file = Candidate(agent, path, kind, Stat(*stat), sidecar_ns)
    source = Tracked(path, agent.agent, kind, source_id, state, progress=progress_of(progress))
    source.stat = None if known_stat is None else Stat(*known_stat)
    # Its parser state is loaded, so that the index is not asked.
    for step in read_log(file, source, None, settle_all=settle, mask=mask):  # type: ignore[arg-type]
        sender.send(number, flat(step))


def _masker(patterns: list[str]) -> Masker:
    from sessiond.sourcekit.masking import Masker  # 20 ms, and few want it

    return Masker(patterns)


def main() -> None:
    """Read the jobs from standard input, then hand over their steps through standard output."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the writer decides when to stop
    gc.disable()  # as in the writer: records have no cycles
    given = marshal.loads(sys.stdin.buffer.read())  # noqa: S302 - from the writer
    settle, patterns, agents, jobs = given
    mask = None if patterns is None else _masker(patterns)
    sender = _Sender(os.dup(1))
    os.dup2(2, 1)  # whatever prints must not get into the messages
    _read_all(agents, jobs, sender, settle=settle, mask=mask)
    sender.finish()
    os._exit(0)


def _read_all(
    agents: Sequence[tuple[Any, ...]],
    jobs: Sequence[tuple[Any, ...]],
    sender: _Sender,
    *,
    settle: bool,
    mask: Masker | None,
) -> None:
    gc.freeze()  # what is there before stays: the collections need not look at it
    sources: dict[int, base.Source] = {}
    for number, (agent, *job) in enumerate(jobs):
        try:
            if agent not in sources:
                sources[agent] = _agent_of(agents[agent])
            _read(number, sources[agent], job, sender, settle=settle, mask=mask)
            sender.send(number, _END)
        except Exception:  # the writer reads the file by itself, and finds out what is wrong
            sender.send(number, _FAILED)
        if number % _COLLECT_AFTER == 0:
            gc.collect()


if __name__ == "__main__":
    main()
