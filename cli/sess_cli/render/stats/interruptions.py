"""`sess stats interruptions`."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import apsw

from sess_cli.render import amounts
from sess_cli.render.stats.report import (
    Column,
    Report,
    Section,
    ViewOptions,
    decimal,
    mean,
    number,
    percent,
)
from sess_schema.queries.stats import Stats, percentile
from sess_schema.queries.views import interruptions
from sess_schema.queries.views.interruptions import STEPS


def report(db: apsw.Connection, asked: Stats, options: ViewOptions) -> Report:
    found = interruptions.read(db, asked)
    turns = amounts.plural(found.turns, "turn")
    facts = [("turns", "none in this period")]
    if found.rate is not None:
        counts = amounts.plural(found.markers, "interruption")
        calls = amounts.plural(found.calls, "call")
        counts += f", {amounts.plural(found.refusals, 'denied call')}"
        facts = [
            ("interrupted", f"{percent(found.rate)} of {turns}: {counts}"),
            ("no tools", f"{percent(found.without_tools or 0)} of turns"),
            ("searching", f"{percent(found.search_share or 0)} of {calls}"),
        ]
    total = {
        "total": "total",
        "turns": found.turns,
        "interrupted_turns": found.interrupted_turns,
        "interruption_rate": found.rate,
        "markers": found.markers,
        "refusals": found.refusals,
        "tool_calls": found.calls,
        "search_share": found.search_share,
        "turns_without_tools_share": found.without_tools,
    }
    sized = [
        {
            "tools": name,
            "turns": found.by_calls[least].turns,
            "interrupted_turns": found.by_calls[least].interrupted,
            "interruption_rate": found.by_calls[least].interrupted / found.by_calls[least].turns,
        }
        for least, name in _names()
        if found.by_calls[least].turns
    ]
    per_turn = (
        [
            _steps("responses", found.requests_per_turn),
            _steps("tool calls", found.calls_per_turn),
        ]
        if found.turns
        else []
    )
    return Report(
        "interruptions",
        [
            Section("total", [total], ()),
            Section(
                "steps",
                per_turn,
                (
                    Column("steps", "per turn"),
                    Column("mean", "mean", decimal),
                    *(Column(name, name, number) for name in ("p50", "p90", "max")),
                ),
            ),
            Section(
                "tools",
                sized,
                (
                    Column("tools", "tool calls in the turn"),
                    Column("turns", "turns", number),
                    Column("interrupted_turns", "interrupted", number),
                    Column("interruption_rate", "rate", percent),
                ),
            ),
        ],
        facts=facts,
    )


def _names() -> list[tuple[int, str]]:
    """`0`, `1`, `2-4`, …, `50+`."""
    names = [
        (least, str(least) if after == least + 1 else f"{least}-{after - 1}")
        for least, after in pairwise(STEPS)
    ]
    return [*names, (STEPS[-1], f"{STEPS[-1]}+")]


def _steps(name: str, values: list[int]) -> dict[str, Any]:
    return {
        "steps": name,
        "mean": mean(values),
        "p50": percentile(values, 50),
        "p90": percentile(values, 90),
        "max": values[-1],
    }
