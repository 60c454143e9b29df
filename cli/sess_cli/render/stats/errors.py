"""`sess stats errors` and `sess stats interruptions`: what failed, and what people stopped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import apsw

from sess_cli.render import amounts, layout
from sess_cli.render.stats.report import Chart, Column, Links, Report, Section, ViewOptions
from sess_common import paths, times
from sess_schema.queries import known
from sess_schema.queries.stats import Stats, percentile
from sess_schema.queries.views import failures, interruptions

_HINT = (
    "`sess stats errors --explain CLASS` lists a class, `api CLASS` one of the API errors;"
    " add your own classes in errors.toml, next to config.toml"
)


def errors_report(db: apsw.Connection, asked: Stats, options: ViewOptions) -> Report:
    all_failures = failures.read(db, asked, paths.home().config)
    calls, service = all_failures.calls, all_failures.service
    links = Links(db)
    counts = amounts.plural(len(calls), "failed call")
    counts += f", {amounts.plural(len(service), 'API error')}"
    count = (
        Column("errors", "errors", amounts.number, colour="bad"),
        Column("share", "share", amounts.percent),
    )
    newest = Column("_link", "newest", left=True)
    most_tool = Column("tools", "mostly", lambda tools: str(tools[0]), left=True)
    class_columns = (Column("class", "class"), *count)
    chart = Chart(
        "bars", "errors", "Errors by class", "Failed calls by error message.",
        "No failed calls in this period.", class_columns, ["errors"], {"errors": len(calls)},
    )  # fmt: skip
    tools = _counted("tool", calls, lambda failure: failure.tool)
    projects = _counted("project", calls, lambda failure: failure.project)
    project = Column("project", "project", layout.home_short)
    days = _counted("day", calls, failures.day(asked.zone))
    days.sort(key=lambda row: str(row["day"]), reverse=True)
    sections = [
        Section(
            "class", _classes(calls, links), (*class_columns, most_tool, newest), charts=[chart]
        ),
        Section("api", _classes(service, links), (Column("class", "API errors"), *count, newest)),
        Section("tool", tools, (Column("tool", "tool"), *count), most=8),
        Section("project", projects, (project, *count), most=5, paths=True),
        Section("day", days, (Column("day", "day"), *count), most=7),
    ]
    return Report(
        "errors",
        sections,
        facts=[("errors", counts), ("rules", f"version {all_failures.rules}")],
        notes=[_HINT] if calls or service else [],
    )


def explained(db: apsw.Connection, asked: Stats, name: str) -> Report:
    """Every failure of a class, the newest first."""
    links = Links(db)
    rows = [
        {
            "session": failure.session,
            "event": links.key(failure.event),
            "ts": times.iso(failure.ts),
            "tool": failure.tool,
            "class": failure.name,
            "project": failure.project,
            "text": failure.text,
            "_link": links.event(failure.session, failure.event),
            "_when": amounts.clock_in(asked.zone, failure.ts),
        }
        for failure in failures.read(db, asked, paths.home().config, texts=True).of_class(name)
    ]
    if not rows:
        read = failures.read(db, asked, paths.home().config)
        both = [*read.calls, *read.service]
        names = [*failures.grouped(both, lambda failure: failure.name)]
        raise known.missing("class of failures", name, names)
    columns = (
        Column("_link", "event"),
        Column("_when", "time", left=True),
        Column("tool", "tool", left=True),
        Column("text", "message", left=True),
    )
    facts = [(name, amounts.plural(len(rows), "failure"))]
    sections = [Section("failure", rows, columns, cut=3)]
    return Report("errors", sections, facts=facts)


def _classes(all_failures: list[failures.Failure], links: Links) -> list[dict[str, Any]]:
    return [
        {
            "class": name,
            "errors": len(group),
            "share": len(group) / len(all_failures),
            "tools": [*failures.grouped(group, lambda failure: failure.tool)],
            "newest": times.iso(group[0].ts),
            "session": group[0].session,
            "event": links.key(group[0].event),
            "_link": links.event(group[0].session, group[0].event),
        }
        for name, group in failures.grouped(all_failures, lambda failure: failure.name).items()
    ]


def _counted(
    kind: str, all_failures: list[failures.Failure], key: Callable[[failures.Failure], str]
) -> list[dict[str, Any]]:
    return [
        {kind: name, "errors": len(group), "share": len(group) / len(all_failures)}
        for name, group in failures.grouped(all_failures, key).items()
    ]


def interruptions_report(db: apsw.Connection, asked: Stats, options: ViewOptions) -> Report:
    totals = interruptions.read_interruptions(db, asked)
    facts = [("turns", "none in this period")]
    per_turn = []
    if totals.rate is not None:
        counts = amounts.plural(totals.markers, "interruption")
        counts += f", {amounts.plural(totals.refusals, 'denied call')}"
        turns, calls = amounts.plural(totals.turns, "turn"), amounts.plural(totals.calls, "call")
        facts = [
            ("interrupted", f"{amounts.percent(totals.rate)} of {turns}: {counts}"),
            ("no tools", f"{amounts.percent(totals.without_tools or 0)} of turns"),
            ("searching", f"{amounts.percent(totals.search_share or 0)} of {calls}"),
        ]
        per_turn = [
            _steps_row("responses", totals.requests_per_turn),
            _steps_row("tool calls", totals.calls_per_turn),
        ]
    total = {
        "total": "total",
        "turns": totals.turns,
        "interrupted_turns": totals.interrupted_turns,
        "interruption_rate": totals.rate,
        "markers": totals.markers,
        "refusals": totals.refusals,
        "tool_calls": totals.calls,
        "search_share": totals.search_share,
        "turns_without_tools_share": totals.without_tools,
    }
    by_calls = [
        {
            "tools": _range_of(least),
            "turns": sized.turns,
            "interrupted_turns": sized.interrupted,
            "interruption_rate": sized.interrupted / sized.turns,
        }
        for least, sized in totals.by_calls.items()
        if sized.turns
    ]
    step_columns = (
        Column("steps", "per turn"),
        Column("mean", "mean", amounts.decimal),
        *Column.several(amounts.number, p50="p50", p90="p90", max="max"),
    )
    call_columns = (
        Column("tools", "tool calls in the turn"),
        *Column.several(amounts.number, turns="turns", interrupted_turns="interrupted"),
        Column("interruption_rate", "rate", amounts.percent),
    )
    sections = [
        Section("total", [total]),
        Section("steps", per_turn, step_columns),
        Section("tools", by_calls, call_columns),
    ]
    return Report("interruptions", sections, facts=facts)


def _range_of(least: int) -> str:
    """`0`, `1`, `2-4`, …, `50+`."""
    after = next((step for step in interruptions.STEPS if step > least), None)
    if after is None:
        return f"{least}+"
    return f"{least}" if after == least + 1 else f"{least}-{after - 1}"


def _steps_row(name: str, values: list[int]) -> dict[str, Any]:
    return {
        "steps": name,
        "mean": sum(values) / len(values),
        "p50": percentile(values, 50),
        "p90": percentile(values, 90),
        "max": values[-1],
    }
