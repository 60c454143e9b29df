"""Sums over time, by model and by project, as a page begins, and the rows behind a sum."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import partial
from itertools import pairwise
from typing import Any

import apsw

from sess_cli.render import amounts, layout
from sess_cli.render.stats.calendar import days_between
from sess_cli.render.stats.report import Amount, Chart, Column, Links, Report, Section, ViewOptions
from sess_cli.render.tallies import cost, money, short
from sess_common import times
from sess_common.classes import dataclass, replace
from sess_schema import objects
from sess_schema.queries import known
from sess_schema.queries.stats import NONE, Stats, Tally
from sess_schema.queries.views import explain

UNDATED = "undated"
_MOST_COLUMNS = 110
_FILLED_YEARS = 100  # beyond that, a clock was wrong: only years with activity
_MARKS = 6
_SERIES = 6  # models with a colour of their own
_REST = f"s{_SERIES}"
_COLUMNS = (
    Column("_cost", "cost"),
    *Column.several(amounts.number, input_tokens="input", output_tokens="output"),
    *Column.several(
        amounts.number, cache_write_tokens="cache write", cache_read_tokens="cache read"
    ),
    *Column.several(amounts.number, sessions="sessions", prompts="prompts", requests="responses"),
    *Column.several(amounts.number, tool_calls="tool calls", tool_errors="errors"),
)
_COST = Chart(
    "stacks", "cost", "Cost over time",
    "US dollars per {}, by model. Excludes responses without a known price.",
    "No costs in this period.", (), (),
)  # fmt: skip
_TOKENS = Chart(
    "stacks", "tokens", "Tokens over time",
    "Tokens per {}, by model: input, output, cache writes and cache reads.",
    "No tokens in this period.", (), (),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Axis:
    """The columns of every chart over time, in order, including empty ones."""

    step: str  # hour, day, week, month or year
    columns: list[str]

    def marks(self) -> list[tuple[int, str]]:
        """A few evenly spaced columns to label, the last among them, and their short names."""
        every = max(1, -(-len(self.columns) // _MARKS))
        chosen = range((len(self.columns) - 1) % every, len(self.columns), every)
        years = [self.columns[place][:4] for place in chosen]
        changes = [True, *(a != b for a, b in pairwise(years))]
        return [
            (place, _short_label(self.step, self.columns[place], year=change))
            for place, change in zip(chosen, changes, strict=True)
        ]

    def name(self, column: str) -> str:
        """The full name of a column."""
        if self.step == "week":
            return f"week of {column}"
        if self.step in ("day", "hour"):
            return f"{weekday(column)} {column}"
        return column


def weekday(column: str) -> str:
    return f"{date.fromisoformat(column[:10]):%a}"


def column_of(step: str, hour: str) -> str:
    """The column of an hour, given as `Stats` names it."""
    if step == "hour" or hour == UNDATED:
        return hour
    if step == "week":
        day = date.fromisoformat(hour[:10])
        return (day - timedelta(days=day.weekday())).isoformat()
    return hour[: {"day": 10, "month": 7, "year": 4}[step]]


def axis_of(
    hours: Iterable[str], since: int | None, until: int | None, zone: tzinfo | None
) -> Axis:
    """Columns for all hours with activity, and for the whole period asked for."""
    dated = sorted((hour for hour in hours if hour != UNDATED), key=datetime.fromisoformat)
    if not dated:
        return Axis("day", [])
    begin, end = map(datetime.fromisoformat, (dated[0], dated[-1]))
    if since is not None:
        begin = min(begin, datetime.fromtimestamp(since / 1000, UTC))
        now = datetime.now(UTC)
        asked = now if until is None else datetime.fromtimestamp((until - 1) / 1000, UTC)
        end = max(end, min(asked, now))
    begin, end = begin.astimezone(zone), end.astimezone(zone)
    days = (end.date() - begin.date()).days + 1
    lengths = {"hour": 1 / 24, "day": 1, "week": 7, "month": 30.4}
    fitting = (name for name, length in lengths.items() if days / length <= _MOST_COLUMNS)
    step = next(fitting, "year")
    if step == "year" and end.year - begin.year > _FILLED_YEARS:
        return Axis(step, sorted({column_of(step, hour) for hour in dated}))
    if step == "hour":
        return Axis(step, [*dict.fromkeys(_hours(begin, end, zone))])
    between = days_between(begin.date(), end.date())
    return Axis(step, [*dict.fromkeys(column_of(step, day.isoformat()) for day in between)])


def _hours(begin: datetime, end: datetime, zone: tzinfo | None) -> Iterator[str]:
    at = begin.astimezone(UTC)
    last = f"{end:%Y-%m-%d %H:00%z}"
    while (name := f"{at.astimezone(zone):%Y-%m-%d %H:00%z}") != last and at <= end:
        yield name
        at += timedelta(hours=1)  # of elapsed time: a day may have 23 or 25
    yield last


def _short_label(step: str, column: str, *, year: bool) -> str:
    """A short label; the year only where it changes."""
    if step == "year":
        return column
    if step == "month":
        return f"{date.fromisoformat(column + '-01'):%b %Y}"
    if step == "hour":
        return f"{weekday(column)} {column[11:16]}"
    day = date.fromisoformat(column)
    return f"{day:%b} {day.day}{f', {day.year}' if year else ''}"


Groups = Mapping[str, Tally]


def sums_report(db: apsw.Connection, asked: Stats, options: ViewOptions) -> Report:
    hours = _dated(asked.table(db, "hour", "model"))
    axis = axis_of(hours, asked.since, asked.until, asked.zone)
    columns: dict[str, dict[str, Tally]] = {name: {} for name in axis.columns}
    models: dict[str, Tally] = {}
    for hour, inner in hours.items():
        column = columns.setdefault(column_of(axis.step, hour), {})
        for model, tally in inner.items():
            column.setdefault(model, Tally()).add(tally)
            models.setdefault(model, Tally()).add(tally)
    models, total = _ranked(models), _total(models.values())
    named = [model for model, tally in models.items() if tally.requests][:_SERIES]
    colours = {model: f"s{at}" for at, model in enumerate(named)}
    projects = _ranked(asked.groups(db, "project"))
    by_model = partial(_by_model, step=axis.step, columns=columns, models=models, colours=colours)
    more = {"active_ms": asked.active_ms(db), "estimated": asked.estimated_tokens(db)}
    return Report(
        "sums",
        [
            Section("total", [_row("total", "total", total) | more]),
            by_model(_COST, lambda tally: tally.cost_nano, money),
            by_model(_TOKENS, lambda tally: tally.tokens, amounts.number),
            _failures(axis.step, columns, total),
            _groups("model", models, total, colours),
            _groups("project", projects, total, {}),
        ],
    )


def _dated(hours: Mapping[str, Groups]) -> dict[str, dict[str, Tally]]:
    """Hours outside the calendar's years count as undated."""
    dated: dict[str, dict[str, Tally]] = {}
    for hour, models in hours.items():
        try:
            date.fromisoformat(hour[:10])
            inner = dated.setdefault(hour, {})
        except ValueError:
            inner = dated.setdefault(UNDATED, {})
        for model, tally in models.items():
            inner.setdefault(model, Tally()).add(tally)
    return dated


def _total(tallies: Iterable[Tally]) -> Tally:
    total = Tally()
    for tally in tallies:
        total.add(tally)
    return total


def _ranked(groups: Groups) -> dict[str, Tally]:
    """Most expensive first; by tokens if nothing has a cost."""

    def rank(group: str) -> tuple[object, ...]:
        tally = groups[group]
        return -tally.cost_nano, -tally.tokens, -tally.tool_calls, group

    return {group: groups[group] for group in sorted(groups, key=rank)}


def _by_model(
    chart: Chart,
    of: Callable[[Tally], int],
    form: Callable[[int], str],
    *,
    step: str,
    columns: Mapping[str, Groups],
    models: Groups,
    colours: Mapping[str, str],
) -> Section:
    """A row per column of the axis, with the largest models, the others, and the total."""
    own = sorted((m for m in colours if of(models[m])), key=lambda model: -of(models[model]))
    series = [(_model_name(model), colours[model], [model]) for model in own]
    if rest := [m for m, tally in models.items() if m not in own and of(tally)]:
        series.append(("other", _REST, rest))

    def sums(groups: Groups) -> dict[str, int]:
        values = [sum(of(groups[m]) for m in members if m in groups) for *_, members in series]
        return {f"{at}": value for at, value in enumerate(values)} | {"total": sum(values)}

    drawn = [Column(f"{at}", name, form, colour=c) for at, (name, c, _) in enumerate(series)]
    chart = replace(
        chart,
        about=chart.about.format(step),
        columns=(Column(step, step), *drawn, Column("total", "total", form)),
        drawn=[column.key for column in drawn],
        total=sums(models),
    )
    rows = [{step: name, **sums(groups)} for name, groups in columns.items()]
    return Section(step, rows, charts=[chart])


def _failures(step: str, columns: Mapping[str, Groups], total: Tally) -> Section:
    def counts(tally: Tally) -> dict[str, int]:
        return {"calls": tally.tool_calls, "failed": tally.tool_errors}

    rows = [{step: name, **counts(_total(inner.values()))} for name, inner in columns.items()]
    failed = Column("failed", "failed", amounts.number, colour="bad")
    chart = Chart(
        "columns", "failures", "Failed calls", f"Failed tool calls per {step}.",
        "No failed calls in this period.",
        (Column(step, step), Column("calls", "calls", amounts.number), failed), ["failed"],
        counts(total),
    )  # fmt: skip
    return Section(step, rows, charts=[chart])


def _groups(kind: str, groups: Groups, total: Tally, colours: Mapping[str, str]) -> Section:
    paid = any(tally.cost_nano for tally in groups.values())
    columns = _COLUMNS if paid else (Column("tokens", "tokens", amounts.number), *_COLUMNS)
    chart = Chart(
        "bars", f"{kind}s", f"{kind.title()}s",
        f"By {'cost' if paid else 'tokens'}, largest first.", f"No {kind}s in this period.",
        (Column(kind, kind, _model_name if kind == "model" else _project_name), *columns),
        [columns[0].key], _row(kind, "total", total),
    )  # fmt: skip
    colour = "s0" if kind == "project" else _REST
    rows = [
        {**_row(kind, name, tally), "_colour": colours.get(name, colour)}
        for name, tally in groups.items()
    ]
    return Section(kind, rows, paths=kind == "project", charts=[chart])


def _row(kind: str, name: str, tally: Tally) -> dict[str, Any]:
    return {
        kind: name,
        **objects.sums(tally),
        "tokens": tally.tokens,
        **objects.sessions_of(tally),
        "_cost": Amount(tally.cost_nano, cost(tally)),
    }


def _model_name(name: str) -> str:
    return "no model" if name == NONE else name


def _project_name(name: str) -> str:
    return "no project" if name == NONE else layout.home_short(name)


def explain_report(db: apsw.Connection, asked: Stats, by: str | None, group: str) -> Report:
    links = Links(db)
    total = Tally()
    rows = []
    for line in explain.lines(db, asked, by or "", group):
        total.add(line.tally)
        rows.append(_line_row(line, links, asked.zone))
    if not rows:
        names = [name for name in asked.groups(db, by or "agent") if name]
        raise known.missing(by or "response", group, names)
    counts = f"{amounts.plural(total.requests, 'response')}, "
    counts += f"{amounts.plural(total.prompts, 'prompt')}, "
    counts += f"{amounts.plural(total.tool_calls, 'call')} ({total.tool_errors:,} failed)"
    spent = f"{amounts.plural(total.tokens, 'token')}, {money(total.cost_nano)}"
    if total.unpriced:
        spent += f" and {amounts.plural(total.unpriced, 'response')} of unknown price"
    columns = (
        Column("_link", "event"),
        Column("_when", "time", left=True),
        Column("_what", "", left=True),
        Column("tokens", "tokens", _tokens_in_full),
        Column("cost_nano_usd", "cost", money),
    )
    facts = [(group, counts), ("sum", spent)]
    sections = [Section("line", rows, columns, cut=2)]
    return Report("explain", sections, facts=facts)


def _line_row(line: explain.Line, links: Links, zone: tzinfo | None) -> dict[str, Any]:
    tally = line.tally
    name = {"response": line.model, "prompt": None, "call": line.tool}[line.kind]
    failed = f" ({line.status})" if line.status in ("error", "denied", "pending") else ""
    response = line.kind == "response"
    return {
        "type": line.kind,
        "session": line.session,
        "event": links.key(line.event),
        "ts": times.iso(line.ts),
        "model": line.model,
        "tool": line.tool,
        "status": line.status,
        "tokens": tally.tokens if response else None,
        "input_tokens": tally.input_tokens,
        "output_tokens": tally.output_tokens,
        "cache_write_tokens": tally.cache_write_tokens,
        "cache_write_1h_tokens": tally.cache_write_1h_tokens,
        "cache_read_tokens": tally.cache_read_tokens,
        "reasoning_tokens": tally.reasoning_tokens,
        "cost_nano_usd": tally.cost_nano if response and not tally.unpriced else None,
        "_link": links.event(line.session, line.event),
        "_when": amounts.clock_in(zone, line.ts, "%Y-%m-%d %H:%M:%S"),
        "_what": f"{line.kind} {name}{failed}" if name else line.kind,
    }


def _tokens_in_full(tokens: int) -> str:
    return f"{tokens:,}" if tokens < 10_000_000 else short(tokens)
