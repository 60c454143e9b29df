"""`sess stats tools` and `sess stats latency`: what was called, and how long it took."""

from __future__ import annotations

from typing import Any

import apsw

from sess_cli.render import amounts
from sess_cli.render.stats.report import (
    Chart,
    Column,
    Report,
    Section,
    ViewOptions,
    decimal,
    duration,
    number,
    percent,
)
from sess_schema.queries.stats import Stats, percentile
from sess_schema.queries.views import tools
from sess_schema.queries.views.tools import Use

WAITING = "Times of tools include waiting for permission unless a duration was logged"


def tool_name(tool: str) -> str:
    """`server: tool` for `mcp__server__tool`."""
    names = tools.mcp_names(tool)
    return tool if names is None else f"{names[0]}: {names[1]}"


_TOOL = Column("tool", "tool", tool_name)
_COLUMNS = (
    Column("calls", "calls", number),
    Column("errors", "errors", number),
    Column("error_rate", "rate", percent, colour="bad"),
    Column("denied", "denied", number),
    Column("orphans", "no result", number),
    Column("p50_ms", "p50", duration),
    Column("p95_ms", "p95", duration),
    Column("max_ms", "max", duration),
)
_EXACT = tuple(
    Column(key, head, lambda span: f"{span:,} ms")
    for key, head in (("p50_ms", "p50"), ("_p90_ms", "p90"), ("p95_ms", "p95"),
                      ("_p99_ms", "p99"), ("max_ms", "max"))
)  # fmt: skip


def tools_report(db: apsw.Connection, asked: Stats, options: ViewOptions) -> Report:
    found = tools.read_tools(db, asked, programs=options.detail)
    rows = [_tool_row(name, use) for name, use in _ordered(found.tools)]
    servers = [{"server": name, **use_facts(use)} for name, use in _ordered(found.servers)]
    programs = [{"program": name, **use_facts(use)} for name, use in _ordered(found.programs)]
    whole = Use()
    for use in found.tools.values():
        whole.add_counts(use)
    counts = f"{amounts.plural(whole.calls, 'call')}, {amounts.plural(whole.errors, 'error')}"
    if whole.error_rate is not None:
        counts += f", {percent(whole.error_rate)} of {whole.answered:,} that ran"
    return Report(
        "tools",
        [
            Section("tool", rows, (_TOOL, *_COLUMNS), most=30, charts=_tool_charts(whole)),
            Section("server", servers, (Column("server", "MCP server"), *_COLUMNS), most=15),
            Section("program", programs, (Column("program", "in shells"), *_COLUMNS), most=25),
        ],
        facts=[("tools", counts)],
        notes=_notes(options) if rows else [],
    )


def _tool_charts(whole: Use) -> list[Chart]:
    return [
        Chart(
            "bars",
            "tools",
            "Tools",
            "Calls, and the share of those that ran and failed.",
            "No tool calls in this period.",
            (_TOOL, *_COLUMNS[:5]),
            ["calls", "error_rate"],
            use_facts(whole),
        ),
        Chart(
            "spans",
            "latency",
            "Latency",
            "From call to result, including time spent waiting for permission. Each row has its"
            " own scale; the line is the median, the dashed line the 95th percentile.",
            "No timed calls in this period.",
            (_TOOL, Column("_timed", "calls", number), *_EXACT),
            ["_times"],
        ),
    ]


def _notes(options: ViewOptions) -> list[str]:
    detail = "`--detail` shows the programs run by shells; rates exclude denied calls"
    return [WAITING] if options.detail else [detail, WAITING]


def use_facts(use: Use) -> dict[str, Any]:
    return {
        "calls": use.calls,
        "errors": use.errors,
        "error_rate": use.error_rate,
        "denied": use.denied,
        "orphans": use.orphans,
        "p50_ms": use.mark(50),
        "p95_ms": use.mark(95),
        "max_ms": use.times[-1] if use.times else None,
    }


def _tool_row(name: str, use: Use) -> dict[str, Any]:
    server, tool = tools.mcp_names(name) or (None, None)
    row = {"tool": name, **use_facts(use), "mcp_server": server, "mcp_tool": tool}
    marks = {"_p90_ms": use.mark(90), "_p99_ms": use.mark(99)}
    return row | marks | {"_times": use.times, "_timed": len(use.times)}


def _ordered(uses: dict[str, Use]) -> list[tuple[str, Use]]:
    return sorted(uses.items(), key=lambda one: (-one[1].calls, one[0]))


_PERCENTILES = (50, 90, 95, 99)


def latency_report(db: apsw.Connection, asked: Stats, options: ViewOptions) -> Report:
    rows = _timed_tools(
        db, asked
    )  # first, so that only one of two long lists of times is in memory
    speeds = tools.read_speeds(db, asked)
    return Report(
        "latency",
        [
            Section(
                "model",
                [{"model": name, **_speed_facts(speed)} for name, speed in speeds.items()],
                (
                    Column("model", "first response of"),
                    Column("responses", "n", number),
                    *(Column(f"p{mark}_ms", f"p{mark}", duration) for mark in _PERCENTILES[:3]),
                    Column("max_ms", "max", duration),
                    Column("tokens_per_second", "tokens/s", decimal),
                ),
            ),
            Section(
                "tool",
                rows,
                (
                    Column("tool", "tool", tool_name),
                    Column("calls", "n", number),
                    *(Column(f"p{mark}_ms", f"p{mark}", duration) for mark in _PERCENTILES),
                    Column("max_ms", "max", duration),
                    Column("sum_ms", "sum", duration),
                ),
                most=30,
            ),
        ],
        notes=[WAITING],
    )


def _timed_tools(db: apsw.Connection, asked: Stats) -> list[dict[str, Any]]:
    uses = tools.read_tools(db, asked).tools
    ordered = sorted(uses.items(), key=lambda one: (-sum(one[1].times), one[0]))
    return [{"tool": name, **_time_facts(use.times)} for name, use in ordered if use.times]


def _speed_facts(speed: tools.Speed) -> dict[str, Any]:
    waits = speed.waits
    return {
        "responses": len(waits),
        **{f"p{mark}_ms": percentile(waits, mark) for mark in _PERCENTILES[:3]},
        "max_ms": waits[-1] if waits else None,
        "tokens_per_second": speed.tokens_per_second,
        "p50_tokens_per_second": _median_rate(speed),
        "timed_responses": len(speed.rates),
    }


def _median_rate(speed: tools.Speed) -> float | None:
    found = percentile(speed.rates, 50)
    return None if found is None else found / 1000


def _time_facts(times: list[int]) -> dict[str, Any]:
    return {
        "calls": len(times),
        **{f"p{mark}_ms": percentile(times, mark) for mark in _PERCENTILES},
        "max_ms": times[-1],
        "sum_ms": sum(times),
    }
