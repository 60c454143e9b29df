"""`sess export md`: a session as Markdown, several as one file or as a tree of notes."""

from __future__ import annotations

from typing import Annotated, BinaryIO

import typer

from sess_cli.commands.export.shared import (
    Depth,
    Force,
    Gist,
    NoRedact,
    Open,
    Output,
    Redact,
    RedactionReport,
    Repo,
    Yes,
)
from sess_cli.options import Agents, NoSync, Projects, Since, Until, Utc


def register(group: typer.Typer) -> None:
    group.command("md")(md)


def md(
    session: Annotated[
        str | None,
        typer.Argument(
            metavar="[ID]", help="Session ID, its first 4 or more characters, or `last`."
        ),
    ] = None,
    *,
    output: Output = None,
    tree: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Write one note per session into DIR, as for Obsidian."),
    ] = None,
    agents: Agents = None,
    projects: Projects = None,
    since: Since = None,
    until: Until = None,
    depth: Depth = None,
    full: Annotated[
        bool, typer.Option("--full", help="Do not shorten long input and output.")
    ] = False,
    repo: Repo = None,
    gist: Gist = False,
    yes: Yes = False,
    no_redact: NoRedact = False,
    redact: Redact = None,
    redaction_report: RedactionReport = False,
    force: Force = False,
    open_it: Open = False,
    utc: Utc = False,
    no_sync: NoSync = False,
) -> None:
    """Export a session as Markdown, with tool output folded.

    Without an ID, all sessions that match the options become one file, oldest first.
    """
    from sess_cli import fresh  # noqa: PLC0415
    from sess_cli.commands.export import shared  # noqa: PLC0415 - not needed for --help
    from sess_cli.export import files, markdown, repositories  # noqa: PLC0415
    from sess_cli.export.story import Story  # noqa: PLC0415
    from sess_schema.errors import SessError  # noqa: PLC0415
    from sess_schema.program import counted, say  # noqa: PLC0415

    chosen = any(given is not None for given in (agents, projects, since, until))
    if session is None and not chosen and tree is None:
        raise SessError("no session named", hint="name one, or choose with --project or --since")
    if session is not None and chosen:
        raise SessError("an ID cannot be combined with --agent, --project, --since or --until")
    if tree is not None and (output is not None or gist or open_it or repo is not None):
        raise SessError("--tree cannot be combined with -o, --gist, --open or --repo")
    listing = shared.listing(agents, projects, since, until, utc=utc)
    shared.check_output(output, force=force)
    shared.confirm_upload(gist=gist, masked=not no_redact, yes=yes)
    redactor = shared.masking(off=no_redact, patterns=redact, report=redaction_report)
    with fresh.open_with_sessions(sync=not no_sync) as db:
        rows = shared.chosen(db, [session] if session is not None else [], listing)
        rows.sort(key=lambda row: (row.started or 0, row.key))
        stories = [Story(db, row, redactor, depth=depth) for row in rows]
        if tree is not None:
            from sess_cli.export import notes  # noqa: PLC0415

            count = notes.write(stories, tree, full=full, utc=utc)
            say(f"wrote {counted(count, 'note')} to {tree}")
            shared.report_masked(redactor)
            return

        def put(out: BinaryIO) -> None:
            if session is None:
                markdown.write_all(stories, out, full=full, utc=utc)
                return
            repository = repositories.of(stories[0], repo)
            markdown.write(stories[0], out, full=full, utc=utc, repository=repository)

        if output == "-":
            put(shared.standard_output())
            shared.report_masked(redactor)
            return
        named = "sessions.md" if session is None else shared.default_name(stories[0], "md")
        path = output or named
        with files.new_file(path) as out:
            put(out)
        shared.report(path, redactor)
    shared.publish(path, gist=gist, open_it=open_it)
