"""`sess stats cache`, `context` and `windows`: the prompt cache, how full contexts were, and five-hour windows."""

from __future__ import annotations

from datetime import tzinfo
from itertools import pairwise
from typing import Any

import apsw

from sess_cli.render import amounts
from sess_cli.render.stats.report import (
    Column,
    Links,
    Report,
    Section,
    ViewOptions,
    clock,
    number,
    percent,
)
from sess_cli.render.tallies import money, short, tokens
from sess_common import times
from sess_common.errors import Exit
from sess_schema.queries.sessions import one_line
from sess_schema.queries.stats import Stats, percentile
from sess_schema.queries.views import usage, windows
from sess_schema.queries.views.usage import Cached, Filled
from sess_schema.queries.views.windows import LENGTH, Window


def cache_report(db: apsw.Connection, asked: Stats, options: ViewOptions) -> Report:
    found = usage.read_cache(db, asked)
    total = found.total
    facts = []
    if total.hit_ratio is not None:
        share = f"{percent(total.hit_ratio)} of {short(total.prompt_tokens)} input tokens"
        facts.append(("from cache", share))
        saved = money(total.saved_nano)
        if total.unpriced:
            saved += f", and {amounts.plural(total.unpriced, 'response')} of unknown price"
        facts.append(("saved", f"{saved}; paid {money(total.cost_nano)}"))
        expired = amounts.plural(total.expired, "prompt") if total.expired else "no prompt"
        spent = f" ({tokens(total.expired_tokens)})" if total.expired else ""
        facts.append(("expired", f"{expired}{spent} written again after the cache expired"))
    return Report(
        "cache",
        [
            Section(
                "model",
                [{"model": name, **_cache_facts(cached)} for name, cached in found.models.items()],
                (
                    Column("model", "model"),
                    Column("hit_ratio", "hits", percent),
                    Column("cache_read_tokens", "read", short),
                    Column("cache_write_tokens", "write", short),
                    Column("input_tokens", "fresh", short),
                    Column("_saved", "saved"),
                    Column("expired_rewrites", "expired", number),
                ),
            ),
            Section(
                "total", [{"total": "total", **_cache_facts(total)}] if found.models else [], ()
            ),
        ],
        facts=facts,
    )


def _cache_facts(cached: Cached) -> dict[str, Any]:
    return {
        "requests": cached.requests,
        "hit_ratio": cached.hit_ratio,
        "input_tokens": cached.input_tokens,
        "cache_write_tokens": cached.cache_write_tokens,
        "cache_write_1h_tokens": cached.cache_write_1h_tokens,
        "cache_read_tokens": cached.cache_read_tokens,
        "saved_usd": cached.saved_nano / 1e9,
        "saved_nano_usd": cached.saved_nano,
        "unpriced_requests": cached.unpriced,
        "expired_rewrites": cached.expired,
        "expired_tokens": cached.expired_tokens,
        "_saved": "unknown" if cached.unpriced == cached.requests else money(cached.saved_nano),
    }


def context_report(db: apsw.Connection, asked: Stats, options: ViewOptions) -> Report:
    found = usage.read_context(db, asked)
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
        marks = ", ".join(f"{name} {short(percentile(peaks, n) or 0)}" for name, n in _PERCENTILES)
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
                [_context_row(one, links) for one in found],
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


_PERCENTILES = (("p50", 50), ("p90", 90), ("max", 100))


def _context_row(one: Filled, links: Links) -> dict[str, Any]:
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


def windows_report(db: apsw.Connection, asked: Stats, options: ViewOptions) -> Report:
    found = windows.read_windows(db, asked)
    spent = None
    if options.budget is not None:
        spent = windows.spending(db, asked, windows.parse_budget(options.budget), options.now)
    reset = windows.recorded_reset(db, asked, options.now)
    rows = [_window_row(one, options.now) for one in found]
    for one, shown in zip(found, rows, strict=True):
        shown["_when"] = _window_times(one, asked.zone)
    gaps = [
        {"start": times.iso(a.last + LENGTH), "end": times.iso(b.first)}
        for a, b in pairwise(found)
        if b.first - a.last > LENGTH
    ]
    return Report(
        "windows",
        [
            Section("budget", [_budget_row(spent)] if spent else [], ()),
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
            *_active_facts(found, options.now),
            *([("reset", f"{clock(reset, asked.zone)}, as reported")] if reset else ()),
            *(_budget_facts(spent) if spent else ()),
        ],
        notes=["Windows are estimated as ccusage does; the service may reset at other times."],
        code=Exit.OVER_BUDGET if spent is not None and spent.exceeded else 0,
    )


def _active_facts(found: list[Window], now: int) -> list[tuple[str, str]]:
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


def _budget_facts(spent: windows.Spent) -> list[tuple[str, str]]:
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


def _budget_row(spent: windows.Spent) -> dict[str, Any]:
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


def _window_row(one: Window, now: int) -> dict[str, Any]:
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


def _window_times(one: Window, zone: tzinfo | None) -> str:
    return f"{clock(one.start, zone)} - {clock(one.end, zone, '%H:%M')}"
