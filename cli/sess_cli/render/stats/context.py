"""`sess stats context`."""

from __future__ import annotations

from typing import Any

import apsw

from sess_cli.render import amounts
from sess_cli.render.stats.links import Links
from sess_cli.render.stats.report import Column, Report, Section, ViewOptions, percent
from sess_cli.render.tallies import short
from sess_schema.queries.sessions import one_line
from sess_schema.queries.stats import Stats, percentile
from sess_schema.queries.views import context
from sess_schema.queries.views.context import Filled


def report(db: apsw.Connection, asked: Stats, options: ViewOptions) -> Report:
    found = context.read(db, asked)
    links = Links(db)
    peaks = sorted(one.peak for one in found if one.requests)
    before = sorted(tokens for one in found for tokens in one.compactions if tokens is not None)
    compactions = sum(len(one.compactions) for one in found)
    total = {
        "total": "total",
        "sessions": len(found),
        "peak_tokens": peaks[-1] if peaks else None,
        "p50_peak_tokens": percentile(peaks, 50),
        "p90_peak_tokens": percentile(peaks, 90),
        "compactions": compactions,
        "p50_compaction_tokens": percentile(before, 50),
        "max_compaction_tokens": before[-1] if before else None,
    }
    facts = []
    if peaks:
        marks = ", ".join(f"{name} {short(percentile(peaks, n) or 0)}" for name, n in _MARKS)
        sessions = amounts.plural(len(peaks), "session")
        facts.append(("context", f"peak of {sessions}: {marks} tokens"))
    compacted = amounts.plural(compactions, "time") if compactions else "never"
    if before:
        half = short(percentile(before, 50) or 0)
        compacted += f", at p50 {half}, max {short(before[-1])} tokens"
    facts.append(("compacted", compacted))
    return Report(
        "context",
        [
            Section("total", [total], ()),
            Section(
                "session",
                [_row(one, links) for one in found],
                (
                    Column("title", "session", one_line),
                    Column("_link", "id", left=True),
                    Column("peak_tokens", "peak", short),
                    Column("p90_tokens", "p90", short),
                    Column("window_share", "of window", percent),
                    Column("compactions", "compacted", lambda count: str(count) if count else ""),
                ),
                most=20,
            ),
        ],
        facts=facts,
    )


_MARKS = (("p50", 50), ("p90", 90), ("max", 100))


def _row(one: Filled, links: Links) -> dict[str, Any]:
    return {
        "session": one.session,
        "title": one.title or "",
        "_link": links.session(one.session),
        "model": one.model,
        "requests": one.requests,
        "peak_tokens": one.peak,
        "p90_tokens": one.p90,
        "window_tokens": one.window,
        "window_share": one.peak / one.window,
        "compactions": len(one.compactions),
        "compaction_tokens": one.compactions,
    }
