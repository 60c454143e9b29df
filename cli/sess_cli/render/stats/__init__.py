"""The views of `sess stats`: each makes a `Report`, whatever the format."""

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
# Of the views that share a module with another one.
_MODULES = {
    "latency": "tools", "interruptions": "errors", "edits": "files",
    "cache": "usage", "context": "usage", "windows": "usage",
}  # fmt: skip


def report_of(view: str, db: apsw.Connection, asked: Stats, options: ViewOptions) -> Report:
    """A view's report; loads only its module."""
    module = import_module(f"sess_cli.render.stats.{_MODULES.get(view, view)}")
    report: Report = getattr(module, f"{view}_report")(db, asked, options)
    return report
