"""The index, updated first when no daemon is running.

The daemon's code runs in a child process: the client itself never writes. After two seconds the
child goes on alone, and the command answers from what there is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from sess_common.classes import TYPE_CHECKING
from sess_common.errors import Exit, SessError
from sess_common.program import Ended, module, say

if TYPE_CHECKING:
    from subprocess import Popen
    from typing import Any

    import apsw

    from sess_common.paths import Home

# Done, nothing to do, some files skipped, another process is updating it: the index is readable.
_FINE = (Exit.OK, Exit.NOTHING_FOUND, Exit.SKIPPED_SOME, Exit.ALREADY_RUNNING)


class Answer:
    """What the answers of this command have to be made from."""

    whole = False  # --wait
    told = False  # what is missing was said
    reading: Popen[bytes] | None = None  # who goes on without us


class _Empty(SessError):
    """There are no sessions, or none that can be read of a damaged index."""


@contextmanager
def open_index(*, sync: bool = True, whole: bool = False) -> Iterator[apsw.Connection]:
    """A reader of the index, updated first where possible.

    `whole`: wait until everything is read, as a change needs it that must miss nothing.
    """
    from sess_common import paths  # not needed for --help
    from sess_common.errors import explained
    from sess_schema.connection import open_reader

    home = paths.home()
    db, code = _updated(home, whole=whole or Answer.whole) if sync else (None, Exit.OK)
    failed = code == Exit.INDEX_UNUSABLE
    try:
        with closing(db or open_reader(home.index_file)) as db:
            if db.execute("SELECT value FROM facts WHERE name = 'losses' AND value <> '[]'").get:
                from sess_schema import archive  # only after damage

                archive.tell_losses(db)
            _tell_unread(db, home, started=code is None)
            yield db
    except Exception as error:
        reason = explained(error, home.index_file)
        unusable = reason is not None and (
            reason.code == Exit.INDEX_UNUSABLE or isinstance(reason, _Empty)
        )
        if failed and unusable:
            raise Ended(Exit.INDEX_UNUSABLE) from error  # the child has printed it already
        raise


@contextmanager
def open_with_sessions(*, sync: bool = True, whole: bool = False) -> Iterator[apsw.Connection]:
    """The same, for commands that need at least one session."""
    from sess_schema.queries import sessions

    with open_index(sync=sync, whole=whole) as db:
        if not sessions.any_session(db):
            raise _unread(db) or _no_sessions()
        yield db


def _unread(db: apsw.Connection) -> SessError | None:
    """Why there are none, if there are files that could not be read."""
    files = "SELECT count(*) FROM sources WHERE state IN ('parked', 'unreadable')"
    if not db.execute(files).get:
        return None
    return SessError(
        f"no sessions: {db.execute(files).get:,} transcripts could not be read",
        hint="`sessiond status` lists them",
        code=Exit.NOTHING_FOUND,
    )


def _no_sessions() -> SessError:
    from sess_common import lock, paths

    if lock.is_held(paths.home().lock_file):
        return _Empty(
            "no sessions indexed yet",
            hint="sessiond is running; `sessiond status` shows what it has read and where it looks",
            code=Exit.NOTHING_FOUND,
        )
    places = roots()
    looked = f"; looked in {len(places)} places" if places else ""
    return _Empty(
        f"no transcripts found{looked}",
        hint="`sess demo` runs on a built-in sample; `sessiond agents --all` lists the places",
        code=Exit.NOTHING_FOUND,
    )


def roots() -> list[str]:
    """The directories that the daemon reads transcripts from."""
    import subprocess

    child = subprocess.run(
        [*module("sessiond.service.one_pass"), "--roots"],
        capture_output=True,
        text=True,
        check=False,
    )
    return child.stdout.splitlines() if child.returncode == 0 else []


def service_problem() -> tuple[str, str] | None:
    """What is wrong with the installed service, and what to do about it."""
    import subprocess

    child = subprocess.run(
        module("sessiond.service.install"), capture_output=True, text=True, check=False
    )
    lines = child.stdout.splitlines()
    return (lines[0], lines[1]) if len(lines) == 2 else None


def agents() -> list[dict[str, Any]]:
    """What `sessiond agents --json` says."""
    import json
    import subprocess

    child = subprocess.run(
        module("sessiond.service.agents"), capture_output=True, text=True, check=False
    )
    return [json.loads(line) for line in child.stdout.splitlines()]


def _updated(home: Home, *, whole: bool) -> tuple[apsw.Connection | None, int | None]:
    """Run one pass unless a daemon is running, or nothing changed since the last one.

    A reader, if one had to be opened to know that; and how the pass ended, None if it goes on.
    """
    from sess_common import lock
    from sess_schema.connection import reader_if_unchanged

    while True:
        if lock.is_held(home.lock_file):
            from sess_cli import waiting

            db = waiting.reader(home, whole=whole)
            if db is not None:
                return db, Exit.OK
        db = reader_if_unchanged(home)
        if db is not None:
            return db, Exit.OK
        code = _sync(home, whole=whole)
        if code != Exit.ALREADY_RUNNING:  # else another command was faster
            return None, code


def _sync(home: Home, *, whole: bool) -> int | None:
    """Run one pass, and say what the child has not said if it failed; None if it goes on."""
    import subprocess  # not needed with a daemon

    from sess_cli import waiting

    if Answer.reading is not None:
        Answer.reading.poll()  # no zombie of a command that runs for long
    child = subprocess.Popen(
        [*module("sessiond.service.one_pass"), "--unless-running"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,  # closing the terminal must not end it
    )
    try:
        said = waiting.until_ended(child, home, whole=whole)
    except KeyboardInterrupt:
        waiting.end(child)
        raise
    finally:
        assert child.stderr is not None
        child.stderr.close()  # who goes on has nobody to tell
    if said is None:
        Answer.reading = child
        return None
    if said:
        say(said.decode("utf-8", "replace").rstrip("\n"))
    code = child.returncode
    if code == Exit.INTERRUPTED:
        raise KeyboardInterrupt
    if code not in _FINE and code != Exit.INDEX_UNUSABLE:
        say(f"sess: cannot update the index (exit code {code})")
        say("hint: `sessiond sync` shows why; using what is already indexed")
    return code


def _tell_unread(db: apsw.Connection, home: Home, *, started: bool) -> None:
    """One line for people, and a field in every object."""
    from sess_schema.queries import sources

    covered = None if Answer.told else sources.coverage(db)
    if covered is None:
        return
    from sess_cli import terminal, waiting
    from sess_common import times

    Answer.told = True
    waiting.tell_unread(covered, home, started=started)
    terminal.in_every_object["indexed_since"] = times.iso(covered.since)
