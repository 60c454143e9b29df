"""`sess stats cache`, `context` and `windows`: how prompts, contexts and limits were used."""

from __future__ import annotations

from datetime import tzinfo
from itertools import pairwise
from typing import Any

import apsw

from sess_cli import limits
from sess_cli.render import amounts
from sess_cli.render.stats.report import Column, Links, Report, Section, ViewOptions
from sess_cli.render.tallies import money, short, tokens
from sess_common import times
from sess_common.errors import Exit
from sess_schema.queries.sessions import one_line
from sess_schema.queries.stats import Stats, percentile
from sess_schema.queries.views import usage, windows


def cache_report(db: apsw.Connection, asked: Stats, options: ViewOptions) -> Report:
    caching = usage.read_cache(db, asked)
    total = caching.total
    facts = []
    if total.hit_ratio is not None:
        share = f"{amounts.percent(total.hit_ratio)} of {short(total.prompt_tokens)} input tokens"
        saved = money(total.saved_nano)
        if total.unpriced:
            saved += f", and {amounts.plural(total.unpriced, 'response')} of unknown price"
        expired = amounts.plural(total.expired, "prompt") if total.expired else "no prompt"
        spent = f" ({tokens(total.expired_tokens)})" if total.expired else ""
        facts = [
            ("from cache", share),
            ("saved", f"{saved}; paid {money(total.cost_nano)}"),
            ("expired", f"{expired}{spent} written again after the cache expired"),
        ]
    rows = [{"model": name, **_cache_facts(cached)} for name, cached in caching.models.items()]
    columns = (
        Column("model", "model"),
        Column("hit_ratio", "hits", amounts.percent),
        *Column.several(
            short, cache_read_tokens="read", cache_write_tokens="write", input_tokens="fresh"
        ),
        Column("_saved", "saved"),
        Column("expired_rewrites", "expired", amounts.number),
    )
    whole = [{"total": "total", **_cache_facts(total)}] if rows else []
    sections = [Section("model", rows, columns), Section("total", whole)]
    return Report("cache", sections, facts=facts)


def _cache_facts(cached: usage.Cached) -> dict[str, Any]:
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
    contexts = usage.read_context(db, asked)
    links = Links(db)
    peaks = sorted(filled.peak for filled in contexts if filled.requests)
    compactions = [size for filled in contexts for size in filled.compactions]
    sizes = sorted(size for size in compactions if size is not None)
    total = {
        "total": "total",
        "sessions": len(contexts),
        "peak_tokens": percentile(peaks, 100),
        "p50_peak_tokens": percentile(peaks, 50),
        "p90_peak_tokens": percentile(peaks, 90),
        "compactions": len(compactions),
        "p50_compaction_tokens": percentile(sizes, 50),
        "max_compaction_tokens": percentile(sizes, 100),
    }
    facts = []
    if peaks:
        marks = ", ".join(
            f"{name} {short(percentile(peaks, rank) or 0)}"
            for name, rank in (("p50", 50), ("p90", 90), ("max", 100))
        )
        facts.append(
            ("context", f"peak of {amounts.plural(len(peaks), 'session')}: {marks} tokens")
        )
    compacted = amounts.plural(len(compactions), "time") if compactions else "never"
    if sizes:
        half = short(percentile(sizes, 50) or 0)
        compacted += f", at p50 {half}, max {short(sizes[-1])} tokens"
    facts.append(("compacted", compacted))
    columns = (
        Column("title", "session", one_line),
        Column("_link", "id", left=True),
        *Column.several(short, peak_tokens="peak", p90_tokens="p90"),
        Column("window_share", "of window", amounts.percent),
        Column("compactions", "compacted", lambda count: str(count) if count else ""),
    )
    rows = [_context_row(filled, links) for filled in contexts]
    sections = [Section("total", [total]), Section("session", rows, columns, most=20)]
    return Report("context", sections, facts=facts)


def _context_row(filled: usage.Filled, links: Links) -> dict[str, Any]:
    return {
        "session": filled.session,
        "title": filled.title or "",
        "_link": links.session(filled.session),
        "model": filled.model,
        "requests": filled.requests,
        "peak_tokens": filled.peak,
        "p90_tokens": filled.p90,
        "window_tokens": filled.window,
        "window_share": filled.peak / filled.window,
        "compactions": len(filled.compactions),
        "compaction_tokens": filled.compactions,
    }


def windows_report(db: apsw.Connection, asked: Stats, options: ViewOptions) -> Report:
    all_windows = windows.read_windows(db, asked)
    spent = None
    if options.budget is not None:
        spent = windows.spending(db, asked, windows.parse_budget(options.budget), options.now)
    reset = windows.recorded_reset(db, asked, options.now)
    rows = [_window_row(window, options.now, asked.zone) for window in reversed(all_windows)]
    gaps = [
        {"start": times.iso(a.last + windows.LENGTH), "end": times.iso(b.first)}
        for a, b in pairwise(all_windows)
        if b.first - a.last > windows.LENGTH
    ]
    columns = (
        Column("_when", "estimated window"),
        Column("requests", "responses", amounts.number),
        Column("tokens", "tokens", short),
        Column("cost_nano_usd", "cost", money),
        Column("active", "", lambda active: "active" if active else "", left=True),
    )
    facts = _window_facts(all_windows, options.now)
    if reset:
        facts.append(("reset", f"{amounts.clock_in(asked.zone, reset)}, as reported"))
    history: list[dict[str, Any]] = []
    if not asked.agents:  # they are not kept by agent
        history = [*limits.history(asked.since, asked.until)]
        for limit in limits.current((), options.now):
            facts.append((limits.SHORT[limit.name], limit.text(options.now)))
    if spent:
        facts += _budget_facts(spent)
    return Report(
        "windows",
        [
            Section("budget", [_budget_row(spent)] if spent else []),
            Section("window", rows, columns, most=15),
            Section("gap", gaps),
            Section("reset", [{"reset": times.iso(reset)}] if reset is not None else []),
            Section("limit", history),
        ],
        facts=facts,
        notes=["Windows are estimated as ccusage does; the service may reset at other times."],
        code=Exit.OVER_BUDGET if spent is not None and spent.exceeded else 0,
    )


def _window_facts(all_windows: list[windows.Window], now: int) -> list[tuple[str, str]]:
    active = all_windows[-1] if all_windows and all_windows[-1].active(now) else None
    finished = [window for window in all_windows if window is not active]
    facts = []
    if active is None:
        facts.append(("now", "no active window"))
    else:
        left = amounts.duration(active.end - now)
        facts.append(("now", f"{money(active.cost_nano)}, {tokens(active.tokens)}; {left} left"))
        burnt, cost = active.per_minute(active.tokens), active.per_minute(active.cost_nano)
        if burnt is not None and cost is not None:
            hourly = money(round(cost * 60))
            facts.append(("burn", f"{tokens(round(burnt))} per minute, {hourly} per hour"))
            at_end = money(round(active.projected(active.cost_nano, now) or 0))
            at_end += f", {short(round(active.projected(active.tokens, now) or 0))}"
            facts.append(("at its end", f"{at_end} tokens at this rate"))
    if finished:
        most = max(finished, key=lambda window: window.tokens)
        facts.append(("largest", f"{tokens(most.tokens)}, {money(most.cost_nano)}"))
    return facts


def _budget_facts(spent: windows.Spent) -> list[tuple[str, str]]:
    budget = spent.budget
    amount = money if budget.money else short
    unit = "" if budget.money else " tokens"
    share = f" ({100 * spent.used / budget.limit:.0f}%)" if budget.limit else ""
    used = f"{amount(spent.used)} of {amount(budget.limit)}{unit} this {budget.period}{share}"
    if spent.exceeded:
        used += ": over budget"
    projected = f"{amount(round(spent.projected))}{unit} by the end of the {budget.period}"
    return [
        ("budget", used),
        ("projected", f"{projected}, at {amount(round(spent.mean))} per day (last 7 days)"),
    ]


def _budget_row(spent: windows.Spent) -> dict[str, Any]:
    scale = 1e9 if spent.budget.money else 1
    return {
        "period": spent.budget.period,
        "start": times.iso(spent.start),
        "end": times.iso(spent.end),
        "unit": "usd" if spent.budget.money else "tokens",
        "limit": spent.budget.limit / scale,
        "used": spent.used / scale,
        "mean_per_day": spent.mean / scale,
        "projected": spent.projected / scale,
        "exceeded": spent.exceeded,
    }


def _window_row(window: windows.Window, now: int, zone: tzinfo | None) -> dict[str, Any]:
    active = window.active(now)
    at_end = window.projected(window.tokens, now) if active else None
    cost_at_end = window.projected(window.cost_nano, now) if active else None
    start = amounts.clock_in(zone, window.start)
    end = amounts.clock_in(zone, window.end, "%H:%M")
    return {
        "start": times.iso(window.start),
        "end": times.iso(window.end),
        "first": times.iso(window.first),
        "last": times.iso(window.last),
        "active": active,
        "requests": window.requests,
        "tokens": window.tokens,
        "input_tokens": window.input_tokens,
        "output_tokens": window.output_tokens,
        "cache_write_tokens": window.cache_write_tokens,
        "cache_read_tokens": window.cache_read_tokens,
        "cost_usd": window.cost_nano / 1e9,
        "cost_nano_usd": window.cost_nano,
        "unpriced_requests": window.unpriced,
        "models": sorted(window.models),
        "tokens_per_minute": window.per_minute(window.tokens) if active else None,
        "projected_tokens": None if at_end is None else round(at_end),
        "projected_cost_usd": None if cost_at_end is None else cost_at_end / 1e9,
        "_when": f"{start} - {end}",
    }
