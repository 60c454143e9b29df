"""`sess stats tools`."""

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
    duration,
    number,
    percent,
)
from sess_schema.queries.stats import Stats
from sess_schema.queries.views import programs, tools
from sess_schema.queries.views.tools import Use

WAITING = "Times of tools include waiting for permission unless a duration was logged"


def shown(tool: str) -> str:
    """`server: tool` for `mcp__server__tool`."""
    names = programs.mcp(tool)
    return tool if names is None else f"{names[0]}: {names[1]}"


_TOOL = Column("tool", "tool", shown)
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


def report(db: apsw.Connection, asked: Stats, options: ViewOptions) -> Report:
    found = tools.read(db, asked, programs=options.detail)
    rows = [_tool(name, use) for name, use in _ordered(found.tools)]
    servers = [{"server": name, **facts(use)} for name, use in _ordered(found.servers)]
    programs = [{"program": name, **facts(use)} for name, use in _ordered(found.programs)]
    whole = Use()
    for use in found.tools.values():
        whole.add_counts(use)
    counts = f"{amounts.plural(whole.calls, 'call')}, {amounts.plural(whole.errors, 'error')}"
    if whole.error_rate is not None:
        counts += f", {percent(whole.error_rate)} of {whole.answered:,} that ran"
    return Report(
        "tools",
        [
            Section("tool", rows, (_TOOL, *_COLUMNS), most=30, charts=_charts(whole)),
            Section("server", servers, (Column("server", "MCP server"), *_COLUMNS), most=15),
            Section("program", programs, (Column("program", "in shells"), *_COLUMNS), most=25),
        ],
        facts=[("tools", counts)],
        notes=_notes(options) if rows else [],
    )


def _charts(whole: Use) -> list[Chart]:
    return [
        Chart(
            "bars",
            "tools",
            "Tools",
            "Calls, and the share of those that ran and failed.",
            "No tool calls in this period.",
            (_TOOL, *_COLUMNS[:5]),
            ["calls", "error_rate"],
            facts(whole),
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


def facts(use: Use) -> dict[str, Any]:
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


def _tool(name: str, use: Use) -> dict[str, Any]:
    server, tool = programs.mcp(name) or (None, None)
    row = {"tool": name, **facts(use), "mcp_server": server, "mcp_tool": tool}
    marks = {"_p90_ms": use.mark(90), "_p99_ms": use.mark(99)}
    return row | marks | {"_times": use.times, "_timed": len(use.times)}


def _ordered(uses: dict[str, Use]) -> list[tuple[str, Use]]:
    return sorted(uses.items(), key=lambda one: (-one[1].calls, one[0]))
