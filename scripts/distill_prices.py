# ruff: noqa: INP001
"""Make daemon/sessiond/prices/prices.json from the lists of `genai-prices` and `litellm` (MIT).

    python -m venv /tmp/prices && /tmp/prices/bin/pip install genai-prices
    /tmp/prices/bin/pip download --no-deps litellm && unzip litellm-*.whl '*_backup.json'
    /tmp/prices/bin/python scripts/distill_prices.py --second litellm/model_prices*_backup.json

The first list has the prices of the day and of long prompts. The second one adds factors of tiers
and places, and says which models are no longer sold; where the two disagree, the script says so.

Prices are whole pico-dollars per token, which are micro-dollars per million tokens: three dollars
per million are 3000000. A model has periods, of which the last one that has started applies (dates
and minutes of the day are UTC); `over` has the rates of a whole request whose prompt is longer
than `above`. The same data give the same file: its version changes only with its content.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any

from genai_prices.data import providers

TARGET = Path(__file__).parent.parent / "daemon" / "sessiond" / "prices" / "prices.json"

# The maker of a model sets its price; resellers are used for the rest.
MAKERS = (
    "anthropic", "openai", "google", "x-ai", "deepseek", "moonshotai", "mistral", "zai", "minimax",
    "meta", "cursor", "github-copilot", "openrouter", "zhipuai",
)  # fmt: skip
RESOLD = {
    "amazon", "arcee-ai", "bytedance-seed", "cohere", "deepseek", "google", "inception",
    "kwaipilot", "meituan", "meta", "meta-llama", "minimax", "mistralai", "moonshotai", "nvidia",
    "openai", "poolside", "qwen", "stepfun", "tencent", "thinkingmachines", "upstage", "x-ai",
    "xiaomi", "z-ai",
}  # fmt: skip
# No coding agent uses these.
OTHER_USE = re.compile(
    r"\b(image|audio|tts|realtime|embed|embedding|transcribe|live|whisper|ocr|voice|moderation|"
    r"robotics|omni|banana|lyria|guard|safeguard|safety|vision|search|computer|"
    r"ada|babbage|curie|davinci|palm|learnlm)\b|^ft:|\.ft-|:batch$|^~"
)

RATES = ("input", "output", "cache_read", "cache_write", "cache_write_1h")

# Not in the data. Fast mode: from the providers' pages; for Opus 5 and 5.5 from other lists.
FAST = {
    "claude-opus-4-6": Fraction(6),
    "claude-opus-4-7": Fraction(6),
    "claude-opus-4-8": Fraction(2),
    "claude-opus-5": Fraction(2),
    "claude-opus-5-5": Fraction(2),
    "gpt-5.5": Fraction(5, 2),
}
US_ONLY = Fraction(11, 10)  # of every Claude that is newer than the second list
OLDER = re.compile(r"claude-([123iv]|[a-z]+-(3|4-[0-5]))")
WEB_SEARCH = Decimal(10)  # dollars per 1,000, where the data have none
# The data lack long prompts of Sonnet 4 (August 2025 to April 2026), and Mythos entirely.
SAME_AS = {
    "claude-mythos-5": "claude-fable-5",
    "claude-mythos-5-1": "claude-fable-5-1",
    "claude-sonnet-4-0": "claude-sonnet-4-5",
}

# In dollars per million tokens: input, output, cache read. The first list ends in August 2025.
LATER = {
    name: {"2025-09-05": ("0.56", "1.68", "0.07"), "2025-09-29": ("0.28", "0.42", "0.028")}
    for name in ("deepseek-chat", "deepseek-reasoner")
}
# What has kept the prices that these names had until then.
FORMER = {"deepseek-chat-v3-0324": "deepseek-chat", "deepseek-r1": "deepseek-reasoner"}

# Names by which hosts serve these models; the data have only those of their makers.
ALSO = {
    "kimi-k2-instruct-0905": "kimi-k2-0905-preview",
    "qwen3-coder-480b-a35b": "qwen3-coder",
    "qwen3-coder-480b-a35b-instruct": "qwen3-coder",
}

ROUNDING = 5000  # pico-dollars: half a cent per million tokens

Period = dict[str, Any]


def pico(dollars: Decimal, per: int) -> int:
    """Convert dollars per `per` tokens to pico-dollars per token, without rounding."""
    price = dollars * 10**12 / per
    if price != int(price):
        raise ValueError(f"{dollars} dollars per {per} are not whole pico-dollars")
    return int(price)


def at(price: Any, above: int) -> Decimal | None:
    """The price for requests with more than `above` tokens in the prompt."""
    if price is None or isinstance(price, Decimal):
        return price
    reached = [tier.price for tier in price.tiers if tier.start <= above]
    result: Decimal = reached[-1] if reached else price.base
    return result


def rates(prices: Any, above: int) -> dict[str, int]:
    found = {name: at(getattr(prices, f"{name}_mtok", None), above) for name in RATES}
    return {name: pico(price, 10**6) for name, price in found.items() if price is not None}


def period(prices: Any, start: date | None) -> Period:
    entry: Period = {"from": start and start.isoformat(), **rates(prices, -1)}
    listed = [getattr(prices, f"{name}_mtok", None) for name in RATES]
    starts = {tier.start for price in listed for tier in getattr(price, "tiers", ())}
    if starts:
        entry["over"] = [{"above": above, **rates(prices, above)} for above in sorted(starts)]
    search = getattr(prices, "web_searches_kcount", None)
    if search is not None and search != WEB_SEARCH:
        entry["web_search"] = pico(search, 1000)
    return entry


def periods(prices: Any) -> list[Period]:
    """All periods; prices for certain hours belong to the latest date before them."""
    result: list[Period] = []
    start = None
    for dated in prices if isinstance(prices, list) else [None]:
        constraint: Any = dated and dated.constraint
        start = getattr(constraint, "start_date", start)
        entry = period(dated.prices if dated else prices, start)
        if hasattr(constraint, "start_time"):
            entry["minutes"] = [minute(constraint.start_time), minute(constraint.end_time)]
        if not result or {**result[-1], "from": entry["from"]} != entry:
            result.append(entry)
    return result


def minute(value: time) -> int:
    return value.hour * 60 + value.minute


def clauses(match: Any) -> Iterator[str]:
    """The literal names in a matching rule; the resolver handles dates and patterns."""
    for clause in getattr(match, "or_", None) or getattr(match, "and_", None) or ():
        yield from clauses(clause)
    for kind in ("equals", "starts_with"):
        name = getattr(match, kind, None)
        if name:
            yield name.lower().rstrip("-@").rpartition("/")[2]


def turned(name: str) -> str | None:
    """claude-4-5-sonnet for claude-sonnet-4-5, and the reverse: agents write both."""
    found = re.fullmatch(r"claude-([a-z]+)-(\d[\d.-]*)|claude-(\d[\d.-]*)-([a-z]+)", name)
    if not found:
        return None
    family, number = found[1] or found[4], found[2] or found[3]
    return f"claude-{number}-{family}" if found[1] else f"claude-{family}-{number}"


def key(name: str) -> str:
    return name.replace(".", "-")


def models(maker: str) -> Iterator[tuple[str, Any]]:
    """Name and description of the models of one source."""
    (provider,) = (provider for provider in providers if provider.id == maker)
    for model in provider.models:
        vendor, _, name = model.id.lower().rpartition("/")
        resold = maker == "openrouter" and vendor not in RESOLD
        if resold or ("claude" in name and maker != "anthropic"):
            continue
        plain = name.removesuffix("-latest")
        yield plain if model.is_match(plain) else name, model


def priced(name: str, model: Any) -> list[Period] | None:
    if OTHER_USE.search(name):
        return None
    try:
        entries = periods(model.prices)
    except ValueError as error:
        print(f"left out {name}: {error}", file=sys.stderr)
        return None
    if name.endswith(":free"):
        return [{"from": None, "input": 0, "output": 0}]
    complete = all("input" in entry and "output" in entry for entry in entries)
    return entries if complete else None


def ratio(special: dict[str, int], normal: dict[str, int]) -> Fraction | None:
    """The one factor between two lists of prices, which are rounded to cents."""
    shared = sorted((normal[name], name) for name in special if normal.get(name))
    if not shared:
        return None
    _, dearest = shared[-1]
    factor = Fraction(special[dearest], normal[dearest])
    close = (abs(special[name] - price * factor) <= ROUNDING for price, name in shared)
    return factor if all(close) else None


def variants(model: Any) -> Iterator[tuple[str, Fraction]]:
    """The price factor of each other service tier, where it is a single factor."""
    for variant in model.price_variants or ():
        (kind,) = variant.when.values()
        start = getattr(variant.constraint, "start_date", date.max)
        moment = datetime.combine(start, time(), UTC)
        normal, special = rates(model.get_prices(moment), -1), rates(variant.prices, -1)
        factor = ratio(special, normal)
        if factor is not None:
            yield kind, factor
        elif special:
            print(f"left out {kind} of {model.id}: not one factor", file=sys.stderr)


# -- the second list

TIERS = {"flex": "flex", "batch": "batches", "priority": "priority"}
COSTS = {
    "input": "input_cost_per_token",
    "output": "output_cost_per_token",
    "cache_read": "cache_read_input_token_cost",
}


class Second:
    """The list of `litellm`: dollars per token, by model."""

    def __init__(self, path: Path) -> None:
        listed = json.loads(path.read_text("utf-8"), parse_float=Decimal)
        self._models = {key(name): facts for name, facts in listed.items() if "/" not in name}

    def prices(self, name: str, suffix: str = "") -> dict[str, int]:
        facts = self._models.get(key(name), {})
        named = {kind: facts.get(cost + suffix) for kind, cost in COSTS.items()}
        return {kind: round(price * 10**12) for kind, price in named.items() if price}

    def factors(self, name: str) -> Iterator[tuple[str, Fraction]]:
        normal = self.prices(name)
        for tier, word in TIERS.items():
            factor = ratio(self.prices(name, f"_{word}"), normal)
            if factor is not None:
                yield tier, factor

    def in_us(self, name: str) -> Fraction | None:
        """What the model costs more where only this country computes it."""
        if key(name) not in self._models:
            return US_ONLY if name.startswith("claude") and not OLDER.match(name) else None
        more = self._models[key(name)].get("provider_specific_entry") or {}
        return Fraction(more["us"]) if "us" in more else None

    def retired(self, name: str, today: str) -> str | None:
        """Since when it is no longer sold."""
        day: str | None = self._models.get(key(name), {}).get("deprecation_date")
        return day if day and day < today else None


class Table:
    """What was found so far. The first source that has a name defines it."""

    def __init__(self) -> None:
        self.models: dict[str, list[Period]] = {}
        self.aliases: dict[str, str] = {}
        self.factors: dict[str, dict[str, list[int]]] = {}
        self.geo: dict[str, dict[str, list[int]]] = {}
        self.dated: dict[str, str] = {}  # of prices that nobody lists any longer
        self._taken: set[str] = set()

    def add(self, found: list[tuple[str, Any]]) -> None:
        added = []
        for name, model in found:
            entries = None if key(name) in self._taken else priced(name, model)
            if entries is not None:
                self.models[name] = entries
                self._taken.add(key(name))
                added.append((name, model))
        # Aliases come last: a model's own name takes precedence over another's pattern.
        for name, model in added:
            for kind, factor in variants(model):
                self.scale(kind, name, factor)
            for alias in [*clauses(model.match), turned(name), name.removesuffix("-preview")]:
                if alias and key(alias) not in self._taken and worth(alias, name):
                    self.aliases[alias] = name
                    self._taken.add(key(alias))

    def correct(self) -> None:
        """Put in what the first list has missed."""
        for name, other in FORMER.items():
            self.models[name] = self.models[other]
            self.aliases.pop(name, None)
        for name, changes in LATER.items():
            periods = [
                {"from": day, "input": given, "output": said, "cache_read": read}
                for day, prices in changes.items()
                for given, said, read in [[pico(Decimal(price), 10**6) for price in prices]]
            ]
            self.models[name] = [*self.models[name], *periods]
        for name, factor in FAST.items():
            self.scale("fast", name, factor)
        for name, other in SAME_AS.items():
            self.models[name] = self.models[other]

    def complete(self, second: Second, today: str) -> None:
        """Take what only the second list has, and tell where the two disagree."""
        for name, entries in self.models.items():
            for tier, factor in second.factors(name):
                if name not in self.factors.get(tier, {}):
                    self.scale(tier, name, factor)
            more = second.in_us(name)
            if more is not None:
                self.geo.setdefault("us", {})[name] = [more.numerator, more.denominator]
            day = second.retired(name, today)
            if day is not None:
                self.dated[name] = day
            listed = {kind: price for kind, price in second.prices(name).items() if price}
            known = {kind: entries[-1].get(kind) for kind in listed}
            if listed and known != listed and "minutes" not in entries[-1]:
                print(f"{name}: {known}, but the second list has {listed}", file=sys.stderr)

    def scale(self, kind: str, name: str, factor: Fraction) -> None:
        if factor != 1:
            self.factors.setdefault(kind, {})[name] = [factor.numerator, factor.denominator]


def worth(alias: str, name: str) -> bool:
    """Whether it is a complete name that the resolver would not find anyway."""
    plain = re.sub(r"-20\d{6}$|-20\d\d-\d\d-\d\d$", "", alias)
    partial = re.search(r"-20\d\d$|\[", alias) or OTHER_USE.search(alias)
    return plain == alias and not partial and alias.removesuffix("-latest") != name


def distill(second: Path, today: str) -> dict[str, Any]:
    table = Table()
    for maker in MAKERS:
        table.add(list(models(maker)))
    table.correct()
    table.complete(Second(second), today)
    return {
        "source": f"genai-prices {version('genai-prices')} (MIT), litellm (MIT)",
        "license": "MIT, Copyright (c) Pydantic Services Inc. 2025 to present;"
        " MIT, Copyright (c) 2023 Berri AI",
        "unit": "pico-dollars per token",
        "factors": table.factors,
        "geo": table.geo,
        "dated": table.dated,
        "web_search": pico(WEB_SEARCH, 1000),
        "aliases": {**ALSO, **table.aliases},
        "models": table.models,
    }


def dump(table: dict[str, Any]) -> str:
    """Sorted, one model per line, so that a new version can be reviewed."""
    lines = []
    for name in sorted(table):
        value = table[name]
        text = json.dumps(value)
        if isinstance(value, dict):
            rows = (f'"{row}": {json.dumps(value[row], sort_keys=True)}' for row in sorted(value))
            text = "{\n  " + ",\n  ".join(rows) + "\n}"
        lines.append(f'"{name}": {text}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="Make prices.json from two lists.")
    parser.add_argument("--second", type=Path, required=True, help="the JSON file of litellm")
    parser.add_argument("--date", default=datetime.now(UTC).date().isoformat(), help="the version")
    options = parser.parse_args()
    table = distill(options.second, options.date)
    old = json.loads(TARGET.read_text("utf-8")) if TARGET.exists() else {}
    same = {**old, "version": None} == {**json.loads(dump(table)), "version": None}
    table["version"] = old["version"] if same else options.date
    TARGET.write_text(dump(table), "utf-8")
    print(f"{len(table['models'])} models, {len(table['aliases'])} aliases, {table['version']}")


if __name__ == "__main__":
    main()
