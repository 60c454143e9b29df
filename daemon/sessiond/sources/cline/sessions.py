"""Sessions: a folder each, with the messages of the session and of each of its subagents."""

from __future__ import annotations

import os
from typing import Any

from sessiond.families.editor_tasks.messages import Messages
from sessiond.sourcekit.base import Conversation, Item, NotReady, Record, SessionSpec, Usage
from sessiond.sourcekit.documents import whole_json
from sessiond.sourcekit.files import small_file, small_json
from sessiond.sourcekit.folders import absolute
from sessiond.sourcekit.values import as_count, as_dict, as_dollars, as_text, as_time

_MESSAGES = ".messages.json"
_LARGEST_MANIFEST, _LARGEST_PARENT = 1 << 20, 64 << 20


def read_session(path: str, data: bytes) -> Conversation:
    """One conversation; the file is named after the session or the subagent."""
    messages = _messages(whole_json(data))
    folder = os.path.dirname(path)
    session, stem = os.path.basename(folder), os.path.basename(path).removesuffix(_MESSAGES)
    manifest = small_json(os.path.join(folder, f"{session}.json"), _LARGEST_MANIFEST)
    reader = Messages(f"{session}/{stem}" if stem != session else session)
    items = []
    for number, message in enumerate(messages):
        key = as_text(message.get("id")) or str(number)
        record = _read(reader, key, message, manifest)
        items.append(Item(key, number, value=message, record=record))
    spec = _spec(folder, session, stem, manifest, messages)
    project = absolute(manifest.get("cwd")) or absolute(manifest.get("workspace_root"))
    return Conversation(
        spec,
        items=items,
        project=project,
        project_rank=2 if project else 0,
        created_at=as_time(manifest.get("started_at")),
        updated_at=as_time(manifest.get("ended_at")),
    )


def _messages(value: Any) -> list[dict[str, Any]]:
    listed = value.get("messages") if isinstance(value, dict) else value
    if not isinstance(listed, list):
        raise NotReady("is not a list of messages")
    return [one if isinstance(one, dict) else {"content": one} for one in listed]


def _spec(
    folder: str,
    session: str,
    stem: str,
    manifest: dict[str, Any],
    messages: list[dict[str, Any]],
) -> SessionSpec:
    if stem != session:
        return SessionSpec(
            stem,
            home=session,
            kind="subagent",
            parent=session,
            call_id=_started_by(os.path.join(folder, f"{session}{_MESSAGES}"), messages),
        )
    title = as_text(as_dict(manifest.get("metadata")).get("title"))
    prompt = as_text(manifest.get("prompt")) or ""
    return SessionSpec(
        session,
        title=title if title and title not in prompt else None,  # else it is the first prompt
        resume=("cline", "--resume", session) if manifest.get("source") == "cli" else (),
    )


def _read(reader: Messages, key: str, message: dict[str, Any], manifest: dict[str, Any]) -> Record:
    about = as_dict(message.get("metadata"))
    if about.get("displayRole") == "system" and message.get("role") == "user":
        message = {**message, "role": "system"}
    record = reader.read(key, message, "")
    if message.get("role") == "system":
        record.warnings.clear()
    if record.role == "assistant":
        record.model = record.model or as_text(manifest.get("model"))
        record.usage = _usage(as_dict(message.get("metrics")), record)
    return record


def _usage(metrics: dict[str, Any], record: Record) -> Usage | None:
    """Here the input includes what was read from the cache and written to it."""
    reads, writes = (as_count(metrics.get(f"cache{way}Tokens")) for way in ("Read", "Write"))
    given, output = as_count(metrics.get("inputTokens")), as_count(metrics.get("outputTokens"))
    cost = metrics.get("cost")
    if not (given or output or reads or writes):
        return None
    return Usage(
        message_id=record.native_id,
        request_id=None,
        model=record.model,
        stop_reason=None,
        input_tokens=max(0, given - reads - writes),
        output_tokens=output,
        cache_write_tokens=writes,
        cache_write_1h_tokens=0,
        cache_read_tokens=reads,
        cost_usd=as_dollars(cost),
    )


def _started_by(parent: str, messages: list[dict[str, Any]]) -> str | None:
    """The parent's call that asked for this subagent's task; nothing records it."""
    asked = str(messages[0].get("content")) if messages else ""
    try:
        sent = _messages(whole_json(small_file(parent, _LARGEST_PARENT)))
    except NotReady:
        return None
    for message in reversed(sent):
        content = message.get("content")
        for block in content if isinstance(content, list) else ():
            task = as_text(as_dict(as_dict(block).get("input")).get("task"))
            if task and as_dict(block).get("type") == "tool_use" and task in asked:
                return as_text(block.get("id"))
    return None
