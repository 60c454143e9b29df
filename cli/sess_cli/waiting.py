"""Waits for another process that makes the first index, upgrades the index or brings it up to date.

Half of a first index would answer "nothing found". The wait shows the progress of that process,
and ends with it: if it was killed, this command takes over.
"""

from __future__ import annotations

import sys
import time

from sess_common import lock, upkeep
from sess_common.classes import TYPE_CHECKING
from sess_common.errors import SessError
from sess_common.program import say
from sess_schema.connection import open_reader
from sess_schema.queries import sources

if TYPE_CHECKING:
    from typing import Any

    import apsw

    from sess_common.paths import Home

_LOOK = 0.1
# Seconds without any progress: the other process was stopped, or cannot go on.
_FOR_FIRST = 30.0
_FOR_SYNC = 5.0  # the index is complete without it, only not as new

_Progress = tuple[str | None, int, int]


def reader(home: Home) -> apsw.Connection | None:
    """A reader of an index that another process writes to; None if nobody does any more."""
    holder = lock.holder(home.lock_file)
    db = _complete(home)
    if holder is None or (db is not None and holder.get("mode") != "sync"):
        return db
    if holder.get("mode") == "repair":
        return db or open_reader(home.index_file)
    if db is not None:
        db.close()
    return _wait(home)


def _wait(home: Home) -> apsw.Connection | None:
    from sess_common.progress import (
        Bar,  # only to wait
        progress_line,
    )

    before, since, told = None, time.monotonic(), False
    with progress_line() as line, Bar() as bar:
        while (holder := lock.holder(home.lock_file)) is not None:
            db = _complete(home)
            if db is not None and holder.get("mode") != "sync":
                return db
            facts = upkeep.writer_status(home.status)
            now = _progress(facts if facts.get("pid") == holder.get("pid") else {})
            if now != before:
                before, since = now, time.monotonic()
            if facts.get("error") or time.monotonic() - since > (_FOR_SYNC if db else _FOR_FIRST):
                break
            if db is not None:
                db.close()
            elif not told and not sys.stderr.isatty():
                say(f"sess: waiting for the first index, which {_who(holder)} is making")
                told = True
            _, done, total = now
            if not bar.update(done, total):
                line(_in_words(holder, now))
            time.sleep(_LOOK)
        else:
            return None
    return db or _unfinished(home, facts)


def _complete(home: Home) -> apsw.Connection | None:
    """A reader, if the index has everything that was there when it was made."""
    try:
        db = open_reader(home.index_file)
    except SessError:  # none yet, or one that is being upgraded
        return None
    if not sources.is_first_walk_unfinished(db):
        return db
    db.close()
    return None


def _unfinished(home: Home, facts: dict[str, Any]) -> apsw.Connection:
    """What there is, and a word that it is not all."""
    db = open_reader(home.index_file)
    _, done, total = _progress(facts)
    read = f" ({_amount(done, total)} read)" if total else ""
    why = f": {facts['error']}" if facts.get("error") else f"{read}, and does not get further"
    say(f"sess: the first index is not complete{why}")
    say("hint: more may be found when it is; `sessiond status` shows its state")
    return db


def _progress(facts: dict[str, Any]) -> _Progress:
    done, total = facts.get(upkeep.DONE), facts.get(upkeep.TOTAL)
    return facts.get(upkeep.DOING), done or 0, total or 0


def _who(holder: dict[str, Any]) -> str:
    return "another command" if holder.get("mode") == "sync" else "sessiond"


def _in_words(holder: dict[str, Any], progress: _Progress) -> str:
    doing, done, total = progress
    if doing:
        return doing
    return f"waiting for {_who(holder)}" + (f": {_amount(done, total)} indexed" if total else "")


def _amount(done: int, total: int) -> str:
    return f"{done / 1e6:.1f} of {total / 1e6:.1f} MB"
