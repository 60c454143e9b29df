"""`sess stats windows`: estimated five-hour windows, burn, projection and a budget."""

from __future__ import annotations

from datetime import tzinfo
from itertools import pairwise
from typing import Any

import apsw

from sess_cli.render import amounts
from sess_cli.render.stats.report import Column, Report, Section, ViewOptions, clock, number
from sess_cli.render.tallies import money, short, tokens
from sess_common import times
from sess_common.errors import Exit
from sess_schema.queries.stats import Stats
from sess_schema.queries.views import budget, windows
from sess_schema.queries.views.windows import LENGTH, Window


def report(db: apsw.Connection, asked: Stats, options: ViewOptions) -> Report:
    found = windows.read(db, asked)
    spent = None
    if options.budget is not None:
        spent = budget.spent(db, asked, budget.parse(options.budget), options.now)
    reset = windows.recorded_reset(db, asked, options.now)
    rows = [_row(one, options.now) for one in found]
    for one, shown in zip(found, rows, strict=True):
        shown["_when"] = _when(one, asked.zone)
    gaps = [
        {"start": times.iso(a.last + LENGTH), "end": times.iso(b.first)}
        for a, b in pairwise(found)
        if b.first - a.last > LENGTH
    ]
    return Report(
        "windows",
        [
            Section("budget", [_budget(spent)] if spent else [], ()),
            Section(
                "window",
                rows[::-1],
                (
                    Column("_when", "estimated window"),
                    Column("requests", "responses", number),
                    Column("tokens", "tokens", short),
                    Column("cost_nano_usd", "cost", money),
                    Column("active", "", lambda active: "active" if active else "", left=True),
                ),
                most=15,
            ),
            Section("gap", gaps, ()),
            Section("reset", [{"reset": times.iso(reset)}] if reset is not None else [], ()),
        ],
        facts=[
            *_active(found, options.now),
            *([("reset", f"{clock(reset, asked.zone)}, as reported")] if reset else ()),
            *(_spent(spent) if spent else ()),
        ],
        notes=["Windows are estimated as ccusage does; the service may reset at other times."],
        code=Exit.OVER_BUDGET if spent is not None and spent.exceeded else 0,
    )


def _active(found: list[Window], now: int) -> list[tuple[str, str]]:
    active = found[-1] if found and found[-1].active(now) else None
    finished = [one for one in found if one is not active]
    facts = []
    if active is None:
        facts.append(("now", "no active window"))
    else:
        left = amounts.duration(active.end - now)
        facts.append(("now", f"{money(active.cost_nano)}, {tokens(active.tokens)}; {left} left"))
        spent, cost = active.per_minute(active.tokens), active.per_minute(active.cost_nano)
        if spent is not None and cost is not None:
            facts.append(("burn", f"{tokens(round(spent))} per minute, {_hourly(cost)} per hour"))
            at_end = active.projected(active.cost_nano, now) or 0
            amount = (
                f"{money(round(at_end))}, {short(round(active.projected(active.tokens, now) or 0))}"
            )
            facts.append(("at its end", f"{amount} tokens at this rate"))
    if finished:
        most = max(finished, key=lambda one: one.tokens)
        facts.append(("largest", f"{tokens(most.tokens)}, {money(most.cost_nano)}"))
    return facts


def _hourly(per_minute: float) -> str:
    return money(round(per_minute * 60))


def _spent(spent: budget.Spent) -> list[tuple[str, str]]:
    wanted = spent.budget
    amount = money if wanted.money else short
    unit = "" if wanted.money else " tokens"
    share = f" ({100 * spent.used / wanted.limit:.0f}%)" if wanted.limit else ""
    used = f"{amount(spent.used)} of {amount(wanted.limit)}{unit} this {wanted.period}{share}"
    if spent.exceeded:
        used += ": over budget"
    projected = f"{amount(round(spent.projected))}{unit} by the end of the {wanted.period}"
    return [
        ("budget", used),
        ("projected", f"{projected}, at {amount(round(spent.mean))} per day (last 7 days)"),
    ]


def _budget(spent: budget.Spent) -> dict[str, Any]:
    wanted = spent.budget
    scale = 1e9 if wanted.money else 1
    return {
        "period": wanted.period,
        "start": times.iso(spent.start),
        "end": times.iso(spent.end),
        "unit": "usd" if wanted.money else "tokens",
        "limit": wanted.limit / scale,
        "used": spent.used / scale,
        "mean_per_day": spent.mean / scale,
        "projected": spent.projected / scale,
        "exceeded": spent.exceeded,
    }


def _row(one: Window, now: int) -> dict[str, Any]:
    active = one.active(now)
    row: dict[str, Any] = {
        "start": times.iso(one.start),
        "end": times.iso(one.end),
        "first": times.iso(one.first),
        "last": times.iso(one.last),
        "active": active,
        "requests": one.requests,
        "tokens": one.tokens,
        "input_tokens": one.input_tokens,
        "output_tokens": one.output_tokens,
        "cache_write_tokens": one.cache_write_tokens,
        "cache_read_tokens": one.cache_read_tokens,
        "cost_usd": one.cost_nano / 1e9,
        "cost_nano_usd": one.cost_nano,
        "unpriced_requests": one.unpriced,
        "models": sorted(one.models),
        "tokens_per_minute": one.per_minute(one.tokens) if active else None,
        "projected_tokens": None,
        "projected_cost_usd": None,
    }
    if active and (spent := one.projected(one.tokens, now)) is not None:
        row["projected_tokens"] = round(spent)
        row["projected_cost_usd"] = (one.projected(one.cost_nano, now) or 0) / 1e9
    return row


def _when(one: Window, zone: tzinfo | None) -> str:
    return f"{clock(one.start, zone)} - {clock(one.end, zone, '%H:%M')}"
