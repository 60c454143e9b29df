"""The outcome of a call, and what models used."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from sessiond.sourcekit.base import Result, Usage
from sessiond.sourcekit.values import as_count, as_dict, as_milliseconds, as_text

# The last line of a shell's output; a failed command is a successful call for the agent.
_EXIT = re.compile(r"<[^<>\n]{0,80}?exit(?:ed)?(?: with)?(?: exit)? code:? (-?\d{1,10})>\s*\Z")
_TAIL = 200
_REFUSED = re.compile(r"reject|denied|deny|declin", re.IGNORECASE)
_REFUSALS = ("The user rejected", "Permission denied and could not request permission")
# Which of a session's records about usage counts, best first: rows of the store, the sum at its
# end, what single messages say.
STORED, SUMMED, SAID = 0, 1, 2


def result_of(data: dict[str, Any], call_id: str) -> Result:
    """The result in a `tool.execution_complete`."""
    result, error = as_dict(data.get("result")), as_dict(data.get("error"))
    contents = [*_blocks(result.get("contents"))]
    output = (
        as_text(result.get("content"))
        or as_text(data.get("result"))
        or as_text(error.get("message"))
        or as_text(result.get("detailedContent"))
        or "\n".join(text for block in contents if (text := as_text(block.get("text"))))
    )
    metrics = as_dict(as_dict(data.get("toolTelemetry")).get("metrics"))
    blocks = [*contents, *_blocks(result.get("binaryResultsForLlm"))]
    return Result(
        call_id,
        output or "",
        _status(data, error, output or "", contents),
        duration_ms=as_milliseconds(metrics.get("durationMs")),
        images=sum(block.get("type") == "image" for block in blocks),
        pointer="/data/result" if result else "/data/error",
    )


def _status(
    data: dict[str, Any], error: dict[str, Any], output: str, contents: list[dict[str, Any]]
) -> str:
    if data.get("success") is False or (error and data.get("success") is not True):
        refused = _REFUSED.search(as_text(error.get("code")) or "")
        return "denied" if refused or output.startswith(_REFUSALS) else "error"
    codes = [block.get("exitCode") for block in contents]
    codes.append(as_dict(data.get("shellExecution")).get("exitCode"))
    known = [code for code in codes if isinstance(code, int) and not isinstance(code, bool)]
    if not known and (found := _EXIT.search(output[-_TAIL:])):
        known = [int(found[1])]
    return "error" if any(known) else "ok"


def _blocks(value: Any) -> Iterator[dict[str, Any]]:
    for block in value if isinstance(value, list) else ():
        if isinstance(block, dict):
            yield block


def summed(end: dict[str, Any], session: str) -> list[Usage]:
    """What a whole session used, by model; each later sum includes the earlier ones."""
    found = []
    for model, metric in as_dict(end.get("modelMetrics")).items():
        usage, details = (as_dict(as_dict(metric).get(n)) for n in ("usage", "tokenDetails"))
        names = ("inputTokens", "cacheReadTokens", "cacheWriteTokens")
        counts = [usage.get(name) for name in names]
        output, reasoning = usage.get("outputTokens"), usage.get("reasoningTokens")
        used = usage_of(f"{session}:{model}", model, counts, output, reasoning)
        if details and not (used.input_tokens or used.output_tokens):
            used = _detailed(details, session, model, reasoning)
        found.append(used)
    if not any(used.input_tokens or used.output_tokens for used in found):
        details = as_dict(end.get("tokenDetails"))
        found = [_detailed(details, session, end.get("currentModel"), 0)]
    for used in found:
        used.fallback = SUMMED
    return [used for used in found if used.input_tokens or used.output_tokens]


def _detailed(details: dict[str, Any], session: str, model: Any, reasoning: Any) -> Usage:
    """Counts that were billed, each apart: here input is what did not come from the cache."""
    names = ("input", "cache_read", "cache_write", "output")
    given, read, written, output = (
        as_count(as_dict(details.get(name)).get("tokenCount")) for name in names
    )
    entered = [given + read + written, read, written]
    return usage_of(f"{session}:{model}", model, entered, output, reasoning)


def usage_of(key: str, model: Any, entered: list[Any], output: Any, reasoning: Any) -> Usage:
    """`entered`: all input, the part of it from the cache, and the part put there."""
    given, read, written = map(as_count, entered)
    said = as_count(output)
    return Usage(
        message_id=key,
        request_id=key,
        model=as_text(model),
        stop_reason=None,
        input_tokens=max(0, given - read - written),
        output_tokens=said,
        cache_write_tokens=written,
        cache_write_1h_tokens=0,
        cache_read_tokens=read,
        reasoning_tokens=min(said, as_count(reasoning)),
    )
