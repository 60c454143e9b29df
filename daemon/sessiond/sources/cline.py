"""Cline: its tasks and, since version 4.1, its sessions."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sessiond.families.editor_tasks import EditorTaskSource
from sessiond.sourcekit.base import (
    SOURCE_CODE,
    Conversation,
    Item,
    NotReady,
    Record,
    SessionSpec,
    Usage,
    whole_json,
)
from sessiond.sourcekit.disk import small_file, small_json
from sessiond.sourcekit.folders import absolute
from sessiond.sourcekit.values import as_count, as_dict, as_dollars, as_list, as_text, as_time

if TYPE_CHECKING:
    from sessiond.families.editor_tasks.sent import Messages

_MESSAGES = ".messages.json"


class ClineSource(EditorTaskSource):
    agent = "cline"
    title = "Cline"
    extension = "saoudrizwan.claude-dev"
    variables = ("CLINE_DIR", "CLINE_DATA_DIR", "CLINE_SESSION_DATA_DIR")
    reads = (
        "Tasks of the VS Code extension and of other hosts, and the sessions that the extension"
        " and the command line have kept since 4.1, with their subagents."
    )
    leaves = (
        ("checkpoints/, context_history.json", "copies of files and of what the messages have"),
        ("data/db/sessions.db", "an index of the sessions; their files have everything"),
        ("*.compaction.json", "a shortened copy of the messages"),
        ("data/secrets.json, data/globalState.json", "credentials and settings"),
    )
    known_from = SOURCE_CODE

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.documents = _Documents(self.documents)

    def places(self) -> list[str]:
        data = self.moved("CLINE_DATA_DIR") or os.path.join(
            self.moved("CLINE_DIR") or os.path.join(self.folders.home(), ".cline"), "data"
        )
        sessions = self.moved("CLINE_SESSION_DATA_DIR") or os.path.join(data, "sessions")
        return [*super().places(), os.path.join(data, "tasks"), sessions]

    def classify(self, path: str) -> str | None:
        return "document" if path.endswith(_MESSAGES) else super().classify(path)

    def claims(self, path: str, head: bytes) -> bool:
        if path.endswith(_MESSAGES):
            return b'"messages"' in head and b'"role"' in head
        return super().claims(path, head)

    def sidecars(self, path: str) -> Sequence[str]:
        if not path.endswith(_MESSAGES):
            return super().sidecars(path)
        folder = os.path.dirname(path)
        session = os.path.join(folder, os.path.basename(folder))
        lead = f"{session}{_MESSAGES}"
        return (f"{session}.json",) if path == lead else (f"{session}.json", lead)


class _Documents:
    """Tasks, and the sessions that replaced them."""

    def __init__(self, tasks: Any) -> None:
        self._tasks = tasks

    def conversations(self, path: str, data: bytes) -> Iterator[Conversation]:
        if not path.endswith(_MESSAGES):
            yield from self._tasks.conversations(path, data)
            return

        yield read_session(path, data)


# -- sessions: a folder each, with the messages of the session and of each of its subagents

_LARGEST_MANIFEST, _LARGEST_PARENT = 1 << 20, 64 << 20


def read_session(path: str, data: bytes) -> Conversation:
    """One conversation; the file is named after the session or the subagent."""
    from sessiond.families.editor_tasks.sent import Messages  # when something changed

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
        model=record.model,
        input_tokens=max(0, given - reads - writes),
        output_tokens=output,
        cache_write_tokens=writes,
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
        for block in as_list(message.get("content")):
            task = as_text(as_dict(as_dict(block).get("input")).get("task"))
            if task and as_dict(block).get("type") == "tool_use" and task in asked:
                return as_text(block.get("id"))
    return None


SOURCE = ClineSource
