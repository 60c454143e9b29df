"""`sess stats cache`."""

from __future__ import annotations

from typing import Any

import apsw

from sess_cli.render import amounts
from sess_cli.render.stats.report import Column, Report, Section, ViewOptions, number, percent
from sess_cli.render.tallies import money, short, tokens
from sess_schema.queries.stats import Stats
from sess_schema.queries.views import cache
from sess_schema.queries.views.cache import Cached


def report(db: apsw.Connection, asked: Stats, options: ViewOptions) -> Report:
    found = cache.read(db, asked)
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
                [{"model": name, **_facts(cached)} for name, cached in found.models.items()],
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
            Section("total", [{"total": "total", **_facts(total)}] if found.models else [], ()),
        ],
        facts=facts,
    )


def _facts(cached: Cached) -> dict[str, Any]:
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
