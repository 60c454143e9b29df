"""What responses cost: names of models, prices of the day, factors, and exact arithmetic."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.must import must

from sessiond import prices
from sessiond.prices import Pricer, PriceTable, Rates, read_overrides

FILE = Path(prices.__file__).with_name("prices.json")
TABLE = PriceTable.load()
DATA = json.loads(FILE.read_text("utf-8"))


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


NOW = ms("2026-11-01")


@pytest.mark.parametrize(
    ("model", "name"),
    [
        # As the providers write them.
        ("claude-sonnet-4-5", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("claude-opus-4-20250514", "claude-opus-4-0"),
        ("claude-opus-4-1-20250805", "claude-opus-4-1"),
        ("claude-3-5-haiku-latest", "claude-3-5-haiku"),
        ("claude-3-7-sonnet-20250219", "claude-3-7-sonnet"),
        ("claude-haiku-5-5", "claude-haiku-5-5"),
        ("claude-mythos-5-1", "claude-mythos-5-1"),
        ("gpt-5-2025-08-07", "gpt-5"),
        ("gpt-5-codex", "gpt-5"),
        ("gpt-5.1-codex-max", "gpt-5.1"),
        ("gpt-5.1-codex-mini", "gpt-5.1-codex-mini"),
        ("gpt-5.6-sol", "gpt-5.6-sol"),
        ("gpt-4o-2024-05-13", "gpt-4o-2024-05-13"),
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("gpt-5-2-codex", "gpt-5.2"),
        ("o4-mini", "o4-mini"),
        ("gemini-2.5-pro-exp-03-25", "gemini-2.5-pro"),
        ("gemini-2.5-pro-preview-06-05", "gemini-2.5-pro"),
        ("gemini-3-pro", "gemini-3-pro-preview"),
        ("grok-code-fast-1", "grok-code-fast-1"),
        ("grok-4-fast", "grok-4-fast-reasoning"),
        ("kimi-k2.7-code", "kimi-k2.7-code"),
        ("GLM-4.6", "glm-4.6"),
        ("MiniMax-M2.5", "minimax-m2"),
        ("qwen3-coder-plus", "qwen3-coder-plus"),
        ("deepseek-v4-pro", "deepseek-v4-pro"),
        # Behind a gateway, a cloud, or a router.
        ("anthropic/claude-opus-4.6", "claude-opus-4-6"),
        ("generic-copilot/litellm/anthropic/claude-haiku-4.5", "claude-haiku-4-5"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("global.anthropic.claude-opus-4-6-v1", "claude-opus-4-6"),
        ("anthropic.claude-3-5-sonnet-20241022-v2:0:200k", "claude-3-5-sonnet"),
        (
            "arn:aws:bedrock:eu-west-1:1234:inference-profile/eu.anthropic.claude-opus-4-1-v1:0",
            "claude-opus-4-1",
        ),
        ("openai.gpt-oss-120b-1:0", "gpt-oss-120b"),
        ("claude-opus-4-5@20251101", "claude-opus-4-5"),
        ("claude-3-5-sonnet-v2@20241022", "claude-3-5-sonnet"),
        ("vertex_ai/claude-opus-4-6@default", "claude-opus-4-6"),
        ("models/gemini-2.5-flash", "gemini-2.5-flash"),
        ("moonshot-ai/kimi-k2.7-code", "kimi-k2.7-code"),
        ("z-ai/glm-5.2", "glm-5.2"),
        ("qwen/qwen3-coder:free", "qwen3-coder:free"),
        ("moonshotai/kimi-k2-thinking:nitro", "kimi-k2-thinking"),
        # As agents name them.
        ("claude-sonnet-4-5[1m]", "claude-sonnet-4-5"),
        ("claude-4.5-sonnet-thinking", "claude-sonnet-4-5"),
        ("claude-4.6-opus-high-thinking", "claude-opus-4-6"),
        ("claude-4.6-opus-high-thinking-fast", "claude-opus-4-6"),
        ("claude-opus-4-5-20251101-thinking", "claude-opus-4-5"),
        ("Claude Sonnet 4.5", "claude-sonnet-4-5"),
        ("gpt-5-high", "gpt-5"),
        ("gpt-5.5-xhigh-fast", "gpt-5.5"),
        ("composer-2.5[fast=true]", "composer-2.5-fast"),
        ("composer-2.5[fast=false]", "composer-2.5"),
        ("anthropic:claude-sonnet-4-5", "claude-sonnet-4-5"),
        ("openai:gpt-4o", "gpt-4o"),
        ("bedrock:us.anthropic.claude-sonnet-4-20250514-v1:0", "claude-sonnet-4-0"),
        ("gpt-5 (high)", "gpt-5"),
        ("claude-sonnet-4-5 (thinking)", "claude-sonnet-4-5"),
        ("MODEL_CLAUDE_4_5_SONNET", "claude-sonnet-4-5"),
        ("CLAUDE_SONNET_4_20250514_V1_0", "claude-sonnet-4-0"),
        ("copilot/gpt-4.1", "gpt-4.1"),
        ("vscode-lm/copilot/gpt-4o", "gpt-4o"),
        ("github-copilot/claude-sonnet-4", "claude-sonnet-4-0"),
        ("openrouter/anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("google/gemini-2.5-pro-latest", "gemini-2.5-pro"),
        ("moonshotai/Kimi-K2-Instruct-0905", "kimi-k2-0905-preview"),
        ("Qwen/Qwen3-Coder-480B-A35B-Instruct", "qwen3-coder"),
        ("<synthetic>", "<synthetic>"),
    ],
)
def test_a_known_model_is_found_under_any_of_its_names(model, name):
    """Prefixes, dates and harmless suffixes do not hide a model."""
    assert TABLE.resolve(model) == name


@pytest.mark.parametrize(
    "model",
    [
        None,
        "",
        "claude",
        "claude-opus",
        "claude-haiku",
        "sonnet",
        "claude-opus-4-9",
        "claude-opus-45",
        "claude-sonnet-5-7-20270101",
        "claude-2.1",
        "claude-instant-1.2",
        "claude-sonnet-5-5-fast",
        "gpt-5.7",
        "gpt-5-turbo",
        "gpt-5-codex-mini",
        "gpt-5.3-codex-spark",
        "gpt-4.1-pico",
        "gpt-55",
        "o3-max",
        "gemini-2.5-ultra",
        "gemini-2.5-pro-tts",
        "grok-4.9",
        "kimi-k2.9",
        "kimi-k2p5",
        "glm-4.6-flash",
        "composer-2",
        "qwen3-coder:30b",
        "moonshotai/kimi-k3:batch",
        "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/a1b2c3",
        "synthetic",
        "MODEL_PLACEHOLDER_M26",
        "custom:claude",
        "copilot/auto",
        "kimi-for-coding",
        "auto",
        "default",
        "-",
        "/",
        "[1m]",
    ],
)
def test_another_version_or_size_is_not_taken_for_a_known_model(model):
    """A wrong price is worse than none."""
    assert TABLE.resolve(model) is None
    assert TABLE.cost(model, NOW, 1, 1, 0, 0, 0) is None
    assert TABLE.prices_at(model, NOW) is None


@pytest.mark.parametrize(
    "model",
    ["ollama/qwen3-coder", "LMStudio/gpt-oss-120b", "ollama:llama3.2", "qwen2.5-7b-q4_k_m.gguf"],
)
def test_a_model_on_this_machine_costs_nothing(model):
    assert TABLE.resolve(model) is None
    assert TABLE.bill(model, NOW, 1000, 1000, 0, 0, 1000) == (0, 0)


def test_a_recorded_cost_of_nothing_is_no_unknown_price():
    nothing = Pricer().price(["nobodys-model", NOW, *[9] * 6, None, None, None, 1, 0.0])
    assert nothing == (0, "recorded", None)


def test_every_name_and_alias_of_the_table_finds_its_model():
    assert {name: TABLE.resolve(name) for name in DATA["models"]} == {n: n for n in DATA["models"]}
    assert {name: TABLE.resolve(name) for name in DATA["aliases"]} == DATA["aliases"]


@pytest.mark.parametrize(
    ("tokens", "nano"),
    [
        ((3, 500, 1000, 600, 0), 12_609_000),  # 400 for five minutes and 600 for an hour
        ((3, 100, 1000, 0, 250_000), 159_768_000),  # a prompt of 251,003
        ((200_000, 1, 0, 0, 0), 600_015_000),
        ((200_001, 1, 0, 0, 0), 1_200_028_500),  # one more makes all of it dearer
        ((100_000, 0, 60_000, 60_000, 40_001), 1_344_000_600),
        ((0, 0, 0, 0, 0), 0),
    ],
)
def test_a_response_costs_what_the_provider_bills(tokens, nano):
    assert TABLE.cost("claude-sonnet-4-5-20250929", ms("2026-01-01"), *tokens) == nano


def test_a_split_that_exceeds_the_written_tokens_is_not_paid_back():
    assert TABLE.cost("claude-sonnet-4-5", NOW, 0, 0, 0, 600, 0) == 3_600_000


def test_what_claude_code_writes_itself_costs_nothing():
    assert TABLE.cost("<synthetic>", NOW, 5, 5, 5, 5, 5, 5, speed="fast", geo="us") == 0
    assert TABLE.prices_at("<synthetic>", NOW) == Rates(0, 0, 0, 0, 0, 0)


def test_prices_are_those_of_the_day():
    """Long prompts of Opus 4.6 cost the same as short ones from 13 March 2026 (UTC) on."""
    day = ms("2026-03-13")
    assert TABLE.cost("claude-opus-4-6", day - 1, 200_001, 0, 0, 0, 0) == 2_000_010_000
    assert TABLE.cost("claude-opus-4-6", day, 200_001, 0, 0, 0, 0) == 1_000_005_000
    assert TABLE.cost("claude-opus-4-6", None, 200_001, 0, 0, 0, 0) == 1_000_005_000
    assert TABLE.cost("o3", ms("2025-06-09"), 1000, 0, 0, 0, 0) == 10_000_000
    assert TABLE.cost("o3", ms("2025-06-10"), 1000, 0, 0, 0, 0) == 2_000_000


def test_prices_are_those_of_the_hour():
    """DeepSeek is dearer for a part of the day, in UTC, since it said so."""

    def cost(time: str) -> int | None:
        return TABLE.cost("deepseek-v4-pro", ms(time), 1000, 0, 0, 0, 0)

    assert cost("2026-08-16T02:00") == 435_000
    assert cost("2026-08-17T00:59:59") == 660_000
    assert cost("2026-08-17T01:00") == 1_320_000
    assert cost("2026-08-17T04:00") == 660_000
    assert cost("2026-08-17T09:59:59") == 1_320_000


def test_a_part_of_the_day_may_span_midnight():
    night = {"from": None, "minutes": [1410, 30], "input": 1_000_000, "output": 0}
    day = {"from": None, "input": 2_000_000, "output": 0}
    table = PriceTable({**DATA, "models": {"owl": [day, night]}, "aliases": {}}, {})
    times = ["23:29", "23:30", "00:29", "00:30"]
    assert [table.cost("owl", ms(f"2026-01-01T{time}"), 1, 0, 0, 0, 0) for time in times] == [
        2000, 1000, 1000, 2000,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("model", "speed", "factor"),
    [
        ("claude-opus-4-6", "fast", 6),
        ("claude-opus-4-7", "fast", 6),
        ("claude-opus-4-8", "fast", 2),
        ("gpt-5.5", "fast", Fraction(5, 2)),
        ("claude-opus-4-6", "standard", 1),
        ("claude-opus-4.8-fast", None, 2),
        ("claude-opus-4.8-fast", "fast", 2),
        ("composer-2.5-fast", None, 1),
    ],
)
def test_fast_mode_multiplies_the_cost_once(model, speed, factor):
    normal = TABLE.cost(TABLE.resolve(model), NOW, 1000, 100, 10, 0, 5000)
    assert TABLE.cost(model, NOW, 1000, 100, 10, 0, 5000, speed=speed) == normal * factor


def test_a_fast_mode_without_a_known_price_is_unknown():
    assert TABLE.cost("claude-sonnet-4-5", NOW, 1, 1, 0, 0, 0, speed="fast") is None


def test_inference_in_the_us_costs_a_tenth_more():
    """Only of Claude from Opus 4.6 on, and on top of fast mode."""
    assert TABLE.cost("claude-opus-4-5", NOW, 1000, 0, 0, 0, 0, geo="us") == 5_000_000
    assert TABLE.cost("claude-haiku-4-5", NOW, 1000, 0, 0, 0, 0, geo="us") == 1_000_000
    assert TABLE.cost("claude-fable-5-2", NOW, 1000, 0, 0, 0, 0, geo="us") == 11 * must(
        TABLE.cost("claude-fable-5-2", NOW, 100, 0, 0, 0, 0)
    )
    assert TABLE.cost("claude-opus-4-6", NOW, 1000, 0, 0, 0, 0, geo="us") == 5_500_000
    assert TABLE.cost("claude-opus-4-6", NOW, 1000, 0, 0, 0, 0, geo="global") == 5_000_000
    assert TABLE.cost("gpt-5.5", NOW, 1000, 0, 0, 0, 0, geo="us") == 5_000_000
    cost = TABLE.cost("claude-opus-4-6", NOW, 1000, 0, 0, 0, 0, speed="fast", geo="us")
    assert cost == 33_000_000


def test_a_tier_has_its_own_price_where_one_is_listed():
    costs = {
        tier: TABLE.cost("gpt-5.5", NOW, 1000, 0, 0, 0, 0, tier=tier)
        for tier in ("default", "flex", "batch", "priority", None)
    }
    assert costs == {
        "default": 5_000_000, "flex": 2_500_000, "batch": 2_500_000, "priority": 12_500_000,
        None: 5_000_000,
    }  # fmt: skip
    assert TABLE.cost("claude-opus-4-6", NOW, 1000, 0, 0, 0, 0, tier="standard") == 5_000_000


@pytest.mark.parametrize(
    ("model", "tier", "nano"),
    [
        ("gpt-5.4", None, 2_500_000),
        ("gpt-5.4", "flex", 1_250_000),
        ("gpt-5.4-2026-03-05", "batch", 1_250_000),
        ("gpt-5.4", "priority", 5_000_000),
        ("gpt-5.1-codex", "priority", 2_500_000),
        ("gpt-5.1-codex", "flex", 625_000),
    ],
)
def test_a_factor_survives_prices_that_are_rounded_to_cents(model, tier, nano):
    assert TABLE.cost(model, NOW, 1000, 0, 0, 0, 0, tier=tier) == nano


@pytest.mark.parametrize("model", ["deepseek-chat", "deepseek-reasoner"])
def test_deepseeks_names_have_the_prices_of_their_day(model):
    """The discount at night ended in September 2025; three weeks later all became cheaper."""
    million = (10**6, 10**6, 0, 0, 10**6)
    assert TABLE.cost(model, ms("2025-09-06T20:00"), *million) == 2_310_000_000
    assert TABLE.cost(model, ms("2025-10-01T12:00"), *million) == 728_000_000
    assert TABLE.cost(model, NOW, *million) == 728_000_000
    assert TABLE.cost("deepseek-r1", NOW, 0, 10**6, 0, 0, 0) == 550_000_000


def test_the_sum_of_several_responses_is_no_long_prompt():
    assert TABLE.cost("gpt-5.4", NOW, 600_000, 0, 0, 0, 0) == 3_000_000_000
    assert TABLE.cost("gpt-5.4", NOW, 600_000, 0, 0, 0, 0, sum_of=3) == 1_500_000_000


def test_prices_have_the_day_on_which_they_were_listed():
    assert TABLE.dates[""] == DATA["version"]
    assert TABLE.dates["deepseek-chat"] == "2026-07-24"
    own = PriceTable.load(read_overrides({"gpt-5": {"input": 1, "output": 1}}))
    assert own.dates["gpt-5"] == ""


def test_web_searches_cost_a_cent_each_whatever_the_speed():
    assert TABLE.cost("claude-opus-4-6", NOW, 0, 0, 0, 0, 0, 3) == 30_000_000
    cost = TABLE.cost("claude-opus-4-6", NOW, 0, 0, 0, 0, 0, 3, speed="fast", geo="us")
    assert cost == 30_000_000
    assert TABLE.cost("gemini-3.1-pro-preview", NOW, 0, 0, 0, 0, 0, 1) == 14_000_000


def test_half_a_nano_dollar_is_rounded_up_at_the_end():
    """Each token costs 0.1 nano-dollars, or 0.5 in all: one, not five times nothing."""
    table = PriceTable.load(read_overrides({"m": {"input": 0.0001, "output": 0.0001}}))
    assert [table.cost("m", NOW, n, 0, 0, 0, 0) for n in (4, 5, 14, 15)] == [0, 1, 1, 2]
    assert table.cost("m", NOW, 3, 2, 0, 0, 0) == 1


def test_rates_are_given_for_the_time_and_the_length():
    """In pico-dollars per token and per search."""
    base = Rates(3_000_000, 15_000_000, 300_000, 3_750_000, 6_000_000, 10**10)
    longer = Rates(6_000_000, 22_500_000, 600_000, 7_500_000, 12_000_000, 10**10)
    assert TABLE.prices_at("claude-sonnet-4-6", ms("2026-03-12")) == base
    assert TABLE.prices_at("claude-sonnet-4-6", ms("2026-03-12"), 200_000) == base
    assert TABLE.prices_at("claude-sonnet-4-6", ms("2026-03-12"), 200_001) == longer
    assert TABLE.prices_at("claude-sonnet-4-6", ms("2026-03-13"), 200_001) == base


def test_a_price_of_the_cache_that_is_not_listed_follows_its_maker():
    """Anthropic: 1.25, 2 and 0.1 times the input; elsewhere a token is a token."""
    assert TABLE.prices_at("claude-2", NOW) == Rates(
        8_000_000, 24_000_000, 800_000, 10_000_000, 16_000_000, 10**10
    )
    assert TABLE.prices_at("gpt-5-pro", NOW) == Rates(
        15_000_000, 120_000_000, 15_000_000, 15_000_000, 15_000_000, 10**10
    )
    gpt = TABLE.prices_at("gpt-6-sol", NOW)
    assert gpt is not None
    assert (gpt.cache_write, gpt.cache_write_1h) == (2_500_000, 2_500_000)


def test_the_configuration_overrides_and_adds_prices():
    section = {
        "claude-opus-4.6": {"input": 1, "output": 2},
        "Ollama/My-Model": {"input": 0, "output": 0.5, "cache_read": 0.003625},
    }
    table = PriceTable.load(read_overrides(section))
    assert table.prices_at("claude-opus-4-6-20260205", ms("2026-01-01"), 900_000) == Rates(
        1_000_000, 2_000_000, 100_000, 1_250_000, 2_000_000, 10**10
    )
    assert table.cost("claude-opus-4-6", NOW, 1000, 0, 0, 0, 0, speed="fast") == 6_000_000
    assert table.resolve("ollama/my-model") == "ollama/my-model"
    assert table.cost("ollama/my-model", NOW, 1000, 1000, 0, 0, 1000) == 503_625
    assert table.cost("claude-opus-4-7", NOW, 1000, 0, 0, 0, 0) == 5_000_000


def test_a_price_for_an_alias_leaves_the_model_alone():
    table = PriceTable.load(read_overrides({"gpt-5-codex": {"input": 7, "output": 7}}))
    assert table.cost("gpt-5-codex", NOW, 1000, 0, 0, 0, 0) == 7_000_000
    assert table.cost("gpt-5", NOW, 1000, 0, 0, 0, 0) == 1_250_000


def test_other_prices_are_another_version():
    """A row can tell which prices it was computed with; the order of the file does not matter."""
    a, b = {"input": 1, "output": 2}, {"output": 2, "input": 3}
    versions = [
        PriceTable.load(read_overrides(section)).version
        for section in ({}, {"a": a}, {"a": a, "b": b}, {"b": b, "a": a})
    ]
    assert versions[0] == TABLE.version == DATA["version"]
    assert versions[2] == versions[3]
    assert len(set(versions)) == 3


@pytest.mark.parametrize(
    ("section", "message"),
    [
        (3, "[prices] must be a table"),
        ({"m": 3}, 'prices."m" must be a table'),
        ({"m": {"output": 1}}, 'prices."m" needs input'),
        ({"m": {"input": 1}}, 'prices."m" needs output'),
        (
            {"m": {"input": 1, "output": 1, "in": 1}},
            'prices."m" allows only input, output, cache_read, cache_write, cache_write_1h, not in',
        ),
        *[
            (
                {"m": {"input": 1, "output": wrong}},
                'prices."m".output must be a number of dollars per million tokens',
            )
            for wrong in ("1", True, None, -1, float("nan"), float("inf"))
        ],
        (
            {"m": {"input": 0.0000001, "output": 1}},
            'prices."m".input must not have more than six decimals',
        ),
    ],
)
def test_a_wrong_price_in_the_configuration_is_refused(section, message):
    with pytest.raises(ValueError) as caught:
        read_overrides(section)
    assert str(caught.value) == message


@given(st.integers(0, 10**12 - 1))
def test_a_price_of_six_decimals_is_read_exactly(pico):
    text = f"{pico // 10**6}.{pico % 10**6:06}"
    assert read_overrides({"m": {"input": float(text), "output": 0}})["m"]["input"] == pico


def test_the_file_is_sorted_whole_and_says_where_it_is_from():
    """So that a new version shows what changed, and nothing is lost to rounding."""
    pairs = json.loads(FILE.read_text("utf-8"), object_pairs_hook=list)
    assert [key for key, _ in pairs] == sorted(DATA)
    for key in ("models", "aliases", "factors"):
        assert [name for name, _ in dict(pairs)[key]] == sorted(DATA[key])
    assert DATA["unit"] == "pico-dollars per token"
    assert DATA["source"].startswith("genai-prices ")
    assert DATA["source"].endswith(" (MIT)")
    assert datetime.fromisoformat(DATA["version"]).date().isoformat() == DATA["version"]
    assert "Permission is hereby granted" in FILE.with_name("prices.LICENSE.txt").read_text()
    assert FILE.stat().st_size < 200_000


def test_every_price_is_a_whole_number_and_every_period_follows_the_one_before():
    """And a long prompt is never cheaper than a short one."""
    known = {"from", "minutes", "over", "above", "web_search", *prices._KINDS}
    for name, periods in DATA["models"].items():
        assert periods[0]["from"] is None, name
        starts = [period["from"] or "" for period in periods]
        assert starts == sorted(starts), name
        for period in periods:
            above = [part["above"] for part in period.get("over", ())]
            assert above == sorted(set(above)), name
            for part in (period, *period.get("over", ())):
                assert set(part) <= known, name
                rates = [part[kind] for kind in prices._KINDS if kind in part]
                assert {"input", "output"} <= set(part), name
                assert all(part.get(kind, 0) >= period.get(kind, 0) for kind in prices._KINDS), name
                assert all(type(rate) is int and rate >= 0 for rate in rates), name


def test_every_factor_belongs_to_a_model_of_the_table():
    for names in DATA["factors"].values():
        assert set(names) <= set(DATA["models"])
        assert all(above > 0 and below > 0 for above, below in names.values())


COUNT = st.integers(0, 3_000_000)
MODELS = st.sampled_from(sorted(DATA["models"]))
TIMES = st.integers(ms("2024-01-01"), ms("2027-12-31"))
# What a model that lists no price for the cache charges, in parts of the input price.
CLAUDE_CACHE = {
    "cache_read": Fraction(1, 10), "cache_write": Fraction(5, 4), "cache_write_1h": Fraction(2),
}  # fmt: skip


def reference(model: str, ts: int, tokens: dict[str, int], searches: int, factor: Fraction) -> int:
    """The same from the file, by fractions of dollars and with real dates."""
    moment = datetime.fromtimestamp(ts / 1000, UTC)
    minute = moment.hour * 60 + moment.minute
    for period in reversed(DATA["models"][model]):
        begun = (period["from"] or "") <= moment.date().isoformat()
        start, end = period.get("minutes", (0, 24 * 60))
        if begun and start <= minute < end:
            break
    prompt = sum(count for kind, count in tokens.items() if kind != "output")
    longer = [part for part in period.get("over", ()) if part["above"] < prompt]
    rates = longer[-1] if longer else period
    default = CLAUDE_CACHE if model.startswith("claude") else {}
    total = Fraction(0)
    for kind, count in tokens.items():
        other = rates["input"] * default.get(kind, 1)
        if kind == "cache_write_1h" and not default:
            other = rates.get("cache_write", other)
        total += Fraction(rates.get(kind, other)) / 10**12 * count * factor
    total += Fraction(period.get("web_search", 10**10)) / 10**12 * searches
    return int(total * 10**9 + Fraction(1, 2))


@given(
    MODELS, TIMES, st.tuples(COUNT, COUNT, COUNT, COUNT, COUNT), st.integers(0, 50), st.booleans()
)
def test_costs_equal_those_computed_with_fractions(model, ts, counts, searches, us):
    used, output, short, long, read = counts
    tokens = {
        "input": used, "output": output, "cache_write": short, "cache_write_1h": long,
        "cache_read": read,
    }  # fmt: skip
    factor = Fraction(11, 10) if us and model.startswith("claude") else Fraction(1)
    cost = TABLE.cost(
        model, ts, used, output, short + long, long, read, searches, geo="us" if us else None
    )
    assert cost == reference(model, ts, tokens, searches, factor)


@given(
    st.sampled_from(sorted({model for names in DATA["factors"].values() for model in names})),
    st.sampled_from(sorted(DATA["factors"])),
    TIMES,
    COUNT,
)
def test_factors_are_exact(model, tier, ts, count):
    factor = Fraction(*DATA["factors"][tier].get(model, (1, 1)))
    cost = TABLE.cost(model, ts, count, 1, 0, 0, 0, tier=tier)
    assert cost == reference(model, ts, {"input": count, "output": 1}, 0, factor)


@given(MODELS, TIMES, st.tuples(COUNT, COUNT, COUNT, COUNT, COUNT), st.integers(0, 4), COUNT)
def test_more_tokens_never_cost_less(model, ts, counts, which, more):
    used, output, short, long, read = counts
    grown = [*counts]
    grown[which] += more
    cost = must(TABLE.cost(model, ts, used, output, short + long, long, read))
    used, output, short, long, read = grown
    assert must(TABLE.cost(model, ts, used, output, short + long, long, read)) >= cost


def test_loading_shares_nothing_between_tables():
    """An override in one table does not reach another one."""
    data = json.loads(FILE.read_text("utf-8"))
    PriceTable(data, read_overrides({"gpt-5": {"input": 9, "output": 9}}))
    assert data == DATA
