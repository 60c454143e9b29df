"""Sums over time, by model and by project: what `sess stats --html` begins with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import date
from functools import partial
from typing import Any

import apsw

from sess_cli.render import layout
from sess_cli.render.stats import periods
from sess_cli.render.stats.periods import UNDATED
from sess_cli.render.stats.report import Amount, Chart, Column, Report, Section, ViewOptions, number
from sess_cli.render.tallies import cost, money
from sess_common.classes import replace
from sess_schema import objects
from sess_schema.queries.stats import NONE, Stats, Tally

_SERIES = 6  # models with a colour of their own
_REST = f"s{_SERIES}"
_COLUMNS = (
    Column("_cost", "cost"),
    Column("input_tokens", "input", number),
    Column("output_tokens", "output", number),
    Column("cache_write_tokens", "cache write", number),
    Column("cache_read_tokens", "cache read", number),
    Column("sessions", "sessions", number),
    Column("prompts", "prompts", number),
    Column("requests", "responses", number),
    Column("tool_calls", "tool calls", number),
    Column("tool_errors", "errors", number),
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

Groups = Mapping[str, Tally]


def report(db: apsw.Connection, asked: Stats, options: ViewOptions) -> Report:
    hours = _dated(asked.table(db, "hour", "model"))
    axis = periods.axis(hours, asked.since, asked.until, asked.zone)
    columns: dict[str, dict[str, Tally]] = {name: {} for name in axis.columns}
    models: dict[str, Tally] = {}
    for hour, inner in hours.items():
        column = columns.setdefault(periods.column_of(axis.step, hour), {})
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
            Section("total", [_row("total", "total", total) | more], ()),
            by_model(_COST, lambda tally: tally.cost_nano, money),
            by_model(_TOKENS, lambda tally: tally.tokens, number),
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
    series = [(_model(model), colours[model], [model]) for model in own]
    if rest := [m for m, tally in models.items() if m not in own and of(tally)]:
        series.append(("other", _REST, rest))

    def sums(groups: Groups) -> dict[str, int]:
        values = [sum(of(groups[m]) for m in some if m in groups) for _, _, some in series]
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
    return Section(step, rows, (), charts=[chart])


def _failures(step: str, columns: Mapping[str, Groups], total: Tally) -> Section:
    def counts(tally: Tally) -> dict[str, int]:
        return {"calls": tally.tool_calls, "failed": tally.tool_errors}

    rows = [{step: name, **counts(_total(inner.values()))} for name, inner in columns.items()]
    failed = Column("failed", "failed", number, colour="bad")
    chart = Chart(
        "columns",
        "failures",
        "Failed calls",
        f"Failed tool calls per {step}.",
        "No failed calls in this period.",
        (Column(step, step), Column("calls", "calls", number), failed),
        ["failed"],
        counts(total),
    )
    return Section(step, rows, (), charts=[chart])


def _groups(kind: str, groups: Groups, total: Tally, colours: Mapping[str, str]) -> Section:
    paid = any(tally.cost_nano for tally in groups.values())
    columns = _COLUMNS if paid else (Column("tokens", "tokens", number), *_COLUMNS)
    chart = Chart(
        "bars",
        f"{kind}s",
        f"{kind.title()}s",
        f"By {'cost' if paid else 'tokens'}, largest first.",
        f"No {kind}s in this period.",
        (Column(kind, kind, _model if kind == "model" else _project), *columns),
        [columns[0].key],
        _row(kind, "total", total),
    )
    colour = "s0" if kind == "project" else _REST
    rows = [
        {**_row(kind, name, tally), "_colour": colours.get(name, colour)}
        for name, tally in groups.items()
    ]
    return Section(kind, rows, (), paths=kind == "project", charts=[chart])


def _row(kind: str, name: str, tally: Tally) -> dict[str, Any]:
    return {
        kind: name,
        **objects.sums(tally),
        "tokens": tally.tokens,
        "sessions": len(tally.sessions),
        "_cost": Amount(tally.cost_nano, cost(tally)),
    }


def _model(name: str) -> str:
    return "no model" if name == NONE else name


def _project(name: str) -> str:
    return "no project" if name == NONE else layout.home_short(name)
