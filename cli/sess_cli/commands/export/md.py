"""`sess export md`: a session as Markdown, several as one file or as a tree of notes."""

from __future__ import annotations

from typing import Annotated, BinaryIO

import typer

from sess_cli.commands.export.selection import Selection
from sess_cli.commands.export.shared import Depth, Force, Masks, Output, Publishing, Repo
from sess_cli.options import NoSync, Utc


def md(
    which: Selection,
    *,
    output: Output = None,
    tree: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Write one note per session into DIR, as for Obsidian."),
    ] = None,
    depth: Depth = None,
    full: Annotated[
        bool, typer.Option("--full", help="Do not shorten long input and output.")
    ] = False,
    repo: Repo = None,
    publishing: Publishing,
    masks: Masks,
    force: Force = False,
    utc: Utc = False,
    no_sync: NoSync = False,
) -> None:
    """Export a session as Markdown, with tool output folded.

    Several sessions, named or chosen by the options, become one file, oldest first.
    """
    from sess_cli import fresh  # not needed for --help
    from sess_cli.commands.export import shared
    from sess_cli.export import markdown, repositories
    from sess_cli.export.failures import Failures
    from sess_cli.export.story import Story
    from sess_common.errors import SessError
    from sess_common.program import counted, say

    which.check(all_if_none=tree is not None)
    asked = output is not None or publishing.gist or publishing.open_it or repo is not None
    if tree is not None and asked:
        raise SessError("--tree cannot be combined with -o, --gist, --open or --repo")
    listing = which.listing(utc=utc, orphans=True, limit=0)
    shared.check_output(output, force=force)
    publishing.check(output, masked=not masks.no_redact)
    redactor, failures = masks.redactor(), Failures()
    with fresh.open_with_sessions(sync=not no_sync) as db:
        stories = [Story(db, row, redactor, depth=depth) for row in which.rows(db, listing)]
        if tree is not None:
            from sess_cli.export import notes

            count = notes.write(stories, tree, failures, full=full, utc=utc)
            say(f"wrote {counted(count, 'note')} to {tree}")
            shared.report_masked(redactor)
            shared.report_failed(failures)
            return

        def write(out: BinaryIO) -> None:
            if not which.is_one:
                markdown.write_all(stories, out, failures, full=full, utc=utc)
                return
            repository = repositories.of(stories[0], repo)
            markdown.write(stories[0], out, full=full, utc=utc, repository=repository)

        name = shared.default_name(stories[0], "md") if which.is_one else "sessions.md"
        path = shared.target(output, name, force=force)
        shared.put(write, path, redactor)
    publishing.publish([path])
    shared.report_failed(failures)
