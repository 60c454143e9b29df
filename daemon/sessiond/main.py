"""The `sessiond` command and its verbs. Heavy imports wait until a verb is called."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from sess_common import completion, program
from sess_schema import __version__

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")]

# `shells.asked` reads them, with or without a shell; here they are for --help.
InstallCompletion = Annotated[
    bool,
    typer.Option(
        "--install-completion", help="Install completion for bash, zsh or fish, for both programs."
    ),
]
ShowCompletion = Annotated[
    bool, typer.Option("--show-completion", help="Print the completion script of a shell.")
]

app = typer.Typer(
    help="Index coding-agent transcripts as they are written.",
    epilog=program.EXIT_CODES,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    add_completion=False,
)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"sessiond {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
    install_completion: InstallCompletion = False,
    show_completion: ShowCompletion = False,
) -> None:
    """Index coding-agent transcripts as they are written."""


@app.command()
def start(
    detach: Annotated[bool, typer.Option("--detach", help="Run in the background.")] = False,
) -> None:
    """Run the daemon in the foreground."""
    from sess_common import paths
    from sessiond.service import control, logs, loop

    if detach:
        raise typer.Exit(control.start_detached(typer.echo))
    logs.set_up(paths.home().log, foreground=True)
    raise typer.Exit(loop.serve())


@app.command()
def stop() -> None:
    """Stop the daemon, or a load without one."""
    from sessiond.service import control

    raise typer.Exit(control.stop(typer.echo))


@app.command()
def restart() -> None:
    """Restart the daemon in the background, or start it."""
    from sessiond.service import control

    raise typer.Exit(control.restart(typer.echo))


@app.command()
def status(
    as_json: AsJson = False,
    every: Annotated[bool, typer.Option("--all", help="List every source.")] = False,
    health: Annotated[
        bool,
        typer.Option(
            "--health",
            help="Print one line; exit with 3 if the daemon does not run or respond, 4 if it cannot"
            " write the index, 5 if files cannot be read.",
        ),
    ] = False,
    prometheus: Annotated[
        str,
        typer.Option(
            metavar="FILE", help="Write the figures for Prometheus; - is standard output."
        ),
    ] = "",
) -> None:
    """Show what is watched, read, behind and skipped, and why."""
    from sessiond.service.status import show

    raise typer.Exit(show(as_json=as_json, every=every, only_health=health, metrics=prometheus))


@app.command()
def sync(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE|DIR|-]...",
            help="Files with any name, directories, or standard input (default: all places).",
        ),
    ] = None,
    as_json: AsJson = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print nothing unless it fails.")
    ] = False,
    agent: Annotated[
        str | None,
        typer.Option("--agent", metavar="NAME", help="The agent that wrote the files."),
    ] = None,
) -> None:
    """Index new data once, then exit.

    A file that is named is followed from then on, wherever it is. While the daemon runs, it reads
    what is named.
    """
    from sess_common import paths as places
    from sess_common.errors import SessError
    from sessiond.service import pass_report

    if agent is not None and not paths:
        raise SessError("--agent needs a file", hint="`sessiond sync --agent NAME FILE`")
    if not paths and not as_json and pass_report.tell_if_unchanged(places.home(), quiet=quiet):
        return
    from sessiond.service import one_pass  # loads every agent

    if not paths:
        raise typer.Exit(one_pass.run([], as_json=as_json, quiet=quiet))
    from sessiond.service import importing

    raise typer.Exit(importing.sync_named(paths, agent=agent, as_json=as_json, quiet=quiet))


@app.command()
def agents(
    *,
    every: Annotated[
        bool, typer.Option("--all", "-a", help="Also agents that are not on this machine.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List the agents, and what is read of each.

    Also where each is looked for, what was found there, and what is not read and why.
    """
    from sessiond.service.agents import show

    raise typer.Exit(show(as_json=as_json, every=every))


@app.command()
def config(
    as_json: AsJson = False,
    edit: Annotated[
        bool, typer.Option("--edit", help="Open the file in $VISUAL, $EDITOR or vi.")
    ] = False,
) -> None:
    """Show the settings, and where each comes from.

    docs/config.md describes every key. A running daemon reads the file when it starts.
    """
    from sessiond.service import configuring

    if edit:
        configuring.edit()
    else:
        configuring.show(as_json=as_json)


@app.command()
def install(
    hardened: Annotated[
        bool, typer.Option("--hardened", help="Also sandbox it with mount namespaces (systemd).")
    ] = False,
) -> None:
    """Install and start the background service.

    A systemd user unit on Linux, a launchd agent on macOS.
    """
    from sessiond.service import install as service_files

    raise typer.Exit(service_files.install(hardened=hardened, say=typer.echo))


@app.command()
def uninstall() -> None:
    """Stop and remove the service; the index is kept."""
    from sessiond.service import install as service_files

    raise typer.Exit(service_files.uninstall(say=typer.echo))


@app.command()
def logs(
    lines: Annotated[
        int, typer.Option("-n", "--lines", min=1, help="Number of lines to show.")
    ] = 50,
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Print new lines as they arrive.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the daemon's log."""
    from sess_common import paths
    from sessiond.service import logs as log_file

    shown = log_file.tail_log(paths.home().log, lines, follow=follow)
    for line in log_file.as_json(shown) if as_json else shown:
        typer.echo(line)


@app.command()
def reprice() -> None:
    """Compute all costs again.

    The prices are the built-in ones, and those in config.toml.
    """
    from contextlib import closing

    from sess_common import paths
    from sess_common.progress import progress_line
    from sess_schema.connection import open_writer
    from sessiond import config
    from sessiond.service import startup

    home = paths.home()
    hint = "run `sessiond stop` first; at startup the daemon reprices if config.toml changed"
    with startup.writer_lock(home, "reprice", hint=hint):
        settings = config.load(home.config_file)
        with progress_line() as progress, closing(open_writer(home.index, progress)) as db:
            changed = startup.reprice_all(db, settings, progress)
    typer.echo(f"{program.counted(changed, 'response')} repriced")


@app.command()
def repair(
    *,
    accept_losses: Annotated[
        bool,
        typer.Option(
            "--accept-losses",
            help="Accept what cannot be mended: it is named once more, and no longer a failure.",
        ),
    ] = False,
) -> None:
    """Mend the index without losing what is archived.

    Full text, references and sums are made again from the archive, damaged pieces are read again
    from files that still have them. If the database itself is damaged, everything intact in it goes
    into a new one, and the damaged one is kept. What is lost is named.
    Exits with 4 if something is lost, unless --accept-losses is given.
    """
    from sessiond.service import rescue

    raise typer.Exit(rescue.repair(accept_losses=accept_losses))


@app.command()
def salvage(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A damaged or moved-aside index.")],
) -> None:
    """Load what is intact of a damaged index into this one.

    The file is only read. What the index has already is left alone, and what is lost is named.
    Exits with 5 if something is lost.
    """
    from sessiond.service import rescue

    raise typer.Exit(rescue.salvage(file))


@app.command()
def restore_backup(
    backup: Annotated[str, typer.Argument(metavar="FILE|DIR", help="What `sess backup` wrote.")],
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="NAME", help="Which backup of a folder; default: the last."),
    ] = None,
) -> None:
    """Use a backup as the index. The index it replaces is kept, and what changed since is read."""
    from sessiond.service import rescue

    raise typer.Exit(rescue.restore_backup(backup, at))


def run() -> None:
    given = sys.argv[1:]

    def follow() -> None:
        if completion.wanted("sessiond"):
            completion.answer(app, "sessiond", given, lambda _name, _typed: None)
        elif not completion.show_or_install("sessiond", given):
            program.follow(app, "sessiond", given or ["--help"])

    program.run_plain("sessiond", follow, debug=given[:1] == ["--debug"])
