"""How both programs start and end: every outcome is an exit code, every error a line and a hint."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Callable

from sess_common.classes import TYPE_CHECKING
from sess_common.escape import safe

if TYPE_CHECKING:
    from typing import Any, TextIO

    import typer

EXIT_CODES = """\b
Exit codes:
    0  ok
    1  nothing found
    2  usage error
    3  daemon not running
    4  index unusable
    5  done, some items skipped
    6  above the budget
   69  a program that was needed is missing or failed
   70  internal error
   75  another daemon is running
  130  interrupted
"""
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


class Ended(Exception):
    """Exit with a code; everything else is done, and any message printed."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def follow(app: typer.Typer, name: str, given: list[str]) -> None:
    """Run a command line."""
    from typer import Abort, Exit  # the caller has paid for it
    from typer.main import get_command

    context: Any = None
    try:
        # Not app(): it turns a broken pipe into exit code 1 before we see it.
        command = get_command(app)
        with command.make_context(name, given) as context:
            command.invoke(context)
    except Exit as done:
        raise Ended(done.exit_code) from None
    except Abort:
        raise KeyboardInterrupt from None
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        from sess_common.usage import explained  # only when something is wrong

        verb = getattr(context, "invoked_subcommand", None)
        raise explained(error, f"{name} {verb}" if verb else name) from error


def run_plain(name: str, body: Callable[[], None], *, debug: bool = False) -> None:
    """Run `body` and exit with its outcome."""
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(outcome(name, body, debug=debug))


def _open_closed_streams() -> None:
    """After `>&-` nobody reads the stream, but no other file may get its descriptor."""
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(fd, True)
    os.close(fd)
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


def outcome(name: str, body: Callable[[], None], *, debug: bool = False) -> int:
    """Run `body`; its exit code."""
    code = 0
    try:
        try:
            body()
        except Ended as done:
            code = done.code
        sys.stdout.flush()
    except BrokenPipeError:
        stop_writing()
        return code
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if debug:
            raise
        return explain(name, error)
    return code or _damage_met(name)


def _damage_met(name: str) -> int:
    """What was shown lacks records that are damaged in the archive: say so, whatever it was."""
    archive = sys.modules.get("sess_schema.archive")
    if archive is None or not archive.met:
        return 0
    pieces = "a piece" if len(archive.met) == 1 else f"{len(archive.met)} pieces"
    say(f"{name}: incomplete: {pieces} of the archive could not be read")
    say(f"hint: {archive.met[0].hint}")
    return 5


def _output_failed(name: str, error: OSError) -> bool:
    """Whether it was stdout that could not be written to."""
    try:
        sys.stdout.flush()  # what failed is still in the buffer, if there is one
    except OSError:
        stop_writing()
        return True
    # The client writes nothing else without naming the file.
    return name == "sess" and error.filename is None and error.errno in _NO_SPACE


def explain(name: str, error: Any) -> int:
    """Print what went wrong in one line, and what to do about it; return the exit code."""
    from sess_common import paths  # only when something is wrong
    from sess_common.errors import explained

    if isinstance(error, OSError) and _output_failed(name, error):
        say(f"{name}: cannot write to standard output: {(error.strerror or '').lower()}")
        return 2
    told = explained(error, str(paths.home().index))
    if told is not None:
        say(f"{name}: {told.message}")
        if told.hint:
            say(f"hint: {told.hint}")
        return told.code
    if isinstance(error, OSError) and error.strerror:
        what = f'use "{error.filename}"' if error.filename else "read or write"
        say(f"{name}: cannot {what}: {error.strerror.lower()}")
        return 2
    say(f"{name}: {type(error).__name__}: {error}")
    say(f"hint: `{name} --debug …` shows where; please report this")
    return 70


def counted(number: int, noun: str) -> str:
    """`1 file`, `2 files`, `1,150 files`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def say(message: str) -> None:
    """Print a line for people, on stderr."""
    sys.stdout.flush()
    text = safe(message) if sys.stderr.isatty() else message
    try:
        sys.stderr.write(text + "\n")
    except OSError:  # nobody reads it: what was asked for matters more
        _lead_nowhere(sys.stderr)


def stop_writing() -> None:
    """The reader of our output is gone: flush nothing more to it at exit."""
    _lead_nowhere(sys.stdout)


def _lead_nowhere(stream: TextIO) -> None:
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def module(name: str) -> list[str]:
    """The command line that runs a module of this installation.

    -P keeps the current directory off the module path: it may contain anyone's code.
    """
    return [sys.executable, "-P", "-m", name]
