"""Sums as a table, JSON, CSV or Markdown."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from sess_cli.render import amounts, layout
from sess_cli.terminal import Terminal
from sess_schema import objects
from sess_schema.sums import Tally

# What is counted, with its head on a terminal and in Markdown.
_COLUMNS = (
    ("input_tokens", "in", "input"), ("output_tokens", "out", "output"),
    ("cache_write_tokens", "cache w", "cache written"),
    ("cache_read_tokens", "cache r", "cache read"), ("cost_nano", "cost", "cost"),
    ("sessions", "sess", "sessions"), ("prompts", "prompts", "prompts"),
    ("requests", "reqs", "responses"), ("tool_calls", "tools", "tool calls"),
    ("tool_errors", "failed", "failed"), ("tool_denied", "denied", "denied"),
)  # fmt: skip
# Columns that a narrow terminal drops, in this order.
_DISPENSABLE = ("in", "cache w", "sess", "prompts", "denied", "failed")
_READABLE = 26
_NOTHING = ("0", "$0")

Groups = Mapping[str, Tally]
Broken = Mapping[str, Groups]  # each group by another one


def write(groups: Groups, form: str, by: str, parts: Broken | None = None) -> None:
    """`form`: json, csv or md; with `parts`, the rows are those."""
    if form == "md":
        _as_markdown(groups, by, parts)
        return
    rows = [(objects.group(group, tally), "") for group, tally in groups.items()]
    if parts is not None:
        rows = [
            (objects.group(group, tally), part)
            for group, inner in parts.items()
            for part, tally in inner.items()
        ]
    facts = [
        {"group": row.pop("group"), **({} if parts is None else {"subgroup": part}), **row}
        for row, part in rows
    ]
    (_as_json if form == "json" else _as_csv)(facts)


def _as_json(facts: list[dict[str, Any]]) -> None:
    from sess_cli.terminal import json_line

    for row in facts:
        json_line(row)


def _as_csv(facts: list[dict[str, Any]]) -> None:
    import csv

    from sess_cli.terminal import csv_text

    names = facts[0] if facts else objects.group("", Tally())
    out = csv.DictWriter(sys.stdout, names, lineterminator="\n")
    out.writeheader()
    for row in facts:
        named = {name: csv_text(row[name]) for name in ("group", "subgroup") if name in row}
        out.writerow(row | named)


def _as_markdown(groups: Groups, by: str, parts: Broken | None) -> None:
    """As on a terminal, with whole numbers."""
    from sess_cli.render.stats.report import markdown_cell

    terminal = Terminal()
    names = [*by.split(","), *(head for *_, head in _COLUMNS)]
    terminal.write(f"| {' | '.join(names)} |")
    first = len(by.split(","))
    terminal.write("|---" * first + "|---:" * (len(names) - first) + "|")
    for group, tally in _ordered(groups, by):
        inner = {"": tally} if parts is None else parts[group]
        for part, summed in _ordered(inner, by.rpartition(",")[2]):
            labels = [group] if parts is None else [group, part]
            texts = (*labels, *_cells(summed, amounts.number))
            cells = [markdown_cell(terminal, text) for text in texts]
            terminal.write(f"| {' | '.join(cells)} |")


def _ordered(groups: Groups, by: str) -> list[tuple[str, Tally]]:
    """Periods by time, everything else by cost."""
    rows = [*groups.items()]
    if by.partition(",")[0] not in ("hour", "day", "week", "month"):
        rows.sort(key=lambda row: (-row[1].cost_nano, -row[1].tool_calls, row[0]))
    return rows


def table(
    groups: Groups,
    total: Tally,
    by: str,
    names: Mapping[str, str] | None = None,
    parts: Broken | None = None,
) -> None:
    """Aligned columns with abbreviated numbers, and the total below.

    `names` are what a terminal shows for groups: a UUID says nothing to people.
    """
    from sess_schema.queries.quarters import NONE  # not needed by the status line

    terminal = Terminal()
    known = names if names and terminal.width is not None else {}
    first, _, then = by.partition(",")
    cells = []
    for group, tally in _ordered(groups, first):
        cells.append(
            (terminal.line(known.get(group) or name_of(group, first)), _cells(tally, short))
        )
        for part, summed in _ordered(parts[group], then) if parts else ():
            name = known.get(part) or name_of(part, then)
            cells.append((f"  {terminal.line(name)}", _cells(summed, short)))
    by = by.replace(",", ", ")
    cells.append(("total", _cells(total, short)))
    heads = [head for _, head, _ in _COLUMNS]
    # A column with values only for the group `none`, like tokens by tool, is left out.
    named = [row for name, row in cells[:-1] if name != NONE] or [row for _, row in cells]
    kept = [n for n in range(len(heads)) if any(row[n] not in _NOTHING for row in named)]
    if not kept:
        terminal.write(terminal.style("nothing in this period", "dim"))
        return
    some = [row for row in cells[:-1] if any(row[1][n] not in _NOTHING for n in kept)]
    cells = [*some, cells[-1]]
    wide = [max(len(heads[n]), *(len(row[n]) for _, row in cells)) for n in range(len(heads))]
    room = max(layout.cells(name) for name, _ in [*cells, (by, [])])
    dropped: list[int] = []
    if terminal.width is not None:
        fitting, room = _fitting(kept, wide, room, terminal.width)
        dropped = [n for n in kept if n not in fitting]
        kept = fitting
    widths = [wide[n] for n in kept]
    head = "  ".join(heads[n].rjust(width) for n, width in zip(kept, widths, strict=True))
    terminal.write(terminal.style(f"{layout.pad(by, room)}  {head}".rstrip(), "dim"))
    for number, (name, row) in enumerate(cells):
        # Paths differ at the end.
        shorten = layout.cut_start if by in ("project", "file") else layout.cut
        shown = layout.pad(shorten(name, room), room)
        values = "  ".join(row[n].rjust(width) for n, width in zip(kept, widths, strict=True))
        line = f"{shown}  {values}".rstrip()
        last = number == len(cells) - 1
        style = "bold" if last or (parts and not name.startswith("  ")) else ""
        terminal.write(terminal.style(line, style) if style else line)
    if dropped:
        left_out = ", ".join(heads[n] for n in dropped)
        note = f"no room for: {left_out}; --json has all"
        for line in layout.wrap(note, terminal.width or 80):
            terminal.write(terminal.style(line, "dim"))


def _fitting(kept: list[int], wide: list[int], room: int, width: int) -> tuple[list[int], int]:
    """The columns that leave enough room for group names, and that room."""
    for head in _DISPENSABLE:
        if sum(wide[n] + 2 for n in kept) + min(room, _READABLE) <= width:
            break
        kept = [n for n in kept if _COLUMNS[n][1] != head]
    return kept, min(room, max(8, width - sum(wide[n] + 2 for n in kept)))


def name_of(group: str, by: str) -> str:
    from sess_schema.queries.quarters import NONE

    if by == "project" and group != NONE:
        return layout.home_short(group)
    return group


def _cells(tally: Tally, form: Callable[[int], str]) -> list[str]:
    values = [(name, getattr(tally, name)) for name, *_ in _COLUMNS]
    return [
        cost(tally) if name == "cost_nano" else form(len(v) if isinstance(v, set) else v)
        for name, v in values
    ]


def cost(tally: Tally) -> str:
    """Dollars, followed by a plus if some responses have no known price."""
    if not tally.unpriced:
        return money(tally.cost_nano)
    return f"{money(tally.cost_nano)}+" if tally.cost_nano else "unknown"


def short(number: int) -> str:
    """`950`, `1,150`, `12.3k`, `4.5M`, `1.2B`."""
    for limit, unit in ((1_000_000_000, "B"), (1_000_000, "M"), (10_000, "k")):
        if number >= limit:
            value = number / (1000 if unit == "k" else limit)
            return f"{value:.0f}{unit}" if value >= 100 else f"{value:.1f}{unit}"
    return f"{number:,}"


def tokens(number: int) -> str:
    """`1 token`, `12.3k tokens`."""
    return f"{short(number)} token{'' if number == 1 else 's'}"


def money(nano: int) -> str:
    """Dollars, with cents where they matter."""
    size, sign = abs(nano) / 1e9, "-" if nano < 0 else ""
    if nano == 0:
        return "$0"
    if size < 0.000_05:
        return "~$0"
    return f"{sign}${size:.4f}" if size < 0.01 else f"{sign}${size:,.2f}"
