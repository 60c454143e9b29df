"""Sessions as OpenTelemetry traces: OTLP/JSON by the GenAI semantic conventions, 1.41.1.

A session is a trace: `invoke_agent`, below it a `chat` for each response of a model and an
`execute_tool` for each call, below that the subagent which the call started. IDs are hashes of
what the spans are about, so what is sent again is the same span and not a second one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

from sess_cli.export import atif
from sess_cli.export.atif import Step
from sess_cli.export.files import Failures, all_or_nothing
from sess_cli.export.json_values import as_json
from sess_cli.export.receiver import Receiver
from sess_cli.export.story import Item, Spent, Story
from sess_schema import __version__
from sess_schema.ids import SessionId
from sess_schema.queries import sessions
from sess_schema.queries.sessions import SessionRow

CONVENTIONS = "1.41.1"
_SCHEMA = f"https://opentelemetry.io/schemas/{CONVENTIONS}"
_INTERNAL, _CLIENT, _ERROR = 1, 3, 2  # span kinds, and a status
_LONGEST = 100_000  # characters of one text
_BATCH = 4 << 20  # bytes of one request; receivers take 20 MiB by default
_NANOSECONDS = 1_000_000  # in a millisecond
_LATEST = 1 << 43  # milliseconds; nanoseconds must fit into 64 bits
_PROVIDERS = {
    "claude": "anthropic", "gpt": "openai", "o1": "openai", "o3": "openai", "o4": "openai",
    "gemini": "gcp.gemini", "grok": "x_ai", "deepseek": "deepseek", "sonar": "perplexity",
    "mistral": "mistral_ai", "devstral": "mistral_ai", "codestral": "mistral_ai",
}  # fmt: skip

Span = dict[str, Any]


def requests(story: Story) -> Iterator[tuple[bytes, int]]:
    """Requests of a few megabytes, each with the number of its spans; none is empty."""
    spans: list[bytes] = []
    size = 0
    for span in map(as_json, _Trace(story).spans()):
        if spans and size + len(span) > _BATCH:
            yield _request(story, spans), len(spans)
            spans, size = [], 0
        spans.append(span)
        size += len(span)
    if spans:
        yield _request(story, spans), len(spans)


def write(stories: Sequence[Story], out: BinaryIO, failures: Failures) -> None:
    """One request per line, as collectors write and read files."""
    for story in stories:
        with failures.noted(story), all_or_nothing(out) as part:
            part.writelines(request + b"\n" for request, _ in requests(story))


def send(stories: Sequence[Story], receiver: Receiver, failures: Failures) -> None:
    for story in stories:
        with failures.noted(story):
            for request, spans in requests(story):
                receiver.send(request, spans)


def _request(story: Story, spans: Sequence[bytes]) -> bytes:
    resource = {
        "telemetry.sdk.name": "sessiond",
        "telemetry.sdk.language": "python",
        "telemetry.sdk.version": __version__,
        "service.name": story.row.agent,
        "service.version": story.row.version,
    }
    head = {"resourceSpans": [{"resource": {"attributes": _attributes(resource)}}]}
    scope = {"scope": {"name": "sessiond", "version": __version__}, "schemaUrl": _SCHEMA}
    return (
        as_json(head).removesuffix(b"}]}")
        + b',"scopeSpans":['
        + as_json(scope).removesuffix(b"}")
        + b',"spans":['
        + b",".join(spans)
        + b"]}]}]}"
    )


def _attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"key": key, "value": _value(value)} for key, value in values.items() if value is not None
    ]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}  # as JSON of protobuf has 64-bit numbers
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(one) for one in value]}}
    return {"stringValue": value}


# -- spans


def _digest(size: int, *parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[: 2 * size]


def _of(row: SessionRow) -> tuple[str, str, str]:
    return row.agent, row.home, row.session


class _Trace:
    """The spans of a session and its subagents."""

    def __init__(self, story: Story) -> None:
        self._top = story
        above = _above(story)
        self._id = _digest(16, "trace", *_of(above[-1] if above else story.row))
        there = above and sessions.is_read(story.db, above[0].key)
        self._parent = _digest(8, "agent", *_of(above[0])) if there else None

    def spans(self) -> Iterator[Span]:
        yield from self._session(self._top, self._parent, self._top.row.started or 0)

    def _session(self, story: Story, parent: str | None, began: int) -> Iterator[Span]:
        """The span of the agent comes last: it lasts as long as what is in it."""
        agent = _digest(8, "agent", *_of(story.row))
        spent, told = Spent(), list[dict[str, Any]]()
        moments, now = list[int](), story.row.started or began
        placed = set[SessionId]()
        for step in atif.steps(story.items()):
            if step.first.copied_from is not None:
                continue  # the session that had it first has its spans
            if step.spent is not None:
                spent.add(step.spent)
            if step.source != "agent":
                now = _moment(step.first, now)
                if step.source == "user":
                    told.append({"role": "user", "parts": [_text(step.text)]})
                moments.append(now)
                continue
            chat = self._chat(story, step, agent, told, now)
            yield chat
            now = _ends(chat)
            moments += (_begins(chat), now)
            told = []
            for name, call in zip(atif.call_ids(story, step.calls), step.calls, strict=True):
                tool = self._tool(story, call, name, agent, now)
                yield tool
                now = max(now, _ends(tool))
                moments += (_begins(tool), now)
                told.append({"role": "tool", "parts": [_response(name, call)]})
                if call.agent is not None:
                    placed.add(call.agent.row.key)
                    yield from self._session(call.agent, tool["spanId"], now)
        for child in story.children:
            if child.row.key not in placed:
                yield from self._session(child, agent, now)
        facts = {
            **_shared(story, "invoke_agent", story.models[0] if story.models else None),
            "gen_ai.agent.id": story.row.session,
            "gen_ai.agent.name": story.row.agent_type or story.row.agent,
            "gen_ai.agent.version": story.row.version,
            **_usage(spent),
            "sessiond.title": story.title or None,
            "sessiond.project": story.project or None,
            "sessiond.git_branch": story.branch or None,
        }
        name = f"invoke_agent {story.row.agent_type or story.row.agent}"
        during = (min(moments, default=now), max(moments, default=now))
        yield self._span(name, agent, parent, during, facts)

    def _chat(
        self, story: Story, step: Step, parent: str, told: list[dict[str, Any]], asked: int
    ) -> Span:
        """Agents note when a response was there, so it began with what was asked before."""
        first, last = step.items[0], step.items[-1]
        end = _moment(last, asked)
        start = min(asked, _moment(first, asked)) if told else _moment(first, end)
        parts = [
            *([{"type": "reasoning", "content": _cut(step.thoughts)}] if step.thoughts else []),
            *([_text(step.text)] if step.text else []),
            *(
                {
                    "type": "tool_call",
                    "id": name,
                    "name": call.tool or "unknown",
                    "arguments": _argument(call),
                }
                for name, call in zip(atif.call_ids(story, step.calls), step.calls, strict=True)
            ),
        ]
        why = "tool_call" if step.calls else "stop"
        answer = [{"role": "assistant", "parts": parts, "finish_reason": why}]
        model = step.spent.model if step.spent and step.spent.model else None
        model = model or (story.models[0] if story.models else None)
        facts = {
            **_shared(story, "chat", model),
            "gen_ai.response.finish_reasons": [why],
            **_usage(step.spent),
            "gen_ai.input.messages": _json(told) if told else None,
            "gen_ai.output.messages": _json(answer),
            "sessiond.event": step.first.key,
        }
        own = _digest(8, "chat", *_of(story.row), step.first.key)
        name = f"chat {model}" if model else "chat"
        return self._span(name, own, parent, (start, end), facts) | {"kind": _CLIENT}

    def _tool(self, story: Story, call: Item, name: str, parent: str, now: int) -> Span:
        start = _moment(call, now)
        end = call.answered if call.answered is not None else start + (call.duration_ms or 0)
        facts = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.conversation.id": story.row.session,
            "gen_ai.tool.name": call.tool or "unknown",
            "gen_ai.tool.call.id": name,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.arguments": _cut(_json(atif.arguments(call))),
            "gen_ai.tool.call.result": _cut(call.output) if call.output else None,
            "error.type": call.status if call.failed else None,
            "sessiond.event": call.key,
        }
        own = _digest(8, "tool", *_of(story.row), call.key)
        made = self._span(
            f"execute_tool {call.tool or 'unknown'}", own, parent, (start, end), facts
        )
        if call.failed:
            made["status"] = {"code": _ERROR}
        return made

    def _span(
        self,
        name: str,
        own: str,
        parent: str | None,
        times: tuple[int, int],
        facts: dict[str, Any],
    ) -> Span:
        """It never ends before it starts: receivers refuse everything beside one that does."""
        start = min(max(times[0], 0), _LATEST)
        end = min(max(times[1], start), _LATEST)
        made: Span = {"traceId": self._id, "spanId": own}
        if parent is not None:
            made["parentSpanId"] = parent
        return made | {
            "name": name,
            "kind": _INTERNAL,
            "startTimeUnixNano": str(start * _NANOSECONDS),
            "endTimeUnixNano": str(end * _NANOSECONDS),
            "attributes": _attributes(facts),
        }


def _begins(span: Span) -> int:
    return int(span["startTimeUnixNano"]) // _NANOSECONDS


def _ends(span: Span) -> int:
    return int(span["endTimeUnixNano"]) // _NANOSECONDS


def _above(story: Story) -> list[SessionRow]:
    """The sessions that started it, the nearest first: they are of the same trace."""
    rows, seen = list[SessionRow](), {story.row.key}
    above = story.row.parent_key
    while above is not None and above not in seen:
        seen.add(above)
        rows.append(sessions.by_key(story.db, above))
        above = rows[-1].parent_key
    return rows


def _moment(item: Item, otherwise: int) -> int:
    return item.ts if item.ts is not None else otherwise


def _shared(story: Story, operation: str, model: str | None) -> dict[str, Any]:
    return {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": _provider(model),
        "gen_ai.conversation.id": story.row.session,
        "gen_ai.request.model": model,
        "gen_ai.response.model": model if operation == "chat" else None,
    }


def _provider(model: str | None) -> str:
    name = (model or "").rpartition("/")[2].lower()
    known = (provider for start, provider in _PROVIDERS.items() if name.startswith(start))
    return next(known, "_OTHER")


def _usage(spent: Spent | None) -> dict[str, Any]:
    """Input tokens include what came from the cache and what went into it."""
    if spent is None or not spent.requests:
        return {}
    cached, written = spent.cache_read_tokens, spent.cache_write_tokens
    return {
        "gen_ai.usage.input_tokens": spent.input_tokens + cached + written,
        "gen_ai.usage.output_tokens": spent.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": cached,
        "gen_ai.usage.cache_creation.input_tokens": written,
        "sessiond.cost_usd": spent.cost_nano / 1e9 if spent.unpriced < spent.requests else None,
    }


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "content": _cut(text)}


def _argument(call: Item) -> Any:
    """As an object, unless that is too long to be sent whole."""
    value = atif.arguments(call)
    text = _json(value)
    return value if len(text) <= _LONGEST else _cut(text)


def _response(name: str, call: Item) -> dict[str, str]:
    return {"type": "tool_call_response", "id": name, "response": _cut(call.output)}


def _cut(text: str) -> str:
    left = len(text) - _LONGEST
    return text if left <= 0 else f"{text[:_LONGEST]} [{left:,} more characters]"


def _json(value: Any) -> str:
    return as_json(value).decode()
