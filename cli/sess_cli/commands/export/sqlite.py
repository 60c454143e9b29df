"""`sess export sqlite`: sessions as a separate database."""

from __future__ import annotations

from typing import Annotated

import typer

from sess_cli.commands.export.shared import Force, NoRedact, Redact, RedactionReport
from sess_cli.options import Agents, NoSync, Projects, Since, Until, Utc


def register(group: typer.Typer) -> None:
    group.command("sqlite")(sqlite)


def sqlite(
    ids: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ID]...", help="Sessions to export (default: all that match the options)."
        ),
    ] = None,
    *,
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="FILE", help="Write to this file.")
    ] = "sessions.db",
    agents: Agents = None,
    projects: Projects = None,
    since: Since = None,
    until: Until = None,
    utc: Utc = False,
    no_redact: NoRedact = False,
    redact: Redact = None,
    redaction_report: RedactionReport = False,
    force: Force = False,
    no_sync: NoSync = False,
) -> None:
    """Export sessions as an SQLite database, for Datasette."""
    from sess_cli import fresh  # noqa: PLC0415 - not needed for --help
    from sess_cli.commands.export import shared  # noqa: PLC0415
    from sess_cli.export import files, portable  # noqa: PLC0415
    from sess_cli.export.story import Story  # noqa: PLC0415
    from sess_schema.errors import SessError  # noqa: PLC0415

    if output == "-":
        raise SessError("cannot write a database to stdout", hint="use `-o FILE`")
    listing = shared.listing(agents, projects, since, until, utc=utc)
    files.check_target(output)
    shared.check_output(output, force=force)
    redactor = shared.masking(off=no_redact, patterns=redact, report=redaction_report)
    with fresh.open_with_sessions(sync=not no_sync) as db:
        rows = shared.chosen(db, ids or [], listing)
        stories = (Story(db, row, redactor, images=False) for row in rows)
        portable.write(stories, output)
        shared.report(output, redactor)
