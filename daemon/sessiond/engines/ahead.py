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
from typing import IO, TYPE_CHECKING, Any

import apsw

from sess_common.program import module
from sessiond.engines.handover import flat, flat_progress, flat_stat, progress_of, step_of
from sessiond.engines.lines import read_log
from sessiond.engines.steps import Step
from sessiond.reading.survey import Candidate
from sessiond.reading.tail import Stat
from sessiond.reading.tracked import Tracked
from sessiond.sourcekit.base import Source

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

    def steps(self, file: Candidate, source: Tracked, index: apsw.Connection) -> Iterator[Step]:
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


def _flat_agent(agent: Source) -> tuple[Any, ...]:
    made = type(agent)
    environ = None if agent.environ is os.environ else dict(agent.environ)
    return made.__module__, made.__qualname__, [*agent.extra_roots], environ, agent.platform


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


def _agent_of(values: tuple[Any, ...]) -> Source:
    place, name, roots, environ, platform = values
    made: Source = getattr(importlib.import_module(place), name)(
        roots, os.environ if environ is None else environ, platform
    )
    return made


def _read(
    number: int,
    agent: Source,
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
    made: dict[int, Source] = {}
    for number, (agent, *job) in enumerate(jobs):
        try:
            if agent not in made:
                made[agent] = _agent_of(agents[agent])
            _read(number, made[agent], job, sender, settle=settle, mask=mask)
            sender.send(number, _END)
        except Exception:  # the writer reads the file by itself, and finds out what is wrong
            sender.send(number, _FAILED)
        if number % _COLLECT_AFTER == 0:
            gc.collect()


if __name__ == "__main__":
    main()
