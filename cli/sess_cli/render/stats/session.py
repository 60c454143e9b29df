"""`sess stats ID`: the numbers of one session."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import apsw

from sess_cli.render import amounts, layout
from sess_cli.render.stats.report import Links
from sess_cli.render.tallies import money, tokens
from sess_cli.terminal import Terminal
from sess_common import paths
from sess_schema import objects
from sess_schema.queries import sessions
from sess_schema.queries.stats import Stats
from sess_schema.queries.views import failures, overview

_SHOWN = 5


def facts(db: apsw.Connection, asked: Stats, row: sessions.SessionRow) -> dict[str, Any]:
    """One object; its keys are a public contract."""
    analytics = overview.read_session(db, asked, row)
    numbers = analytics.numbers
    failed = failures.read(db, asked, paths.home().config, texts=True).calls
    links = Links(db)
    return {
        "group": "session",
        "duration_ms": numbers.duration_ms,
        **objects.times_of(numbers.active_ms, numbers.user_ms),
        "tool_ms": analytics.tool_ms,
        "events": numbers.events,
        "success_rate": analytics.success_rate,
        "estimated_input_tokens": analytics.estimated_input,
        "estimated_output_tokens": analytics.estimated_output,
        "tools": [
            {
                "tool": tool,
                "calls": use.calls,
                "errors": use.errors,
                "denied": use.denied,
                "mean_ms": _mean(use.times),
                "max_ms": use.times[-1] if use.times else None,
            }
            for tool, use in sorted(analytics.tools.items())
        ],
        "slowest": [
            _place(call, links) | {"duration_ms": call.taken} for call in analytics.slowest
        ],
        "failures": [_place(failure, links) | {"class": failure.name} for failure in failed],
        "files": [{"path": path, "changes": count} for path, count in analytics.files.items()],
        "commits": [{"sha": sha, "subject": subject} for sha, subject in analytics.commits],
    }


def _place(call: overview.SlowCall | failures.Failure, links: Links) -> dict[str, Any]:
    return {"session": call.session, "event": links.key(call.event), "tool": call.tool}


def write(db: apsw.Connection, asked: Stats, row: sessions.SessionRow, *, utc: bool) -> None:
    terminal, links = Terminal(), Links(db)
    analytics = overview.read_session(db, asked, row)
    failed = failures.read(db, asked, paths.home().config, texts=True).calls
    for line in (*_head(db, terminal, row, utc=utc), *_analytics(terminal, analytics)):
        terminal.write(line)
    for name, lines in (
        ("Models", _models(terminal, analytics)),
        ("Slowest calls", _slowest(links, terminal, analytics)),
        ("Failures", _failures(links, terminal, failed)),
        ("Files changed", _files(terminal, analytics)),
        ("Commits", _commits(terminal, analytics)),
    ):
        shown = [*lines]
        if shown:
            terminal.write("")
            terminal.write(terminal.style(name, "bold"))
            for line in shown:
                terminal.write(line)


def _head(
    db: apsw.Connection, terminal: Terminal, row: sessions.SessionRow, *, utc: bool
) -> Iterator[str]:
    width = terminal.width or 100
    title = terminal.line(sessions.title_of(db, row))
    yield terminal.style(layout.cut(title, width), "bold")
    children = len(sessions.children(db, row.key))
    facts = [row.agent, row.session, amounts.clock(row.started, utc=utc)]
    if children:
        facts.append(f"with {amounts.plural(children, 'subagent')}")
    yield terminal.style(layout.cut(terminal.line(", ".join(facts)), width), "dim")
    yield "=" * 50


def _analytics(terminal: Terminal, analytics: overview.Analytics) -> Iterator[str]:
    for name, value in _numbers(analytics):
        yield f"{name + ':':<16} {value}"
    if not analytics.tools:
        return
    yield ""
    yield terminal.style("Tool Breakdown", "bold")
    yield "-" * 48
    yield f"{'Tool':<14} {'Calls':>6} {'Errors':>6} {'Avg':>10} {'Max':>10}"
    yield "-" * 48
    for tool, use in sorted(analytics.tools.items()):
        name = layout.pad(layout.cut(terminal.line(tool), 14), 14)
        mean, most = _mean(use.times), use.times[-1] if use.times else None
        counts = f"{use.calls:>6,} {use.errors:>6,}"
        yield f"{name} {counts} {_span(mean):>10} {_span(most):>10}".rstrip()
    yield "-" * 48


def _numbers(analytics: overview.Analytics) -> Iterator[tuple[str, str]]:
    """Recorded tokens; where there are none, an estimate marked as one."""
    numbers = analytics.numbers
    yield "Duration", amounts.duration(numbers.duration_ms)
    yield "Active Time", amounts.duration(numbers.active_ms)
    yield "Tool Time", amounts.duration(analytics.tool_ms)
    yield "Events", f"{numbers.events:,}"
    yield "Prompts", f"{numbers.prompts:,}"
    yield "Tool Calls", f"{numbers.calls:,}"
    yield "Success Rate", f"{100 * analytics.success_rate:.1f}%"
    if outcomes := amounts.outcomes(numbers.failed, numbers.denied):
        yield "Outcomes", outcomes
    if not analytics.recorded:
        yield "Est. Input Tk", f"{analytics.estimated_input:,}"
        yield "Est. Output Tk", f"{analytics.estimated_output:,}"
        return
    tallies = analytics.models.values()
    fresh, written, read, out = (
        sum(getattr(tally, name) for tally in tallies)
        for name in ("input_tokens", "cache_write_tokens", "cache_read_tokens", "output_tokens")
    )
    yield "Input Tk", f"{fresh + written + read:,} ({read:,} from cache)"
    reasoned = sum(tally.reasoning_tokens for tally in tallies)
    yield "Output Tk", f"{out:,} ({reasoned:,} reasoning)" if reasoned else f"{out:,}"
    cost = money(sum(tally.cost_nano for tally in tallies))
    if unpriced := sum(tally.unpriced for tally in tallies):
        cost += f" and {amounts.plural(unpriced, 'response')} of unknown price"
    yield "Cost", cost


def _models(terminal: Terminal, analytics: overview.Analytics) -> Iterator[str]:
    for model, tally in analytics.models.items():
        if tally.requests:
            name = layout.pad(layout.cut(terminal.line(model), 34), 34)
            yield (
                f"  {name} {money(tally.cost_nano):>10} {tokens(tally.tokens):>14}"
                f" {amounts.plural(tally.requests, 'response'):>16}"
            )


def _slowest(links: Links, terminal: Terminal, analytics: overview.Analytics) -> Iterator[str]:
    for call in analytics.slowest:
        lead = f"  {amounts.duration(call.taken):>8}  {links.event(call.session, call.event)}  "
        yield _fitted(terminal, lead, f"{call.tool} {call.summary}")


def _failures(links: Links, terminal: Terminal, failed: list[failures.Failure]) -> Iterator[str]:
    for call in failed[:_SHOWN]:
        lead = f"  {links.event(call.session, call.event)}  "
        yield _fitted(terminal, lead, f"{call.tool}, {call.name}: {call.text}")
    if len(failed) > _SHOWN:
        yield f"  and {len(failed) - _SHOWN:,} more"


def _files(terminal: Terminal, analytics: overview.Analytics) -> Iterator[str]:
    width = (terminal.width or 100) - 10
    for path, count in [*analytics.files.items()][: 2 * _SHOWN]:
        yield f"  {count:>6,}  {layout.cut_start(terminal.line(layout.home_short(path)), width)}"
    if len(analytics.files) > 2 * _SHOWN:
        yield f"  and {len(analytics.files) - 2 * _SHOWN:,} more"


def _commits(terminal: Terminal, analytics: overview.Analytics) -> Iterator[str]:
    for sha, subject in analytics.commits:
        yield _fitted(terminal, f"  {terminal.line(sha)[:12]}  ", subject)


def _fitted(terminal: Terminal, lead: str, text: str) -> str:
    return lead + layout.cut(terminal.line(text[:500]), max(8, (terminal.width or 100) - len(lead)))


def _mean(values: list[int]) -> int | None:
    return sum(values) // len(values) if values else None


def _span(milliseconds: int | None) -> str:
    return "" if milliseconds is None else amounts.duration(milliseconds)
