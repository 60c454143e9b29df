"""Parses one line of a Claude Code transcript into one record."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from sess_schema import labels
from sessiond.sourcekit import values as contents
from sessiond.sourcekit.base import (
    LINK_PROGRESS,
    LINK_QUEUE,
    TITLE_AI,
    TITLE_CUSTOM,
    TITLE_SUMMARY,
    Conversation,
    Event,
    Item,
    Record,
    Retire,
    SessionSpec,
    Title,
    Usage,
    whole_object,
)
from sessiond.sourcekit.values import as_count, as_dict, as_text, as_time
from sessiond.sources.claude import blocks, notices
from sessiond.sources.claude.blocks import Repeats
from sessiond.sources.claude.injected import agent_file
from sessiond.sources.claude.prompts import Prompt, Queue, machine_label

_TITLES = {
    "custom-title": ("customTitle", TITLE_CUSTOM),
    "ai-title": ("aiTitle", TITLE_AI),
    "summary": ("summary", TITLE_SUMMARY),
}
# What the client wrote as a title when the model could not be asked for one.
_FAILURES = ("API Error", "Credit balance is too low", "Invalid API key", "Prompt is too long")
_AGENT_NOTE = "agentId: "


class ClaudeParser:
    """Parses the records of one file in order; `state` keeps what it needs between them."""

    def __init__(self, spec: SessionSpec, state: dict[str, Any]) -> None:
        self._spec = spec
        last_ts = state.get("ts")
        self._last_ts: int | None = last_ts if isinstance(last_ts, int) else None
        self._repeats = Repeats(state)
        self._queue = Queue(state)
        self._readers: dict[str, Callable[[Record, dict[str, Any]], None]] = {
            "assistant": self._read_assistant,
            "user": self._read_user,
            "system": self._read_system,
            "attachment": self._read_attachment,
            "progress": self._read_progress,
            "queue-operation": self._queue.read,
            "pr-link": self._read_pull_request,
            "tool_use": self._read_bare_call,
            "tool_result": self._read_bare_result,
            **dict.fromkeys(_TITLES, self._read_title),
            **dict.fromkeys(notices.SILENT, self._read_nothing),
        }

    def state(self) -> dict[str, Any]:
        state = self._repeats.state() | self._queue.state()
        if self._last_ts is not None:
            state["ts"] = self._last_ts
        return state

    def parse(self, value: dict[str, Any]) -> Record:
        record = Record(as_text(value.get("type")) or "unknown")
        message = value.get("message")
        role = as_text(message.get("role")) if isinstance(message, dict) else None
        role = role or as_text(value.get("role"))
        if role is None and record.kind in ("assistant", "user"):
            role = record.kind
        record.role = role
        read_envelope(record, value, self._spec)
        self._read_time(record, value)
        reader = self._readers.get(record.kind)
        if reader is None and isinstance(message, dict) and role in ("assistant", "user"):
            reader = self._readers[role]
        (reader or self._read_other)(record, value)
        return record

    def _read_time(self, record: Record, value: dict[str, Any]) -> None:
        written = value.get("timestamp")
        record.ts = as_time(written)
        if record.ts is not None:
            self._last_ts = record.ts
            return
        if written is not None:
            record.warnings.append("bad timestamp")
        if self._last_ts is not None:
            record.ts, record.ts_from = self._last_ts, "previous"

    # -- the conversation

    def _message(self, record: Record, value: dict[str, Any]) -> dict[str, Any] | None:
        message = value.get("message")
        if isinstance(message, dict):
            return message
        if message is None:
            return value
        record.warnings.append("message is not an object")
        self._add(record, notices.other_event(record.kind, {"message": message}))
        return None

    def _read_assistant(self, record: Record, value: dict[str, Any]) -> None:
        message = self._message(record, value)
        if message is None:
            return
        model = as_text(message.get("model"))
        record.model = model if model != SYNTHETIC else None
        record.usage = read_usage(value, message, record.model)
        record.advice = read_advice(value, message)
        label = labels.API_ERROR if value.get("isApiErrorMessage") is True else None
        response = self._repeats.response(
            as_text(message.get("id")), as_text(value.get("requestId"))
        )
        for pointer, block in _elements(record, value, message):
            if blocks.is_result(block.get("type")):
                self._read_result(record, value, pointer, block, None)
            else:
                self._add(record, blocks.assistant_event(block, pointer, response, label))

    def _read_user(self, record: Record, value: dict[str, Any]) -> None:
        message = self._message(record, value)
        if message is None:
            return
        if value.get("isCompactSummary") is True:
            text = blocks.joined_texts(message.get("content"), record.warnings)
            self._add(record, Event("summary", text, label=labels.COMPACT))
            return
        prompt = Prompt(machine_label(value))
        parts = [*_elements(record, value, message)]
        results = sum(block.get("type") == "tool_result" for _, block in parts)
        if not results and self._is_main_thread(record):
            self._queue.note_content(message.get("content"))
        # The record's own copy of a result does not name its block if there are several.
        details = value.get("toolUseResult") if results == 1 else None
        for pointer, block in parts:
            if blocks.is_result(block.get("type")):
                self._read_result(record, value, pointer, block, details)
            else:
                prompt.add(block)
        self._finish_prompt(record, prompt)
        if prompt.typed and self._is_main_thread(record):
            self._repeats.forget_responses()
            self._queue.note_prompt(record, prompt.typed)

    def _finish_prompt(self, record: Record, prompt: Prompt) -> None:
        record.events += prompt.events()
        record.links += prompt.links
        if self._is_main_thread(record):
            record.titles += prompt.titles()

    def _is_main_thread(self, record: Record) -> bool:
        """Every record in a subagent's own file is marked as a sidechain of its parent."""
        return not record.sidechain or self._spec.kind != "main"

    def _read_result(
        self,
        record: Record,
        value: dict[str, Any],
        pointer: str,
        block: dict[str, Any],
        details: Any,
    ) -> None:
        call_id = as_text(block.get("tool_use_id")) or as_text(value.get("sourceToolUseID"))
        denial = value.get("toolDenialKind")
        result = blocks.tool_result(block, pointer, call_id or "", details, denial)
        if call_id is None:
            self._add(record, Event("system", result.output.strip(), label=labels.TOOL_RESULT))
            return
        record.results.append(result)
        agent_id = as_text(details.get("agentId")) if isinstance(details, dict) else None
        if agent_id:
            record.link(agent_file(agent_id), call_id)
        else:
            self._read_agent_note(record, block.get("content"), call_id)

    def _read_agent_note(self, record: Record, content: Any, call_id: str) -> None:
        """Some results name their subagent only in a line of text after the answer."""
        if not isinstance(content, list) or len(content) < 2:
            return
        note = content[-1].get("text") if isinstance(content[-1], dict) else None
        if isinstance(note, str) and note.startswith(_AGENT_NOTE):
            agent_id = note[len(_AGENT_NOTE) :][:100].split(maxsplit=1)
            if agent_id:
                record.link(agent_file(agent_id[0]), call_id, LINK_QUEUE)

    def _read_bare_call(self, record: Record, value: dict[str, Any]) -> None:
        call_id = as_text(value.get("id")) or as_text(value.get("tool_use_id")) or record.native_id
        event = blocks.tool_call(value.get("name"), call_id, value.get("input"), "/input")
        if call_id is not None:
            self._repeats.open_call(event.tool or "", call_id)
        record.events.append(event)

    def _read_bare_result(self, record: Record, value: dict[str, Any]) -> None:
        name = "output" if "output" in value else "content"
        call_id = self._repeats.close_call(as_text(value.get("name")) or "")
        call_id = as_text(value.get("tool_use_id")) or call_id
        block = {"content": value.get(name), "is_error": value.get("is_error")}
        result = blocks.tool_result(
            block, "", call_id or "", value.get("toolUseResult"), value.get("toolDenialKind")
        )
        result.pointer = f"/{name}"
        if call_id is not None:
            record.results.append(result)
        else:
            self._add(record, Event("system", result.output.strip(), label=labels.TOOL_RESULT))

    # -- everything else

    def _add(self, record: Record, event: Event | None) -> None:
        if event is not None and (event.text or event.type == "tool_use"):
            record.events.append(event)

    def _add_if_new(self, record: Record, event: Event | None) -> None:
        """Skip repeats of records without an id, which are appended repeatedly."""
        if event is not None and (
            record.native_id or self._repeats.is_new_note(record.kind, event.text)
        ):
            self._add(record, event)

    def _read_nothing(self, record: Record, value: dict[str, Any]) -> None:
        """Kept as a turn, without events."""

    def _read_other(self, record: Record, value: dict[str, Any]) -> None:
        if record.kind == "unknown" and "display" in value:
            self._add(record, notices.history_event(value))
            record.cwd = record.cwd or as_text(value.get("project"))
        else:
            self._add_if_new(record, notices.other_event(record.kind, value))

    def _read_title(self, record: Record, value: dict[str, Any]) -> None:
        name, rank = _TITLES[record.kind]
        text = (as_text(value.get(name)) or "").strip()
        if text and not text.startswith(_FAILURES):
            leaf = as_text(value.get("leafUuid")) if rank == TITLE_SUMMARY else None
            record.titles.append(Title(" ".join(text.split()), rank, leaf))
        self._add_if_new(record, Event("summary", text, label=record.kind))

    def _read_system(self, record: Record, value: dict[str, Any]) -> None:
        record.events += notices.system_events(value)

    def _read_attachment(self, record: Record, value: dict[str, Any]) -> None:
        attachment = value.get("attachment")
        if not isinstance(attachment, dict):
            self._add(record, notices.other_event(record.kind, value))
            return
        if attachment.get("type") != "queued_command":
            record.events += notices.attachment_events(attachment)
            return
        mode = as_text(attachment.get("commandMode")) or "prompt"
        machine = machine_label(value) or machine_label(attachment)
        if machine is None and mode not in ("prompt", "bash"):
            machine = mode
        prompt = Prompt(machine, queued=labels.QUEUED if mode != "bash" else labels.BASH)
        content = attachment.get("prompt")
        for _, block in contents.content_blocks(content, "/attachment/prompt", record.warnings):
            prompt.add(block)
        self._finish_prompt(record, prompt)
        if machine is None:
            self._queue.note_record(record, prompt.typed)

    def _read_progress(self, record: Record, value: dict[str, Any]) -> None:
        data = as_dict(value.get("data"))
        agent_id, call_id = as_text(data.get("agentId")), as_text(value.get("parentToolUseID"))
        if data.get("type") == "agent_progress" and agent_id and call_id:
            record.link(agent_file(agent_id), call_id, LINK_PROGRESS)
        nested = as_dict(data.get("message"))
        message = as_dict(nested.get("message"))
        # Without an id it cannot be matched with the same message in the subagent's own file.
        message_id = as_text(message.get("id"))
        if nested.get("type") == "assistant" and message_id:
            record.usage = read_usage(nested, message, as_text(message.get("model")))
            nameless = f"sidechain-{call_id or message_id}"
            record.usage_agent = agent_file(agent_id) if agent_id else nameless

    def _read_pull_request(self, record: Record, value: dict[str, Any]) -> None:
        url = as_text(value.get("prUrl"))
        self._add_if_new(record, Event("system", url, label=record.kind) if url else None)


def _elements(
    record: Record, value: dict[str, Any], message: dict[str, Any]
) -> Iterator[tuple[str, dict[str, Any]]]:
    place = "/content" if message is value else "/message/content"
    return contents.content_blocks(message.get("content"), place, record.warnings)


# -- the fields that surround the content

# Earlier records that left the conversation, as when another model answers instead.
_WITHDRAWN = ("retractedMessageUuids", "supersedesUuids")
_MOST_WITHDRAWN = 1000


def read_envelope(record: Record, value: dict[str, Any], spec: SessionSpec) -> None:
    """Everything but the time, which may come from the record before."""
    record.native_id = as_text(value.get("uuid"))
    record.parent_id = as_text(value.get("parentUuid"))
    record.cwd = as_text(value.get("cwd"))
    record.git_branch = as_text(value.get("gitBranch"))
    record.version = as_text(value.get("version"))
    record.mode = as_text(value.get("permissionMode"))
    record.sidechain = value.get("isSidechain") is True
    if record.sidechain:
        agent_id = as_text(value.get("agentId"))
        record.subagent = agent_file(agent_id) if agent_id else None
    record.forked = bool(value.get("forkedFrom")) or value.get("sessionKind") == "bg"
    if spec.kind == "main":
        session = as_text(value.get("sessionId"))
        if session != spec.native_id:
            record.session_alias = session
    for name in _WITHDRAWN:
        if name in value:
            record.retires += _withdrawn(record, value[name])


def _withdrawn(record: Record, listed: Any) -> list[Retire]:
    ids = listed[:_MOST_WITHDRAWN] if isinstance(listed, list) else []
    return [Retire(one) for one in ids if as_text(one) and one != record.native_id]


# -- what a response used

SYNTHETIC = "<synthetic>"  # written by the client, not a model
_CLASSES = (
    *("input_tokens", "output_tokens", "cache_write_tokens", "cache_write_1h_tokens"),
    "cache_read_tokens",
)


def read_usage(value: dict[str, Any], message: dict[str, Any], model: str | None) -> Usage | None:
    """The usage on one line of a response; the store chooses among the lines."""
    counts = message.get("usage")
    if not isinstance(counts, dict) or message.get("model") == SYNTHETIC:
        return None
    usage = _usage(value, message, counts, model)
    for one in _iterations(counts, "compaction"):  # the response's own counts leave it out
        more = _usage(value, message, one, model)
        for name in _CLASSES:
            setattr(usage, name, getattr(usage, name) + getattr(more, name))
    return usage


def read_advice(value: dict[str, Any], message: dict[str, Any]) -> list[Usage]:
    """The usage of models asked for advice, which the response's own counts leave out."""
    counts, message_id = as_dict(message.get("usage")), as_text(message.get("id"))
    if not message_id:
        return []
    usages = []
    for number, one in enumerate(_iterations(counts, "advisor_message")):
        advice = _usage({}, message, one, as_text(one.get("model")))
        request = as_text(value.get("requestId"))
        usages.append(
            replace(
                advice,
                message_id=f"{message_id}#advice{number}",
                request_id=f"{request}#advice{number}" if request else None,
            )
        )
    return usages


def _iterations(counts: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """The requests of this kind that the response was made with."""
    listed = counts.get("iterations")
    iterations = listed if isinstance(listed, list) else []
    return [one for one in iterations if isinstance(one, dict) and one.get("type") == kind]


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


# -- sessions of Claude Code on the web: `{"loglines": [...]}`, records as in transcripts

_AFTER_TRANSCRIPTS = 1  # `fallback`: the same session may be here as a transcript, too


def read_saved(path: str, data: bytes) -> Conversation:
    value = whole_object(data, "loglines", "has no loglines")
    lines = value["loglines"]
    spec = SessionSpec(
        _session(value, lines) or os.path.splitext(os.path.basename(path))[0],
        title=as_text(value.get("title")) or as_text(value.get("name")),
        fallback=_AFTER_TRANSCRIPTS,
    )
    parser = ClaudeParser(spec, {})
    items = []
    for number, line in enumerate(lines):
        record = line if isinstance(line, dict) else {"type": "other", "content": line}
        key = as_text(record.get("uuid")) or f"#{number}"
        items.append(Item(key, number, value=record, record=parser.parse(record)))
    project = next((item.record.cwd for item in items if item.record and item.record.cwd), None)
    return Conversation(spec, items=items, project=project, project_rank=1 if project else 0)


def _session(value: dict[str, Any], lines: list[Any]) -> str | None:
    named = (as_text(line.get("sessionId")) for line in lines if isinstance(line, dict))
    here = (as_text(value.get(name)) for name in ("id", "session_id", "uuid"))
    return next(filter(None, named), None) or next(filter(None, here), None)
