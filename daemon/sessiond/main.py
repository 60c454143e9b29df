"""The `sessiond` command: wiring only; each verb lives in its own module."""

from __future__ import annotations

from typing import Annotated

import typer

from sess_schema import __version__, program

app = typer.Typer(
    help="Index coding-agent transcripts as they are written, exactly once.",
    epilog=program.EXIT_CODES,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

AsJson = Annotated[bool, typer.Option("--json", help="One JSON object per line.")]


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
) -> None:
    """Index coding-agent transcripts as they are written, exactly once."""


@app.command()
def start(
    detach: Annotated[bool, typer.Option("--detach", help="Run in the background.")] = False,
) -> None:
    """Run the daemon, in the foreground unless told otherwise."""
    from sess_schema import paths  # noqa: PLC0415
    from sessiond.service import control  # noqa: PLC0415
    from sessiond.service import logs as log_file  # noqa: PLC0415
    from sessiond.service import loop as service  # noqa: PLC0415

    if detach:
        raise typer.Exit(control.start_detached(typer.echo))
    log_file.set_up(paths.home().log, foreground=True)
    raise typer.Exit(service.serve())


@app.command()
def stop() -> None:
    """Stop the daemon; nothing is left half written."""
    from sessiond.service import control  # noqa: PLC0415

    raise typer.Exit(control.stop(typer.echo))


@app.command()
def restart() -> None:
    """Stop the daemon if it runs, and start it in the background."""
    from sessiond.service import control  # noqa: PLC0415

    raise typer.Exit(control.restart(typer.echo))


@app.command()
def status(
    as_json: AsJson = False,
    every: Annotated[bool, typer.Option("--all", help="List every source.")] = False,
) -> None:
    """Show what is watched, indexed, lagging and skipped, and why."""
    from sessiond.commands import status as view  # noqa: PLC0415

    raise typer.Exit(view.show(as_json=as_json, every=every))


@app.command()
def sync(
    paths: Annotated[
        list[str] | None, typer.Argument(help="Files or directories; all known places if none.")
    ] = None,
    as_json: AsJson = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Say nothing unless it fails.")
    ] = False,
) -> None:
    """Read what is new, once, and exit."""
    from sessiond.commands import sync as one_pass  # noqa: PLC0415

    raise typer.Exit(one_pass.run(paths or [], as_json=as_json, quiet=quiet))


@app.command()
def install(
    hardened: Annotated[
        bool, typer.Option("--hardened", help="Also confine it with mount namespaces (systemd).")
    ] = False,
) -> None:
    """Install and start the service of this system (systemd or launchd)."""
    from sessiond.service import install as service_files  # noqa: PLC0415

    raise typer.Exit(service_files.install(hardened=hardened, say=typer.echo))


@app.command()
def uninstall() -> None:
    """Stop and remove the service; the index stays."""
    from sessiond.service import install as service_files  # noqa: PLC0415

    raise typer.Exit(service_files.uninstall(say=typer.echo))


@app.command()
def logs(
    lines: Annotated[int, typer.Option("-n", "--lines", min=1, help="How many lines.")] = 50,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on as lines come.")] = False,
) -> None:
    """Show the daemon's log."""
    from sess_schema import paths  # noqa: PLC0415
    from sessiond.service import logs as log_file  # noqa: PLC0415

    for line in log_file.tail_log(paths.home().log, lines, follow=follow):
        typer.echo(line)


@app.command()
def reprice() -> None:
    """Price every response anew, with the built-in table and config.toml."""
    from sessiond.service import control  # noqa: PLC0415

    raise typer.Exit(control.reprice(typer.echo))


def run() -> None:
    program.run(app, "sessiond")
