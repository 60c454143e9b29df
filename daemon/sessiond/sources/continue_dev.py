"""Continue: sessions of its extensions and its command line, one JSON document each."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from sess_schema import kinds
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
    borrowed_times,
    whole_object,
)
from sessiond.sourcekit.disk import small_file
from sessiond.sourcekit.folders import of_uri
from sessiond.sourcekit.toolbox import Toolbox, arguments_in, event_of
from sessiond.sourcekit.values import (
    as_count,
    as_dict,
    as_dollars,
    as_list,
    as_text,
    as_time,
    result_text,
)

_DOCUMENT, _INDEX = ".json", "sessions.json"


class _Sessions:
    def conversations(self, path: str, data: bytes) -> Iterator[Conversation]:
        yield read_session(path, data, os.path.join(os.path.dirname(path), _INDEX))


class ContinueSource(Source):
    agent = "continue"
    title = "Continue"
    edition = 2
    variables = ("CONTINUE_GLOBAL_DIR",)
    reads = "Sessions of the VS Code and JetBrains extensions and of the command line."
    leaves = (
        ("dev_data/", "counts that name no session"),
        ("index/, config.yaml, .env", "an index of code, settings and credentials"),
        ("remote sessions", "Continue keeps them on its server only"),
    )
    known_from = SOURCE_CODE
    documents = _Sessions()

    def places(self) -> list[str]:
        moved = self.moved("CONTINUE_GLOBAL_DIR")
        home = moved or os.path.join(self.folders.home(), ".continue")
        return [os.path.join(home, "sessions")]

    def classify(self, path: str) -> str | None:
        name = os.path.basename(path)
        return "document" if name.endswith(_DOCUMENT) and name != _INDEX else None

    def claims(self, path: str, head: bytes) -> bool:
        if "kiro.kiroagent" in path:  # its list of sessions has these names, too
            return False
        return b'"workspaceDirectory"' in head and b'"sessionId"' in head

    def sidecars(self, path: str) -> Sequence[str]:
        return (os.path.join(os.path.dirname(path), _INDEX),)  # knows when it began


# -- sessions

_LARGEST_INDEX = 16 << 20
_TOOLS = Toolbox(
    {
        kinds.SHELL: ("run_terminal_command", "Bash"),
        kinds.READ: (
            *("read_file", "read_file_range", "read_currently_open_file", "Read", "view_diff"),
        ),
        kinds.WRITE: ("create_new_file", "Write", "create_rule_block"),
        kinds.EDIT: (
            *("edit_existing_file", "single_find_and_replace", "multi_edit", "Edit", "MultiEdit"),
            *("search_and_replace_in_file",),
        ),
        kinds.SEARCH: (
            *(
                "grep_search",
                "file_glob_search",
                "exact_search",
                "ls",
                "codebase",
                "List",
                "Search",
            ),
            *("view_subdirectory", "view_repo_map", "codebase_tool", "Search"),
        ),
        kinds.FETCH: ("search_web", "fetch_url_content", "Fetch"),
        kinds.AGENT: ("Subagent",),
        kinds.PLAN: ("Checklist",),
        kinds.QUESTION: ("AskQuestion",),
    }
)
_BUILTIN = "builtin_"  # how the names of tools began in early versions
_ENDS = {"done": "ok", "errored": "error", "canceled": "denied"}
_UNTITLED = frozenset({"New Session", "Untitled Session"})


def read_session(path: str, data: bytes, index: str) -> Conversation:
    session = whole_object(data, "history", "is not a session of Continue")
    name = as_text(session.get("sessionId")) or os.path.splitext(os.path.basename(path))[0]
    reader = _Reader(name, as_text(session.get("chatModelTitle")))
    items = list(reader.items(session["history"]))
    if not reader.counted and (total := _total(name, session)):
        items.append(total)
    began = _began(index, name)
    title = as_text(session.get("title"))
    project = of_uri(session.get("workspaceDirectory"))
    return Conversation(
        SessionSpec(
            name,
            title=title if title not in _UNTITLED else None,
            resume=("cn", "--resume", name),
        ),
        items=items,
        times=borrowed_times(items, began),
        project=project,
        project_rank=1 if project else 0,
        mode=as_text(session.get("mode")),
        created_at=began,
    )


def _began(index: str, session: str) -> int | None:
    """When a session was created, from the list of all sessions."""
    try:
        listed = orjson.loads(small_file(index, _LARGEST_INDEX))
    except orjson.JSONDecodeError:
        return None
    for entry in as_list(listed):
        if as_dict(entry).get("sessionId") == session:
            return as_time(as_dict(entry).get("dateCreated"))
    return None


class _Reader:
    """Reads the items of one session in order."""

    def __init__(self, session: str, model: str | None) -> None:
        self._session = session
        self._model = model
        self._answered: set[str] = set()  # calls whose items have their results
        self.counted = False

    def items(self, history: list[Any]) -> Iterator[Item]:
        for number, given in enumerate(history):
            item = given if isinstance(given, dict) else {"message": {"content": given}}
            record = self._read(f"{self._session}/{number}", item)
            yield Item(str(number), number, value=item, record=record)

    def _read(self, name: str, item: dict[str, Any]) -> Record:
        message = as_dict(item.get("message"))
        role = as_text(message.get("role")) or "message"
        record = Record(role, role="assistant" if role == "thinking" else role, native_id=name)
        content = message.get("content")
        text, images = result_text(content)
        text = text.strip()
        for part in as_list(content):
            images += as_dict(part).get("type") == "imageUrl"
        if role == "user":
            record.ask(text, images)
            _add_context(record, item.get("contextItems"))
        elif role == "assistant":
            self._answer(record, message, item, text)
        elif role == "thinking":
            record.say("thinking", text)
        elif role == "tool":
            call = as_text(message.get("toolCallId"))
            if call and call not in self._answered:
                record.results.append(
                    Result(call, text, "ok", images=images, pointer="/message/content")
                )
        else:
            record.say("system", text, role)
        record.say("summary", item.get("conversationSummary"))
        return record

    def _answer(
        self, record: Record, message: dict[str, Any], item: dict[str, Any], text: str
    ) -> None:
        logs = item.get("promptLogs")
        log = as_dict(logs[-1]) if isinstance(logs, list) and logs else {}
        record.model = as_text(log.get("modelTitle")) or self._model
        reasoning = as_dict(item.get("reasoning"))
        record.ts = as_time(reasoning.get("endAt")) or as_time(reasoning.get("startAt"))
        record.say("thinking", reasoning.get("text"))
        record.say("assistant", text)
        listed = item.get("toolCallStates")
        if isinstance(listed, list):
            states = [(f"/toolCallStates/{number}", one) for number, one in enumerate(listed)]
        else:  # early versions had one call per answer
            states = [("/toolCallState", item.get("toolCallState"))]
        known = set[str]()
        for place, state in states:
            if isinstance(state, dict):
                event = _call(state, place)
                record.events.append(event)
                known.add(event.call_id or "")
                if event.status != "pending":
                    self._answered.add(event.call_id or "")
        for number, call in enumerate(as_list(message.get("toolCalls"))):
            function = as_dict(as_dict(call).get("function"))
            call_id = as_text(as_dict(call).get("id"))
            if call_id is None or call_id not in known:
                given, tool = (
                    arguments_in(function.get("arguments"), ""),
                    as_text(function.get("name")),
                )
                at = f"/message/toolCalls/{number}/function/arguments"
                record.events.append(_made(tool, given, call_id, at))
        record.usage = _usage(as_dict(message.get("usage")), record.native_id, record.model)
        self.counted = self.counted or record.usage is not None


def _made(tool: str | None, given: Any, call_id: str | None, pointer: str) -> Event:
    kind = _TOOLS.kind((tool or "").removeprefix(_BUILTIN))
    return event_of(_TOOLS.describe(tool, given, kind), tool, given, call_id, pointer)


def _call(state: dict[str, Any], place: str) -> Event:
    """A call with its output, complete unless it is still running."""
    function = as_dict(as_dict(state.get("toolCall")).get("function"))
    given, pointer = state.get("parsedArgs"), f"{place}/parsedArgs"
    if not isinstance(given, dict) or not given:
        given, pointer = (
            arguments_in(function.get("arguments"), ""),
            f"{place}/toolCall/function/arguments",
        )
    call_id = as_text(state.get("toolCallId"))
    event = _made(as_text(function.get("name")), given, call_id, pointer)
    outputs = [as_dict(one) for one in as_list(state.get("output"))]
    event.output = "\n".join(text for one in outputs if (text := as_text(one.get("content"))))
    event.status = _ENDS.get(as_text(state.get("status")) or "", "pending")
    failed = any((as_text(one.get("status")) or "").startswith("Command failed") for one in outputs)
    named = any(as_text(one.get("name")) in ("Tool Call Error", "Error") for one in outputs)
    if event.status == "ok" and (failed or named):
        event.status = "error"
    return event


def _add_context(record: Record, listed: Any) -> None:
    """What was attached to a prompt."""
    for one in as_list(listed):
        fields = as_dict(one)
        name, text = as_text(fields.get("name")), as_text(fields.get("content"))
        record.say("system", "\n".join(filter(None, (name, text))), "context")


def _usage(used: dict[str, Any], name: str | None, model: str | None) -> Usage | None:
    details = as_dict(used.get("promptTokensDetails"))
    reads, writes = as_count(details.get("cachedTokens")), as_count(details.get("cacheWriteTokens"))
    given, output = as_count(used.get("promptTokens")), as_count(used.get("completionTokens"))
    if not (given or output or reads or writes):
        return None
    # Only Anthropic's API counts the cache apart from the prompt.
    apart = given < reads + writes or bool(writes) or "claude" in (model or "").casefold()
    reasoning = as_dict(used.get("completionTokensDetails")).get("reasoningTokens")
    cost = used.get("totalCost")
    return Usage(
        message_id=name,
        model=model,
        stop_reason="end",
        input_tokens=given if apart else given - reads,
        output_tokens=output,
        cache_write_tokens=writes,
        cache_read_tokens=reads,
        cost_usd=as_dollars(cost),
        reasoning_tokens=min(as_count(reasoning), output),
    )


def _total(name: str, session: dict[str, Any]) -> Item | None:
    """What the command line counts: only the sum of a session."""
    used = as_dict(session.get("usage"))
    record = Record("usage", role="system", native_id=f"{name}/usage")
    record.usage = _usage(used, record.native_id, as_text(session.get("chatModelTitle")))
    return Item("usage", value=used, record=record) if record.usage else None


SOURCE = ContinueSource
