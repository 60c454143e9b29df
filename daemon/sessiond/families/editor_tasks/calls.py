"""Calls of tools: what each one does, how it ended, and calls that a model wrote as tags."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from sess_schema import kinds
from sess_schema.edits import Edit
from sessiond.sourcekit.base import Described, Event
from sessiond.sourcekit.toolbox import Toolbox, edits_of_blocks, event_of
from sessiond.sourcekit.values import as_dict, as_text

NEW_TASK = "new_task"
TOOLS = {
    kinds.SHELL: ("execute_command", "run_commands", "read_command_output"),
    kinds.READ: ("read_file", "read_files"),
    kinds.WRITE: ("write_to_file", "write_file", "new_rule", "generate_image"),
    kinds.EDIT: (
        *("replace_in_file", "apply_diff", "apply_patch", "insert_content", "search_and_replace"),
        *("search_replace", "edit", "edit_file", "editor", "multi_edit", "delete_file"),
        *("append_to_file",),
    ),
    kinds.SEARCH: (
        *("search_files", "list_files", "list_code_definition_names", "codebase_search"),
        *("search_codebase", "search_subagent"),
    ),
    kinds.FETCH: (
        *("browser_action", "web_fetch", "web_search", "fetch_web_content"),
        *("load_mcp_documentation", "fetch_instructions"),
    ),
    kinds.AGENT: (NEW_TASK, "use_subagents", "spawn_agent", "team_task", "team_run_task"),
    kinds.PLAN: (
        *("update_todo_list", "focus_chain", "plan_mode_respond", "act_mode_respond"),
        *("switch_mode", "task_progress"),
    ),
    kinds.QUESTION: ("ask_followup_question", "ask_question"),
    kinds.MCP: ("use_mcp_tool", "access_mcp_resource"),
    kinds.OTHER: (
        *("attempt_completion", "condense", "summarize_task", "report_bug", "use_skill", "skill"),
        *("run_slash_command", "generate_explanation", "custom_tool", "submit_and_exit"),
        *("skills", "inspect_site", "send_user_message"),
    ),
}
_LAST = frozenset({"attempt_completion", "submit_and_exit"})
_BOX = Toolbox(TOOLS)
_PATH_TAG = re.compile(r"<path>(.*?)</path>", re.DOTALL)
_SEVERAL = 50

_DENIED = (
    "The user denied this operation",
    "The user rejected this operation",
    "Tool execution was rejected",
    "User rejected",
)
_FAILED = (
    "The tool execution failed",
    "[ERROR]",
    "Missing value for required parameter",
    "This is likely because the SEARCH block",
    "Error:",
    "Error ",
    "Unable to apply diff",
    "Command execution was not successful",
    "Failed to ",
)
_NOT_RUN = (
    "was not executed because",
    "due to user rejecting a previous tool",
    "is blocked by the .",
    "Command execution was not successful",
    "<error_details>",
)
_EXIT = re.compile(
    r"(?:exit(?:ed)?(?: with)?(?: code| status):?|Exit code:)\s*(-?\d+)", re.IGNORECASE
)
_FILE_ERROR = re.compile(
    r"\A(?:File: [^\n]*\n|<files?>\s*(?:<file>)?<path>[^<]*</path>)\s*(?:<error>|Error:)"
)
_HEAD = 600  # where the extension puts its own text


def describe(tool: str | None, given: Any) -> Described:
    fields = as_dict(given)
    edits = _blocks(fields)
    if nested := as_text(fields.get("args")):  # `<file><path>...` in a call written as text
        paths = [{"path": path.strip()} for path in _PATH_TAG.findall(nested)[:_SEVERAL]]
        fields = {**fields, "files": paths} if paths else fields
    kind = _kind(tool)
    if kind == kinds.MCP:
        server = as_text(fields.get("server_name"))
        called = as_text(fields.get("tool_name")) or as_text(fields.get("uri"))
        return Described(kind, "/".join(filter(None, (server, called))))
    if isinstance(given, dict):
        return _BOX.describe(tool, fields, kind, edits)
    return _BOX.describe(tool, given, kind, edits)


def _kind(tool: str | None) -> str:
    """Variants of the editing tool are named after the models that they suit."""
    return kinds.EDIT if (tool or "").startswith("edit_file_") else _BOX.kind(tool)


def call_event(tool: str | None, given: Any, call_id: str | None, pointer: str | None) -> Event:
    event = event_of(describe(tool, given), tool, given, call_id, pointer)
    if tool in _LAST:
        event.status = "ok"  # only an objection is answered
    return event


def _blocks(fields: dict[str, Any]) -> tuple[Edit, ...]:
    diff, path = as_text(fields.get("diff")), as_text(fields.get("path"))
    return edits_of_blocks(diff, path) if diff and path else ()


def status_of(text: str, tool: str | None, *, failed: bool = False) -> str:
    """Whether a call succeeded: older versions have no flag, only their own words."""
    head = text[:_HEAD].lstrip()
    said = _said(head, text)
    if said == "denied" or head.startswith(_DENIED):
        return "denied"
    if "due to user rejecting" in head:
        return "denied"
    if failed or said == "error" or head.startswith(_FAILED) or any(w in head for w in _NOT_RUN):
        return "error"
    if _FILE_ERROR.match(head):
        return "error"
    if _BOX.kind(tool) == kinds.SHELL:
        code = _EXIT.search(head)
        return "error" if code and int(code[1]) else "ok"
    return "ok"


def _said(head: str, text: str) -> str | None:
    if not head.startswith("{") or '"status"' not in head:
        return None
    try:
        return as_text(as_dict(json.loads(text)).get("status"))
    except (ValueError, RecursionError):
        return None


# -- calls that a model wrote as tags in its text, before calls had blocks of their own

_NAMES = sorted({name for names in TOOLS.values() for name in names}, key=len, reverse=True)
_START = re.compile(rf"<({'|'.join(_NAMES)})>")
_ARGUMENT = re.compile(r"<([a-z_]+)>")
_LONG = frozenset({"content", "diff", "result", "message", "context", "arguments", "args"})
_THOUGHT = re.compile(r"<thinking>(.*?)(?:</thinking>|\Z)", re.DOTALL)


class Written(NamedTuple):
    """A piece of a model's text: prose, a thought, or a call."""

    kind: str  # text, thinking, call
    text: str = ""
    tool: str = ""
    arguments: dict[str, str] = {}  # noqa: RUF012 - never changed


def written_pieces(text: str) -> Iterator[Written]:
    at = seek = 0
    while match := _START.search(text, seek):
        body, seek = _body(text, match[1], match.end())
        arguments = dict(_arguments(body))
        if arguments or not body.strip():  # else it is a tag in prose
            yield from _prose(text[at : match.start()])
            yield Written("call", tool=match[1], arguments=arguments)
            at = seek
    yield from _prose(text[at:])


def _body(text: str, tool: str, start: int) -> tuple[str, int]:
    """Up to the tag that closes the call; a file's content may contain the same tag."""
    close = f"</{tool}>"
    first = text.find(close, start)
    following = _START.search(text, max(first, start))
    if first < 0 and following:  # not a call: a call that was cut off is the last thing
        return "-", start
    end = text.rfind(close, start, following.start() if following else len(text))
    return (text[start:end], end + len(close)) if end >= 0 else (text[start:], len(text))


def _arguments(body: str) -> Iterator[tuple[str, str]]:
    at = 0
    while match := _ARGUMENT.search(body, at):
        close = f"</{match[1]}>"
        seek = body.rfind if match[1] in _LONG else body.find
        end = seek(close, match.end())
        if end < 0:  # cut off
            yield match[1], body[match.end() :].strip("\n")
            return
        yield match[1], body[match.end() : end].strip("\n")
        at = end + len(close)


def _prose(text: str) -> Iterator[Written]:
    at = 0
    for match in _THOUGHT.finditer(text):
        if before := text[at : match.start()].strip():
            yield Written("text", before)
        if thought := match[1].strip():
            yield Written("thinking", thought)
        at = match.end()
    if rest := text[at:].strip():
        yield Written("text", rest)
