"""`sess stats` and `statusline`: tokens, cost, tools and errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from sess_cli import fresh
from sess_cli.options import AsJson, Branches, Matching, NoSync, Texts, Utc
from sess_cli.render.stats import VIEWS
from sess_cli.terminal import Terminal, json_line
from sess_common import times
from sess_common.errors import SessError
from sess_common.program import Ended, say
from sess_schema.queries import sessions

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import tzinfo

    import apsw

    from sess_cli.render.stats.report import ViewOptions
    from sess_cli.render.tallies import Broken, Groups
    from sess_schema.queries.sessions import SessionRow
    from sess_schema.queries.stats import Stats
    from sess_schema.sums import Tally


def stats(
    what: Annotated[
        str | None,
        typer.Argument(metavar="[VIEW|ID]", help=f"A session ID, or a view: {', '.join(VIEWS)}."),
    ] = None,
    path: Annotated[
        str | None, typer.Argument(metavar="[PATH]", help="With `files`: sessions that touched it.")
    ] = None,
    *,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="GROUP",
            help="Group by day, week, month, hour, session, project, model, agent, tool, branch"
            " or file; `day,model` breaks each day down by model.",
        ),
    ] = None,
    explain: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="List the rows behind a number: a group of --by, `total`, or an error class.",
        ),
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Redraw on every change.")] = False,
    detail: Annotated[
        bool, typer.Option("--detail", help="With `tools`: list programs run in shells.")
    ] = False,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="LIMIT",
            help="With `windows`: 50, 100/week or 10/day in dollars, 5M/day in tokens."
            " Exits with 6 if exceeded.",
        ),
    ] = None,
    session: Annotated[
        str | None,
        typer.Option("--session", metavar="ID", help="Only this session, with its subagents."),
    ] = None,
    which: Matching,
    models: Annotated[
        Texts, typer.Option("--model", metavar="NAME", help="Only models starting with NAME.")
    ] = None,
    branches: Branches = None,
    subagents: Annotated[
        str, typer.Option(metavar="HOW", help="Count subagents: include, exclude or only.")
    ] = "include",
    zone: Annotated[
        str | None,
        typer.Option("--tz", metavar="ZONE", help="Time zone of days, such as Europe/Paris."),
    ] = None,
    utc: Utc = False,
    as_json: AsJson = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    as_markdown: Annotated[bool, typer.Option("--md", help="Print a Markdown table.")] = False,
    html: Annotated[
        str | None, typer.Option("--html", metavar="FILE", help="Write a page with charts.")
    ] = None,
    png: Annotated[
        str | None, typer.Option("--png", metavar="FILE", help="Write the calendar as an image.")
    ] = None,
    no_sync: NoSync = False,
) -> None:
    """Show tokens, cost, tools and errors, by group or by session.

    A response is counted once, however many lines, forks and resumes repeat it.
    Cost is what the agent recorded, or tokens times the price on that day.
    Responses of models without a known price are listed, but excluded from
    cost totals.
    """
    from sess_schema.queries.stats import GROUPS, SUBAGENTS, Stats

    view = what if what in VIEWS else None
    for group in [] if by is None else by.split(","):
        if group not in GROUPS:
            raise SessError(f'no such group: "{group}"', hint=f"one of {', '.join(GROUPS)}")
    if by is not None and by.count(",") > 1:
        raise SessError("--by takes one group, or two: `--by day,model`")
    if by is not None and explain is not None and "," in by:
        raise SessError("--explain takes one group", hint=f"`--by {by.partition(',')[0]}`")
    if subagents not in SUBAGENTS:
        raise SessError(
            f'invalid value for --subagents: "{subagents}"', hint=f"one of {', '.join(SUBAGENTS)}"
        )
    forms = {"json": as_json, "csv": as_csv, "md": as_markdown}
    form = next((name for name, wanted in forms.items() if wanted), None)
    if sum(forms.values()) > 1:
        raise SessError("--json, --csv and --md cannot be combined")
    if "-" in (html, png):
        raise SessError("cannot write charts to stdout", hint="name a file: `--html stats.html`")
    drawn = "calendar" if png is not None and html is None else None
    if (html is not None or png is not None) and (
        view not in (None, drawn) or by or explain or form or watch
    ):
        raise SessError("--html and --png take only filters", hint="--png draws the calendar")
    _refuse(view, path=path, by=by, explain=explain, detail=detail, budget=budget)
    if watch and (form is not None or by is not None or explain is not None):
        raise SessError("--watch cannot be combined with --by, --explain or an output format")
    clock = _zone(zone, utc=utc)
    asked = Stats(
        since=times.since(which.since, zone=clock) if which.since is not None else None,
        until=times.until(which.until, zone=clock) if which.until is not None else None,
        zone=clock,
        agents=which.agents or (),
        projects=which.projects or (),
        models=models or (),
        branches=branches or (),
        subagents=subagents,
    )
    answer = _Answer(asked, form, view, explain, by)
    answer.path, answer.budget, answer.detail, answer.utc = path, budget, detail, utc
    answer.since = which.since
    answer.by_view = what is not None and view is None
    chosen = session if view is not None or what is None else what
    if html is not None or png is not None:
        answer.draw(chosen, html, png, sync=not no_sync)
    elif watch:
        answer.watch(chosen, sync=not no_sync)
    else:
        answer.write(chosen, alone=view is None and what is not None, sync=not no_sync)


class _Answer:
    """What to show, and in which format."""

    def __init__(
        self, asked: Stats, form: str | None, view: str | None, explain: str | None, by: str | None
    ) -> None:
        self._asked = asked
        self._form = form
        self._view = view
        self._explain = explain
        self._by = by
        self.path: str | None = None
        self.budget: str | None = None
        self.detail = False
        self.utc = False
        self.since: str | None = None
        self.by_view = False  # the session was given in place of a view

    def write(self, session: str | None, *, alone: bool, sync: bool) -> None:
        code = 0
        with fresh.open_with_sessions(sync=sync) as db, db:
            row = self._choose(db, session)
            if self._view is not None or self._explain is not None:
                code = self._write_report(db)
            elif self._form is not None:
                self._write_sums(db, row, alone=alone)
            elif self._by is not None:
                from sess_cli.render import tallies

                groups, parts = self._groups(db, self._by)
                names = _titles(db, self._asked) if "session" in self._by.split(",") else None
                tallies.table(groups, _total(groups), self._by, names, parts)
            elif alone and row is not None:
                from sess_cli.render.stats import session as one

                one.write(db, self._asked, row, utc=self.utc)
            else:
                from sess_cli.render.stats import dashboard

                dashboard.write(db, self._asked, Terminal())
        if code:
            raise Ended(code)

    def _groups(self, db: apsw.Connection, by: str) -> tuple[Groups, Broken | None]:
        """The sums by group, and each by another one."""
        first, _, then = by.partition(",")
        if not then:
            return self._asked.groups(db, first), None
        parts = self._asked.table(db, first, then)
        return {group: _total(inner) for group, inner in parts.items()}, parts

    def draw(self, session: str | None, html: str | None, png: str | None, *, sync: bool) -> None:
        """Write charts to files."""
        with fresh.open_with_sessions(sync=sync) as db, db:
            self._choose(db, session)
            if html is not None:
                from sess_cli.export.report import page

                page.write(db, self._asked, html)
                say(f"wrote {html}")
            if png is not None:
                from sess_cli.export.report import calendar_png

                calendar_png.write(db, self._asked, png)
                say(f"wrote {png}")

    def watch(self, session: str | None, *, sync: bool) -> None:
        from sess_cli.render.stats import dashboard, report_of
        from sess_cli.render.stats.dashboard import watch
        from sess_cli.render.stats.report import write

        def draw(db: apsw.Connection, terminal: Any, height: int) -> None:
            self._choose(db, session)
            if self.since is not None:  # `24h` moves on
                self._asked.since = times.since(self.since, zone=self._asked.zone)
            if self._view is not None:
                write(report_of(self._view, db, self._asked, self._view_options()), None, terminal)
            else:
                dashboard.write(db, self._asked, terminal, height)

        watch(draw, sync=sync)

    def _choose(self, db: apsw.Connection, session: str | None) -> SessionRow | None:
        if session is None:
            return None
        row = _session(db, session, or_view=self.by_view)
        self._asked.session = row.key
        return row

    def _write_report(self, db: apsw.Connection) -> int:
        from sess_cli.render.stats import report_of
        from sess_cli.render.stats.report import write

        if self._explain is not None and self._view == "errors":
            from sess_cli.render.stats import errors

            found = errors.explained(db, self._asked, self._explain)
        elif self._explain is not None:
            from sess_cli.render.stats import sums

            found = sums.explain_report(db, self._asked, self._by, self._explain)
        else:
            found = report_of(self._view or "", db, self._asked, self._view_options())
        write(found, self._form)
        return found.code

    def _write_sums(self, db: apsw.Connection, row: SessionRow | None, *, alone: bool) -> None:
        from sess_cli.render import tallies

        form = self._form or "json"
        if self._by is not None:
            groups, parts = self._groups(db, self._by)
            tallies.write(groups, form, self._by, parts)
        elif form != "json":
            tallies.write({"total": self._asked.total(db)}, form, "group")
        else:
            from sess_schema import numbers, objects

            total, spent = self._asked.total(db), numbers.worktime_of(db, self._asked)
            json_line(
                objects.group("total", total)
                | objects.times_of(spent.active, spent.user)
                | {"concurrency": spent.concurrency}
            )
            if alone and row is not None:
                from sess_cli.render.stats import session as one

                json_line(one.facts(db, self._asked, row))

    def _view_options(self) -> ViewOptions:
        from sess_cli.render.stats.report import ViewOptions

        return ViewOptions(self.detail, self.path, self.budget, times.now_ms(), self.utc)


def _refuse(
    view: str | None,
    *,
    path: str | None,
    by: str | None,
    explain: str | None,
    detail: bool,
    budget: str | None,
) -> None:
    """Reject arguments that cannot be combined."""
    if path is not None and view != "files":
        raise SessError(
            f'unexpected argument "{path}"', hint="only `sess stats files` takes a PATH"
        )
    if view is not None and by is not None:
        raise SessError(f"--by cannot be combined with `{view}`")
    if detail and view != "tools":
        raise SessError("--detail works only with `sess stats tools`")
    if budget is not None and view != "windows":
        raise SessError("--budget works only with `sess stats windows`")
    if explain is not None and view not in (None, "errors"):
        raise SessError(
            f"--explain does not work with `{view}`",
            hint="`sess stats --by GROUP --explain NAME` or `sess stats errors --explain CLASS`",
        )
    if explain is not None and view is None and by is None and explain != "total":
        raise SessError(f'--explain "{explain}" needs --by', hint="or use `--explain total`")


def _titles(db: apsw.Connection, asked: Stats) -> dict[str, str]:
    """The short ID and the title of each session, by the name of its group."""
    from sess_schema.queries.quarters import Reader

    names, short = Reader(db, asked).names, sessions.ShortIds(db)
    return {
        names[row.key]: f"{short.of(row)} {sessions.title_of(db, row)}"
        for row in sessions.Listing(every=True, limit=0).rows(db)
    }


def _total(groups: Mapping[str, Tally]) -> Tally:
    from sess_schema.sums import Tally

    total = Tally()
    for tally in groups.values():
        total.add(tally)
    return total


def _zone(name: str | None, *, utc: bool) -> tzinfo | None:
    from datetime import UTC

    if name is None:
        return UTC if utc else None
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise SessError(
            f'no such time zone: "{name}"', hint="use a name such as Europe/Paris"
        ) from error


def _session(db: apsw.Connection, given: str, *, or_view: bool) -> SessionRow:
    try:
        return sessions.resolve(db, given)
    except SessError as error:
        unknown = error.message.startswith(("no such session", "session ID too short"))
        if or_view and unknown and given.isalpha():
            raise SessError(
                f'no such view or session: "{given}"', hint=f"views: {', '.join(VIEWS)}"
            ) from error
        raise


def statusline(*, as_json: AsJson = False) -> None:
    """Print today's cost and tokens in one line.

    For a shell prompt, or for Claude Code's status bar, which names the session on stdin:
    `"statusLine": {"type": "command", "command": "sess statusline"}`.
    """
    from sess_cli.statusline import show

    show(as_json=as_json)
