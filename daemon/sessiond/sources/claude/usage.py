"""Reads what a response used from its record."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sessiond.sourcekit.base import Usage
from sessiond.sourcekit.values import as_count, as_dict, as_text

SYNTHETIC = "<synthetic>"  # written by the client, not a model


def read_usage(value: dict[str, Any], message: dict[str, Any], model: str | None) -> Usage | None:
    """The usage on one line of a response; the store chooses among the lines."""
    counts = message.get("usage")
    if not isinstance(counts, dict) or message.get("model") == SYNTHETIC:
        return None
    return _usage(value, message, counts, model)


def read_advice(value: dict[str, Any], message: dict[str, Any]) -> list[Usage]:
    """The usage of models asked for advice, which the response's own counts leave out."""
    counts, message_id = as_dict(message.get("usage")), as_text(message.get("id"))
    iterations = counts.get("iterations")
    if not message_id or not isinstance(iterations, list):
        return []
    found = []
    for number, one in enumerate(iterations):
        if isinstance(one, dict) and one.get("type") == "advisor_message":
            advice = _usage({}, message, one, as_text(one.get("model")))
            request = as_text(value.get("requestId"))
            found.append(
                replace(
                    advice,
                    message_id=f"{message_id}#advice{number}",
                    request_id=f"{request}#advice{number}" if request else None,
                )
            )
    return found


def _usage(
    value: dict[str, Any], message: dict[str, Any], counts: dict[str, Any], model: str | None
) -> Usage:
    written = as_count(counts.get("cache_creation_input_tokens"))
    long_lived = 0
    split = counts.get("cache_creation")
    if isinstance(split, dict):
        long_lived = as_count(split.get("ephemeral_1h_input_tokens"))
        # The split may be partial, or the only count: the remainder is short-lived.
        short_lived = as_count(split.get("ephemeral_5m_input_tokens"))
        written = max(written, long_lived + short_lived)
    server = counts.get("server_tool_use")
    cost = value.get("costUSD")
    return Usage(
        message_id=as_text(message.get("id")),
        request_id=as_text(value.get("requestId")),
        model=model,
        stop_reason=as_text(message.get("stop_reason")),
        input_tokens=as_count(counts.get("input_tokens")),
        output_tokens=as_count(counts.get("output_tokens")),
        cache_write_tokens=written,
        cache_write_1h_tokens=long_lived,
        cache_read_tokens=as_count(counts.get("cache_read_input_tokens")),
        web_searches=as_count(as_dict(server).get("web_search_requests")) if server else 0,
        service_tier=as_text(counts.get("service_tier")),
        speed=as_text(counts.get("speed")),
        cost_usd=_as_cost(cost) if cost is not None else None,
        geo=as_text(counts.get("inference_geo")),
    )


def _as_cost(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 <= value < 1e9 else None
