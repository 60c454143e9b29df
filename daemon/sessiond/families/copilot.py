"""The event log of GitHub Copilot's agent: of its CLI, and of its chat in editors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar

from sess_common.decode import at_pointer
from sess_schema import kinds, labels
from sess_schema.chains import Chain
from sessiond.sourcekit.base import (
    LINK_META,
    TITLE_AI,
    Described,
    Event,
    Record,
    Result,
    SessionSpec,
    Title,
    Usage,
)
from sessiond.sourcekit.toolbox import (
    Toolbox,
    arguments_in,
    edits_of_patch,
    event_of,
    is_patch,
    one_line,
)
from sessiond.sourcekit.values import (
    OPAQUE,
    SCOPE,
    as_count,
    as_dict,
    as_list,
    as_milliseconds,
    as_text,
    as_time,
    prompt_title,
    scoped,
    strings,
    without_empty,
)

CHAIN = Chain("id", "parentId", own=f"{SCOPE}(.*)", heads=("session.start",))
_REMEMBERED = 64  # calls that may be written twice
_PUT = "cacheCreationInputTokens"
_COMPARED = 200  # characters of a thought
_ROUTED = frozenset({"auto"})  # not a model, but a choice of one
# Who else than a person sends messages with the user role.
_PROGRAMS = (
    *("agent", "autopilot", "command", "hook", "jit", "memory", "notification", "schedule"),
    *("skill", "system", "task"),
)
_DELAYED = ("queued", "steering")
# Kinds of events that say nothing to people, or repeat what others say.
_SILENT = (
    *("assistant.", "auto_mode", "canvas", "capabilities", "command", "custom", "elicitation."),
    *("exit_plan_mode.", "extensions", "external_tool.", "factory", "hook.", "managed_settings"),
    *("mcp", "model.", "pending_messages.", "permission", "sampling.", "session.", "subagent."),
    *("system.message", "tool.", "tool_search.", "tools", "ui", "user_input."),
)
# Where a notice has its text, and its label.
_NOTICES = {
    "session.error": ("/message", labels.API_ERROR),
    "session.warning": ("/message", "warning"),
    "session.info": ("/message", "info"),
    "session.handoff": ("/summary", labels.CONTINUED),
    "abort": ("/reason", labels.INTERRUPTED),
    "skill.invoked": ("/content", "skill"),
    "hook.end": ("/error/message", labels.HOOK_FAILED),
    "system.notification": ("/content", labels.TASK),
}


class EventParser:
    """Reads the events of one session in order."""

    def __init__(self, spec: SessionSpec, state: dict[str, Any]) -> None:
        self._session = spec.native_id
        self._model = as_text(state.get("model"))
        self._cwd = as_text(state.get("cwd"))
        self._thought = as_text(state.get("thought"))
        calls, linked = state.get("calls"), state.get("linked")
        self._calls = [*filter(as_text, as_list(calls))]
        self._linked = [*filter(as_text, as_list(linked))]

    def state(self) -> dict[str, Any]:
        return without_empty(
            model=self._model,
            cwd=self._cwd,
            thought=self._thought,
            calls=list(self._calls),
            linked=list(self._linked),
        )

    def parse(self, value: dict[str, Any]) -> Record:
        kind, data = as_text(value.get("type")) or "unknown", as_dict(value.get("data"))
        record = Record(
            kind,
            native_id=scoped(self._session, as_text(value.get("id"))),
            parent_id=scoped(self._session, as_text(value.get("parentId"))),
            ts=as_time(value.get("timestamp")),
        )
        if record.ts is None and value.get("timestamp") is not None:
            record.warnings.append("bad timestamp")
        self._read_agent(record, value, data)
        read = self._READERS.get(kind)
        if read is not None:
            read(self, record, data)
        elif kind in _NOTICES:
            place, label = _NOTICES[kind]
            record.say("system", at_pointer(data, place), label)
        elif not kind.startswith(_SILENT):
            record.say("system", "\n".join(strings(data, OPAQUE)), kind)
            record.warnings.append("record of an unknown type")
        return record

    def _read_agent(self, record: Record, value: dict[str, Any], data: dict[str, Any]) -> None:
        """Events of a subagent differ by an id only; older ones name the call that started it."""
        started = record.kind == "subagent.started" and as_text(data.get("toolCallId"))
        parent = as_text(data.get("parentToolCallId")) or started or None
        agent = as_text(value.get("agentId")) or as_text(data.get("parentToolCallId"))
        if agent is None:
            return
        record.sidechain, record.subagent, record.cwd = True, agent, self._cwd
        if parent and agent not in self._linked:
            record.link(agent, parent, LINK_META)
            self._linked = [*self._linked, agent][-_REMEMBERED:]

    # -- the session

    def _read_start(self, record: Record, data: dict[str, Any]) -> None:
        context = as_dict(data.get("context")) or data
        record.cwd = self._cwd = as_text(context.get("cwd")) or self._cwd
        record.git_branch = as_text(context.get("branch"))
        record.version = as_text(data.get("copilotVersion"))
        self._choose(record, data.get("selectedModel"))

    def _read_model(self, record: Record, data: dict[str, Any]) -> None:
        self._choose(record, data.get("newModel"))

    def _choose(self, record: Record, model: Any) -> None:
        chosen = as_text(model)
        if chosen and chosen not in _ROUTED:
            record.model = self._model = chosen

    def _read_title(self, record: Record, data: dict[str, Any]) -> None:
        if title := prompt_title(as_text(data.get("title")) or ""):
            record.titles.append(Title(title, TITLE_AI))

    def _read_shutdown(self, record: Record, data: dict[str, Any]) -> None:
        used = summed(data, self._session)
        if used:
            record.usage, *record.advice = used

    def _read_compaction(self, record: Record, data: dict[str, Any]) -> None:
        if data.get("success") is False:
            record.say("system", data.get("error"), labels.ERROR)
            return
        record.say("system", "Conversation compacted", labels.COMPACT)
        if summary := as_text(data.get("summaryContent")):
            record.events.append(Event("summary", summary, label=labels.COMPACT))

    # -- messages

    def _read_prompt(self, record: Record, data: dict[str, Any]) -> None:
        record.role = "user"
        text, sender = as_text(data.get("content")) or "", as_text(data.get("source")) or ""
        injected = sender.startswith(_PROGRAMS) or data.get("isAutopilotContinuation") is True
        if injected and not record.sidechain:
            record.say("system", text, sender.partition("-")[0] or "continue")
            return
        images = _images(data.get("attachments"))
        if not text and not images:
            return
        label = labels.QUEUED if data.get("delivery") in _DELAYED else None
        record.ask(text, images, label=label)

    def _read_answer(self, record: Record, data: dict[str, Any]) -> None:
        record.role = "assistant"
        self._choose(record, data.get("model"))
        self._think(record, data.get("reasoningText"))
        record.say("assistant", data.get("content"))
        for number, request in enumerate(as_list(data.get("toolRequests"))):
            if isinstance(request, dict):
                place = f"/data/toolRequests/{number}/arguments"
                self._call(record, request, request.get("name"), place)
            else:
                record.warnings.append(f"call {number} is not an object")
        if data.get("outputTokens") and not record.sidechain:
            key = as_text(data.get("apiCallId")) or as_text(data.get("messageId"))
            record.usage = usage_of(
                f"{self._session}/{key or record.native_id}",
                as_text(data.get("model")) or self._model,
                [0, 0, 0],
                data["outputTokens"],
                0,
            )
            record.usage.fallback = SAID

    def _read_usage(self, record: Record, data: dict[str, Any]) -> None:
        record.usage = usage_of(
            record.native_id or "",
            as_text(data.get("model")) or self._model,
            [data.get(name) for name in ("inputTokens", "cacheReadTokens", _PUT)],
            data.get("outputTokens"),
            data.get("reasoningTokens"),
        )
        record.usage.fallback = SUMMED

    def _read_thought(self, record: Record, data: dict[str, Any]) -> None:
        record.role = "assistant"
        self._think(record, data.get("content"))

    def _think(self, record: Record, thought: Any) -> None:
        """Reasoning may be written as an event and once more in its message."""
        text = (as_text(thought) or "").strip()
        if not text:
            return
        before, self._thought = self._thought, f"{record.kind} {text[:_COMPARED]}"
        if before and before != self._thought and before.endswith(f" {text[:_COMPARED]}"):
            self._thought = None
        else:
            record.events.append(Event("thinking", text))

    # -- calls

    def _read_call(self, record: Record, data: dict[str, Any]) -> None:
        record.role = "assistant"
        self._choose(record, data.get("model"))
        self._call(record, data, data.get("toolName"), "/data/arguments")

    def _call(self, record: Record, data: dict[str, Any], tool: Any, place: str) -> None:
        """A call is written when it is requested and when it starts, in either order."""
        call_id, server = as_text(data.get("toolCallId")), as_text(data.get("mcpServerName"))
        if call_id in self._calls:
            return
        if call_id:
            self._calls = [*self._calls, call_id][-_REMEMBERED:]
        record.events.append(call(as_text(tool), data.get("arguments"), call_id, place, server))

    def _read_result(self, record: Record, data: dict[str, Any]) -> None:
        record.role = "user"
        if call_id := as_text(data.get("toolCallId")):
            record.results.append(result_of(data, call_id))

    def _read_subagent(self, record: Record, data: dict[str, Any]) -> None:
        name = as_text(data.get("agentDisplayName")) or as_text(data.get("agentName"))
        if name and record.sidechain:
            record.titles.append(Title(name, TITLE_AI))
        record.say("system", data.get("error"), labels.ERROR)

    _READERS: ClassVar = {
        "session.start": _read_start,
        "session.resume": _read_start,
        "session.context_changed": _read_start,
        "session.model_change": _read_model,
        "session.title_changed": _read_title,
        "session.shutdown": _read_shutdown,
        "session.compaction_complete": _read_compaction,
        "user.message": _read_prompt,
        "assistant.message": _read_answer,
        "assistant.reasoning": _read_thought,
        "assistant.usage": _read_usage,
        "tool.user_requested": _read_call,
        "tool.execution_start": _read_call,
        "tool.execution_complete": _read_result,
        "subagent.started": _read_subagent,
        "subagent.failed": _read_subagent,
    }


def _images(attachments: Any) -> int:
    return sum(
        (as_text(as_dict(one).get("mimeType")) or "").startswith("image/")
        for one in as_list(attachments)
    )


# -- calls

_TOOLS = Toolbox(
    {
        kinds.SHELL: (
            *("bash", "write_bash", "read_bash", "stop_bash", "list_bash", "powershell"),
            *("write_powershell", "read_powershell", "stop_powershell", "list_powershell", "shell"),
            *("run_in_terminal", "get_terminal_output", "send_to_terminal", "kill_terminal"),
            *("run_task", "create_and_run_task", "get_task_output", "runTests", "run_tests"),
        ),
        kinds.READ: (
            *("view", "read_file", "read_notebook_cell_output", "copilot_getNotebookSummary"),
            *("view_image", "read_project_structure", "get_errors", "get_changed_files"),
        ),
        kinds.WRITE: ("create", "create_file", "create_new_jupyter_notebook"),
        kinds.EDIT: (
            *("edit", "str_replace", "apply_patch", "insert_edit_into_file", "edit_notebook_file"),
            *("replace_string_in_file", "multi_replace_string_in_file", "edit_files"),
            *("replaceString", "multiReplaceString", "insertEdit", "editNotebook"),
        ),
        kinds.SEARCH: (
            *("grep", "glob", "rg", "file_search", "grep_search", "semantic_search", "list_dir"),
            *("search_workspace_symbols", "list_code_usages", "vscode_listCodeUsages"),
            *("test_search", "get_search_view_results", "findTextInFiles", "findFiles"),
            *("listDirectory", "searchCodebase"),
        ),
        kinds.FETCH: (
            *("web_fetch", "web_search", "fetch_webpage", "github_repo", "open_simple_browser"),
            *("fetch_copilot_cli_documentation",),
        ),
        kinds.AGENT: ("task", "runSubagent", "search_subagent", "execution_subagent"),
        kinds.PLAN: (
            *("update_todo", "manage_todo_list", "exit_plan_mode", "report_intent"),
            *("task_complete",),
        ),
        kinds.QUESTION: ("ask_user", "ask_questions", "vscode_askQuestions"),
    }
)
_PREFIXES = ("copilot_", "functions.")
_EDITOR = "str_replace_editor"  # one tool, several commands
_COMMANDS = {"view": kinds.READ, "create": kinds.WRITE}
_MCP = re.compile(r"mcp_|github-mcp-server-|mcp__")


def call(
    tool: str | None, given: Any, call_id: str | None, pointer: str, server: str | None = None
) -> Event:
    """The event of a call; arguments may be JSON in a string."""
    given = arguments_in(given)
    return event_of(describe(tool, given, server), tool, given, call_id, pointer)


def describe(tool: str | None, given: Any, server: str | None = None) -> Described:
    name = tool or ""
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    if name == _EDITOR:
        kind = _COMMANDS.get(as_text(as_dict(given).get("command")) or "", kinds.EDIT)
        return _TOOLS.describe(name, given, kind)
    kind = _TOOLS.kind(name)
    if kind == kinds.OTHER and (server or _MCP.match(name)):
        return _TOOLS.describe(name, given, kinds.MCP)
    if kind == kinds.EDIT:
        return _described_edit(name, given)
    return _TOOLS.describe(name, given)


def _described_edit(tool: str, given: Any) -> Described:
    fields = as_dict(given)
    patch = given if isinstance(given, str) else as_text(fields.get("input"))
    if patch and is_patch(patch):
        edits = edits_of_patch(patch)
        files = tuple(dict.fromkeys((edit.path, "edit") for edit in edits))
        summary = ", ".join(f"{path} (edit)" for path, _ in files)
        return Described(kinds.EDIT, one_line(summary), files, edits)
    several = fields.get("replacements")
    if not isinstance(several, list):
        return _TOOLS.describe(tool, given)
    parts = [_TOOLS.describe(tool, one, kinds.EDIT) for one in several if isinstance(one, dict)]
    files = tuple(dict.fromkeys(file for part in parts for file in part.files))
    edits = tuple(edit for part in parts for edit in part.edits)
    summary = ", ".join(f"{path} (edit)" for path, _ in files)
    return Described(kinds.EDIT, one_line(summary), files, edits)


# -- how calls ended, and what models used

# The last line of a shell's output; a failed command is a successful call for the agent.
_EXIT = re.compile(r"<[^<>\n]{0,80}?exit(?:ed)?(?: with)?(?: exit)? code:? (-?\d{1,10})>\s*\Z")
_TAIL = 200
_REFUSED = re.compile(r"reject|denied|deny|declin", re.IGNORECASE)
_REFUSALS = ("The user rejected", "Permission denied and could not request permission")
# Which of a session's records about usage counts, best first: rows of the store, the sum at its
# end, what single messages say.
STORED, SUMMED, SAID = 0, 1, 2
_MOST_SHARES = 1000


def result_of(data: dict[str, Any], call_id: str) -> Result:
    """The result in a `tool.execution_complete`."""
    result, error = as_dict(data.get("result")), as_dict(data.get("error"))
    contents = [*_blocks(result.get("contents"))]
    output = (
        as_text(result.get("content"))
        or as_text(data.get("result"))
        or as_text(error.get("message"))
        or as_text(result.get("detailedContent"))
        or "\n".join(text for block in contents if (text := as_text(block.get("text"))))
    )
    metrics = as_dict(as_dict(data.get("toolTelemetry")).get("metrics"))
    blocks = [*contents, *_blocks(result.get("binaryResultsForLlm"))]
    return Result(
        call_id,
        output or "",
        _status(data, error, output or "", contents),
        duration_ms=as_milliseconds(metrics.get("durationMs")),
        images=sum(block.get("type") == "image" for block in blocks),
        pointer="/data/result" if result else "/data/error",
    )


def _status(
    data: dict[str, Any], error: dict[str, Any], output: str, contents: list[dict[str, Any]]
) -> str:
    if data.get("success") is False or (error and data.get("success") is not True):
        refused = _REFUSED.search(as_text(error.get("code")) or "")
        return "denied" if refused or output.startswith(_REFUSALS) else "error"
    codes = [block.get("exitCode") for block in contents]
    codes.append(as_dict(data.get("shellExecution")).get("exitCode"))
    known = [code for code in codes if isinstance(code, int) and not isinstance(code, bool)]
    if not known and (match := _EXIT.search(output[-_TAIL:])):
        known = [int(match[1])]
    return "error" if any(known) else "ok"


def _blocks(value: Any) -> Iterator[dict[str, Any]]:
    for block in as_list(value):
        if isinstance(block, dict):
            yield block


def summed(end: dict[str, Any], session: str) -> list[Usage]:
    """What a whole session used, by model; each later sum includes the earlier ones.

    Of each model's responses, the first has what all used.
    """
    usages, numbers = [], []
    for model, metric in as_dict(end.get("modelMetrics")).items():
        usage, details = (as_dict(as_dict(metric).get(n)) for n in ("usage", "tokenDetails"))
        names = ("inputTokens", "cacheReadTokens", "cacheWriteTokens")
        counts = [usage.get(name) for name in names]
        output, reasoning = usage.get("outputTokens"), usage.get("reasoningTokens")
        used = usage_of(f"{session}:{model}", model, counts, output, reasoning)
        if details and not (used.input_tokens or used.output_tokens):
            used = _detailed(details, session, model, reasoning)
        usages.append(used)
        requests = as_dict(metric).get("requests")
        numbers.append(as_count(as_dict(requests).get("count")) or as_count(requests))
    if not any(used.input_tokens or used.output_tokens for used in usages):
        details = as_dict(end.get("tokenDetails"))
        usages = [_detailed(details, session, end.get("currentModel"), 0)]
        numbers = [sum(numbers)]
    shares = []
    for used, number in zip(usages, numbers, strict=True):
        used.fallback, used.sum_of = SUMMED, max(1, min(number, _MOST_SHARES))
        if used.input_tokens or used.output_tokens:
            shares += [used, *(_empty(used, number) for number in range(2, used.sum_of + 1))]
    return shares


def _empty(used: Usage, number: int) -> Usage:
    key = f"{used.message_id}:{number}"
    return Usage(key, key, used.model, fallback=used.fallback)


def _detailed(details: dict[str, Any], session: str, model: Any, reasoning: Any) -> Usage:
    """Counts that were billed, each apart: here input is what did not come from the cache."""
    names = ("input", "cache_read", "cache_write", "output")
    given, read, written, output = (
        as_count(as_dict(details.get(name)).get("tokenCount")) for name in names
    )
    entered = [given + read + written, read, written]
    return usage_of(f"{session}:{model}", model, entered, output, reasoning)


def usage_of(key: str, model: Any, entered: list[Any], output: Any, reasoning: Any) -> Usage:
    """`entered`: all input, the part of it from the cache, and the part put there."""
    given, read, written = map(as_count, entered)
    said = as_count(output)
    return Usage(
        message_id=key,
        request_id=key,
        model=as_text(model),
        input_tokens=max(0, given - read - written),
        output_tokens=said,
        cache_write_tokens=written,
        cache_read_tokens=read,
        reasoning_tokens=min(said, as_count(reasoning)),
    )
