"""`sess export`: sessions as files. The formats are in the modules of this folder."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

import typer

from sess_cli.commands.export import documents, exchange, films, site
from sess_cli.parsing import expanded

_FORMATS: dict[str, Callable[..., None]] = {
    "html": documents.html,
    "site": site.site,
    "md": documents.md,
    "json": documents.json_,
    "sqlite": documents.sqlite,
    "atif": exchange.atif,
    "otel": exchange.otel,
    "video": films.video,
    "gif": films.gif,
    "cast": films.cast,
    "tape": films.tape,
}


def register(app: typer.Typer) -> None:
    group = typer.Typer(
        help="Export sessions as pages, documents, data or films.\n\n"
        "Secrets and home directories are masked unless --no-redact is given.",
        callback=_clean_up_when_killed,
        rich_markup_mode=None,
    )
    for name, command in _FORMATS.items():
        group.command(name)(expanded(command))
    app.add_typer(group, name="export")


def _clean_up_when_killed() -> None:
    """Leave no partial file behind, as after Ctrl-C."""
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has one of them
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _exit)


def _exit(number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)
