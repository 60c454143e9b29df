"""`sess stats errors` and `sess stats interruptions`: what failed, and what people stopped."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import apsw

from sess_cli.render import amounts, layout
from sess_cli.render.stats.report import (
    Chart,
    Column,
    Links,
    Report,
    Section,
    ViewOptions,
    clock,
    decimal,
    mean,
    number,
    percent,
)
from sess_common import paths, times
from sess_schema.queries.stats import Stats, percentile
from sess_schema.queries.views import failures, interruptions
from sess_schema.queries.views.failures import Failure, Failures, grouped
from sess_schema.queries.views.interruptions import STEPS

_HINT = (
    "`sess stats errors --explain CLASS` lists a class, `api CLASS` one of the API errors;"
    " add your own classes in errors.toml, next to config.toml"
)


def errors_report(db: apsw.Connection, asked: Stats, options: ViewOptions) -> Report:
    found = failures.read(db, asked, paths.home().config)
    links = Links(db)
    total = len(found.calls)
    counts = amounts.plural(total, "failed call")
    counts += f", {amounts.plural(len(found.service), 'API error')}"
    count = (
        Column("errors", "errors", number, colour="bad"),
        Column("share", "share", percent),
    )
    newest = Column("_link", "newest", left=True)
    first = Column("tools", "mostly", _first, left=True)
    return Report(
        "errors",
        [
            Section(
                "class",
                [_class(name, ones, total, links) for name, ones in found.classes().items()],
                (Column("class", "class"), *count, first, newest),
                charts=[
                    Chart(
                        "bars",
                        "errors",
                        "Errors by class",
                        "Failed calls by error message.",
                        "No failed calls in this period.",
                        (Column("class", "class"), *count),
                        ["errors"],
                        {"errors": total},
                    )
                ],
            ),
            Section(
                "api",
                [_class(n, o, len(found.service), links) for n, o in _service(found).items()],
                (Column("class", "API errors"), *count, newest),
            ),
            Section(
                "tool",
                _counted("tool", found.calls, lambda one: one.tool),
                (Column("tool", "tool"), *count),
                most=8,
            ),
            Section(
                "project",
                _counted("project", found.calls, lambda one: one.project),
                (Column("project", "project", layout.home_short), *count),
                most=5,
                paths=True,
            ),
            Section(
                "day",
                sorted(
                    _counted("day", found.calls, failures.day(asked.zone)),
                    key=lambda row: str(row["day"]),
                    reverse=True,
                ),
                (Column("day", "day"), *count),
                most=7,
            ),
        ],
        facts=[("errors", counts), ("rules", f"version {found.rules}")],
        notes=[_HINT] if total or found.service else [],
    )


def explained(db: apsw.Connection, asked: Stats, name: str) -> Report:
    """Every failure of a class, the newest first."""
    found = failures.read(db, asked, paths.home().config, texts=True)
    links = Links(db)
    rows = [
        {
            "session": one.session,
            "event": links.key(one.event),
            "ts": times.iso(one.ts),
            "tool": one.tool,
            "class": one.name,
            "project": one.project,
            "text": one.text,
            "_link": links.event(one.session, one.event),
            "_when": clock(one.ts, asked.zone),
        }
        for one in found.of_class(name)
    ]
    return Report(
        "errors",
        [
            Section(
                "failure",
                rows,
                (
                    Column("_link", "event"),
                    Column("_when", "time", left=True),
                    Column("tool", "tool", left=True),
                    Column("text", "message", left=True),
                ),
                cut=3,
            )
        ],
        facts=[(name, amounts.plural(len(rows), "failure"))],
        code=0 if rows else 1,
    )


def _service(found: Failures) -> dict[str, list[Failure]]:
    return grouped(found.service, lambda one: one.name)


def _class(name: str, ones: list[Failure], total: int, links: Links) -> dict[str, Any]:
    newest = ones[0]
    return {
        "class": name,
        "errors": len(ones),
        "share": len(ones) / total,
        "tools": [*grouped(ones, lambda one: one.tool)],
        "newest": times.iso(newest.ts),
        "session": newest.session,
        "event": links.key(newest.event),
        "_link": links.event(newest.session, newest.event),
    }


def _counted(kind: str, ones: list[Failure], key: Callable[[Failure], str]) -> list[dict[str, Any]]:
    return [
        {kind: name, "errors": len(group), "share": len(group) / len(ones)}
        for name, group in grouped(ones, key).items()
    ]


def _first(tools: list[str]) -> str:
    return tools[0]


def interruptions_report(db: apsw.Connection, asked: Stats, options: ViewOptions) -> Report:
    found = interruptions.read_interruptions(db, asked)
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
        for least, name in _sizes_of_turns()
        if found.by_calls[least].turns
    ]
    per_turn = (
        [
            _steps_row("responses", found.requests_per_turn),
            _steps_row("tool calls", found.calls_per_turn),
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


def _sizes_of_turns() -> list[tuple[int, str]]:
    """`0`, `1`, `2-4`, …, `50+`."""
    names = [
        (least, str(least) if after == least + 1 else f"{least}-{after - 1}")
        for least, after in pairwise(STEPS)
    ]
    return [*names, (STEPS[-1], f"{STEPS[-1]}+")]


def _steps_row(name: str, values: list[int]) -> dict[str, Any]:
    return {
        "steps": name,
        "mean": mean(values),
        "p50": percentile(values, 50),
        "p90": percentile(values, 90),
        "max": values[-1],
    }
