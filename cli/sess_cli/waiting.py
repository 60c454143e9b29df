"""Waits for who updates the index, but not for long: then what it has is the answer.

That may be a process that this command started, another command's, or the daemon. All go on by
themselves. Half of a first index would answer "nothing found", so whoever answers early says what
the index has; and nobody answers before there is anything. The wait shows how far the process is,
and ends with it: if it was killed, this command takes over.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time

from sess_common import lock, upkeep
from sess_common.classes import TYPE_CHECKING
from sess_common.errors import SessError
from sess_common.program import say
from sess_schema.connection import open_reader
from sess_schema.queries import sessions, sources

if TYPE_CHECKING:
    from subprocess import Popen
    from typing import Any, Self

    import apsw

    from sess_common.paths import Home

PATIENCE = 2.0  # seconds; with the start and the answer itself it is under three
_LOOK = 0.1
# Seconds without any progress: the other process was stopped, or cannot go on.
_STUCK = 30.0
_STUCK_SYNC = 5.0  # the index is complete without it, only not as new

_Progress = tuple[str | None, int, int]


def reader(home: Home, *, whole: bool) -> apsw.Connection | None:
    """A reader of an index that another process writes to; None if nobody does any more.

    `whole`: only of an index that has everything.
    """
    holder = lock.holder(home.lock_file)
    db = _opened(home)
    if holder is None:
        return db
    if db is not None and holder.get("mode") != "sync" and sources.coverage(db) is None:
        return db
    if holder.get("mode") == "repair":
        return db or open_reader(home.index_file)
    if db is not None:
        db.close()
    return _wait(home, whole=whole)


def until_ended(child: Popen[bytes], home: Home, *, whole: bool) -> bytes | None:
    """What a process said, when it has ended; None if it goes on, and there is something to read.

    Its standard error is a pipe, which ends with it.
    """
    assert child.stderr is not None
    said, since = b"", time.monotonic()
    with _Display() as display:
        while True:
            if _is_readable(child):
                piece = os.read(child.stderr.fileno(), 1 << 16)
                if not piece:
                    child.wait()
                    return said
                said += piece
                continue
            waited = time.monotonic() - since
            if not whole and waited > PATIENCE and _has_sessions(home):
                return None
            if waited > _LOOK * 5:
                facts = upkeep.writer_status(home.status)
                display.show(_progress(facts if facts.get("pid") == child.pid else {}), "")


def end(child: Popen[bytes]) -> None:
    """Ctrl-C is for the process, too."""
    with contextlib.suppress(OSError):
        child.send_signal(signal.SIGTERM)
    child.wait()


def _is_readable(child: Popen[bytes]) -> bool:
    assert child.stderr is not None
    if os.name == "posix":
        return bool(select.select([child.stderr], [], [], _LOOK)[0])
    from subprocess import TimeoutExpired

    with contextlib.suppress(TimeoutExpired):
        child.wait(_LOOK)
    return child.poll() is not None


def _wait(home: Home, *, whole: bool) -> apsw.Connection | None:
    before, began, told = None, time.monotonic(), False
    since = began
    with _Display() as display:
        while (holder := lock.holder(home.lock_file)) is not None:
            db = _opened(home)
            if db is not None:
                complete = sources.coverage(db) is None
                if complete and holder.get("mode") != "sync":
                    return db
                if not whole and _is_late(holder, began) and sessions.any_session(db):
                    return db
            facts = upkeep.writer_status(home.status)
            now = _progress(facts if facts.get("pid") == holder.get("pid") else {})
            if now != before:
                before, since = now, time.monotonic()
            stuck = _STUCK_SYNC if db is not None and complete else _STUCK
            if facts.get("error") or time.monotonic() - since > stuck:
                return db or open_reader(home.index_file)
            if db is not None:
                db.close()
            if not told and not sys.stderr.isatty() and time.monotonic() - began > PATIENCE:
                say(f"sess: waiting for the index, which {_who(holder)} is making")
                told = True
            display.show(now, f"waiting for {_who(holder)}")
            time.sleep(_LOOK)
    return None


def _is_late(holder: dict[str, Any], began: float) -> bool:
    """Whether this command or another one has waited long enough for the process."""
    age = time.time() - holder.get("started_at", 0) / 1000
    return age > PATIENCE or time.monotonic() - began > PATIENCE


def _opened(home: Home) -> apsw.Connection | None:
    """A reader, if there is an index of this version."""
    try:
        return open_reader(home.index_file)
    except SessError:  # none yet, or one that is being upgraded
        return None


def _has_sessions(home: Home) -> bool:
    db = _opened(home)
    if db is None:
        return False
    with contextlib.closing(db):
        return sessions.any_session(db)


# -- what is said meanwhile


def tell_unread(covered: sources.Coverage, home: Home, *, started: bool) -> None:
    """Say what an index has that has not everything.

    `started`: this command has just started who reads the rest.
    """
    holder = lock.holder(home.lock_file)
    error = upkeep.writer_status(home.status).get("error") if holder else None
    if error:
        rest = f"the rest cannot be read: {error}"
    elif holder is None:
        rest = "nothing reads the rest now"
    else:
        rest = "the rest is being read"
    say(f"sess: {_in_words(covered)}; {rest}")
    if started:
        say("hint: --wait waits for all of it; `sessiond stop` stops it, the next command goes on")


def _in_words(covered: sources.Coverage) -> str:
    from sess_common import times

    if covered.since is None:
        return "the index is not complete"
    later = f", not yet those of {', '.join(covered.later)}" if covered.later else ""
    if covered.since == 0:
        what = f"indexed so far: all sessions{later}"
    else:
        what = f"indexed so far: sessions since {times.local(covered.since):%Y-%m-%d %H:%M}{later}"
    return f"{what} ({_amount(covered.done, covered.total)})"


class _Display:
    """The progress of another process, on a terminal."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        from sess_common.progress import Bar, progress_line  # only to wait

        self._line = self._stack.enter_context(progress_line())
        self._bar = self._stack.enter_context(Bar())
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def show(self, progress: _Progress, who: str) -> None:
        doing, done, total = progress
        if not self._bar.update(done, total):
            indexed = f": {_amount(done, total)} indexed" if total else ""
            self._line(doing or (f"{who}{indexed}" if who else f"reading transcripts{indexed}"))


def _progress(facts: dict[str, Any]) -> _Progress:
    done, total = facts.get(upkeep.DONE), facts.get(upkeep.TOTAL)
    return facts.get(upkeep.DOING), done or 0, total or 0


def _who(holder: dict[str, Any]) -> str:
    return "another command" if holder.get("mode") == "sync" else "sessiond"


def _amount(done: int, total: int) -> str:
    scale, unit = (1e9, "GB") if total >= 1e9 else (1e6, "MB")
    return f"{done / scale:.1f} of {total / scale:.1f} {unit}"
