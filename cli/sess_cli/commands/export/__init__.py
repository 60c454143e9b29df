"""`sess export`: a session, or all of them, as files. Each format is one file in this folder."""

from __future__ import annotations

import signal
from types import FrameType
from typing import NoReturn

import typer

from sess_cli.commands.export import film, html, json_, md, site, sqlite

FORMATS = (html, site, md, json_, sqlite, film)


def register(app: typer.Typer) -> None:
    group = typer.Typer(
        help="Write sessions as files to read, share and keep.\n\n"
        "Secrets and home directories are masked in all of them unless you say --no-redact.",
        callback=_clean_up_when_killed,
        rich_markup_mode=None,
    )
    for one in FORMATS:
        one.register(group)
    app.add_typer(group, name="export")


def _clean_up_when_killed() -> None:
    """As after Ctrl-C, no file stays that is not whole."""
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has one of them
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _exit)


def _exit(number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)
