"""`sess export json`: everything the index has about sessions."""

from __future__ import annotations

from typing import BinaryIO

from sess_cli.commands.export.selection import Selection
from sess_cli.commands.export.shared import Depth, Force, Masks, Output
from sess_cli.options import NoSync, Utc


def json_(
    which: Selection,
    *,
    output: Output = None,
    depth: Depth = None,
    masks: Masks,
    force: Force = False,
    utc: Utc = False,
    no_sync: NoSync = False,
) -> None:
    """Export a session as JSON: events, records and subagents.

    Several sessions, named or chosen by the options, become one file, oldest first.
    """
    from sess_cli import fresh  # not needed for --help
    from sess_cli.commands.export import shared
    from sess_cli.export import lossless
    from sess_cli.export.failures import Failures
    from sess_cli.export.story import Story

    which.check()
    listing = which.listing(utc=utc, orphans=True, limit=0)
    shared.check_output(output, force=force)
    redactor, failures = masks.redactor(), Failures()
    with fresh.open_with_sessions(sync=not no_sync) as db:
        stories = [Story(db, row, redactor, depth=depth) for row in which.rows(db, listing)]

        def write(out: BinaryIO) -> None:
            if which.is_one:
                lossless.write(stories[0], out)
            else:
                lossless.write_all(stories, out, failures)

        name = shared.default_name(stories[0], "json") if which.is_one else "sessions.json"
        shared.put(write, shared.target(output, name, force=force), redactor, json=True)
    shared.report_failed(failures)
