"""`sess stats tools` and `sess stats latency`: what was called, and how long it took."""

from __future__ import annotations

from typing import Any

import apsw

from sess_cli.render import amounts
from sess_cli.render.stats.report import Chart, Column, Report, Section, ViewOptions
from sess_schema.queries.stats import Stats, percentile
from sess_schema.queries.views import tools

WAITING = "Times of tools include waiting for permission unless a duration was logged"


def tool_name(tool: str) -> str:
    """`server: tool` for `mcp__server__tool`."""
    names = tools.mcp_names(tool)
    return tool if names is None else f"{names[0]}: {names[1]}"


_TOOL = Column("tool", "tool", tool_name)
_COLUMNS = (
    *Column.several(amounts.number, calls="calls", errors="errors"),
    Column("error_rate", "rate", amounts.percent, colour="bad"),
    *Column.several(amounts.number, denied="denied", orphans="no result"),
    *Column.several(amounts.duration, p50_ms="p50", p95_ms="p95", max_ms="max"),
)
_EXACT = Column.several(
    lambda span: f"{span:,} ms",
    p50_ms="p50",
    _p90_ms="p90",
    p95_ms="p95",
    _p99_ms="p99",
    max_ms="max",
)
_PERCENTILES = (50, 90, 95, 99)


def tools_report(db: apsw.Connection, asked: Stats, options: ViewOptions) -> Report:
    uses = tools.read_tools(db, asked, programs=options.detail)
    rows = [_tool_row(name, use) for name, use in most_called(uses.tools)]
    servers = [{"server": name, **_use_facts(use)} for name, use in most_called(uses.servers)]
    programs = [{"program": name, **_use_facts(use)} for name, use in most_called(uses.programs)]
    whole = tools.Use()
    for use in uses.tools.values():
        whole.add_counts(use)
    counts = f"{amounts.plural(whole.calls, 'call')}, {amounts.plural(whole.errors, 'error')}"
    if whole.error_rate is not None:
        counts += f", {amounts.percent(whole.error_rate)} of {whole.answered:,} that ran"
    sections = [
        Section("tool", rows, (_TOOL, *_COLUMNS), most=30, charts=_tool_charts(whole)),
        Section("server", servers, (Column("server", "MCP server"), *_COLUMNS), most=15),
        Section("program", programs, (Column("program", "in shells"), *_COLUMNS), most=25),
    ]
    detail = "`--detail` shows the programs run by shells; rates exclude denied calls"
    notes = [WAITING] if options.detail else [detail, WAITING]
    return Report("tools", sections, facts=[("tools", counts)], notes=notes if rows else [])


def _tool_charts(whole: tools.Use) -> list[Chart]:
    calls = Chart(
        "bars", "tools", "Tools", "Calls, and the share of those that ran and failed.",
        "No tool calls in this period.", (_TOOL, *_COLUMNS[:5]), ["calls", "error_rate"],
        _use_facts(whole),
    )  # fmt: skip
    spans = Chart(
        "spans", "latency", "Latency",
        "From call to result, including time spent waiting for permission. Each row has its"
        " own scale; the line is the median, the dashed line the 95th percentile.",
        "No timed calls in this period.",
        (_TOOL, Column("_timed", "calls", amounts.number), *_EXACT), ["_times"],
    )  # fmt: skip
    return [calls, spans]


def _use_facts(use: tools.Use) -> dict[str, Any]:
    return {
        "calls": use.calls,
        "errors": use.errors,
        "error_rate": use.error_rate,
        "denied": use.denied,
        "orphans": use.orphans,
        "p50_ms": use.mark(50),
        "p95_ms": use.mark(95),
        "max_ms": use.mark(100),
    }


def _tool_row(name: str, use: tools.Use) -> dict[str, Any]:
    server, tool = tools.mcp_names(name) or (None, None)
    row = {"tool": name, **_use_facts(use), "mcp_server": server, "mcp_tool": tool}
    marks = {"_p90_ms": use.mark(90), "_p99_ms": use.mark(99)}
    return row | marks | {"_times": use.times, "_timed": len(use.times)}


def most_called(uses: dict[str, tools.Use]) -> list[tuple[str, tools.Use]]:
    return sorted(uses.items(), key=lambda named: (-named[1].calls, named[0]))


def latency_report(db: apsw.Connection, asked: Stats, options: ViewOptions) -> Report:
    # First, so that only one of two long lists of times is in memory.
    rows = _timed_tools(db, asked)
    speeds = tools.read_speeds(db, asked)
    heads = {f"p{rank}_ms": f"p{rank}" for rank in _PERCENTILES} | {"max_ms": "max"}
    spans = Column.several(amounts.duration, **heads, sum_ms="sum")
    del heads["p99_ms"]
    model_columns = (
        Column("model", "first response of"),
        Column("responses", "n", amounts.number),
        *Column.several(amounts.duration, **heads),
        Column("tokens_per_second", "tokens/s", amounts.decimal),
    )
    models = [{"model": name, **_speed_facts(speed)} for name, speed in speeds.items()]
    sections = [
        Section("model", models, model_columns),
        Section("tool", rows, (_TOOL, Column("calls", "n", amounts.number), *spans), most=30),
    ]
    return Report("latency", sections, notes=[WAITING])


def _timed_tools(db: apsw.Connection, asked: Stats) -> list[dict[str, Any]]:
    uses = tools.read_tools(db, asked).tools
    ordered = sorted(uses.items(), key=lambda named: (-sum(named[1].times), named[0]))
    return [
        {
            "tool": name,
            "calls": len(use.times),
            **{f"p{rank}_ms": use.mark(rank) for rank in _PERCENTILES},
            "max_ms": use.times[-1],
            "sum_ms": sum(use.times),
        }
        for name, use in ordered
        if use.times
    ]


def _speed_facts(speed: tools.Speed) -> dict[str, Any]:
    rate = percentile(speed.rates, 50)
    return {
        "responses": len(speed.waits),
        **{f"p{rank}_ms": percentile(speed.waits, rank) for rank in _PERCENTILES[:3]},
        "max_ms": percentile(speed.waits, 100),
        "tokens_per_second": speed.tokens_per_second,
        "p50_tokens_per_second": None if rate is None else rate / 1000,
        "timed_responses": len(speed.rates),
    }
