"""What an extension showed its user: when requests were made, what they used, what failed.

Times in the list are unique; newer versions count instead of reading the clock.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sessiond.sourcekit.base import Event, Record, Usage
from sessiond.sourcekit.values import as_count, as_dict, as_dollars, as_text, as_time

REQUEST, _FINISHED = "api_req_started", "api_req_finished"
COUNTED = frozenset({REQUEST, "deleted_api_reqs", "subagent_usage"})
_NOTICES = frozenset(
    {
        *("error", "api_req_failed", "clineignore_error", "rooignore_error", "diff_error"),
        *("condense_context_error", "mistake_limit_reached", "command_permission_denied"),
    }
)
# Providers whose prompt tokens include the cache, though the extension expects them apart.
_INCLUSIVE = frozenset(
    {
        *("openai", "litellm", "doubao", "fireworks", "hicap", "lmstudio", "qwen", "xai", "zai"),
    }
)
_EARLIEST = 1_000_000_000_000  # below this it is a counter, not a time


def said(message: dict[str, Any]) -> str:
    """What kind of message it is: `say` and `ask` share their names."""
    return as_text(message.get("say")) or as_text(message.get("ask")) or ""


def payload(message: dict[str, Any]) -> dict[str, Any]:
    """The JSON that some messages have as text."""
    text = as_text(message.get("text")) or ""
    if not text.startswith("{"):
        return {}
    try:
        return as_dict(json.loads(text))
    except (ValueError, RecursionError):
        return {}


def whole_requests(shown: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Versions of 2024 noted what a request used in a second message, when it had finished."""
    found: list[dict[str, Any]] = []
    last: int | None = None
    for message in shown:
        if said(message) == REQUEST:
            last = len(found)
        elif said(message) == _FINISHED and last is not None:
            facts = payload(found[last]) | payload(message)
            found[last] = {**found[last], "text": json.dumps(facts)}
            last = None
        found.append(message)
    return found


def moment(message: dict[str, Any]) -> int | None:
    ts = message.get("ts")
    return as_time(ts) if isinstance(ts, int | float) and ts >= _EARLIEST else None


@dataclass(slots=True, frozen=True)
class Meter:
    """How an extension counts: since when its input includes the cache, if ever."""

    task: str
    inclusive_since: int | None = None

    def usage(
        self, message: dict[str, Any], model: str | None, tokens: dict[str, Any] | None = None
    ) -> Usage | None:
        """Of a request; `tokens` are what the answer itself records."""
        facts = payload(message)
        given, output = as_count(facts.get("tokensIn")), as_count(facts.get("tokensOut"))
        reads, writes = as_count(facts.get("cacheReads")), as_count(facts.get("cacheWrites"))
        cost = facts.get("cost")
        if not (given or output or reads or writes) and tokens:
            reads = as_count(tokens.get("cached"))
            given = max(0, as_count(tokens.get("prompt")) - reads)
            output = as_count(tokens.get("completion"))
        elif self._includes_cache(message, facts, given, reads + writes):
            given = max(0, given - reads - writes)
        if not (given or output or reads or writes or cost):
            return None
        name = f"{self.task}/{message.get('ts')}"
        return Usage(
            message_id=name,
            request_id=name,  # the same in whatever file it is found
            model=model or as_text(as_dict(message.get("modelInfo")).get("modelId")),
            stop_reason=as_text(facts.get("cancelReason")) or "end",
            input_tokens=given,
            output_tokens=output,
            cache_write_tokens=writes,
            cache_write_1h_tokens=0,
            cache_read_tokens=reads,
            cost_usd=as_dollars(cost),
        )

    def _includes_cache(
        self, message: dict[str, Any], facts: dict[str, Any], given: int, cached: int
    ) -> bool:
        if given < cached:
            return False
        if self.inclusive_since is None:
            provider = as_text(as_dict(message.get("modelInfo")).get("providerId"))
            return provider in _INCLUSIVE
        protocol = facts.get("apiProtocol") or message.get("apiProtocol")
        return protocol != "anthropic" or (moment(message) or 0) >= self.inclusive_since


def match_requests(
    messages: Sequence[dict[str, Any]], shown: Sequence[dict[str, Any]]
) -> dict[int, int]:
    """By number of an answer in `messages`: the number of its request in `shown`.

    A request notes how many messages there were before its prompt was added; else times
    decide, else the order.
    """
    answers = [n for n, one in enumerate(messages) if one.get("role") == "assistant"]
    requests = [n for n, one in enumerate(shown) if said(one) == REQUEST]
    times = [as_time(messages[n].get("ts")) or 0 for n in answers]
    found: dict[int, int] = {}
    for order, request in enumerate(requests):
        index = shown[request].get("conversationHistoryIndex")
        when = moment(shown[request])
        answer: int | None = None
        if isinstance(index, int) and not isinstance(index, bool):
            answer = index + 2
        elif when is not None and any(times):
            following = [shown[n] for n in requests[order + 1 : order + 2]]
            until = moment(following[0]) if following else None
            at = bisect_left(times, when)
            if at < len(answers) and (until is None or times[at] < until):
                answer = answers[at]
        elif order < len(answers):
            answer = answers[order]
        if answer is not None and answer in answers:
            found[answer] = request
    return found


def date_messages(
    messages: Sequence[dict[str, Any]],
    shown: Sequence[dict[str, Any]],
    matched: dict[int, int],
) -> dict[int, int]:
    """Times of messages that have none: a prompt was sent with its request, and an answer
    began with what is shown next."""
    times: dict[int, int] = {}
    for answer, request in matched.items():
        sent = moment(shown[request])
        if sent is None:
            continue
        later = (moment(one) for one in shown[request + 1 : request + 2] if said(one) != REQUEST)
        times[answer] = next((when for when in later if when is not None), sent)
        if answer and messages[answer - 1].get("role") != "assistant":
            times[answer - 1] = sent
    return times


def notice(message: dict[str, Any], meter: Meter) -> Record | None:
    """A record of what is only shown: requests without an answer, failures, other costs."""
    kind = said(message)
    condensed = as_dict(message.get("contextCondense"))
    record = Record(kind, role="system", native_id=f"{meter.task}/shown/{message.get('ts')}")
    record.ts = moment(message)
    if kind in COUNTED:
        record.usage = meter.usage(message, None)
        failure = as_text(payload(message).get("streamingFailedMessage"))
        if failure:
            record.events.append(Event("system", failure, label="error"))
        return record if record.usage or failure else None
    if condensed.get("cost"):
        cost = {"cost": condensed["cost"]}
        record.usage = meter.usage({"ts": message.get("ts"), "text": json.dumps(cost)}, None)
        return record
    if kind in _NOTICES and (text := as_text(message.get("text"))):
        record.events.append(Event("system", text, label=kind))
        return record
    return None
