"""Sums as a dashboard, a table, JSON, CSV or Markdown."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from sess_cli.render import amounts, layout
from sess_cli.terminal import Terminal
from sess_schema.queries.stats import NONE, Stats, Tally, percentile

if TYPE_CHECKING:
    import apsw

_BARS = "▁▂▃▄▅▆▇█"
_TOP = 5
_MOST_DAYS = 60
_COLUMNS = (
    ("in", "input_tokens"), ("out", "output_tokens"), ("cache w", "cache_write_tokens"),
    ("cache r", "cache_read_tokens"), ("cost", "cost_nano"), ("sess", "sessions"),
    ("prompts", "prompts"), ("reqs", "requests"), ("tools", "tool_calls"),
    ("errors", "tool_errors"),
)  # fmt: skip

Write = Callable[[Mapping[str, Tally]], None]


def facts(group: str, tally: Tally) -> dict[str, Any]:
    """One group as an object; the names are a contract."""
    return {
        "group": group,
        "input_tokens": tally.input_tokens,
        "output_tokens": tally.output_tokens,
        "cache_write_tokens": tally.cache_write_tokens,
        "cache_write_1h_tokens": tally.cache_write_1h_tokens,
        "cache_read_tokens": tally.cache_read_tokens,
        "cost_usd": tally.cost_nano / 1e9,
        "cost_nano_usd": tally.cost_nano,
        "unpriced_requests": tally.unpriced,
        "sessions": len(tally.sessions),
        "prompts": tally.prompts,
        "requests": tally.requests,
        "tool_calls": tally.tool_calls,
        "tool_errors": tally.tool_errors,
    }


def writer(*, json: bool, csv: bool, markdown: bool) -> Write | None:
    if json:
        return _as_json
    if csv:
        return _as_csv
    return _as_markdown if markdown else None


def _as_json(groups: Mapping[str, Tally]) -> None:
    from sess_cli.output import json_line  # noqa: PLC0415

    for group, tally in groups.items():
        json_line(facts(group, tally))


def _as_csv(groups: Mapping[str, Tally]) -> None:
    import csv  # noqa: PLC0415

    out = csv.DictWriter(sys.stdout, facts("", Tally()), lineterminator="\n")
    out.writeheader()
    out.writerows(facts(group, tally) for group, tally in groups.items())


def _as_markdown(groups: Mapping[str, Tally]) -> None:
    terminal = Terminal()
    names = list(facts("", Tally()))
    terminal.write(f"| {' | '.join(names)} |")
    terminal.write("|---" + "|---:" * (len(names) - 1) + "|")
    for group, tally in groups.items():
        values = (terminal.line(str(value)) for value in facts(group, tally).values())
        terminal.write(f"| {' | '.join(value.replace('|', chr(92) + '|') for value in values)} |")


def table(groups: Mapping[str, Tally], total: Tally, by: str) -> None:
    """Aligned columns, short numbers, the total below."""
    terminal = Terminal()
    rows = [*groups.items()]
    if by not in ("hour", "day", "week", "month"):
        rows.sort(key=lambda one: (-one[1].cost_nano, -one[1].tool_calls, one[0]))
    cells = [(terminal.line(_name(group, by)), _cells(tally)) for group, tally in rows]
    cells.append(("total", _cells(total)))
    heads = [head for head, _ in _COLUMNS]
    kept = [n for n in range(len(heads)) if any(row[n] not in ("0", "$0") for _, row in cells)]
    widths = [max(len(heads[n]), *(len(row[n]) for _, row in cells)) for n in kept]
    room = max(layout.cells(name) for name, _ in [*cells, (by, [])])
    if terminal.width is not None:
        room = min(room, max(8, terminal.width - sum(widths) - 2 * len(widths)))
    head = "  ".join(heads[n].rjust(width) for n, width in zip(kept, widths, strict=True))
    terminal.write(terminal.style(f"{layout.pad(by, room)}  {head}".rstrip(), "dim"))
    for number, (name, row) in enumerate(cells):
        shown = layout.pad(layout.cut(name, room), room)
        values = "  ".join(row[n].rjust(width) for n, width in zip(kept, widths, strict=True))
        line = f"{shown}  {values}".rstrip()
        terminal.write(terminal.style(line, "bold") if number == len(cells) - 1 else line)


def _name(group: str, by: str) -> str:
    if by == "project" and group != NONE:
        return layout.home_short(group)
    return group


def _cells(tally: Tally) -> list[str]:
    values = []
    for _, name in _COLUMNS:
        value = getattr(tally, name)
        if name == "cost_nano":
            values.append(money(value))
        else:
            values.append(short(len(value) if isinstance(value, set) else value))
    return values


def dashboard(db: apsw.Connection, asked: Stats) -> None:
    """What a person wants to see first, in the width of a terminal."""
    terminal = Terminal()
    total = asked.total(db)

    def fact(name: str, value: str) -> None:
        terminal.write(terminal.style(f"{name:<10}", "dim") + value)

    fact("cost", terminal.style(money(total.cost_nano), "bold") + _unpriced(db, asked, total))
    fact(
        "tokens",
        f"{short(total.tokens)}: in {short(total.input_tokens)}, out {short(total.output_tokens)},"
        f" cache write {short(total.cache_write_tokens)}, read {short(total.cache_read_tokens)}",
    )
    counts = (
        (len(total.sessions), "session"),
        (total.prompts, "prompt"),
        (total.requests, "response"),
    )
    work = [amounts.plural(count, name) for count, name in counts]
    fact("work", ", ".join([*work, f"{amounts.duration(asked.active_ms(db))} active"]))
    days = asked.groups(db, "day")
    _draw_days(fact, {day: tally for day, tally in days.items() if day != "undated"})
    for name, by in (("models", "model"), ("projects", "project")):
        _draw_top(terminal, name, asked.groups(db, by), by)
    _draw_tools(terminal, db, asked)


def _unpriced(db: apsw.Connection, asked: Stats, total: Tally) -> str:
    if not total.unpriced:
        return ""
    models = list(asked.unpriced_models(db))
    named = ", ".join(models[:3]) + (", …" if len(models) > 3 else "")
    return f" and {amounts.plural(total.unpriced, 'response')} of unknown price ({named})"


def _draw_days(fact: Callable[[str, str], None], days: Mapping[str, Tally]) -> None:
    if not days:
        return
    shown = list(days.items())[-_MOST_DAYS:]
    paid = any(tally.cost_nano for _, tally in shown)
    values = [tally.cost_nano if paid else tally.tokens + tally.prompts for _, tally in shown]
    most = max(values) or 1
    bars = "".join(_BARS[min(7, value * 8 // most)] if value else " " for value in values)
    last = f" to {shown[-1][0]}" if len(shown) > 1 else ""
    fact("by day", f"{bars}  {shown[0][0]}{last}, {'cost' if paid else 'work'} of active days")


def _draw_top(terminal: Terminal, name: str, groups: Mapping[str, Tally], by: str) -> None:
    rows = sorted(groups.items(), key=lambda one: (-one[1].cost_nano, -one[1].tokens, one[0]))
    rows = [row for row in rows if row[1].requests][:_TOP]
    if not rows:
        return
    terminal.write("")
    terminal.write(terminal.style(name, "dim"))
    for group, tally in rows:
        label = layout.pad(layout.cut(terminal.line(_name(group, by)), 40), 40)
        terminal.write(
            f"  {label} {money(tally.cost_nano):>10} {short(tally.tokens):>7} tokens"
            f" {short(tally.requests):>6} responses"
        )


def _draw_tools(terminal: Terminal, db: apsw.Connection, asked: Stats) -> None:
    tools = {tool: tally for tool, tally in asked.groups(db, "tool").items() if tally.tool_calls}
    if not tools:
        return
    taken = asked.latencies(db)
    terminal.write("")
    head = f"{'tools':<26} {'calls':>7} {'errors':>7} {'rate':>6} {'p50':>8} {'p95':>8} {'max':>8}"
    terminal.write(terminal.style(head, "dim"))
    for tool, tally in sorted(tools.items(), key=lambda one: -one[1].tool_calls)[: 2 * _TOP]:
        times = taken.get(tool, [])
        marks = [percentile(times, 50), percentile(times, 95), times[-1] if times else None]
        spans = " ".join(f"{'' if m is None else amounts.duration(m):>8}" for m in marks)
        rate = 100 * tally.tool_errors / tally.tool_calls
        label = layout.pad(layout.cut(terminal.line(tool), 24), 24)
        line = f"  {label} {tally.tool_calls:>7,} {tally.tool_errors:>7,} {rate:>5.1f}% {spans}"
        terminal.write(line.rstrip())


def short(number: int) -> str:
    """`950`, `12.3k`, `4.5M`, `1.2B`."""
    for limit, unit in ((1_000_000_000, "B"), (1_000_000, "M"), (10_000, "k")):
        if number >= limit:
            value = number / (1000 if unit == "k" else limit)
            return f"{value:.0f}{unit}" if value >= 100 else f"{value:.1f}{unit}"
    return str(number)


def money(nano: int) -> str:
    """Dollars, with cents where they matter."""
    if nano == 0:
        return "$0"
    if nano < 10_000_000:
        return f"${nano / 1e9:.4f}"
    return f"${nano / 1e9:,.2f}"
