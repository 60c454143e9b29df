"""`sess export json`: everything that the index knows about one session."""

from __future__ import annotations

import typer


def register(group: typer.Typer) -> None:
    group.command("json")(json_)


def json_() -> None:
    """Write one session as JSON."""
