"""`sess stats`: what was used, done and paid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from sess_cli.options import Agents, AsJson, NoSync, Projects, Since, Until, Utc

if TYPE_CHECKING:
    from datetime import tzinfo

    import apsw

    from sess_schema.queries.stats import Stats

Texts = list[str] | None


def register(app: typer.Typer) -> None:
    app.command("stats")(stats)


def stats(
    session: Annotated[
        str | None, typer.Argument(metavar="ID", help="Only this session, with its subagents.")
    ] = None,
    *,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="GROUP",
            help="day, week, month, hour, session, project, model, agent, tool, branch or file.",
        ),
    ] = None,
    agents: Agents = None,
    projects: Projects = None,
    models: Annotated[
        Texts, typer.Option("--model", metavar="NAME", help="Only models that begin so.")
    ] = None,
    branches: Annotated[
        Texts, typer.Option("--branch", metavar="NAME", help="Only sessions on this git branch.")
    ] = None,
    subagents: Annotated[
        str, typer.Option(metavar="HOW", help="include, exclude or only.")
    ] = "include",
    since: Since = None,
    until: Until = None,
    zone: Annotated[
        str | None, typer.Option("--tz", metavar="ZONE", help="Days of this zone: Europe/Paris.")
    ] = None,
    utc: Utc = False,
    as_json: AsJson = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Comma-separated values.")] = False,
    as_markdown: Annotated[bool, typer.Option("--md", help="A Markdown table.")] = False,
    no_sync: NoSync = False,
) -> None:
    """Tokens, cost, tools and errors, in total or by group.

    A response is counted once, however many lines, forks and resumes repeat it.
    Cost is what the agent recorded, or tokens times the price of their day;
    responses of unknown models are listed and in no sum of money.
    """
    from sess_cli import fresh  # noqa: PLC0415
    from sess_cli.render import tallies  # noqa: PLC0415
    from sess_schema import times  # noqa: PLC0415
    from sess_schema.errors import SessError  # noqa: PLC0415
    from sess_schema.queries.stats import GROUPS, SUBAGENTS, Stats  # noqa: PLC0415

    if by is not None and by not in GROUPS:
        raise SessError(f'no such group: "{by}"', hint=f"one of {', '.join(GROUPS)}")
    if subagents not in SUBAGENTS:
        raise SessError(f'--subagents "{subagents}"?', hint=f"one of {', '.join(SUBAGENTS)}")
    if sum((as_json, as_csv, as_markdown)) > 1:
        raise SessError("choose one of --json, --csv and --md")
    asked = Stats(
        since=times.since(since, utc=utc) if since is not None else None,
        until=times.until(until, utc=utc) if until is not None else None,
        zone=_zone(zone, utc=utc),
        agents=agents or (),
        projects=projects or (),
        models=models or (),
        branches=branches or (),
        subagents=subagents,
    )
    with fresh.open_with_sessions(sync=not no_sync) as db, db:
        if session is not None:
            asked.session = _session(db, session)
        write = tallies.writer(json=as_json, csv=as_csv, markdown=as_markdown)
        if write is not None:
            write(_groups(db, asked, by))
        elif by is not None:
            tallies.table(asked.groups(db, by), asked.total(db), by)
        else:
            tallies.dashboard(db, asked)


def _groups(db: apsw.Connection, asked: Stats, by: str | None) -> dict[str, Any]:
    return {"total": asked.total(db)} if by is None else asked.groups(db, by)


def _zone(name: str | None, *, utc: bool) -> tzinfo | None:
    from datetime import UTC  # noqa: PLC0415
    from zoneinfo import ZoneInfo  # noqa: PLC0415

    from sess_schema.errors import SessError  # noqa: PLC0415

    if name is None:
        return UTC if utc else None
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise SessError(
            f'no such time zone: "{name}"', hint="names are like Europe/Paris"
        ) from error


def _session(db: apsw.Connection, given: str) -> int:
    from sess_schema.queries import sessions  # noqa: PLC0415

    return sessions.resolve(db, given).key
