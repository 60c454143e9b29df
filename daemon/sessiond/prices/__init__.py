"""What a response cost, by the prices of its day or as its agent recorded it, to the nano-dollar.

scripts/distill_prices.py makes prices.json and explains its numbers. Prices are whole
pico-dollars per token, so sums are exact; a cost is rounded once, at the end.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import apsw
import orjson

from sess_schema import sums
from sessiond.sourcekit.values import LOCAL

SYNTHETIC = "<synthetic>"  # messages by Claude Code itself, for example about an API error

_FILE = Path(__file__).with_name("prices.json")
_DAY_MS = 86_400_000
_EPOCH = date(1970, 1, 1).toordinal()

_KINDS = ("input", "output", "cache_read", "cache_write", "cache_write_1h")

_REGIONS = {"us", "us-gov", "eu", "apac", "jp", "au", "ca", "global"}
_VENDORS = {
    "amazon", "anthropic", "cohere", "deepseek", "google", "meta", "minimax", "mistral", "moonshot",
    "moonshotai", "nvidia", "openai", "qwen", "zai",
}  # fmt: skip
# Before a colon, as in `anthropic:claude-sonnet-4-5`; other colons belong to the name.
_HOSTS = _VENDORS | {
    "azure", "bedrock", "copilot", "custom", "fireworks", "gemini", "github", "groq", "litellm",
    "openrouter", "together", "vertex", "xai",
}  # fmt: skip
# Not compiled here: most programs that import this never look up a model.
_OPTIONS = r"\[[^\]]*\]$"
_REVISION = r"@.*$|-v?\d+:\d+(:\d+k)?$"
_CLAUDE_REVISION = r"^(claude-.*)-v\d+(?:-\d+)?$"
_CONSTANT = r"^(?:model_)?[a-z]+(?:_[a-z0-9]+){2,}$"  # MODEL_CLAUDE_4_5_SONNET
_ROUTE = r":(thinking|nitro|floor|exacto|online|beta)$"
_DATE = r"-20\d{6}(?=-|$)|-20\d\d-\d\d-\d\d(?=-|$)"
_PREVIEW_DATE = r"(-preview|-exp)-\d\d-(\d\d|20\d\d)(?=-|$)"
# Suffixes that do not make it another model, unlike `mini`, `pro` or a number.
_HARMLESS = {
    "1m", "adaptive", "beta", "chat", "codex", "default", "exp", "experimental", "extended", "high",
    "instruct", "it", "latest", "low", "medium", "minimal", "non", "none", "preview", "reasoning",
    "stable", "thinking", "xhigh",
}  # fmt: skip
_ONE = (1, 1)


@dataclass(slots=True, frozen=True)
class Rates:
    """Pico-dollars per token, and per web search."""

    input: int
    output: int
    cache_read: int
    cache_write: int  # kept for five minutes
    cache_write_1h: int
    web_search: int


FREE = Rates(0, 0, 0, 0, 0, 0)


@dataclass(slots=True, frozen=True)
class _Period:
    start_ms: int | None
    minutes: tuple[int, int] | None  # of the day, if the prices do not apply all day
    rates: Rates
    over: tuple[tuple[int, Rates], ...]  # rates of the whole request if the prompt is longer

    def has(self, ts_ms: int) -> bool:
        if self.start_ms is not None and ts_ms < self.start_ms:
            return False
        if self.minutes is None:
            return True
        start, end = self.minutes
        minute = ts_ms % _DAY_MS // 60_000
        return start <= minute < end if start <= end else minute >= start or minute < end


class PriceTable:
    """The list prices, overridden by those of the configuration."""

    def __init__(self, data: dict[str, Any], overrides: dict[str, dict[str, int]]) -> None:
        self.version: str = data["version"]
        if overrides:  # to find rows priced with other overrides
            text = orjson.dumps(overrides, option=orjson.OPT_SORT_KEYS)
            self.version += f"+{zlib.crc32(text):08x}"
        # The last day on which prices were listed: of all, and of some models; none of one's own.
        self.dates: dict[str, str] = {"": data["version"], **data.get("dated", {})}
        self._models: dict[str, Any] = dict(data["models"])
        self._names = {_key(name): name for name in self._models}
        for model, rates in overrides.items():
            name = self._names.setdefault(_key(model), model.lower())
            self._models[name] = [{"from": None, **rates}]
            self.dates[name] = ""
        # Last, so that a price for an alias does not change the model it stands for.
        for alias, name in data["aliases"].items():
            self._names.setdefault(_key(alias), name)
        self._factors: dict[str, dict[str, tuple[int, int]]] = data["factors"]
        self._geo: dict[str | None, dict[str, tuple[int, int]]] = data["geo"]
        self._web_search: int = data["web_search"]
        self._today = _midnight(data["version"])
        self._found: dict[str, tuple[str | None, bool]] = {}
        self._periods: dict[str, list[_Period]] = {}

    @classmethod
    def load(cls, overrides: dict[str, dict[str, int]] | None = None) -> PriceTable:
        """The table of this release with overrides from `read_overrides`."""
        return cls(orjson.loads(_FILE.read_bytes()), overrides or {})

    def resolve(self, model: str | None) -> str | None:
        """The model's name in the table; None if its price is unknown."""
        return self._find(model)[0]

    def prices_at(self, model: str | None, ts_ms: int | None, prompt: int = 0) -> Rates | None:
        """The normal rates at a time, for a prompt of that many tokens."""
        name = self.resolve(model)
        return None if name is None else self._rates(name, ts_ms, prompt)

    def cost(self, *counts: Any, **how: Any) -> int | None:
        """Nano-dollars for one response, with the arguments of `bill`; None without a price."""
        bill = self.bill(*counts, **how)
        return None if bill is None else bill[0]

    def bill(  # noqa: PLR0917
        self,
        model: str | None,
        ts_ms: int | None,
        input: int,  # noqa: A002
        output: int,
        cache_write: int,
        cache_write_1h: int,
        cache_read: int,
        web_searches: int = 0,
        *,
        speed: str | None = None,
        tier: str | None = None,
        geo: str | None = None,
        sum_of: int = 1,
    ) -> tuple[int, int] | None:
        """Nano-dollars for one response, and what the cache saved; None without a price.

        The sum of several responses is billed as if their prompts had one length.

        As in the index, `cache_write` includes `cache_write_1h` (kept for an hour), and `input`
        excludes what was written to or read from the cache.
        """
        name, fast = self._find(model)
        if name == SYNTHETIC or (name is None and is_local(model)):
            return 0, 0
        factor = self._factor(name, fast or speed == "fast", tier, geo) if name else None
        if name is None or factor is None:
            return None
        short = max(cache_write - cache_write_1h, 0)
        read = input + short + cache_write_1h + cache_read
        rates = self._rates(name, ts_ms, read // max(sum_of, 1))
        cached = (
            short * rates.cache_write
            + cache_write_1h * rates.cache_write_1h
            + cache_read * rates.cache_read
        )
        tokens = input * rates.input + output * rates.output + cached
        uncached = (short + cache_write_1h + cache_read) * rates.input
        above, below = factor
        # Factors apply to tokens; a search costs the same at any speed and place.
        pico = tokens * above + web_searches * rates.web_search * below
        half, nano = 500 * below, 1000 * below
        return (pico + half) // nano, ((uncached - cached) * above + half) // nano

    def _factor(
        self, name: str, fast: bool, tier: str | None, geo: str | None
    ) -> tuple[int, int] | None:
        """Numerator and denominator; None for a fast mode whose price is not listed.

        Fast mode always costs more, but many tiers are only names for the normal service.
        """
        if fast and name not in self._factors["fast"]:
            return None
        above, below = self._factors.get("fast" if fast else tier or "", {}).get(name, _ONE)
        more, less = self._geo.get(geo, {}).get(name, _ONE)
        return above * more, below * less

    def _rates(self, name: str, ts_ms: int | None, prompt: int) -> Rates:
        if name == SYNTHETIC:
            return FREE
        moment = self._today if ts_ms is None else ts_ms
        periods = self._periods.get(name)
        if periods is None:
            periods = [self._period(name, entry) for entry in self._models[name]]
            self._periods[name] = periods
        current = periods[0]
        for period in periods:
            if period.has(moment):
                current = period
        rates = current.rates
        for above, longer in current.over:
            if prompt > above:
                rates = longer
        return rates

    def _period(self, name: str, entry: dict[str, Any]) -> _Period:
        search = entry.get("web_search", self._web_search)
        return _Period(
            start_ms=entry["from"] and _midnight(entry["from"]),
            minutes=tuple(entry["minutes"]) if "minutes" in entry else None,
            rates=_complete(name, entry, search),
            over=tuple(
                (tier["above"], _complete(name, tier, search)) for tier in entry.get("over", ())
            ),
        )

    def _find(self, model: str | None) -> tuple[str | None, bool]:
        """The name in the table, and whether the id itself selects fast mode."""
        if not model:
            return None, False
        if model not in self._found:
            self._found[model] = self._search(model.strip().lower())
        return self._found[model]

    def _search(self, model: str) -> tuple[str | None, bool]:
        if model == SYNTHETIC:
            return SYNTHETIC, False
        names = _spellings(model)
        for name in names:
            if _key(name) in self._names:
                return self._names[_key(name)], False
        words = _key(names[-1]).split("-")
        fast = words[-1] == "fast"
        if fast:
            words.pop()
        while words and "-".join(words) not in self._names:
            if words.pop() not in _HARMLESS:
                return None, False
        listed = self._names.get("-".join(words))
        if fast and listed not in self._factors["fast"]:
            return None, False
        return listed, fast


def is_local(model: str | None) -> bool:
    """Whether it runs on this machine, judging by the host in front of its name or by its file."""
    name = (model or "").strip().lower().replace(":", "/", 1)
    return name.endswith(".gguf") or not LOCAL.isdisjoint(name.split("/")[:-1])


def _spellings(model: str) -> list[str]:
    """The id, then shorter forms without what does not identify the model."""
    whole = "-".join(model.replace("(", "").replace(")", "").split())
    host, colon, rest = whole.partition(":")
    if colon and host in _HOSTS:
        whole = f"{host}/{rest}"
    if re.match(_CONSTANT, whole):
        whole = whole.removeprefix("model_").replace("_", "-")
    *hosts, name = whole.split("/")
    if not LOCAL.isdisjoint(hosts):
        return [whole]
    bare = _without_vendor(name)
    plain = re.sub(_OPTIONS, "-fast" if bare.endswith("[fast=true]") else "", bare)
    base = re.sub(_ROUTE, "", re.sub(_REVISION, "", plain))
    base = re.sub(_CLAUDE_REVISION, r"\1", base)
    undated = re.sub(_PREVIEW_DATE, r"\1", re.sub(_DATE, "", base))
    return [whole, bare, plain, base, undated]


def _without_vendor(name: str) -> str:
    """claude-3-haiku for us.anthropic.claude-3-haiku."""
    region, _, rest = name.partition(".")
    vendor, _, model = (rest if region in _REGIONS else name).partition(".")
    return model if vendor in _VENDORS else name


def _key(name: str) -> str:
    return name.lower().replace(".", "-")


def _midnight(day: str) -> int:
    return (date.fromisoformat(day[:10]).toordinal() - _EPOCH) * _DAY_MS


def _complete(name: str, entry: dict[str, int], web_search: int) -> Rates:
    """The rates of an entry; missing cache rates are filled in as its vendor charges."""
    base = entry["input"]
    claude = _key(name).startswith("claude")
    write = entry.get("cache_write", (5 * base + 2) // 4 if claude else base)
    return Rates(
        input=base,
        output=entry["output"],
        cache_read=entry.get("cache_read", (base + 5) // 10 if claude else base),
        cache_write=write,
        cache_write_1h=entry.get("cache_write_1h", 2 * base if claude else write),
        web_search=web_search,
    )


def read_overrides(section: Any) -> dict[str, dict[str, int]]:
    """Convert a `[prices]` section, in dollars per million tokens, to the table's units."""
    if not isinstance(section, dict):
        raise ValueError("[prices] must be a table")  # noqa: TRY004
    return {name: _override(name, values) for name, values in section.items()}


def _override(name: str, values: Any) -> dict[str, int]:
    where = f'prices."{name}"'
    if not isinstance(values, dict):
        raise ValueError(f"{where} must be a table")  # noqa: TRY004
    unknown = set(values) - set(_KINDS)
    if unknown:
        raise ValueError(f"{where} allows only {', '.join(_KINDS)}, not {min(unknown)}")
    for kind in ("input", "output"):
        if kind not in values:
            raise ValueError(f"{where} needs {kind}")
    return {kind: _micro(f"{where}.{kind}", value) for kind, value in values.items()}


def _micro(where: str, dollars: Any) -> int:
    """Dollars per million tokens as pico-dollars per token."""
    number = isinstance(dollars, int | float) and not isinstance(dollars, bool)
    if not number or not 0 <= dollars < 1_000_000:
        raise ValueError(f"{where} must be a number of dollars per million tokens")
    price: int = round(dollars * 1_000_000)
    if price / 1_000_000 != dollars:
        raise ValueError(f"{where} must not have more than six decimals")
    return price


# What a price depends on, in the order of `Pricer.price`.
PRICED = (
    "model", "ts", "input_tokens", "output_tokens", "cache_write_tokens", "cache_write_1h_tokens",
    "cache_read_tokens", "web_searches", "speed", "service_tier", "geo", "sum_of",
    "cost_usd",
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
        *counts, speed, tier, geo, sum_of, recorded = values
        bill = self.table.bill(*counts, speed=speed, tier=tier, geo=geo, sum_of=sum_of)
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
        rows = list(
            db.execute(
                f"SELECT id, cost_nano, cost_source, saved_nano, {', '.join(PRICED)} FROM usage"
                " WHERE id > ? ORDER BY id LIMIT ?",
                (last, _BATCH),
            )
        )
        if not rows:
            return
        last = rows[-1][0]
        yield [(*row[:4], row[4:]) for row in rows]
