"""`sess list`: the sessions, newest activity first."""

from __future__ import annotations

from typing import Annotated

import typer

from sess_cli.options import Agents, AsJson, NoSync, Projects, Since, Until, Utc


def register(app: typer.Typer) -> None:
    app.command("list")(show_list)


def show_list(
    *,
    agents: Agents = None,
    projects: Projects = None,
    since: Since = None,
    until: Until = None,
    utc: Utc = False,
    limit: Annotated[int, typer.Option(min=0, metavar="N", help="List at most N; 0 for all.")] = 30,
    every: Annotated[
        bool, typer.Option("--all", help="Include subagents, prompt logs and empty sessions.")
    ] = False,
    as_json: AsJson = False,
    no_sync: NoSync = False,
) -> None:
    """List sessions, newest activity first."""
    from sess_cli import fresh  # noqa: PLC0415
    from sess_schema import times  # noqa: PLC0415
    from sess_schema.errors import Exit, SessError  # noqa: PLC0415
    from sess_schema.queries import sessions  # noqa: PLC0415

    listing = sessions.Listing(
        agents or (),
        projects or (),
        since=times.since(since, utc=utc) if since is not None else None,
        until=times.until(until, utc=utc) if until is not None else None,
        every=every,
        limit=limit,
    )
    with fresh.open_with_sessions(sync=not no_sync) as db:
        found = False
        if as_json:
            from sess_cli.output import json_line  # noqa: PLC0415
            from sess_schema import numbers, objects  # noqa: PLC0415

            rows = [*listing.rows(db)]
            counted = numbers.of_many(db, rows)
            for row in rows:
                found = True
                json_line(objects.session(row, sessions.title_of(db, row), counted[row.key]))
        else:
            from sess_cli.render.listing import lines  # noqa: PLC0415
            from sess_cli.terminal import Terminal  # noqa: PLC0415

            terminal = Terminal()
            for line in lines(db, terminal, [*listing.rows(db)], utc=utc):
                found = True
                terminal.write(line)
    if not found:
        raise SessError(
            "no session matches",
            hint="`sess list --all --limit 0` lists every session",
            code=Exit.NOTHING_FOUND,
        )
