"""Costs of usage rows: as the agent recorded them, otherwise from the price table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import apsw

from sess_schema import sums
from sessiond.prices.table import PriceTable

# What a price depends on, in the order of `Pricer.price`.
PRICED = (
    "model", "ts", "input_tokens", "output_tokens", "cache_write_tokens", "cache_write_1h_tokens",
    "cache_read_tokens", "web_searches", "speed", "service_tier", "geo", "cost_usd",
)  # fmt: skip

_BATCH = 5000
_NANO = Decimal(10**9)
# Impossible prices must not make the sums overflow: nearly a million such rows fit.
_DEAREST = 10**13

Cost = tuple[int | None, str, int | None]


class Pricer:
    """The price table, loaded on first use."""

    def __init__(self, overrides: dict[str, dict[str, int]] | None = None) -> None:
        self._overrides = overrides
        self._table: PriceTable | None = None

    @property
    def table(self) -> PriceTable:
        if self._table is None:
            self._table = PriceTable.load(self._overrides)
        return self._table

    @property
    def version(self) -> str:
        return self.table.version

    def price(self, values: Sequence[Any]) -> Cost:
        """Nano-dollars, where they come from, and what the cache saved.

        Takes the values of `PRICED`.
        """
        *counts, speed, tier, geo, recorded = values
        bill = self.table.bill(*counts, speed=speed, tier=tier, geo=geo)
        nano, saved = bill or (None, None)
        source = "computed"
        if recorded is not None:
            nano, source = exact_nano(recorded), "recorded"
        if nano is None or nano > _DEAREST:
            return None, "unknown", None
        return nano, source, saved if saved is None or abs(saved) <= _DEAREST else None


def exact_nano(dollars: float) -> int:
    """Convert the decimal that the agent wrote, not the nearest binary fraction."""
    nano = Decimal(repr(dollars)) * _NANO
    return int(nano.to_integral_value(ROUND_HALF_UP))


def reprice(db: apsw.Connection, pricer: Pricer) -> int:
    """Reprice every row in one transaction; return how many changed."""
    changed = 0
    with db:
        for rows in _batches(db):
            updates = [
                (*cost, row_id)
                for row_id, *before, values in rows
                if (cost := pricer.price(values)) != tuple(before)
            ]
            db.executemany(
                "UPDATE usage SET cost_nano = ?, cost_source = ?, saved_nano = ? WHERE id = ?",
                updates,
            )
            changed += len(updates)
        sums.renew(db)
    return changed


def _batches(db: apsw.Connection) -> Iterator[list[tuple[Any, ...]]]:
    """Batches of (id, cost, source, saved, what the price depends on)."""
    last = -1
    while True:
        found = list(
            db.execute(
                f"SELECT id, cost_nano, cost_source, saved_nano, {', '.join(PRICED)} FROM usage"
                " WHERE id > ? ORDER BY id LIMIT ?",
                (last, _BATCH),
            )
        )
        if not found:
            return
        last = found[-1][0]
        yield [(*row[:4], row[4:]) for row in found]
