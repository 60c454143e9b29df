"""The tools of Kiro under the names of all its versions, and what calls return."""

from __future__ import annotations

import re
from typing import Any

from sess_schema import kinds
from sess_schema.edits import Edit
from sessiond.sourcekit.base import Event, Result
from sessiond.sourcekit.toolbox import Toolbox, event_of
from sessiond.sourcekit.values import as_dict, as_line, as_text

_TOOLS = Toolbox(
    {
        kinds.SHELL: (
            *("execute_bash", "execute_cmd", "execute_pwsh", "shell", "bash", "use_aws"),
            *("run_command", "control_bash_process", "control_pwsh_process", "get_process_output"),
        ),
        kinds.READ: (
            *("fs_read", "file_read", "read", "read_file", "read_files", "read_multiple_files"),
            *("read_code", "image_read"),
        ),
        kinds.WRITE: ("fs_write", "file_write", "write", "create_file"),
        kinds.EDIT: (
            *("str_replace", "edit", "edit_code", "fs_append", "delete_file", "rm", "mkdir"),
            *("semantic_rename", "smart_relocate"),
        ),
        kinds.SEARCH: (
            *("ls", "list_directory", "grep", "grep_search", "glob", "file_search", "code"),
            *("knowledge", "tool_search"),
        ),
        kinds.FETCH: ("web_fetch", "web_search", "remote_web_search"),
        kinds.AGENT: (
            *("subagent", "sub_agent", "use_subagent", "agent_crew", "delegate"),
            *("invoke_sub_agent", "spawn_session"),
        ),
        kinds.PLAN: ("todo_list", "todo", "task_create", "task_update", "task_list", "update_plan"),
        kinds.QUESTION: ("user_input", "ask_user", "ask_user_question"),
    }
)
_SERVER = "___"  # between the name of an MCP server and that of its tool
_PURPOSE = "__tool_use_purpose"
_REPLACES, _ADDS = ("str_replace", "strReplace"), ("insert", "append")
_ADDED = ("new_str", "newStr", "content", "text", "file_text")
_REFUSED = re.compile(
    r"\A\W*(?:Tool use was cancelled by the user|The user denied|User denied|Denied by"
    r"|Tool (?:use|execution) (?:was )?(?:denied|rejected|cancelled))",
    re.IGNORECASE,
)
_ENDED = re.compile(r"(-?\d+)\W*\Z")
_CODE = re.compile(r"^Exit Code: ([1-9]\d*)\s*\Z", re.MULTILINE)
_TAIL = 200


def call(tool: str | None, given: Any, call_id: str | None, pointer: str) -> Event:
    if isinstance(given, dict) and _PURPOSE in given:
        given = {name: value for name, value in given.items() if name != _PURPOSE}
    kind = kinds.MCP if tool and _SERVER in tool else ""
    edits: tuple[Edit, ...] = ()
    if not kind and _TOOLS.kind(tool) == kinds.WRITE:
        kind, edits = _writes(as_dict(given))
    return event_of(_TOOLS.describe(tool, given, kind, edits), tool, given, call_id, pointer)


def _writes(given: dict[str, Any]) -> tuple[str, tuple[Edit, ...]]:
    """One tool writes and edits; a command tells which."""
    path, command = as_text(given.get("path")), given.get("command")
    if command in _REPLACES or path is None:
        return (kinds.EDIT if path else kinds.WRITE), ()
    text = next((given[name] for name in _ADDED if isinstance(given.get(name), str)), None)
    edits = (Edit(path, new=text),) if text is not None else ()
    return (kinds.EDIT if command in _ADDS else kinds.WRITE), edits


def result(call_id: str, text: str, *, failed: bool, images: int, pointer: str) -> Result:
    status = "error" if failed or _CODE.search(text[-_TAIL:]) else "ok"
    if failed and _REFUSED.match(text[:_TAIL]):
        status = "denied"
    return Result(call_id, text, status, images=images, pointer=pointer)


def blocks(content: Any) -> tuple[str, int, bool]:
    """The text of a result, how many images it has, and whether a command failed."""
    texts, images, failed = list[str](), 0, False
    for block in content if isinstance(content, list) else [content]:
        kind, value = _block(block)
        if kind == "image":
            images += 1
        elif isinstance(value, str):
            texts.append(value)
        elif isinstance(value, dict) and ("stdout" in value or "exit_status" in value):
            failed = failed or _ended_badly(value)
            texts += filter(None, (as_text(value.get(name)) for name in ("stdout", "stderr")))
        elif value is not None:
            texts.append(as_line(value).decode())
    return "\n".join(texts), images, failed


def _block(block: Any) -> tuple[str, Any]:
    """Version 1 names the kind of a block by its only key, later ones by `kind`."""
    if not isinstance(block, dict):
        return "text", block
    if isinstance(block.get("kind"), str):
        return block["kind"].casefold(), block.get("data")
    for name in ("Text", "Json", "Image"):
        if name in block:
            return name.casefold(), block[name]
    return "text", block.get("text", block)


def _ended_badly(value: dict[str, Any]) -> bool:
    status = value.get("exit_status")
    match = _ENDED.search(status) if isinstance(status, str) else None
    return match[1] != "0" if match else status not in (0, None, "")
