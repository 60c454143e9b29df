"""Reads a chat session: each request is a prompt and a response."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sess_schema import labels
from sessiond.families.copilot.results import SAID, usage_of
from sessiond.sourcekit.base import (
    TITLE_PROMPT,
    Conversation,
    Event,
    Item,
    Record,
    SessionSpec,
    Title,
)
from sessiond.sourcekit.folders import of_uri
from sessiond.sourcekit.titles import prompt_title
from sessiond.sourcekit.values import as_count, as_dict, as_text, as_time
from sessiond.sources.vscode.responses import Response

_ANSWER = (
    *("response", "result", "isCanceled", "modelId", "requestId", "timestamp", "modelState"),
    *("responseTimestamp", "completionTokens"),
)
_VENDORS = ("copilot/", "github/")


def read_chat(
    chat: dict[str, Any], name: str, project: str | None, rank: int
) -> Iterator[Conversation]:
    """The session, and its subagents."""
    session = as_text(chat.get("sessionId")) or name
    scope = f"{session}@{rank}" if rank else session  # what is hidden owns nothing that is shown
    items: list[Item] = []
    below: dict[str, list[Item]] = {}
    for number, request in enumerate(chat["requests"]):
        facts = as_dict(request)
        key = as_text(facts.get("requestId")) or str(number)
        items.append(_prompt(facts, f"{scope}/{key}", key))
        response = _answer(facts, f"{scope}/{key}", f"{session}/{key}")
        items.append(response.item)
        for call_id, child in response.children():
            below.setdefault(call_id, []).append(child)
    project = project or of_uri(chat.get("workingDirectory"))
    title = as_text(chat.get("customTitle")) or as_text(chat.get("computedTitle"))
    spec = SessionSpec(session, title=title, project=project, fallback=rank)
    # Of copies in several windows, the one that was used last has the project.
    latest = max((item.ts or 0 for item in items), default=0)
    rank_of_project = 1 + latest // 1000 if project else 0
    yield Conversation(
        spec,
        items=items,
        project=project,
        project_rank=rank_of_project,
        created_at=as_time(chat.get("creationDate")),
        updated_at=as_time(chat.get("lastMessageDate")),
    )
    for call_id, found in below.items():
        spec = SessionSpec(
            f"{session}/{call_id}",
            kind="subagent",
            parent=session,
            call_id=call_id,
            title=_task(items, call_id),
            project=project,
            fallback=rank,
        )
        yield Conversation(spec, items=found, project=project, project_rank=rank_of_project)


def _task(items: list[Item], call_id: str) -> str | None:
    """What the call asks that began a subagent."""
    events = [event for item in items if item.record for event in item.record.events]
    return next((event.summary for event in events if event.call_id == call_id), None)


def _prompt(request: dict[str, Any], native_id: str, key: str) -> Item:
    record = Record("request", role="user", native_id=native_id)
    record.ts = as_time(request.get("timestamp"))
    message = request.get("message")
    text = as_text(message) or as_text(as_dict(message).get("text")) or ""
    images = _images(as_dict(request.get("variableData")).get("variables"))
    if request.get("isSystemInitiated") is True:  # as when a command in the background ends
        record.say("system", text, labels.TASK)
    elif text.strip() or images:
        record.events.append(Event("user", text.strip() or "[image]", images=images))
        if title := prompt_title(text):
            record.titles.append(Title(title, TITLE_PROMPT))
    raw = {name: value for name, value in request.items() if name not in _ANSWER[:2]}
    return Item(key, value=raw, record=record)


def _images(variables: Any) -> int:
    listed = [as_dict(one) for one in (variables if isinstance(variables, list) else ())]
    return sum(one.get("kind") == "image" or bool(one.get("mimeType")) for one in listed)


def _answer(request: dict[str, Any], native_id: str, spent_by: str) -> Response:
    value = {name: request[name] for name in _ANSWER if name in request}
    result = as_dict(value.get("result"))
    metadata, timings = as_dict(result.get("metadata")), as_dict(result.get("timings"))
    response = Response(value, native_id)
    record = response.record
    asked = as_time(value.get("timestamp"))
    ended = as_time(as_dict(value.get("modelState")).get("completedAt"))
    took = as_count(timings.get("totalElapsed"))
    ended = ended or as_time(value.get("responseTimestamp"))
    record.ts = ended or (asked + took if asked is not None else None)
    record.model = _model(metadata, value)
    response.read()
    error = as_dict(result.get("errorDetails"))
    if message := as_text(error.get("message")):
        record.events.append(Event("system", message, label=labels.API_ERROR))
    if value.get("isCanceled") is True:
        record.events.append(Event("system", "Canceled", label=labels.INTERRUPTED))
    spent = as_dict(result.get("usage")) | metadata
    entered, written = spent.get("promptTokens"), spent.get("outputTokens")
    written = written or spent.get("completionTokens") or value.get("completionTokens")
    if as_count(entered) or as_count(written):
        record.usage = usage_of(spent_by, record.model, [entered, 0, 0], written, 0)
        record.usage.fallback = SAID
    return response


def _model(metadata: dict[str, Any], value: dict[str, Any]) -> str | None:
    model = as_text(metadata.get("resolvedModel")) or as_text(value.get("modelId"))
    for vendor in _VENDORS:
        model = model.removeprefix(vendor) if model else None
    return None if model in ("auto", "") else model
