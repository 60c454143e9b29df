"""The `sess` command: wiring only. The verbs are in `commands/`."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Annotated

import typer

from sess_cli.options import InstallCompletion, ShowCompletion
from sess_cli.parsing import check_colour, expanded, keep_only, with_verb
from sess_common import completion, program
from sess_common.errors import Exit, SessError
from sess_common.program import say
from sess_schema import __version__

# Each verb, in the order of the help, and its module in `commands/`: the function has the name of
# the verb, unless the module registers it.
VERBS = {
    "search": "search", "recall": "recall", "lessons": "lessons",
    "list": "list_", "show": "show", "stats": "stats",
    "statusline": "stats",
    "export": "export", "import": "record", "records": "show", "cut": "cut", "pick": "cut",
    "truncate": "cut", "rm": "delete", "undo": "undo", "scrub": "scrub", "suggest": "cut",
    "prune": "delete",
    "label": "mark", "title": "mark", "pin": "mark", "init": "init",
    "state": "resume", "history": "resume", "resume": "resume", "handoff": "resume",
    "record": "record", "restore": "restore", "check": "check", "backup": "check",
    "forget": "delete", "why": "why", "mcp": "mcp", "connect": "connect",
    "now": "now", "brief": "brief", "log": "brief", "sql": "sql", "doctor": "doctor",
    "demo": "demo",
}  # fmt: skip

app = typer.Typer(
    name="sess",
    epilog=program.EXIT_CODES,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    add_completion=False,
)
# One that is named is loaded alone: each of the others would take a few milliseconds.
_asked = next((word for word in sys.argv[1:] if word != "--debug"), "")
for _verb in [_asked] if _asked in VERBS else VERBS:
    _module = import_module(f"sess_cli.commands.{VERBS[_verb]}")
    if hasattr(_module, "register"):
        _module.register(app)
    else:
        # `list` and `import` are Python's.
        _name = _verb if hasattr(_module, _verb) else f"{_verb}_"
        app.command(_verb)(expanded(getattr(_module, _name)))


def _version(value: bool) -> None:
    if value:
        typer.echo(f"sess {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def options(
    context: typer.Context,
    *,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
    colour: Annotated[
        str,
        typer.Option(
            "--color",
            metavar="WHEN",
            help="Colour output: auto (on terminals, unless NO_COLOR is set), always or never.",
        ),
    ] = "auto",
    print_id: Annotated[
        bool, typer.Option("--print-id", help="Choose a session on the screen and print its ID.")
    ] = False,
    print_command: Annotated[
        bool,
        typer.Option("--print-command", help="Choose a command that an agent ran, and print it."),
    ] = False,
    install_completion: InstallCompletion = False,
    show_completion: ShowCompletion = False,
) -> None:
    """Search, list and show what coding agents did on this machine."""
    if context.invoked_subcommand is None:
        _without_a_verb(print_id=print_id, print_command=print_command)
    elif print_id or print_command:
        option = "--print-id" if print_id else "--print-command"
        raise SessError(f"{option} goes without a command: {context.invoked_subcommand}")


def _without_a_verb(*, print_id: bool, print_command: bool) -> None:
    """The finder on a terminal; elsewhere the list."""
    from sess_cli import finder  # only here

    if print_id or print_command or finder.has_screen():
        raise typer.Exit(finder.start(print_id=print_id, print_command=print_command))
    from sess_cli.commands import list_

    expanded(list_.list_)()
    if sys.stdin.isatty() and sys.stdout.isatty():
        say("\nhint: `sess search WORDS` searches, `sess show ID` shows one; see `sess --help`")


def run() -> None:
    arguments = sys.argv[1:]

    def follow() -> None:
        if completion.wanted("sess"):
            from sess_cli.completing import values

            keep_only(app, arguments[:-1])
            completion.answer(app, "sess", arguments, values)
            return
        if completion.show_or_install("sess", arguments):
            return
        check_colour(arguments)
        words = with_verb(app, arguments)
        keep_only(app, words)
        try:
            program.follow(app, "sess", words)
        except program.Ended as end:
            if words != arguments and end.code == Exit.NOTHING_FOUND:
                word = next(word for word in arguments if not word.startswith("-"))
                say(f'hint: "{word}" is no command, so it was searched for; `sess --help`')
            raise

    program.run_plain("sess", follow, debug=arguments[:1] == ["--debug"])
