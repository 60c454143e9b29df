"""How both programs start and end: every outcome is an exit code, every error a line and a hint."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Callable

from sess_common.classes import TYPE_CHECKING, later
from sess_common.escape import safe

if TYPE_CHECKING:
    from typing import Any, TextIO

    import typer

    from sess_common.errors import SessError

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


def follow(app: typer.Typer, name: str, arguments: list[str]) -> None:
    """Run a command line."""
    from typer import Abort, Exit  # the caller has paid for it
    from typer.main import get_command

    context: Any = None
    try:
        # Not app(): it turns a broken pipe into exit code 1 before we see it.
        command = get_command(app)
        with command.make_context(name, arguments) as context:
            command.invoke(context)
    except Exit as done:
        raise Ended(done.exit_code) from None
    except Abort:
        raise KeyboardInterrupt from None
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        verb = getattr(context, "invoked_subcommand", None)
        raise usage_error(error, f"{name} {verb}" if verb else name) from error


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
        code = explain(name, error)
        _tell_losses(name)
        return code
    return code or _damage_met(name)


def _damage_met(name: str) -> int:
    """What was shown lacks records that are damaged in the archive: say so, whatever it was."""
    archive = sys.modules.get("sess_schema.archive")
    if archive is None or not archive.met:
        _tell_losses(name)
        return 0
    pieces = "a piece" if len(archive.met) == 1 else f"{len(archive.met)} pieces"
    say(f"{name}: incomplete: {pieces} of the archive could not be read")
    say(f"hint: {archive.met[0].hint}")
    return 5


def _tell_losses(name: str) -> None:
    """A repair could not bring back everything, and nobody has accepted that yet."""
    archive = sys.modules.get("sess_schema.archive")
    if archive is not None and archive.lost:
        files = counted(len(archive.lost), "file")
        say(f"{name}: the index lacks parts of {files}, lost by damage")
        say("hint: `sess check` lists them; `sessiond repair --accept-losses` accepts the loss")


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
    from sess_common.errors import REPAIR, explained

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
    damage = _damage_of(str(paths.home().index))
    if damage is not None:  # what was read of it may be anything
        say(f"{name}: the index is damaged: {damage}")
        say(f"hint: {REPAIR}")
        return 4
    say(f"{name}: {type(error).__name__}: {error}")
    say(f"hint: `{name} --debug …` shows where; please report this")
    return 70


def _damage_of(index: str) -> str | None:
    """What is damaged in the index, if this process has read it."""
    page_sums = sys.modules.get("sess_schema.page_sums")
    if page_sums is None:
        return None
    with contextlib.suppress(Exception):  # the first error is the one to tell
        return next(page_sums.damage(index), None)
    return None


def counted(number: int, noun: str) -> str:
    """`1 file`, `2 files`, `1,150 files`."""
    ending = "" if number == 1 else "es" if noun.endswith(("sh", "ch", "s", "x")) else "s"
    return f"{number:,} {noun}{ending}"


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


# -- what is wrong with a command line, said as everything else is

_SIMILAR = 0.7
_SHORTEST_PART = 3
_NO_SUCH_COMMAND = later(r"No such command '(.*)'\.(?: Did you mean '([^']*)'.*)?")
_EXTRA_ARGUMENTS = later(r"Got unexpected extra arguments?\(?s?\)? \((.*)\)")
_OUT_OF_RANGE = later(r"(\S+) is not in the range (?:(\S+)<=)?x(?:(?:<=|>=)(\S+))?")
_NO_NUMBER = later(r"'(.*)' is not a valid (int|float).*")
_NUMBERS = {"int": "a whole number", "float": "a number"}


def usage_error(error: Any, command: str) -> SessError:
    """The parser's complaint about a command line; `command` is used where it does not know."""
    from sess_common.errors import SessError

    context = error.ctx
    command = context.command_path if context is not None else command
    message, meant = _complaint(error, command)
    suggested = f"did you mean {meant}? " if meant else ""
    return SessError(message, hint=f"{suggested}`{command} --help`")


def _complaint(error: Any, command: str) -> tuple[str, str | None]:
    """What is wrong, and what may have been meant."""
    option, parameter = getattr(error, "option_name", None), getattr(error, "param", None)
    text = error.message.rstrip(".")
    if hasattr(error, "possibilities"):
        return f"no such option: {option}", _meant(option, error.possibilities or ())
    if option is not None:
        return f"{option} {'needs a' if 'requires' in text else 'takes no'} value", None
    if parameter is not None and error.message:
        return f"invalid value for {_parameter_name(parameter)}: {_invalid_value(text)}", None
    if parameter is not None:
        return f"missing {parameter.param_type_name}: {_parameter_name(parameter)}", None
    if found := _NO_SUCH_COMMAND.fullmatch(error.message):
        return f"no such command: {found[1]}", f"`{command} {found[2]}`" if found[2] else None
    if found := _EXTRA_ARGUMENTS.fullmatch(text):
        return f"unexpected argument{'s' if ' ' in found[1] else ''}: {found[1]}", None
    return text[:1].lower() + text[1:], None


def _meant(option: Any, known: tuple[str, ...]) -> str | None:
    import difflib  # only after a slip

    part = option.strip("-")
    names = {name.strip("-"): name for name in known}
    close = difflib.get_close_matches(part, names, 1, _SIMILAR)
    parts = [name for name in names if len(part) >= _SHORTEST_PART and part in name]
    return next((names[name] for name in close or parts), None)


def _parameter_name(parameter: Any) -> str:
    if parameter.param_type_name == "option":
        return str(parameter.opts[-1])
    return str(parameter.metavar or parameter.name).strip("[].")


def _invalid_value(text: str) -> str:
    if kind := _NO_NUMBER.fullmatch(text):
        return f'"{kind[1]}" is not {_NUMBERS[kind[2]]}'
    if limits := _OUT_OF_RANGE.fullmatch(text):
        value, least, most = limits.groups()
        if least and most:
            return f"{value} is not between {least} and {most}"
        return f"{value} is {'less' if '>=' in text else 'more'} than {most}"
    return text
