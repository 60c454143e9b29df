"""Logs of entries that form a tree: a header, messages, and changes of settings and titles.

Branches stay in the log, in the order in which they were written. A fork copies entries with their
ids and times into another log.
"""

from __future__ import annotations

import os
import re
from typing import Any

import orjson

from sess_schema import kinds, labels
from sess_schema.chains import ONWARD, RECORDS, Chain, Count, Name, Pack
from sessiond.sourcekit.base import (
    LINK_RESULT,
    TITLE_AI,
    TITLE_CUSTOM,
    Event,
    Link,
    Record,
    Result,
    SessionSpec,
    Title,
    Usage,
)
from sessiond.sourcekit.folders import absolute
from sessiond.sourcekit.toolbox import Toolbox, run_by_user
from sessiond.sourcekit.values import (
    NAMELESS,
    as_count,
    as_dict,
    as_dollars,
    as_list,
    as_text,
    as_time,
    content_blocks,
    result_text,
    strings,
)


def header_of(head: bytes) -> dict[str, Any]:
    """The header: the first line, or the second after a title."""
    for line in head.split(b"\n")[:2]:
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if as_dict(value).get("type") == "session":
            return as_dict(value)
    return {}


def session_of(path: str, head: bytes) -> tuple[str, dict[str, Any]]:
    """The id of a session, from its header or else its file's name, and the header."""
    header = header_of(head)
    stem = os.path.basename(path).removesuffix(".jsonl")
    return as_text(header.get("id")) or stem.rpartition("_")[2], header


# A session goes on from the last entry, along the parents; a compaction names the first entry that
# it keeps. The first versions had no ids, and counted.
CHAIN = Chain(
    "id",
    "parentId",
    own="(?:[^/]*/)?(.*)",  # see `_name`
    from_last=True,
    heads=("session",),
    names=(
        Name("compaction", "firstKeptEntryId", ONWARD),
        Name("branch_summary", "fromId"),
        Name("label", "targetId"),
    ),
    counts=(Count("compaction", "firstKeptEntryIndex", RECORDS),),
    packs=(Pack("compaction", "summary"),),
)
_TOOLS = Toolbox(
    {
        kinds.SHELL: ("bash", "python", "ssh", "eval", "powershell", "exec", "process"),
        kinds.READ: ("read", "notebook", "inspect_image", "view", "memory_get"),
        kinds.WRITE: ("write",),
        kinds.EDIT: ("edit", "ast_edit", "multi_edit", "apply_patch", "replace"),
        kinds.SEARCH: ("grep", "find", "ls", "search", "ast_grep", "lsp", "glob", "memory_search"),
        kinds.FETCH: ("web_search", "web_fetch", "fetch", "browser", "puppeteer"),
        kinds.AGENT: ("task", "subagent", "oracle", "dispatch", "sessions_spawn"),
        kinds.PLAN: ("todo", "todo_write", "checkpoint", "exit_plan_mode"),
        kinds.QUESTION: ("ask", "question", "ask_user", "questionnaire"),
    }
)
_SILENT = frozenset(
    {
        *("custom", "label", "model_change", "thinking_level_change", "service_tier_change"),
        *("reset_boundary", "ttsr_injection", "credential_pin", "session_init", "mode_change"),
        *("context_edit",),
    }
)
_SUMMARIES = frozenset({"compactionSummary", "branchSummary"})
_STOPPED = ("Operation aborted", "Command aborted", "Tool execution was aborted", "Aborted")
_ABORTED = "\nCommand aborted"  # after what it printed
_DENIED = ("Blocked by user", "Denied by user", "User denied", "Tool call denied", "Rejected by")
_ARTIFACT = re.compile(r"artifact://(\d+)")
_TAIL = 600


class EntryParser:
    """Parses the lines of one log."""

    def __init__(self, spec: SessionSpec, state: dict[str, Any]) -> None:
        self._spec = spec
        self._model = as_text(state.get("model"))

    def state(self) -> dict[str, Any]:
        return {"model": self._model}

    def parse(self, value: dict[str, Any]) -> Record:
        kind = as_text(value.get("type")) or "other"
        record = Record(kind, native_id=_name(value), parent_id=as_text(value.get("parentId")))
        record.ts = as_time(value.get("timestamp"))
        if kind == "message":
            self._message(record, as_dict(value.get("message")))
        elif kind == "session":
            record.role, record.cwd = "system", absolute(value.get("cwd"))
            _entitle(record, value.get("title"), value.get("titleSource"))
        elif kind in ("title", "title_change"):
            _entitle(record, value.get("title"), value.get("source"))
        elif kind == "session_info":
            _entitle(record, value.get("name"), "user")
        elif kind in ("compaction", "branch_summary"):
            record.say("summary", value.get("summary"))
            self._spend(record, value)
        elif kind == "custom_message":
            text, _ = result_text(value.get("content"))
            record.say("system", text, as_text(value.get("customType")) or kind)
        elif kind == "usage":
            self._spend(record, value)
        elif kind not in _SILENT:
            record.warnings.append("entry of an unknown type")
            record.say("system", "\n".join(strings(value, NAMELESS)), kind)
        return record

    def _message(self, record: Record, message: dict[str, Any]) -> None:
        role = as_text(message.get("role")) or "message"
        record.ts = record.ts or as_time(message.get("timestamp"))
        record.role = {"toolResult": "user", "bashExecution": "user"}.get(role, role)
        if role == "user":
            self._prompt(record, message)
        elif role == "assistant":
            self._answer(record, message)
        elif role == "toolResult":
            self._result(record, message)
        elif role in ("bashExecution", "pythonExecution"):
            command = as_text(message.get("command")) or as_text(message.get("code")) or ""
            record.events += run_by_user(command, as_text(message.get("output")) or "")
        elif role in _SUMMARIES:
            record.say("summary", message.get("summary"))
        else:  # added by extensions, or instructions
            text, _ = result_text(message.get("content"))
            text = text or "\n".join(strings(message.get("files"), NAMELESS))
            record.say("system", text, as_text(message.get("customType")) or role)

    @staticmethod
    def _prompt(record: Record, message: dict[str, Any]) -> None:
        text, images = result_text(message.get("content"))
        text = text.strip()
        if message.get("attribution") == "agent" or message.get("synthetic") is True:
            record.say("system", text, "agent")
        elif text or images:
            record.ask(text, images)

    def _answer(self, record: Record, message: dict[str, Any]) -> None:
        self._model = record.model = as_text(message.get("model")) or self._model
        for pointer, block in content_blocks(
            message.get("content"), "/message/content", record.warnings
        ):
            kind = as_text(block.get("type"))
            if kind == "text":
                record.say("assistant", block.get("text"))
            elif kind == "thinking":
                record.say("thinking", block.get("thinking"))
            elif kind == "toolCall":
                call_id, tool = as_text(block.get("id")), as_text(block.get("name"))
                given, at = block.get("arguments"), f"{pointer}/arguments"
                record.events.append(_TOOLS.call(tool, given, call_id, at))
            elif kind == "image":
                record.events.append(Event("assistant", "[image]", images=1))
            elif kind not in ("redactedThinking", "redacted_thinking"):
                record.say("system", "\n".join(strings(block, NAMELESS)), kind or "block")
        reason, error = as_text(message.get("stopReason")), as_text(message.get("errorMessage"))
        if reason == "aborted":
            record.say("system", error or "aborted", labels.INTERRUPTED)
        elif reason == "error" or error:
            record.say("system", error or "error", labels.API_ERROR)
        self._spend(record, message, reason)

    def _result(self, record: Record, message: dict[str, Any]) -> None:
        call_id, tool = as_text(message.get("toolCallId")), as_text(message.get("toolName"))
        output, images = result_text(message.get("content"))
        if call_id is None:
            record.warnings.append("a result names no call")
            record.say("system", output, labels.TOOL_RESULT)
            return
        result = Result(call_id, output, "ok", images=images, pointer="/message/content")
        if message.get("isError") is True:
            said = output.strip()
            refused = said.startswith((*_STOPPED, *_DENIED)) or said.endswith(_ABORTED)
            result.status = "denied" if refused else "error"
        saved = _ARTIFACT.search(output, max(0, len(output) - _TAIL))
        if saved and tool and self._spec.attachments:
            result.overflow = f"{saved[1]}.{re.sub(r'[^A-Za-z0-9_-]+', '_', tool)}.log"
        record.results.append(result)
        record.links += _started(call_id, as_dict(message.get("details")))
        self._spend(record, message)

    def _spend(self, record: Record, holder: dict[str, Any], reason: str | None = "end") -> None:
        used = as_dict(holder.get("usage"))
        counts = [
            as_count(used.get(name)) for name in ("input", "output", "cacheRead", "cacheWrite")
        ]
        cost = as_dict(used.get("cost")).get("total")
        if not any(counts) and not cost:
            return
        given, output, reads, writes = counts
        reasoning = as_count(used.get("reasoning")) or as_count(used.get("reasoningTokens"))
        record.usage = Usage(
            message_id=record.native_id,
            model=record.model or as_text(holder.get("model")) or self._model,
            stop_reason=reason,
            input_tokens=given,
            output_tokens=output,
            cache_write_tokens=writes,
            cache_read_tokens=reads,
            cost_usd=as_dollars(cost),
            reasoning_tokens=min(reasoning, output),
        )


def _name(value: dict[str, Any]) -> str | None:
    """An entry's id is short: only with its time it is unique, and the same in a fork."""
    entry, moment = as_text(value.get("id")), as_text(value.get("timestamp"))
    return f"{moment}/{entry}" if entry and moment else None


def _entitle(record: Record, title: Any, source: Any) -> None:
    if text := as_text(title):
        record.titles.append(Title(text, TITLE_CUSTOM if source == "user" else TITLE_AI))


def _started(call_id: str, details: dict[str, Any]) -> list[Link]:
    """The subagents that a call reports on."""
    names = [as_text(as_dict(one).get("id")) for one in as_list(details.get("results"))]
    return [Link(name, call_id, LINK_RESULT) for name in names if name]
