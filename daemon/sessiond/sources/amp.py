"""Amp: the threads that it kept on this machine, one JSON document each."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from sess_schema import kinds, labels
from sessiond.sourcekit.base import (
    LINK_META,
    ONE_READER,
    Conversation,
    Event,
    Item,
    Record,
    Result,
    SessionSpec,
    Source,
    Usage,
    borrowed_times,
    whole_object,
)
from sessiond.sourcekit.folders import of_uri
from sessiond.sourcekit.toolbox import Toolbox, run_by_user
from sessiond.sourcekit.values import (
    NAMELESS,
    as_count,
    as_dict,
    as_list,
    as_text,
    as_time,
    content_blocks,
    result_text,
    strings,
)

_THREAD, _DOCUMENT = "T-", ".json"


class _Threads:
    def conversations(self, path: str, data: bytes) -> Iterator[Conversation]:
        thread = whole_object(data, "messages", "is not a thread of Amp")
        stem = os.path.splitext(os.path.basename(path))[0]
        yield _conversation(as_text(thread.get("id")) or stem, thread)


class AmpSource(Source):
    agent = "amp"
    title = "Amp"
    variables = ("AMP_DATA_DIR", "XDG_DATA_HOME")
    reads = "Threads that Amp wrote to this machine, until its versions of March 2026."
    leaves = (
        ("threads since 2026-03-31", "Amp keeps them on its server only"),
        ("~/.cache/amp/logs/", "logs without conversations"),
        ("secrets.json, history.jsonl", "credentials; prompts that the threads have"),
    )
    known_from = ONE_READER
    documents = _Threads()

    def places(self) -> list[str]:
        moved = [one.strip() for one in self.environ.get("AMP_DATA_DIR", "").split(",")]
        data = [self.folders.expand(one) for one in moved if one]
        data = data or [os.path.join(self.folders.data_home(), "amp")]
        return [
            *(os.path.join(one, "threads") for one in data),
            *self.folders.extension_storages("sourcegraph.amp"),
        ]

    def classify(self, path: str) -> str | None:
        name = os.path.basename(path)
        return "document" if name.startswith(_THREAD) and name.endswith(_DOCUMENT) else None

    def claims(self, path: str, head: bytes) -> bool:  # noqa: ARG002 - the content decides
        return b'"messageId"' in head and b'"T-' in head


# -- threads

_TOOLS = Toolbox(
    {
        kinds.SHELL: ("Bash", "shell_command", "run_terminal_command"),
        kinds.READ: ("Read", "read_file", "look_at", "get_diagnostics"),
        kinds.WRITE: ("create_file",),
        kinds.EDIT: ("edit_file", "apply_patch", "undo_edit", "format_file", "delete_file"),
        kinds.SEARCH: (
            *("Grep", "glob", "list_directory", "finder", "codebase_search_agent", "find_thread"),
            *("read_thread",),
        ),
        kinds.FETCH: ("web_search", "read_web_page"),
        kinds.AGENT: ("Task", "oracle", "librarian", "handoff", "codereview", "walkthrough"),
        kinds.PLAN: ("todo_write", "todo_read", "task_list"),
    }
)
_ENDS = {"done": "ok", "error": "error", "cancelled": "denied", "rejected-by-user": "denied"}


def _conversation(name: str, thread: dict[str, Any]) -> Conversation:
    created = as_time(thread.get("created"))
    items: list[Item] = []
    for number, given in enumerate(thread["messages"]):
        message = given if isinstance(given, dict) else {"content": given}
        key = str(message.get("messageId") if message.get("messageId") is not None else number)
        record = _read(f"{name}/{key}", message)
        items.append(Item(key, number, value=message, record=record))
    times = borrowed_times(items, created)
    items += _billed(name, thread)
    place = _place(thread)
    project = of_uri(place.get("uri"))
    return Conversation(
        _spec(name, thread),
        items=items,
        times=times,
        project=project,
        project_rank=1 if project else 0,
        git_branch=_branch(place),
        mode=as_text(thread.get("agentMode")),
        created_at=created,
    )


def _spec(name: str, thread: dict[str, Any]) -> SessionSpec:
    main = as_text(thread.get("mainThreadID"))
    return SessionSpec(
        name,
        kind="subagent" if main else "main",
        parent=main,
        title=as_text(thread.get("title")),
        resume=() if main else ("amp", "threads", "continue", name),
    )


def _place(thread: dict[str, Any]) -> dict[str, Any]:
    trees = as_dict(as_dict(thread.get("env")).get("initial")).get("trees")
    return as_dict(trees[0]) if isinstance(trees, list) and trees else {}


def _branch(place: dict[str, Any]) -> str | None:
    ref = as_text(as_dict(place.get("repository")).get("ref"))
    return ref.removeprefix("refs/heads/") if ref else None


# -- messages


def _read(name: str, message: dict[str, Any]) -> Record:
    role = as_text(message.get("role"))
    record = Record(role or "message", role=role, native_id=name)
    used = as_dict(message.get("usage"))
    record.ts = as_time(as_dict(message.get("meta")).get("sentAt")) or as_time(
        used.get("timestamp")
    )
    if caller := as_text(message.get("parentToolUseId")):
        record.sidechain, record.subagent = True, caller
        record.link(caller, caller, LINK_META)
    typed: list[str] = []
    images = 0
    for pointer, block in content_blocks(message.get("content"), "/content", record.warnings):
        kind = as_text(block.get("type"))
        text = (as_text(block.get("text")) or as_text(block.get("thinking")) or "").strip()
        if kind == "text" and role == "user":
            typed.append(text)
        elif kind == "image" and role == "user":
            images += 1
        else:
            _block(record, kind or "block", block, pointer, text)
    asked = "\n".join(filter(None, typed))
    if asked or (images and not record.results):
        record.ask(asked, images)
    if role == "assistant":
        _end(record, as_dict(message.get("state")), used)
    elif role not in ("user", "info"):
        record.warnings.append(f"message with the role {role or 'none'}")
    return record


def _block(record: Record, kind: str, block: dict[str, Any], pointer: str, text: str) -> None:
    if kind in ("text", "thinking"):
        said = "thinking" if kind == "thinking" else "assistant"
        if text and record.role == "assistant":
            record.events.append(Event(said, text))
        elif text:
            record.events.append(Event("system", text, label=record.role or kind))
    elif kind in ("tool_use", "server_tool_use"):
        call_id, tool = as_text(block.get("id")), as_text(block.get("name"))
        record.events.append(_TOOLS.call(tool, block.get("input"), call_id, f"{pointer}/input"))
    elif kind == "tool_result":
        call_id = as_text(block.get("toolUseID")) or as_text(block.get("tool_use_id"))
        if call_id is None:
            record.warnings.append("a result names no call")
        elif result := _result(call_id, as_dict(block.get("run")), pointer):
            record.results.append(result)
    elif kind == "manual_bash_invocation":
        result = _result("", as_dict(block.get("toolRun")), pointer)
        command = as_text(as_dict(block.get("args")).get("cmd")) or ""
        record.events += run_by_user(command, result.output if result else "")
    elif kind == "summary":
        said = "\n".join(strings(block.get("summary"), NAMELESS)).strip()
        if said:
            record.events.append(Event("summary", said))
    elif kind == "image":
        record.events.append(Event("assistant", "[image]", images=1))
    elif kind != "redacted_thinking" and (said := "\n".join(strings(block, NAMELESS)).strip()):
        record.events.append(Event("system", said, label=kind))


def _result(call_id: str, run: dict[str, Any], pointer: str) -> Result | None:
    """The result of a call that ended; others still wait."""
    status = _ENDS.get(as_text(run.get("status")) or "")
    if status is None:
        return None
    value = run.get("result")
    fields = as_dict(value)
    if status == "ok" and fields.get("exitCode") not in (None, 0):
        status = "error"
    if status != "ok" and value is None:
        value = run.get("error") or run.get("reason")
        value = as_dict(value).get("message") or value
    text = next((fields[name] for name in ("output", "content") if name in fields), value)
    output, images = result_text(text)
    return Result(call_id, output, status, images=images, pointer=f"{pointer}/run/result")


def _end(record: Record, state: dict[str, Any], used: dict[str, Any]) -> None:
    record.model = as_text(used.get("model"))
    if state.get("type") == "cancelled":
        record.say("system", "cancelled", labels.INTERRUPTED)
    if used:
        record.usage = Usage(
            message_id=record.native_id,
            request_id=record.native_id,
            model=record.model,
            stop_reason=as_text(state.get("stopReason")) or as_text(state.get("type")) or "end",
            input_tokens=as_count(used.get("inputTokens")),
            output_tokens=as_count(used.get("outputTokens")),
            cache_write_tokens=as_count(used.get("cacheCreationInputTokens")),
            cache_read_tokens=as_count(used.get("cacheReadInputTokens")),
            context_window=as_count(used.get("maxInputTokens")) or None,
        )


def _billed(name: str, thread: dict[str, Any]) -> Iterator[Item]:
    """What Amp billed; the first entry of a message repeats that message's own counts."""
    listed = as_dict(thread.get("usageLedger")).get("events")
    seen = set[str]()
    for number, given in enumerate(as_list(listed)):
        entry, tokens = as_dict(given), as_dict(as_dict(given).get("tokens"))
        key = f"ledger/{as_text(entry.get('id')) or number}"
        message = entry.get("toMessageId")
        response = f"{name}/{message}"
        if not isinstance(message, int) or response in seen:
            response = f"{name}/{key}"
        seen.add(response)
        record = Record("ledger", role="system", native_id=f"{name}/{key}")
        record.ts = as_time(entry.get("timestamp"))
        record.usage = Usage(
            message_id=response,
            request_id=response,
            model=as_text(entry.get("model")),
            input_tokens=as_count(tokens.get("input")),
            output_tokens=as_count(tokens.get("output")),
        )
        yield Item(key, value=given, record=record)


SOURCE = AmpSource
