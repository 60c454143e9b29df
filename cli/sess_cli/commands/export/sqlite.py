"""`sess export sqlite`: sessions as a separate database."""

from __future__ import annotations

from typing import Annotated

import typer

from sess_cli.commands.export.selection import Selection
from sess_cli.commands.export.shared import Force, Masks
from sess_cli.options import NoSync, Utc


def sqlite(
    which: Selection,
    *,
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="FILE", help="Write to this file.")
    ] = "sessions.db",
    masks: Masks,
    force: Force = False,
    utc: Utc = False,
    no_sync: NoSync = False,
) -> None:
    """Export sessions as an SQLite database, for Datasette; all, unless some are chosen."""
    from sess_cli import fresh  # not needed for --help
    from sess_cli.commands.export import shared
    from sess_cli.export import files, portable
    from sess_cli.export.failures import Failures
    from sess_cli.export.story import Story
    from sess_common.errors import SessError

    if output == "-":
        raise SessError("cannot write a database to stdout", hint="use `-o FILE`")
    which.check(all_if_none=True)
    listing = which.listing(utc=utc, orphans=True, limit=0)
    files.check_target(output)
    shared.check_output(output, force=force)
    redactor, failures = masks.redactor(), Failures()
    with fresh.open_with_sessions(sync=not no_sync) as db:
        rows = which.rows(db, listing)
        stories = (Story(db, row, redactor, images=False) for row in rows)
        portable.write(stories, output, failures)
        shared.report(output, redactor)
    shared.report_failed(failures)
