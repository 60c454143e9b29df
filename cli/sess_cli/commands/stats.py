"""`sess stats` and `statusline`: tokens, cost, tools and errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Literal

import apsw
import typer

from sess_cli import fresh
from sess_cli.options import AsJson, Branches, Force, Matching, NoSync, Texts, Utc
from sess_cli.render.stats import VIEWS
from sess_cli.terminal import Terminal, json_line
from sess_common import times
from sess_common.classes import dataclass
from sess_common.errors import Exit, SessError, no_such
from sess_common.program import Ended, say
from sess_schema.queries import known, sessions
from sess_schema.queries.sessions import SessionRow

if TYPE_CHECKING:
    from datetime import tzinfo

    from sess_cli.render.stats.report import Report
    from sess_cli.render.tallies import Broken, Groups
    from sess_schema.queries.stats import Stats
    from sess_schema.sums import Tally


@dataclass
class Question:
    """What is asked about the responses that the filters leave."""

    by: Annotated[
        str | None,
        typer.Option(
            metavar="GROUP",
            help="Group by day, week, month, hour, session, project, model, agent, tool, branch"
            " or file; `day,model` breaks each day down by model.",
        ),
    ] = None
    explain: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="List the rows behind a number: a group of --by, `total`, or an error class.",
        ),
    ] = None
    watch: Annotated[bool, typer.Option("--watch", help="Redraw on every change.")] = False
    detail: Annotated[
        bool, typer.Option("--detail", help="With `tools`: list programs run in shells.")
    ] = False
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="LIMIT",
            help="With `windows`: 50, 100/week or 10/day in dollars, 5M/day in tokens."
            " Exits with 6 if exceeded.",
        ),
    ] = None
    session: Annotated[
        str | None,
        typer.Option("--session", metavar="ID", help="Only this session, with its subagents."),
    ] = None

    def check(self, view: str | None, path: str | None) -> None:
        """Reject what does not exist, or cannot be combined."""
        self._check_groups()
        if path is not None and view != "files":
            raise SessError(
                f'unexpected argument "{path}"', hint="only `sess stats files` takes a PATH"
            )
        if view is not None and self.by is not None:
            raise SessError(f"--by cannot be combined with `{view}`")
        if self.detail and view != "tools":
            raise SessError("--detail works only with `sess stats tools`")
        if self.budget is not None and view != "windows":
            raise SessError("--budget works only with `sess stats windows`")
        if self.explain is not None and view not in (None, "errors"):
            hint = "`sess stats --by GROUP --explain NAME` or `sess stats errors --explain CLASS`"
            raise SessError(f"--explain does not work with `{view}`", hint=hint)
        if self.explain not in (None, "total") and view is None and self.by is None:
            raise SessError(
                f'--explain "{self.explain}" needs --by', hint="or use `--explain total`"
            )

    def _check_groups(self) -> None:
        from sess_schema.queries.stats import GROUPS

        groups = [] if self.by is None else self.by.split(",")
        for group in groups:
            if group not in GROUPS:
                raise no_such("group", group, GROUPS)
        if len(groups) > 2:
            raise SessError("--by takes one group, or two: `--by day,model`")
        if len(groups) > 1 and self.explain is not None:
            raise SessError("--explain takes one group", hint=f"`--by {groups[0]}`")


@dataclass
class Form:
    """How the answer is written."""

    as_json: AsJson = False
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False
    as_markdown: Annotated[bool, typer.Option("--md", help="Print a Markdown table.")] = False
    html: Annotated[
        str | None, typer.Option("--html", metavar="FILE", help="Write a page with charts.")
    ] = None
    png: Annotated[
        str | None, typer.Option("--png", metavar="FILE", help="Write the calendar as an image.")
    ] = None
    theme: Annotated[
        Literal["dark", "light"], typer.Option("--theme", help="Colours of the image.")
    ] = "dark"
    force: Force = False

    @property
    def text(self) -> str | None:
        """The one that programs read; None for people."""
        forms = {"json": self.as_json, "csv": self.as_csv, "md": self.as_markdown}
        chosen = [name for name, wanted in forms.items() if wanted]
        if len(chosen) > 1:
            raise SessError("--json, --csv and --md cannot be combined")
        return chosen[0] if chosen else None

    @property
    def is_drawn(self) -> bool:
        return self.html is not None or self.png is not None

    def check(self, question: Question, view: str | None) -> None:
        """Reject what cannot be written so."""
        text = self.text
        if "-" in (self.html, self.png):
            hint = "name a file: `--html stats.html`"
            raise SessError("cannot write charts to stdout", hint=hint)
        grouped = question.by is not None or question.explain is not None
        drawable = (None, "calendar" if self.html is None else None)
        if self.is_drawn and (view not in drawable or grouped or text or question.watch):
            raise SessError("--html and --png take only filters", hint="--png draws the calendar")
        for file in filter(None, (self.html, self.png)):
            from sess_schema import outputs

            outputs.check_replacing(file, force=self.force)
        if question.watch and (grouped or text):
            raise SessError("--watch cannot be combined with --by, --explain or an output format")


def stats(
    what: Annotated[
        str | None,
        typer.Argument(metavar="[VIEW|ID]", help=f"A session ID, or a view: {', '.join(VIEWS)}."),
    ] = None,
    path: Annotated[
        str | None, typer.Argument(metavar="[PATH]", help="With `files`: sessions that touched it.")
    ] = None,
    *,
    question: Question,
    which: Matching,
    models: Annotated[
        Texts, typer.Option("--model", metavar="NAME", help="Only models with NAME in their name.")
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
    form: Form,
    no_sync: NoSync = False,
) -> None:
    """Show tokens, cost, tools and errors, by group or by session.

    A response is counted once, however many lines, forks and resumes repeat it.
    Cost is what the agent recorded, or tokens times the price on that day.
    Responses of models without a known price are listed, but excluded from
    cost totals.
    """
    from sess_schema.queries.stats import SUBAGENTS, Stats

    view = what if what in VIEWS else None
    if subagents not in SUBAGENTS:
        raise no_such("value for --subagents", subagents, SUBAGENTS)
    form.check(question, view)
    question.check(view, path)
    clock = _zone(zone, utc=utc)
    scope = Stats(
        since=times.since(which.since, zone=clock) if which.since is not None else None,
        until=times.until(which.until, zone=clock) if which.until is not None else None,
        zone=clock,
        agents=which.agents or (),
        projects=which.projects or (),
        models=models or (),
        branches=branches or (),
        labels=which.labels or (),
        pinned=which.pinned,
        subagents=subagents,
    )
    answer = _Answer(scope, question, form, view)
    answer.path, answer.utc, answer.since = path, utc, which.since
    answer.session = what if view is None else None
    if form.is_drawn:
        answer.draw(sync=not no_sync)
    elif question.watch:
        answer.watch(sync=not no_sync)
    else:
        answer.write(sync=not no_sync)


class _Answer:
    """What to show, and in which format."""

    def __init__(self, scope: Stats, question: Question, form: Form, view: str | None) -> None:
        self._scope = scope
        self._question = question
        self._form = form
        self._view = view
        self.path: str | None = None
        self.utc = False
        self.since: str | None = None
        self.session: str | None = None  # given in place of a view

    def write(self, *, sync: bool) -> None:
        question, code = self._question, 0
        with fresh.open_with_sessions(sync=sync) as db, db:
            row = self._choose(db)
            nothing = self._nothing(db)
            if nothing is not None and (self._form.text is None or self._view is not None):
                raise nothing
            if self._view is not None or question.explain is not None:
                code = self._write_report(db)
            elif self._form.text is not None:
                self._write_sums(db, row, self._form.text)
            elif question.by is not None:
                from sess_cli.render import tallies

                groups, parts = self._groups(db, question.by)
                names = _titles(db, self._scope) if "session" in question.by.split(",") else None
                tallies.table(groups, _total(groups), question.by, names, parts)
            elif row is not None:
                from sess_cli.render.stats import session

                session.write(db, self._scope, row, utc=self.utc)
            else:
                from sess_cli.render.stats import dashboard

                dashboard.write(db, self._scope, Terminal())
            if nothing is not None:  # a program that adds up days gets its zero
                raise nothing
        if code:
            raise Ended(code)

    def draw(self, *, sync: bool) -> None:
        """Write charts to files."""
        with fresh.open_with_sessions(sync=sync) as db, db:
            self._choose(db)
            if (nothing := self._nothing(db)) is not None:
                raise nothing
            if self._form.html is not None:
                from sess_cli.export.report import page

                page.write(db, self._scope, self._form.html, replace=self._form.force)
                say(f"wrote {self._form.html}")
            if self._form.png is not None:
                from sess_cli.export.report import calendar_png

                calendar_png.write(
                    db,
                    self._scope,
                    self._form.png,
                    self._form.theme,
                    replace=self._form.force,
                )
                say(f"wrote {self._form.png}")

    def watch(self, *, sync: bool) -> None:
        from sess_cli.render.stats import dashboard, report

        def draw(db: apsw.Connection, terminal: Terminal, height: int) -> None:
            self._choose(db)
            if self.since is not None:  # `24h` moves on
                self._scope.since = times.since(self.since, zone=self._scope.zone)
            if self._view is not None:
                report.write(self._report(db, self._view), None, terminal)
            else:
                dashboard.write(db, self._scope, terminal, height)

        dashboard.watch(draw, sync=sync)

    def _choose(self, db: apsw.Connection) -> SessionRow | None:
        """Count one session only, if one is given; it is the subject if it stands for a view."""
        known.check(db, self._scope)
        name = self.session or self._question.session
        if name is None:
            return None
        row = _session(db, name, or_view=self.session is not None)
        self._scope.session = row.key
        return None if self.session is None else row

    def _nothing(self, db: apsw.Connection) -> SessError | None:
        """Why there is nothing to count; raises if a filter names what does not exist."""
        scope = self._scope
        if scope.session is None:
            return known.nothing(db, scope)
        row = sessions.by_key(db, scope.session)
        if row.started is None or row.ended is None:
            return None
        if (scope.since or row.ended) <= row.ended and row.started < (scope.until or row.ended + 1):
            return None
        first, last = (times.local(at, utc=self.utc) for at in (row.started, row.ended))
        return SessError(
            f"session {row.session} has nothing in that time",
            hint=f"it is from {first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M}",
            code=Exit.NOTHING_FOUND,
        )

    def _groups(self, db: apsw.Connection, by: str) -> tuple[Groups, Broken | None]:
        """The sums by group, and each by another one."""
        first, _, then = by.partition(",")
        if not then:
            return self._scope.groups(db, first), None
        parts = self._scope.table(db, first, then)
        return {group: _total(inner) for group, inner in parts.items()}, parts

    def _write_report(self, db: apsw.Connection) -> int:
        from sess_cli.render.stats import report

        explain = self._question.explain
        if explain is None:
            answer = self._report(db, self._view or "")
        elif self._view == "errors":
            from sess_cli.render.stats import errors

            answer = errors.explained(db, self._scope, explain)
        else:
            from sess_cli.render.stats import sums

            answer = sums.explain_report(db, self._scope, self._question.by, explain)
        report.write(answer, self._form.text)
        return answer.code

    def _report(self, db: apsw.Connection, view: str) -> Report:
        from sess_cli.render.stats import report_of
        from sess_cli.render.stats.report import ViewOptions

        detail, budget = self._question.detail, self._question.budget
        options = ViewOptions(detail, self.path, budget, times.now_ms(), self.utc)
        return report_of(view, db, self._scope, options)

    def _write_sums(self, db: apsw.Connection, row: SessionRow | None, form: str) -> None:
        from sess_cli.render import tallies

        if self._question.by is not None:
            groups, parts = self._groups(db, self._question.by)
            tallies.write(groups, form, self._question.by, parts)
        elif form != "json":
            tallies.write({"total": self._scope.total(db)}, form, "group")
        else:
            from sess_schema import numbers, objects

            total, spent = self._scope.total(db), numbers.worktime_of(db, self._scope)
            json_line(
                objects.group("total", total)
                | objects.times_of(spent.active, spent.user)
                | {"concurrency": spent.concurrency}
            )
            if row is not None:
                from sess_cli.render.stats import session

                json_line(session.facts(db, self._scope, row))


def _titles(db: apsw.Connection, scope: Stats) -> dict[str, str]:
    """The short ID and the title of each session, by the name of its group."""
    from sess_schema.queries.quarters import Reader

    names, short = Reader(db, scope).names, sessions.ShortIds(db)
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


def _session(db: apsw.Connection, name: str, *, or_view: bool) -> SessionRow:
    try:
        return sessions.resolve(db, name)
    except SessError as error:
        unknown = error.message.startswith(("no such session", "session ID too short"))
        if or_view and unknown and name.isalpha():
            raise no_such("view or session", name, VIEWS) from error
        raise


def statusline(
    *,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="LIMIT",
            help="Show what is spent of 10/day, 50/week or 100 (a month) in dollars, 5M/day in"
            " tokens, and say so first once it is exceeded.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print today's cost and tokens in one line.

    For a shell prompt, or for Claude Code's status bar, which names the session on stdin:
    `"statusLine": {"type": "command", "command": "sess statusline"}`. The limits of a subscription
    that it also hands over are kept, and shown with the time at which they are used up at the
    present rate, if that is before they reset.
    """
    from sess_cli.statusline import show

    show(as_json=as_json, budget=budget)
