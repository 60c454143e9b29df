"""The table of conversations of version 1: each is one value, which is replaced whole."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sess_schema import labels
from sessiond.engines.steps import hash64
from sessiond.sourcekit.base import (
    Conversation,
    Event,
    Item,
    Layout,
    Listed,
    NotReady,
    Record,
    SessionSpec,
    Table,
    Usage,
    borrowed_times,
    whole_object,
)
from sessiond.sourcekit.folders import absolute
from sessiond.sourcekit.foreign import Foreign
from sessiond.sourcekit.values import (
    OPAQUE,
    as_count,
    as_dict,
    as_line,
    as_list,
    as_text,
    as_time,
    decoded,
    strings,
)
from sessiond.sources.kiro.calls import blocks, call, result

_TABLE, _OLDER = "conversations_v2", "conversations"
_AFTER_LOGS = 1  # a session that was taken over by a later version has a log as well
_COUNTS = ("uncached_input", "output", "cache_write_input", "cache_read_input")


class KiroTables(Layout):
    """Kiro drops the oldest messages of a long or compacted conversation; the index keeps them."""

    def __init__(self) -> None:
        self._older: dict[str, str] = {}  # folders of conversations in the older table
        self._values: dict[str, dict[str, Any]] = {}  # messages of the conversation that is read

    def tables(self, db: Foreign) -> Sequence[Table]:  # noqa: ARG002 - a conversation has one row
        return ()

    def heads(self, db: Foreign) -> Iterable[tuple[str, Any]]:
        marks: dict[str, Any] = {}
        if db.has_table(_OLDER) and db.has(_OLDER, "key"):
            for key, size, name in db.rows(
                "SELECT key, length(value), json_extract(value, '$.conversation_id')"
                f" FROM {_OLDER} WHERE json_valid(value)"
            ):
                if isinstance(name, str):
                    marks[name], self._older[name] = (key, size), key
        if db.has_table(_TABLE):
            columns = "conversation_id, key, length(value), updated_at"
            for name, *mark in db.rows(f"SELECT {columns} FROM {_TABLE} ORDER BY updated_at"):
                marks[name] = mark
                self._older.pop(name, None)
        return marks.items()

    def whole(self, db: Foreign, conversation: str) -> Conversation | None:
        if conversation in self._older:
            query = f"SELECT key, value, NULL, NULL FROM {_OLDER} WHERE key = ?"
            rows = db.rows(query, (self._older[conversation],))
        else:
            rows = db.rows(
                f"SELECT key, value, created_at, updated_at FROM {_TABLE}"
                " WHERE conversation_id = ? ORDER BY updated_at DESC LIMIT 1",
                (conversation,),
            )
        if not rows:
            return None
        key, value, created, updated = rows[0]
        facts = decoded(value)
        if not isinstance(facts, dict):
            raise NotReady("a conversation that cannot be decoded")
        change, self._values = _conversation(conversation, facts)
        change.project, change.project_rank = absolute(key), 1
        change.created_at, change.updated_at = as_time(created), as_time(updated)
        return change

    def listing(self, db: Foreign, conversation: str) -> list[Listed]:  # noqa: ARG002
        return [Listed(key, (as_line(value),)) for key, value in self._values.items()]

    def fetch(
        self,
        db: Foreign,  # noqa: ARG002
        conversation: str,  # noqa: ARG002
        keys: Sequence[str],
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        for key in keys:
            yield key, self._values[key]

    def is_dropped(self, key: str) -> bool:  # noqa: ARG002
        return True

    def record(self, value: dict[str, Any]) -> Record:
        return _record(value)


def saved_conversation(path: str, data: bytes) -> Conversation:
    """A file with one value of the table."""
    facts = whole_object(data, "history", "is not a saved conversation")
    name = as_text(facts.get("conversation_id")) or os.path.splitext(os.path.basename(path))[0]
    change, values = _conversation(name, facts)
    change.items = [Item(key, value=value, record=_record(value)) for key, value in values.items()]
    change.times = borrowed_times(change.items, None)
    return change


def _conversation(
    name: str, facts: dict[str, Any]
) -> tuple[Conversation, dict[str, dict[str, Any]]]:
    """What is known of it as a whole, and its messages by key."""
    about = as_dict(facts.get("model_info"))
    model = as_text(about.get("model_id")) or as_text(facts.get("model"))
    window = as_count(about.get("context_window_tokens")) or None
    resume = ("kiro-cli", "chat", "--resume-id", name)
    change = Conversation(
        SessionSpec(name, fallback=_AFTER_LOGS, resume=resume),
        model=model if model != "auto" else None,
    )
    return change, dict(_messages(name, facts, window))


def _record(value: dict[str, Any]) -> Record:
    record = Record(value["kind"], native_id=value["id"], ts=as_time(value["at"]))
    if value["kind"] == "summary":
        record.events.append(Event("summary", value["text"], label=labels.COMPACT))
    elif value["kind"] == "user":
        _read_user(record, value["message"])
    else:
        _read_answer(record, value)
    return record


def _messages(
    conversation: str, facts: dict[str, Any], window: int | None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each entry is a prompt or results with the answer to them."""
    summary = facts.get("latest_summary")
    text = as_text(summary[0] if isinstance(summary, list) and summary else summary)
    if text:
        meta = as_dict(summary[1]) if isinstance(summary, list) and len(summary) > 1 else {}
        key = f"summary-{hash64(text.encode('utf-8', 'replace')):x}"
        about = {"id": f"{conversation}/{key}", "at": meta.get("stream_end_timestamp_ms")}
        yield key, {"kind": "summary", "text": text, **about}
    for entry in map(as_dict, as_list(facts.get("history"))):
        user, answer = as_dict(entry.get("user")), as_dict(entry.get("assistant"))
        meta = as_dict(entry.get("request_metadata"))
        name = _name(answer, meta) or f"{hash64(as_line(entry)):x}"
        began = as_text(user.get("timestamp")) or meta.get("request_start_timestamp_ms")
        if user:
            about = {"id": f"{conversation}/{name}/user", "at": began}
            yield f"{name}/user", {"kind": "user", "message": user, **about}
        if answer:
            about = {"id": name, "at": meta.get("stream_end_timestamp_ms") or began}
            spent = {"meta": meta, "window": window}
            yield name, {"kind": "assistant", "message": answer, **about, **spent}


def _name(answer: dict[str, Any], meta: dict[str, Any]) -> str | None:
    said = next((as_dict(value) for value in answer.values()), {})
    names = (said.get("message_id"), meta.get("message_id"), meta.get("request_id"))
    return next((name for name in map(as_text, names) if name), None)


def _read_user(record: Record, message: dict[str, Any]) -> None:
    record.role = "user"
    env = as_dict(as_dict(message.get("env_context")).get("env_state"))
    record.cwd = absolute(env.get("current_working_directory"))
    content = as_dict(message.get("content"))
    for kind, part in content.items():
        for number, one in enumerate(as_list(as_dict(part).get("tool_use_results"))):
            pointer = f"/message/content/{kind}/tool_use_results/{number}/content"
            _read_result(record, as_dict(one), pointer, canceled=kind == "CancelledToolUses")
        images = len(as_list(message.get("images")))
        text = (as_text(as_dict(part).get("prompt")) or "").strip()
        if text or (images and kind == "Prompt"):
            record.ask(text, images)
        if kind not in ("Prompt", "CancelledToolUses", "ToolUseResults"):
            record.warnings.append(f"message of an unknown kind: {kind}")
    record.say("system", message.get("additional_context"), labels.CONTEXT)


def _read_result(record: Record, one: dict[str, Any], pointer: str, *, canceled: bool) -> None:
    call_id = as_text(one.get("tool_use_id"))
    if call_id is None:
        return
    text, images, broke = blocks(one.get("content"))
    failed = broke or str(one.get("status", "")).casefold() == "error"
    outcome = result(call_id, text, failed=failed, images=images, pointer=pointer)
    outcome.status = "denied" if canceled else outcome.status
    record.results.append(outcome)


def _read_answer(record: Record, value: dict[str, Any]) -> None:
    record.role = "assistant"
    meta = as_dict(value["meta"])
    model = as_text(meta.get("model_id"))
    record.model = model if model != "auto" else None
    for kind, part in value["message"].items():
        said = as_dict(part)
        thought = "\n".join(strings(said.get("thinking"), OPAQUE | {"redactedContent"})).strip()
        record.say("thinking", thought)
        record.say("assistant", said.get("content"))
        for number, use in enumerate(map(as_dict, as_list(said.get("tool_uses")))):
            pointer = f"/message/{kind}/tool_uses/{number}/args"
            name, call_id = as_text(use.get("name")), as_text(use.get("id"))
            record.events.append(call(name, use.get("args"), call_id, pointer))
        if kind not in ("Response", "ToolUse"):
            record.warnings.append(f"message of an unknown kind: {kind}")
    counts = [as_count(meta.get(f"{name}_tokens")) for name in _COUNTS]
    if any(counts):
        given, said_, written, read = counts
        record.usage = Usage(
            record.native_id,
            as_text(meta.get("request_id")),
            record.model or model,
            None,
            given,
            said_,
            written,
            0,
            read,
            context_window=value["window"],
            fallback=_AFTER_LOGS,
        )
