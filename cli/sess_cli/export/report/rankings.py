"""The ranked charts: models, projects, tools, errors, and latency."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sess_cli.export.report import bars, scales
from sess_cli.export.report.figures import REST, Figures, colours, model_name
from sess_cli.export.report.markup import Table, cost, empty, exact, figure, text, tip
from sess_cli.render import layout, tallies
from sess_schema.queries.stats import NONE, Tally, percentile
from sess_schema.queries.views.calendar import busy
from sess_schema.queries.views.tools import Use

ROWS = 12  # of a chart; its data table has all
_TOKENS = (
    ("input", "input_tokens"), ("output", "output_tokens"),
    ("cache write", "cache_write_tokens"), ("cache read", "cache_read_tokens"),
)  # fmt: skip


def models(data: Figures) -> str:
    rows = {model: tally for model, tally in data.models.items() if tally.requests}
    own = colours(data)
    chart = _ranked_bars("Models", rows, [own.get(model, REST) for model in rows])
    table = _groups("models-data", "model", data.models, data.total, model_name)
    caption = _by_what(rows) + ", largest first."
    return figure(
        "models", "Models", caption, chart or empty("No responses in this period."), table
    )


def projects(data: Figures) -> str:
    rows = {_place(project): tally for project, tally in data.projects.items() if busy(tally)}
    chart = _ranked_bars("Projects", rows, ["s0"] * len(rows), paths=True)
    table = _groups("projects-data", "project", data.projects, data.total, _place)
    caption = f"{_by_what(rows)}, largest first{_of(len(rows))}."
    return figure(
        "projects", "Projects", caption, chart or empty("No projects in this period."), table
    )


def tools(data: Figures) -> str:
    uses = dict(sorted(data.tools.items(), key=lambda one: (-one[1].calls, one[0])))
    caption = f"Calls, and the share of those that ran and failed{_of(len(uses))}."
    if not uses:
        return figure("tools", "Tools", caption, empty("No tool calls in this period."))
    rows = [
        bars.Bar(
            tool,
            [use.calls, use.error_rate or 0],
            [exact(use.calls, tallies.short(use.calls)), text(_rate(use))],
            tip(
                tool, [*((what, f"{count:,}") for what, count in _calls(use)), ("rate", _rate(use))]
            ),
            ["s0", "bad"],
        )
        for tool, use in list(uses.items())[:ROWS]
    ]
    table = Table(
        "tools-data",
        ["tool", *(what for what, _ in _calls(data.uses)), "error rate"],
        [
            (tool, [*(exact(count) for _, count in _calls(use)), text(_rate(use))])
            for tool, use in uses.items()
        ],
        [*(exact(count) for _, count in _calls(data.uses)), text(_rate(data.uses))],
    )
    chart = bars.bars("Tool calls and error rates", ["Tool", "calls", "error rate"], rows)
    return figure("tools", "Tools", caption, chart, table)


def _calls(use: Use) -> tuple[tuple[str, int], ...]:
    return (
        ("calls", use.calls),
        ("failed", use.errors),
        ("denied", use.denied),
        ("no result", use.orphans),
    )


def _rate(use: Use) -> str:
    return scales.share(use.errors, use.answered)


def classes(data: Figures) -> str:
    """Failed calls by error class, with the same rules as `sess stats errors`."""
    caption = f"Failed calls by error message{_of(len(data.classes))}."
    if not data.classes:
        return figure(
            "errors", "Errors by class", caption, empty("No failed calls in this period.")
        )
    whole = sum(data.classes.values())
    rows = [
        bars.Bar(
            kind,
            [count],
            [exact(count)],
            tip(kind, [("failed calls", f"{count:,}"), ("share", scales.share(count, whole))]),
            ["bad"],
        )
        for kind, count in data.classes.items()
    ]
    table = Table(
        "errors-data",
        ["class", "failed calls", "share"],
        [
            (kind, [exact(count), text(scales.share(count, whole))])
            for kind, count in data.classes.items()
        ],
        [exact(whole), ""],
    )
    chart = bars.bars("Errors by class", ["Class", "failed calls"], rows[:ROWS])
    return figure("errors", "Errors by class", caption, chart, table)


def latencies(data: Figures) -> str:
    caption = (
        "From call to result, including time spent waiting for permission. Each row has its own"
        " scale; the line is the median, the dashed line the 95th percentile."
    )
    timed = ((tool, use.times) for tool, use in data.tools.items() if use.times)
    rows = sorted(timed, key=lambda one: (-len(one[1]), one[0]))
    if not rows:
        return figure("latency", "Latency", caption, empty("No timed calls in this period."))
    marks = (50, 90, 95, 99)
    table = Table(
        "latency-data",
        ["tool", "timed calls", *(f"p{mark} ms" for mark in marks), "max ms"],
        [
            (tool, [exact(len(ordered)), *(exact(percentile(ordered, mark) or 0) for mark in marks),
                    exact(ordered[-1])])
            for tool, ordered in rows
        ],
    )  # fmt: skip
    caption += f" Most used tools{_of(len(rows))}." if len(rows) > ROWS else ""
    chart = bars.spans("Latency of tool calls", rows[:ROWS])
    return figure("latency", "Latency", caption, chart, table)


def _of(count: int) -> str:
    return f", {ROWS} of {count:,}" if count > ROWS else ""


def _place(project: str) -> str:
    return "no project" if project == NONE else layout.home_short(project)


def _by_what(rows: Mapping[str, Tally]) -> str:
    return "By cost" if any(tally.cost_nano for tally in rows.values()) else "By tokens"


def _ranked_bars(
    label: str, rows: Mapping[str, Tally], colours: Sequence[str], *, paths: bool = False
) -> str:
    if not rows:
        return ""
    money = any(tally.cost_nano for tally in rows.values())
    drawn = [
        bars.Bar(
            group,
            [tally.cost_nano if money else tally.tokens],
            [cost(tally) if money else exact(tally.tokens, tallies.short(tally.tokens))],
            _tally_tip(group, tally),
            [colour],
        )
        for (group, tally), colour in zip(rows.items(), colours, strict=True)
    ]
    heads = [label.removesuffix("s"), "cost" if money else "tokens"]
    return bars.bars(label, heads, drawn[:ROWS], paths=paths)


def _tally_tip(group: str, tally: Tally) -> str:
    unpriced = [("unpriced responses", f"{tally.unpriced:,}")] if tally.unpriced else []
    return tip(
        group,
        [
            ("cost", tallies.cost(tally)),
            ("tokens", f"{tally.tokens:,}"),
            ("responses", f"{tally.requests:,}"),
            *unpriced,
            ("prompts", f"{tally.prompts:,}"),
            ("tool calls", f"{tally.tool_calls:,}"),
        ],
    )


def _groups(
    id_: str, by: str, groups: Mapping[str, Tally], total: Tally, shown: Callable[[str], str]
) -> Table:
    def cells(tally: Tally) -> list[str]:
        counts = [getattr(tally, field) for _, field in _TOKENS]
        more = (len(tally.sessions), tally.prompts, tally.requests, tally.tool_calls)
        return [cost(tally), *map(exact, (*counts, *more, tally.tool_errors))]

    heads = [by, "cost", *(word for word, _ in _TOKENS), "sessions", "prompts", "responses",
             "tool calls", "errors"]  # fmt: skip
    rows = [(shown(group), cells(tally)) for group, tally in groups.items()]
    return Table(id_, heads, rows, cells(total))
