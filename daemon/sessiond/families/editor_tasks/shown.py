"""Reads a task of which only what was shown is left: no messages to the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sessiond.families.editor_tasks.timeline import COUNTED, Meter, moment, notice, payload, said
from sessiond.families.editor_tasks.tools import call_event
from sessiond.sourcekit.base import TITLE_PROMPT, Event, Record, Title
from sessiond.sourcekit.titles import prompt_title
from sessiond.sourcekit.values import as_text

_TYPED = frozenset({"task", "user_feedback"})
_ANSWERS = frozenset({"text", "completion_result", "plan_completion_result", "subtask_result"})
_OUTPUTS = frozenset(
    {
        *("command_output", "mcp_server_response", "browser_action_result"),
        *("codebase_search_result",),
    }
)
_FAILURES = {
    "diff_error": "error",
    "clineignore_error": "error",
    "rooignore_error": "error",
    "command_permission_denied": "denied",
}
_SILENT = COUNTED | {
    *("checkpoint_created", "checkpoint_saved", "api_req_finished", "api_req_retried"),
    *("resume_task", "resume_completed_task", "mcp_server_request_started"),
    *("shell_integration_warning", "completion_result", "user_feedback_diff"),
    *("command_output", "api_req_deleted", "task_progress"),
}
_TOOLS = {
    "newFileCreated": "write_to_file",
    "editedExistingFile": "replace_in_file",
    "appliedDiff": "apply_diff",
    "insertContent": "insert_content",
    "searchAndReplace": "search_and_replace",
    "fileDeleted": "delete_file",
    "readFile": "read_file",
    "listFiles": "list_files",
    "listFilesTopLevel": "list_files",
    "listFilesRecursive": "list_files",
    "listCodeDefinitionNames": "list_code_definition_names",
    "searchFiles": "search_files",
    "codebaseSearch": "codebase_search",
    "webFetch": "web_fetch",
    "webSearch": "web_search",
    "newTask": "new_task",
    "switchMode": "switch_mode",
    "updateTodoList": "update_todo_list",
    "useSkill": "use_skill",
    "skill": "skill",
}
_OUTPUT = "\nOutput:"


class Shown(NamedTuple):
    key: str
    record: Record
    messages: list[dict[str, Any]]  # with the outputs of a call


def read_shown(messages: Sequence[dict[str, Any]], meter: Meter) -> list[Shown]:
    """A call takes the outputs and errors that follow it."""
    read: list[Shown] = []
    call: Event | None = None
    asked: tuple[str, str] | None = None  # the call that was last asked about
    for number, message in enumerate(messages):
        kind, text = said(message), as_text(message.get("text")) or ""
        if call is not None and (kind in _OUTPUTS or kind in _FAILURES):
            call.output = "\n".join(filter(None, (call.output, text)))
            call.status = _FAILURES.get(kind, call.status)
            read[-1].messages.append(message)
            continue
        record = Record(kind or "message", native_id=_name(meter, message))
        record.ts = moment(message)
        made = _call(kind, text, message)
        if made is not None:
            if message.get("type") == "say" and asked == (kind, text):
                continue  # allowed: shown again
            asked = (kind, text) if message.get("type") == "ask" else None
            record.role = "assistant"
            record.events.append(made)
        elif noted := notice(message, meter):
            record, noted.native_id = noted, record.native_id
        elif not _say(record, kind, text, message, first=not read):
            continue
        call = made
        read.append(Shown(str(message.get("ts") or number), record, [message]))
    return read


def _name(meter: Meter, message: dict[str, Any]) -> str:
    """Not the name of the same message beside those to the model: neither copies the other."""
    return f"{meter.task}/only-shown/{message.get('ts')}"


def _say(record: Record, kind: str, text: str, message: dict[str, Any], *, first: bool) -> bool:
    """Add the event of a message; False if it says nothing."""
    images = message.get("images")
    count = len(images) if isinstance(images, list) else 0
    if kind in _TYPED or (first and kind == "text"):
        record.role = "user"
        record.events.append(Event("user", text or "[image]", images=count))
        if title := prompt_title(text):
            record.titles.append(Title(title, TITLE_PROMPT))
        return bool(text or count)
    if kind == "reasoning":
        thought = text or as_text(message.get("reasoning")) or ""
        record.role = "assistant"
        record.events.append(Event("thinking", thought))
        return bool(thought)
    if kind in ("plan_mode_respond", "act_mode_respond"):
        text, kind = as_text(payload(message).get("response")) or text, "text"
    if kind in _ANSWERS and text:
        record.role = "assistant"
        record.events.append(Event("assistant", text))
        return True
    if kind in _SILENT or not text:
        return False
    record.role = "system"
    record.events.append(Event("system", text, label=kind or "message"))
    return True


def _call(kind: str, text: str, message: dict[str, Any]) -> Event | None:
    facts = payload(message)
    given: dict[str, Any]
    output = ""
    if kind == "command":
        command, _, output = text.partition(_OUTPUT)
        tool, given = "execute_command", {"command": command}
    elif kind == "tool":
        name = as_text(facts.pop("tool", None)) or ""
        tool, given = _TOOLS.get(name, name), facts
        output = as_text(given.pop("content", None)) or "" if tool == "read_file" else ""
        if tool == "replace_in_file" and "diff" not in given and "content" in given:
            given["diff"] = given.pop("content")
    elif kind == "use_mcp_server":
        tool = "use_mcp_tool"
        given = {"server_name": facts.get("serverName"), "tool_name": facts.get("toolName")}
        given |= {"arguments": facts.get("arguments"), "uri": facts.get("uri")}
        given = {name: value for name, value in given.items() if value}
    elif kind in ("browser_action_launch", "browser_action"):
        tool, given = "browser_action", facts or {"action": "launch", "url": text}
    elif kind == "followup":
        tool, given = "ask_followup_question", facts or {"question": text}
    elif kind == "use_subagents":
        tool, given = "use_subagents", facts
    else:
        return None
    event = call_event(tool, given, None, None)
    event.status, event.output = "ok", output.strip()
    return event
