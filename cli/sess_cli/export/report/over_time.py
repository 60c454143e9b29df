"""The charts over time: cost, tokens and failed calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sess_cli.export.report import charts, scales
from sess_cli.export.report.figures import OTHER, REST, Figures, colours, model_name
from sess_cli.export.report.markup import Table, empty, exact, figure, name, tip
from sess_cli.export.report.periods import UNDATED
from sess_cli.render import tallies
from sess_schema.queries.stats import Tally


@dataclass(frozen=True, slots=True)
class _Measure:
    """The quantity of a chart by model, and how to print it."""

    id: str
    title: str
    caption: str  # with `{step}`
    nothing: str
    of: Callable[[Tally], int]
    unit: float  # of the axis
    axis: Callable[[float], str]
    long: Callable[[int], str]
    short: Callable[[int], str]
    cell: Callable[[int], str]


_COST = _Measure(
    id="cost",
    title="Cost over time",
    caption="US dollars per {step}, by model. Excludes responses without a known price.",
    nothing="No costs in this period.",
    of=lambda tally: tally.cost_nano,
    unit=1e9,
    axis=scales.dollars,
    long=tallies.money,
    short=tallies.money,
    cell=lambda nano: exact(nano, tallies.money(nano)),
)
_TOKENS = _Measure(
    id="tokens",
    title="Tokens over time",
    caption="Tokens per {step}, by model: input, output, cache writes and cache reads.",
    nothing="No tokens in this period.",
    of=lambda tally: tally.tokens,
    unit=1,
    axis=scales.number,
    long=lambda count: f"{count:,}",
    short=tallies.short,
    cell=exact,
)


@dataclass(frozen=True, slots=True)
class _Series:
    name: str
    colour: str
    models: list[str]


def spent(data: Figures) -> str:
    return _by_model(data, _COST)


def tokens(data: Figures) -> str:
    return _by_model(data, _TOKENS)


def _series(data: Figures, measure: _Measure) -> list[_Series]:
    """Largest first, all small models together last."""
    own = {
        model: colour for model, colour in colours(data).items() if measure.of(data.models[model])
    }
    ranked = sorted(own, key=lambda model: -measure.of(data.models[model]))
    found = [_Series(model_name(model), own[model], [model]) for model in ranked]
    rest = [m for m, tally in data.models.items() if m not in own and measure.of(tally)]
    return [*found, _Series(OTHER, REST, rest)] if rest else found


def _by_model(data: Figures, measure: _Measure) -> str:
    caption = measure.caption.format(step=data.axis.step)
    if not measure.of(data.total):
        return figure(measure.id, measure.title, caption, empty(measure.nothing))
    series = _series(data, measure)
    sums = {
        column: [sum(measure.of(row[m]) for m in one.models if m in row) for one in series]
        for column, row in data.by_model.items()
    }
    whole = [sum(row[n] for row in sums.values()) for n in range(len(series))]
    keys = [
        (one.colour, name(one.name, 40), measure.short(value))
        for one, value in zip(series, whole, strict=True)
    ]
    table = Table(
        f"{measure.id}-data",
        [data.axis.step, *(one.name for one in series), "total"],
        [
            (column, list(map(measure.cell, (*values, sum(values)))))
            for column, values in sums.items()
            if any(values)
        ],
        list(map(measure.cell, (*whole, sum(whole)))),
    )
    if any(undated := sums.get(UNDATED, ())):
        caption += f" {measure.long(sum(undated))} without a date: only in the data."
    if not data.axis.columns:
        return figure(measure.id, measure.title, caption, empty("No response has a date."), table)
    drawn = f"{charts.legend(keys)}{_stacked(data, measure, series, sums)}"
    return figure(measure.id, measure.title, caption, drawn, table)


def _stacked(
    data: Figures, measure: _Measure, series: list[_Series], sums: dict[str, list[int]]
) -> charts.Columns:
    columns = data.axis.columns
    most = max(sum(sums[column]) for column in columns) / measure.unit
    return charts.Columns(
        label=f"{measure.title}, by model",
        axis=data.axis,
        classes=[one.colour for one in series],
        values=[[value / measure.unit for value in sums[column]] for column in columns],
        tips=[
            tip(
                data.axis.name(column),
                [
                    ("total", measure.long(sum(sums[column]))),
                    *(
                        (one.name, measure.long(value))
                        for one, value in zip(series, sums[column], strict=True)
                        if value
                    ),
                ],
            )
            for column in columns
        ],
        ticks=scales.ticks(most),
        say=measure.axis,
    )


def failed(data: Figures) -> str:
    caption = f"Failed tool calls per {data.axis.step}."
    if not data.total.tool_errors:
        return figure("failures", "Failed calls", caption, empty("No failed calls in this period."))
    if not data.axis.columns:
        return figure("failures", "Failed calls", caption, empty("No failed call has a date."))
    columns = data.columns
    tips = [
        tip(
            data.axis.name(column),
            [("failed", f"{columns[column].tool_errors:,}"),
             ("calls", f"{columns[column].tool_calls:,}")],
        )
        for column in data.axis.columns
    ]  # fmt: skip
    most = max(columns[column].tool_errors for column in data.axis.columns)
    chart = charts.Columns(
        label="Failed tool calls over time",
        axis=data.axis,
        classes=["bad"],
        values=[[columns[column].tool_errors] for column in data.axis.columns],
        tips=tips,
        ticks=scales.whole_ticks(most or 1),
        say=scales.number,
    )
    table = Table(
        "failures-data",
        [data.axis.step, "calls", "failed"],
        [
            (column, [exact(tally.tool_calls), exact(tally.tool_errors)])
            for column, tally in columns.items()
            if tally.tool_calls
        ],
        [exact(data.total.tool_calls), exact(data.total.tool_errors)],
    )
    return figure("failures", "Failed calls", caption, str(chart), table)
