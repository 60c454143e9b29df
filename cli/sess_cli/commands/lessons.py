"""`sess lessons`: what fails again and again, what that cost, and what ended it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import apsw
import typer

from sess_cli import fresh
from sess_cli.options import AsJson, Matching, NoPager, NoSync, Utc
from sess_cli.terminal import Terminal, json_line, pager
from sess_common import times
from sess_common.classes import later
from sess_common.errors import Exit, SessError
from sess_common.program import counted, say

if TYPE_CHECKING:
    from sess_redaction import Redactor
    from sess_schema.ids import SessionId
    from sess_schema.queries.failures.lessons import Lesson

_LINE = 160  # characters of an error
_STEP = 100  # of a step of what ended it
_PASTED_SESSIONS = 2  # an error of one session is no habit
_NANO = 1e9
_TOOL = later(r"^(\w+): .*", re.DOTALL)


def lessons(
    *,
    which: Matching,
    least: Annotated[
        int, typer.Option("--least", min=1, metavar="N", help="Only errors met N times or more.")
    ] = 2,
    unsolved: Annotated[
        bool, typer.Option("--open", help="Only errors that were not solved when last tried.")
    ] = False,
    sort: Annotated[
        str, typer.Option(metavar="ORDER", help="Order by times, cost or recent.")
    ] = "times",
    limit: Annotated[
        int, typer.Option("-n", "--limit", min=0, metavar="N", help="Show at most N; 0 for all.")
    ] = 20,
    paste: Annotated[
        bool,
        typer.Option("--paste", help="Print lines for CLAUDE.md or AGENTS.md, with evidence."),
    ] = False,
    as_json: AsJson = False,
    utc: Utc = False,
    no_pager: NoPager = False,
    no_sync: NoSync = False,
) -> None:
    """Show errors that come back, and what ended them.

    Failed calls are one error if they differ only in folders, numbers, hashes
    and quotes. No model is asked. Secrets are masked as in exports.
    """
    from sess_schema.queries.failures.lessons import SORTS, read
    from sess_schema.queries.stats import Stats

    if sort not in SORTS:
        raise SessError(f'no such order: "{sort}"', hint=f"one of {', '.join(SORTS)}")
    if paste and as_json:
        raise SessError("--paste and --json cannot be combined")
    asked = Stats(
        since=times.since(which.since, utc=utc) if which.since is not None else None,
        until=times.until(which.until, utc=utc) if which.until is not None else None,
        agents=which.agents or (),
        projects=which.projects or (),
    )
    with (
        pager(wanted=not (no_pager or as_json or paste)) as terminal,
        fresh.open_with_sessions(sync=not no_sync) as db,
        db,
    ):
        every = read(db, asked, least=least, sort=sort)
        every = [lesson for lesson in every if lesson.is_open] if unsolved else every
        chosen = every[:limit] if limit and not paste else every
        if paste:
            _paste(db, terminal, chosen, limit)
        elif as_json:
            view = _View(db, terminal, utc=utc)
            for lesson in chosen:
                json_line(view.value(lesson))
        else:
            _write(_View(db, terminal, utc=utc), chosen)
        if len(chosen) < len(every):
            say(f"{len(chosen):,} of {counted(len(every), 'error')}; -n 0 shows all")
    if not every:
        wanted = "not solved" if unsolved else f"met {least} times or more"
        raise SessError(
            f"no error that was {wanted}",
            hint="`sess stats errors` counts all failed calls by class",
            code=Exit.NOTHING_FOUND,
        )


def _write(view: _View, chosen: list[Lesson]) -> None:
    for number, lesson in enumerate(chosen):
        if number:
            view.terminal.write("")
        for line in view.lines(lesson):
            view.terminal.write(line)


def _paste(db: apsw.Connection, terminal: Terminal, every: list[Lesson], limit: int) -> None:
    """Lines of Markdown, for errors whose end is known and may be told to others."""
    from sess_schema.queries.failures.lessons import may_be_handed_on

    view = _View(db, terminal, utc=False)
    told = [
        lesson
        for lesson in every
        if lesson.sessions >= _PASTED_SESSIONS and lesson.remedy and may_be_handed_on(lesson.remedy)
    ]
    for lesson in told[: limit or None]:
        terminal.write(terminal.line(view.advice(lesson)))
    if not told:
        say("note: no error of several sessions has an end that can be told")


class _View:
    def __init__(self, db: apsw.Connection, terminal: Terminal, *, utc: bool) -> None:
        from sess_cli.export.story import usual_redactor
        from sess_schema.citations import Citations
        from sess_schema.queries.sessions import ShortIds

        self.terminal = terminal
        self._db = db
        self._utc = utc
        self._mask: Redactor = usual_redactor()
        self._cites = Citations(db)
        self._ids = ShortIds(db)

    def value(self, lesson: Lesson) -> dict[str, Any]:
        from sess_schema.queries.failures import signature

        outcomes = lesson.outcomes()
        line = self._mask(lesson.line)
        return {
            "error": line,
            "signature": signature.key(line)[0],  # a secret in small letters is no secret's shape
            "class": lesson.name,
            "tools": [tool for tool, _ in lesson.tools.most_common()],
            "times": lesson.times,
            "sessions": lesson.sessions,
            "episodes": len(lesson.episodes),
            "solved": outcomes["done"],
            "unsolved": outcomes["failed"],
            "unknown": outcomes["unknown"],
            "open": lesson.is_open,
            "cost_usd": lesson.cost_nano / _NANO,
            "active_ms": lesson.active_ms,
            "first": times.iso(lesson.episodes[-1].ts),
            "last": times.iso(lesson.episodes[0].ts),
            "ended_by": [self._mask(step) for step in lesson.remedy],
            "evidence": [f"{self._session(s)}#{key}" for s, key in self._evidence(lesson)],
        }

    def lines(self, lesson: Lesson) -> Iterator[str]:
        from sess_cli.render import amounts

        t = self.terminal
        outcomes = lesson.outcomes()
        room = t.width or _LINE
        yield t.style(t.line(_cut(self._mask(lesson.line), min(_LINE, room))), "bold")
        tools = ", ".join(tool for tool, _ in lesson.tools.most_common(2))
        state = [
            f"{number} {name}"
            for name, number in (
                ("solved", outcomes["done"]),
                ("unsolved", outcomes["failed"]),
                ("not tried again", outcomes["unknown"]),
            )
            if number
        ]
        yield (
            f"  {counted(lesson.times, 'time')} in {counted(lesson.sessions, 'session')}"
            f" · {t.line(tools)} · {', '.join(state)}"
        )
        when = amounts.clock(lesson.episodes[0].ts, utc=self._utc)
        newest = self._short(*self._evidence(lesson)[0])
        cost = f"${lesson.cost_nano / _NANO:,.2f} and {amounts.duration(lesson.active_ms)} · "
        spent = cost if lesson.active_ms else ""
        yield f"  {spent}last {when} {t.style(f'[{t.line(newest)}]', 'dim')}"
        if lesson.is_open:
            yield "  " + t.style("not solved when it was last tried", "red")
        for number, step in enumerate(lesson.remedy):
            lead = "  ended by " if number == 0 else "           "
            yield lead + t.line(_cut(self._mask(step), min(_STEP, room - len(lead))))

    def advice(self, lesson: Lesson) -> str:
        """A line of Markdown with its evidence."""
        error = _code(_cut(self._mask(lesson.line), _LINE))
        # What was read or looked for is of that one time; that it helped is not.
        steps = dict.fromkeys(_TOOL.sub(r"\1", step) for step in lesson.remedy)
        ended = ", then ".join(_code(_cut(self._mask(step), _STEP)) for step in steps)
        places = " ".join(self._short(*one) for one in self._evidence(lesson)[:3])
        return (
            f"- {error} ({lesson.times} times in {lesson.sessions} sessions) ended by {ended}."
            f" <!-- {places} -->"
        )

    def _evidence(self, lesson: Lesson) -> list[tuple[SessionId, str]]:
        return [(one, self._cites.key(event, one)) for one, event in lesson.evidence()]

    def _session(self, session: SessionId) -> str:
        return str(self._db.execute("SELECT native_id FROM sessions WHERE id = ?", (session,)).get)

    def _short(self, session: SessionId, key: str) -> str:
        from sess_schema.queries import sessions

        row = sessions.by_key(self._db, session)
        return f"{self._ids.of(row)}#{key[:8]}"


def _cut(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _code(text: str) -> str:
    """Inside backquotes, whatever it has of them; it can neither end them nor a comment."""
    return "`" + text.replace("`", "'") + "`"
