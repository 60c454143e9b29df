"""The `sess` command: wiring only. Each verb is one file in `commands/`."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer
from typer.main import get_command

from sess_cli.commands import demo, doctor, list_, restore, search, show, sql
from sess_cli.output import say, stop_writing
from sess_schema import __version__

VERBS = (search, list_, show, restore, sql, doctor, demo)

EPILOG = """\b
Exit codes:
    0  ok
    1  nothing found
    2  usage
    3  daemon not running
    4  index unusable
    5  done, some items skipped
   75  another daemon runs
  130  interrupted
"""

app = typer.Typer(
    name="sess",
    epilog=EPILOG,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for verb in VERBS:
    verb.register(app)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"sess {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """Search, list and show what coding agents did on this machine."""
    if context.invoked_subcommand is None:
        list_.show_list()
        if sys.stdout.isatty():
            say("\nhint: `sess search WORDS` finds, `sess show ID` reads, `sess --help` lists all")


def run(arguments: list[str] | None = None) -> None:
    """Entry point: every outcome becomes an exit code, every error one line and a hint."""
    given = sys.argv[1:] if arguments is None else arguments
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    if "_SESS_COMPLETE" in os.environ:
        app(given)
    sys.exit(_outcome(given))


def _outcome(given: list[str]) -> int:
    debug = given[:1] == ["--debug"]
    try:
        # Not app(): it turns a broken pipe into exit code 1 before we see it.
        command = get_command(app)
        with command.make_context("sess", given) as context:
            command.invoke(context)
        sys.stdout.flush()
    except typer.Exit as done:
        return _flushed(done.exit_code)
    except BrokenPipeError:
        stop_writing()
        return 0
    except (KeyboardInterrupt, typer.Abort):
        return 130
    except Exception as error:
        if debug:
            raise
        return _explain(error)
    return 0


def _flushed(code: int) -> int:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        stop_writing()
    return code


def _explain(error: Any) -> int:
    """Say what went wrong in one line, and what to do about it."""
    from sess_schema.errors import SessError, sqlite_error  # noqa: PLC0415

    if type(error).__module__ == "apsw":
        from sess_schema import paths  # noqa: PLC0415

        error = sqlite_error(error, str(paths.home().index))
    if isinstance(error, SessError):
        say(f"sess: {error.message}")
        if error.hint:
            say(f"hint: {error.hint}")
        return error.code
    if hasattr(error, "format_message"):  # the command line could not be understood
        message = error.format_message()
        say(f"sess: {message[:1].lower()}{message[1:].rstrip('.')}")
        context = getattr(error, "ctx", None)
        say(f"hint: `{context.command_path if context else 'sess'} --help`")
        return int(error.exit_code)
    if isinstance(error, OSError) and error.strerror:
        what = f' "{error.filename}"' if error.filename else ""
        say(f"sess: cannot use{what}: {error.strerror.lower()}")
        return 2
    say(f"sess: {type(error).__name__}: {error}")
    say("hint: `sess --debug …` shows where it happened; please report it")
    return 2
