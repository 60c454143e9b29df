"""The views of `sess stats`: one module each, whose `report` is independent of the format."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import apsw

    from sess_cli.render.stats.report import Report, ViewOptions
    from sess_schema.queries.stats import Stats

VIEWS = (
    "tools", "errors", "latency", "cache", "context", "edits", "interruptions", "windows",
    "calendar", "files",
)  # fmt: skip


def report_of(name: str, db: apsw.Connection, asked: Stats, options: ViewOptions) -> Report:
    """A view's report; loads only its module."""
    found: Report = import_module(f"sess_cli.render.stats.{name}").report(db, asked, options)
    return found
