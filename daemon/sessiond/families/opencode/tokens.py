"""What a response used. Input is counted without what came from the cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sessiond.sourcekit.base import Record, Usage
from sessiond.sourcekit.values import as_count, as_dict, as_text

_HIGHEST_COST = 1e6


def usage_of(info: dict[str, Any], steps: Sequence[dict[str, Any]], record: Record) -> Usage | None:
    """The sum of a message's steps; of several, the message itself repeats only the last."""
    counted = [step for step in steps if isinstance(step.get("tokens"), dict)] or [info]
    if not isinstance(counted[0].get("tokens"), dict):
        return None
    uses = [_tokens(step["tokens"]) for step in counted]
    cost = _cost(info) or sum(_cost(step) or 0.0 for step in counted)
    given, said, thought, written, read = map(sum, zip(*uses, strict=True))
    if not any((given, said, written, read)):
        return None
    return Usage(
        message_id=record.native_id,
        request_id=None,
        model=record.model,
        stop_reason=as_text(info.get("finish")),
        input_tokens=given,
        output_tokens=said,
        cache_write_tokens=written,
        cache_write_1h_tokens=0,
        cache_read_tokens=read,
        cost_usd=cost or None,  # nothing is recorded for models without a known price
        reasoning_tokens=thought,
    )


def _tokens(tokens: dict[str, Any]) -> tuple[int, int, int, int, int]:
    """Input, output with reasoning, reasoning, cache written, cache read."""
    cache = as_dict(tokens.get("cache"))
    read, written = as_count(cache.get("read")), as_count(cache.get("write"))
    given, said = as_count(tokens.get("input")), as_count(tokens.get("output"))
    thought, total = as_count(tokens.get("reasoning")), as_count(tokens.get("total"))
    # Some versions count reasoning as output already; the total tells which.
    included = total and total == given + said + read + written
    return given, said if included else said + thought, thought, written, read


def _cost(value: dict[str, Any]) -> float | None:
    cost = value.get("cost")
    if not isinstance(cost, (int, float)) or isinstance(cost, bool):
        return None
    return float(cost) if 0 < cost < _HIGHEST_COST else None
