"""`sessiond reprice`: recompute all costs."""

from __future__ import annotations

import typer


def register(app: typer.Typer) -> None:
    app.command("reprice")(reprice)


def reprice() -> None:
    """Compute all costs again.

    The prices are the built-in ones, and those in config.toml.
    """
    from contextlib import closing  # noqa: PLC0415

    from sess_schema import lock, paths, program  # noqa: PLC0415
    from sess_schema.connection import open_writer  # noqa: PLC0415
    from sess_schema.progress_line import progress_line  # noqa: PLC0415
    from sessiond import config  # noqa: PLC0415
    from sessiond.prices import repricing  # noqa: PLC0415

    home = paths.home()
    home.create()
    held = lock.acquire(home.lock)
    if held is None:
        running = lock.already_running(home.lock)
        running.hint = (
            "run `sessiond stop` first; at startup the daemon reprices if config.toml changed"
        )
        raise running
    try:
        settings = config.load(home.config_file)
        with progress_line() as progress, closing(open_writer(home.index, progress)) as db:
            changed = repricing.reprice_all(db, settings, progress)
    finally:
        held.release()
    typer.echo(f"{program.counted(changed, 'response')} repriced")
