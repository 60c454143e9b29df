"""`sess stats --explain GROUP`: the rows behind a number."""

from __future__ import annotations

from datetime import tzinfo
from typing import Any

import apsw

from sess_cli.render import amounts
from sess_cli.render.stats.links import Links
from sess_cli.render.stats.report import Column, Report, Section, clock
from sess_cli.render.tallies import money, short
from sess_common import times
from sess_schema.queries.stats import Stats
from sess_schema.queries.stats import Tally
from sess_schema.queries.views import explain
from sess_schema.queries.views.explain import Line


def report(db: apsw.Connection, asked: Stats, by: str | None, group: str) -> Report:
    links = Links(db)
    total = Tally()
    rows = []
    for line in explain.lines(db, asked, by or "", group):
        total.add(line.tally)
        rows.append(_row(line, links, asked.zone))
    counts = ", ".join(
        [
            amounts.plural(total.requests, "response"),
            amounts.plural(total.prompts, "prompt"),
            f"{amounts.plural(total.tool_calls, 'call')} ({total.tool_errors:,} failed)",
        ]
    )
    spent = f"{amounts.plural(total.tokens, 'token')}, {money(total.cost_nano)}"
    if total.unpriced:
        spent += f" and {amounts.plural(total.unpriced, 'response')} of unknown price"
    return Report(
        "explain",
        [
            Section(
                "line",
                rows,
                (
                    Column("_link", "event"),
                    Column("_when", "time", left=True),
                    Column("_what", "", left=True),
                    Column("tokens", "tokens", _count),
                    Column("cost_nano_usd", "cost", money),
                ),
                cut=2,
            )
        ],
        facts=[(group, counts), ("sum", spent)],
        code=0 if rows else 1,
    )


def _row(line: Line, links: Links, zone: tzinfo | None) -> dict[str, Any]:
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
        "_when": clock(line.ts, zone, "%Y-%m-%d %H:%M:%S"),
        "_what": f"{line.kind} {name}{failed}" if name else line.kind,
    }


def _count(tokens: int) -> str:
    return f"{tokens:,}" if tokens < 10_000_000 else short(tokens)
