"""`sess stats tools`."""

from __future__ import annotations

from typing import Any

import apsw

from sess_cli.render import amounts
from sess_cli.render.stats.report import (
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
_COLUMNS = (
    Column("calls", "calls", number),
    Column("errors", "errors", number),
    Column("error_rate", "rate", percent),
    Column("denied", "denied", number),
    Column("orphans", "no result", number),
    Column("p50_ms", "p50", duration),
    Column("p95_ms", "p95", duration),
    Column("max_ms", "max", duration),
)


def report(db: apsw.Connection, asked: Stats, options: ViewOptions) -> Report:
    found = tools.read(db, asked, programs=options.detail)
    rows = [_tool(name, use) for name, use in _ordered(found.tools)]
    servers = [{"server": name, **facts(use)} for name, use in _ordered(found.servers)]
    programs = [{"program": name, **facts(use)} for name, use in _ordered(found.programs)]
    calls, errors = (sum(row[name] for row in rows) for name in ("calls", "errors"))
    answered = sum(use.answered for use in found.tools.values())
    counts = f"{amounts.plural(calls, 'call')}, {amounts.plural(errors, 'error')}"
    if answered:
        counts += f", {percent(errors / answered)} of {answered:,} that ran"
    return Report(
        "tools",
        [
            Section("tool", rows, (Column("tool", "tool", shown), *_COLUMNS), most=30),
            Section("server", servers, (Column("server", "MCP server"), *_COLUMNS), most=15),
            Section("program", programs, (Column("program", "in shells"), *_COLUMNS), most=25),
        ],
        facts=[("tools", counts)],
        notes=_notes(options) if rows else [],
    )


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


def shown(tool: str) -> str:
    """`server: tool` for `mcp__server__tool`."""
    names = programs.mcp(tool)
    return tool if names is None else f"{names[0]}: {names[1]}"


def _tool(name: str, use: Use) -> dict[str, Any]:
    server, tool = programs.mcp(name) or (None, None)
    return {"tool": name, **facts(use), "mcp_server": server, "mcp_tool": tool}


def _ordered(uses: dict[str, Use]) -> list[tuple[str, Use]]:
    return sorted(uses.items(), key=lambda one: (-one[1].calls, one[0]))
