"""`sess stats latency`."""

from __future__ import annotations

from typing import Any

import apsw

from sess_cli.render.stats.report import (
    Column,
    Report,
    Section,
    ViewOptions,
    decimal,
    duration,
    number,
)
from sess_cli.render.stats.tools import WAITING, shown
from sess_schema.queries.stats import Stats, percentile
from sess_schema.queries.views import latency, tools

_MARKS = (50, 90, 95, 99)


def report(db: apsw.Connection, asked: Stats, options: ViewOptions) -> Report:
    rows = _tools(db, asked)  # first, so that only one of two long lists of times is in memory
    speeds = latency.models(db, asked)
    return Report(
        "latency",
        [
            Section(
                "model",
                [{"model": name, **_speed(speed)} for name, speed in speeds.items()],
                (
                    Column("model", "first response of"),
                    Column("responses", "n", number),
                    *(Column(f"p{mark}_ms", f"p{mark}", duration) for mark in _MARKS[:3]),
                    Column("max_ms", "max", duration),
                    Column("tokens_per_second", "tokens/s", decimal),
                ),
            ),
            Section(
                "tool",
                rows,
                (
                    Column("tool", "tool", shown),
                    Column("calls", "n", number),
                    *(Column(f"p{mark}_ms", f"p{mark}", duration) for mark in _MARKS),
                    Column("max_ms", "max", duration),
                    Column("sum_ms", "sum", duration),
                ),
                most=30,
            ),
        ],
        notes=[WAITING],
    )


def _tools(db: apsw.Connection, asked: Stats) -> list[dict[str, Any]]:
    uses = tools.read(db, asked).tools
    ordered = sorted(uses.items(), key=lambda one: (-sum(one[1].times), one[0]))
    return [{"tool": name, **_marks(use.times)} for name, use in ordered if use.times]


def _speed(speed: latency.Speed) -> dict[str, Any]:
    waits = speed.waits
    return {
        "responses": len(waits),
        **{f"p{mark}_ms": percentile(waits, mark) for mark in _MARKS[:3]},
        "max_ms": waits[-1] if waits else None,
        "tokens_per_second": speed.tokens_per_second,
        "p50_tokens_per_second": _rate(speed),
        "timed_responses": len(speed.rates),
    }


def _rate(speed: latency.Speed) -> float | None:
    found = percentile(speed.rates, 50)
    return None if found is None else found / 1000


def _marks(times: list[int]) -> dict[str, Any]:
    return {
        "calls": len(times),
        **{f"p{mark}_ms": percentile(times, mark) for mark in _MARKS},
        "max_ms": times[-1],
        "sum_ms": sum(times),
    }
