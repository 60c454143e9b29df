"""OpenHands: conversations of its command line and its SDK, one file per event."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import tzinfo
from typing import Any

from sess_common.decode import decode
from sess_schema import kinds, labels
from sessiond.sourcekit import disk
from sessiond.sourcekit.base import (
    SOURCE_CODE,
    Conversation,
    Event,
    Item,
    Record,
    Result,
    SessionSpec,
    Source,
    Usage,
)
from sessiond.sourcekit.disk import small_file, small_json
from sessiond.sourcekit.folders import absolute
from sessiond.sourcekit.toolbox import Toolbox, event_of
from sessiond.sourcekit.values import (
    NAMELESS,
    as_count,
    as_dict,
    as_dollars,
    as_line,
    as_list,
    as_local_time,
    as_text,
    as_time,
    result_text,
    strings,
)

_EVENTS, _STATE = "events", "base_state.json"
_EVENT = re.compile(r"event-(\d{5,})-[0-9a-fA-F-]{8,}\.json")
_LARGEST_EVENT, _LARGEST_STATE = 64 << 20, 64 << 20


class OpenHandsSource(Source):
    """The first event stands for its conversation: the others are read with it."""

    agent = "openhands"
    title = "OpenHands"
    variables = ("OPENHANDS_PERSISTENCE_DIR", "OPENHANDS_CONVERSATIONS_DIR")
    reads = (
        "Conversations of the command line and the SDK, with the conversations they delegate to."
    )
    leaves = (
        ("base_state.json", "only its counts, its model and its folder: it may hold credentials"),
        ("sessions/", "conversations of the server before version 1, in another format"),
        ("agent_settings.json, mcp.json", "settings and credentials"),
        ("observations/", "outputs in full; events have what the model saw"),
    )
    known_from = SOURCE_CODE

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.documents = _Conversations(self)

    def places(self) -> list[str]:
        moved = self.moved("OPENHANDS_PERSISTENCE_DIR")
        home = moved or os.path.join(self.folders.home(), ".openhands")
        return [self.moved("OPENHANDS_CONVERSATIONS_DIR") or os.path.join(home, "conversations")]

    def classify(self, path: str) -> str | None:
        folder, name = os.path.split(path)
        event = _EVENT.fullmatch(name)
        if event is None or os.path.basename(folder) != _EVENTS:
            return None
        return "sidecar" if int(event[1]) else "document"

    def claims(self, path: str, head: bytes) -> bool:
        return self.classify(path) is not None and b'"kind"' in head

    def enters(self, directory: str) -> bool:
        return os.path.basename(directory) != "observations"

    def owner(self, sidecar: str) -> str:
        names = sorted(_names(os.path.dirname(sidecar)))
        return os.path.join(os.path.dirname(sidecar), names[0]) if names else sidecar

    def sidecars(self, path: str) -> Sequence[str]:
        folder = os.path.dirname(path)
        return (folder, os.path.join(os.path.dirname(folder), _STATE))

    def parent(self, folder: str) -> str | None:
        """The conversation in whose folder this one is."""
        for root in map(disk.real, self.roots()):
            if folder.startswith(root + os.sep):
                first, *below = folder[len(root) + 1 :].split(os.sep)
                return first if below else None
        return None


class _Conversations:
    def __init__(self, source: OpenHandsSource) -> None:
        self._source = source

    def conversations(self, path: str, data: bytes) -> Iterator[Conversation]:
        events = os.path.dirname(path)
        folder = os.path.dirname(events)
        session = os.path.basename(folder)
        names = sorted(_names(events), key=_number)
        raw = [(name, _bytes(os.path.join(events, name), path, data)) for name in names]
        state = small_json(os.path.join(folder, _STATE), _LARGEST_STATE)
        model = as_text(as_dict(as_dict(state.get("agent")).get("llm")).get("model"))
        project = absolute(as_dict(state.get("workspace")).get("working_dir"))
        parent = self._source.parent(folder)
        items = read_events(session, raw, state, self._source.folders.zone())
        yield Conversation(
            SessionSpec(
                session,
                kind="subagent" if parent else "main",
                parent=parent,
                resume=() if parent else ("openhands", "--resume", session),
            ),
            items=items,
            project=project,
            project_rank=1 if project else 0,
            model=model,
        )


def _names(events: str) -> list[str]:
    try:
        return [name for name in disk.names(events) if _EVENT.fullmatch(name)]
    except OSError:
        return []


def _number(name: str) -> tuple[int, str]:
    match = _EVENT.fullmatch(name)
    return (int(match[1]) if match else 0), name


def _bytes(file: str, path: str, data: bytes) -> bytes:
    return data if file == path else small_file(file, _LARGEST_EVENT)


# -- events, and what requests used

_TOOLS = Toolbox(
    {
        kinds.SHELL: ("terminal", "execute_bash", "bash", "powershell", "execute_ipython_cell"),
        kinds.SEARCH: ("glob", "grep"),
        kinds.FETCH: ("browser", "browser_use", "fetch", "tavily_search"),
        kinds.AGENT: ("delegate", "task", "task_tool_set", "spawn"),
        kinds.PLAN: ("task_tracker", "planning_file_editor", "think"),
        kinds.QUESTION: ("ask_user", "user_question"),
        kinds.EDIT: ("apply_patch", "edit", "edit_file"),
        kinds.READ: ("read_file",),
        kinds.WRITE: ("write_file",),
    }
)
_EDITORS = frozenset({"file_editor", "str_replace_editor", "str_replace_based_edit_tool"})
_EDITS = {
    "view": kinds.READ,
    "create": kinds.WRITE,
    "str_replace": kinds.EDIT,
    "insert": kinds.EDIT,
    "undo_edit": kinds.EDIT,
}
_SILENT = frozenset(
    {
        *("SystemPromptEvent", "ConversationStateUpdateEvent", "TokenEvent", "CondensationRequest"),
        *("LLMCompletionLogEvent", "StreamingDeltaEvent"),
    }
)


def read_events(
    session: str,
    files: Iterable[tuple[str, bytes]],
    state: dict[str, Any],
    zone: tzinfo | None,
) -> list[Item]:
    """One item per file, then one per request: only the state knows what they used."""
    items: list[Item] = []
    moments: dict[str, int] = {}  # of responses
    for number, (name, raw) in enumerate(files):
        try:
            value, _ = decode(raw)
        except ValueError:
            continue  # it is being written
        event = as_dict(value)
        record = _read(event)
        record.ts = as_local_time(event.get("timestamp"), zone)
        response = as_text(event.get("llm_response_id"))
        if response and record.ts is not None:
            moments.setdefault(response, record.ts)
        line = raw if isinstance(value, dict) and b"\n" not in raw else as_line(value)
        items.append(Item(name, number, raw=line, record=record))
    items += _requests(session, state, moments)
    return items


def _read(event: dict[str, Any]) -> Record:
    kind = as_text(event.get("kind")) or "other"
    record = Record(kind, role="system", native_id=as_text(event.get("id")))
    if kind == "MessageEvent":
        _message(record, event)
    elif kind == "ActionEvent":
        record.role = "assistant"
        _think(record, event)
        record.say("assistant", result_text(event.get("thought"))[0])
        record.events.append(_call(event))
    elif as_text(event.get("tool_call_id")) and kind != "ACPToolCallEvent":
        record.role = "user"
        _result(record, kind, event)
    elif kind in ("Condensation", "CondensationSummaryEvent"):
        record.say("summary", event.get("summary"))
    elif kind == "ConversationErrorEvent":
        text = ": ".join(filter(None, (as_text(event.get(n)) for n in ("code", "detail"))))
        record.say("system", text, labels.ERROR)
    elif kind in ("PauseEvent", "InterruptEvent"):
        record.say("system", "interrupted", labels.INTERRUPTED)
    elif kind not in _SILENT:
        record.warnings.append("event of an unknown kind")
        record.say("system", "\n".join(strings(event, NAMELESS)), kind)
    return record


def _message(record: Record, event: dict[str, Any]) -> None:
    message = as_dict(event.get("llm_message"))
    text, images = result_text(message.get("content"))
    text = text.strip()
    source = as_text(event.get("source"))
    if source == "user":
        record.role = "user"
        if text or images:
            record.ask(text, images)
    elif source == "agent":
        record.role = "assistant"
        _think(record, message)
        record.say("assistant", text)
    else:
        record.say("system", text, source or "message")
    record.say("system", result_text(event.get("extended_content"))[0], labels.CONTEXT)


def _think(record: Record, holder: dict[str, Any]) -> None:
    listed = [as_dict(one).get("thinking") for one in as_list(holder.get("thinking_blocks"))]
    said = "\n".join(text for text in listed if isinstance(text, str) and text.strip())
    reasoning = as_dict(holder.get("responses_reasoning_item")).get("summary")
    other = "\n".join(strings(reasoning)) if isinstance(reasoning, list) else ""
    record.say("thinking", said or as_text(holder.get("reasoning_content")) or other)


def _call(event: dict[str, Any]) -> Event:
    tool = as_text(event.get("tool_name"))
    action = event.get("action")
    given, pointer = action, "/action"
    if isinstance(action, dict):
        given = {name: value for name, value in action.items() if name != "kind"}
    else:  # it could not be run
        given, pointer = as_dict(event.get("tool_call")).get("arguments"), "/tool_call/arguments"
    kind = ""
    if tool in _EDITORS:
        kind = _EDITS.get(as_text(as_dict(given).get("command")) or "", kinds.EDIT)
    described = _TOOLS.describe(tool, given, kind)
    about = as_text(event.get("summary"))
    if about and not described.summary:
        described = described._replace(summary=about)
    return event_of(described, tool, given, as_text(event.get("tool_call_id")), pointer)


def _result(record: Record, kind: str, event: dict[str, Any]) -> None:
    call_id = as_text(event.get("tool_call_id")) or ""
    seen = as_dict(event.get("observation"))
    content = next((seen[name] for name in ("content", "output") if name in seen), None)
    output, images = result_text(content)
    result = Result(call_id, output, "ok", images=images, pointer="/observation")
    code = seen.get("exit_code", as_dict(seen.get("metadata")).get("exit_code"))
    if kind == "UserRejectObservation":
        result.status, result.output = "denied", as_text(event.get("rejection_reason")) or output
    elif kind == "AgentErrorEvent":
        result.status, result.output = "error", as_text(event.get("error")) or output
    elif seen.get("is_error") is True or as_text(seen.get("error")) or code not in (None, 0, -1):
        result.status = "error"
        result.output = output or as_text(seen.get("error")) or ""
    record.results.append(result)


def _requests(session: str, state: dict[str, Any], moments: dict[str, int]) -> Iterator[Item]:
    """The counts of each request; where there are as many costs, those too."""
    metrics = as_dict(as_dict(state.get("stats")).get("usage_to_metrics"))
    for purpose, given in metrics.items():
        usages, costs = (as_dict(given).get(name) for name in ("token_usages", "costs"))
        usages = as_list(usages)
        paid = (
            costs if isinstance(costs, list) and len(costs) == len(usages) else [{}] * len(usages)
        )
        for number, (used, cost) in enumerate(zip(usages, paid, strict=True)):
            fields, price = as_dict(used), as_dict(cost)
            response = as_text(fields.get("response_id"))
            name = f"{session}/{purpose}/{response or number}"
            record = Record("usage", role="system", native_id=name)
            record.ts = moments.get(response or "") or as_time(price.get("timestamp"))
            record.usage = _usage(fields, price.get("cost"), name)
            yield Item(f"usage/{purpose}/{number}", value=[used, cost, record.ts], record=record)


def _usage(used: dict[str, Any], cost: Any, name: str) -> Usage:
    given, output = as_count(used.get("prompt_tokens")), as_count(used.get("completion_tokens"))
    reads = as_count(used.get("cache_read_tokens"))
    writes = as_count(used.get("cache_write_tokens"))
    whole = given >= reads + writes  # else they are counted apart
    return Usage(
        message_id=name,
        model=as_text(used.get("model")),
        stop_reason="end",
        input_tokens=given - reads - writes if whole else given,
        output_tokens=output,
        cache_write_tokens=writes,
        cache_read_tokens=reads,
        cost_usd=as_dollars(cost),
        context_window=as_count(used.get("context_window")) or None,
        reasoning_tokens=min(as_count(used.get("reasoning_tokens")), output),
    )


SOURCE = OpenHandsSource
