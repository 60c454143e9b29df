"""Describes calls of Claude Code's tools: kind, files and edits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sess_schema import kinds
from sess_schema.calls import named, path_in, progress
from sess_schema.edits import Edit, Hunks
from sessiond.sourcekit.base import Described
from sessiond.sourcekit.toolbox import as_hunk, edits_of_arguments, one_line
from sessiond.sourcekit.values import as_dict, as_list, as_text

_TOOLS = {
    kinds.SHELL: ("Bash", "PowerShell", "bash", "bash_code_execution"),
    kinds.READ: ("NotebookRead", "Read"),
    kinds.WRITE: ("Write",),
    kinds.EDIT: ("Edit", "MultiEdit", "NotebookEdit"),
    kinds.SEARCH: ("Glob", "Grep", "LS", "LSP"),
    kinds.FETCH: ("WebFetch", "WebSearch", "web_fetch", "web_search"),
    kinds.AGENT: ("Agent", "Task"),
    kinds.PLAN: (
        *("EnterPlanMode", "ExitPlanMode", "TaskCreate", "TaskGet", "TaskList", "TaskUpdate"),
        *("TodoRead", "TodoWrite", "exit_plan_mode"),
    ),
    kinds.QUESTION: ("AskUserQuestion",),
    kinds.MCP: ("ListMcpResourcesTool", "ReadMcpResourceTool"),
}
_KINDS = {tool: kind for kind, tools in _TOOLS.items() for tool in tools}
_TEXT_EDITORS = frozenset({"str_replace_based_edit_tool", "str_replace_editor"})
_EDITOR_KINDS = {
    **dict.fromkeys(("str_replace", "insert"), kinds.EDIT),
    "view": kinds.READ,
    "create": kinds.WRITE,
}
_EDIT_ARGUMENTS = ("old_string", "new_string", "old_str", "new_str", "patch")  # of any tool


def describe(tool: str | None, given: Any) -> Described:
    kind, edits = _kind(tool, given), tuple[Edit, ...]()
    if isinstance(given, dict):
        if kind in (kinds.WRITE, kinds.EDIT):
            edits = _edits(tool, given)
        elif kind == kinds.OTHER and any(name in given for name in _EDIT_ARGUMENTS):
            edits = _edits(tool, given)
            kind = kinds.EDIT if edits else kind
    return Described(kind, summarize(tool, given), touched_files(tool, given), edits)


def hunks_of_result(details: Any) -> Hunks:
    """The changed lines, with their numbers in the file."""
    hunks = map(as_hunk, as_list(as_dict(details).get("structuredPatch")))
    return tuple(hunk for hunk in hunks if hunk is not None)


def _kind(tool: str | None, given: Any) -> str:
    if tool in _TEXT_EDITORS and isinstance(given, dict):
        return _EDITOR_KINDS.get(as_text(given.get("command")) or "", kinds.OTHER)
    if tool is not None and tool.startswith("mcp__"):
        return kinds.MCP
    return _KINDS.get(tool or "", kinds.OTHER)


def _edits(tool: str | None, given: dict[str, Any]) -> tuple[Edit, ...]:
    path = path_of(given)
    if tool in _TEXT_EDITORS and given.get("command") == "insert":
        text = as_text(given.get("insert_text")) or as_text(given.get("new_str"))
        return (Edit(path, "", text),) if path and text else ()
    return edits_of_arguments(path, given)


# -- the input in one line, and the files that it names

_PROMPT = 80
_ACTIONS = {kinds.READ: "read", kinds.WRITE: "write", kinds.EDIT: "edit"}


def touched_files(tool: str | None, given: Any) -> tuple[tuple[str, str], ...]:
    """(path, action) of the file that a call reads or changes."""
    action = _ACTIONS.get(_kind(tool, given))
    path = path_of(given) if isinstance(given, dict) else ""
    return ((path, action),) if action and path else ()


def summarize(tool: str | None, given: Any) -> str:
    """What a call does, at a glance; empty for an unreadable input."""
    if not isinstance(given, dict):
        return ""
    special = _SUMMARIES.get(tool or "")
    return one_line(special(given) if special else ", ".join(sorted(given)))


def path_of(given: dict[str, Any]) -> str:
    return path_in(named(given))


def _first_text(given: dict[str, Any], *names: str) -> str:
    return next((text for name in names if (text := as_text(given.get(name)))), "")


def _value(*names: str) -> Callable[[dict[str, Any]], str]:
    return lambda given: _first_text(given, *names)


def _bash(given: dict[str, Any]) -> str:
    command, description = _first_text(given, "command"), _first_text(given, "description")
    return f"{command} # {description}" if command and description else command


def _edit(given: dict[str, Any]) -> str:
    path = path_of(given)
    return f"{path} (edit)" if path else ""


def _multi_edit(given: dict[str, Any]) -> str:
    path, edits = path_of(given), len(as_list(given.get("edits")))
    return f"{path} ({edits} edit{'' if edits == 1 else 's'})" if path else ""


def _notebook_edit(given: dict[str, Any]) -> str:
    path = path_of(given)
    return f"{path} ({_first_text(given, 'edit_mode') or 'edit'})" if path else ""


def _write(given: dict[str, Any]) -> str:
    path = path_of(given)
    content = as_text(given.get("content")) or ""
    size = len(content) if content.isascii() else len(content.encode("utf-8", "replace"))
    return f"{path} ({size} bytes)" if path else ""


def _grep(given: dict[str, Any]) -> str:
    pattern = _first_text(given, "pattern")
    return f"/{pattern}/ in {_first_text(given, 'path') or '.'}" if pattern else ""


def _agent(given: dict[str, Any]) -> str:
    kind = _first_text(given, "subagent_type")
    task = _first_text(given, "description")
    if not task:
        prompt = _first_text(given, "prompt")
        task = prompt if len(prompt) <= _PROMPT else prompt[:_PROMPT] + "..."
    return f"[{kind}] {task}".rstrip() if kind else task


def _todos(given: dict[str, Any]) -> str:
    return progress(as_list(given.get("todos")))


def _skill(given: dict[str, Any]) -> str:
    return " ".join(
        filter(None, (_first_text(given, "skill", "command"), _first_text(given, "args")))
    )


def _question(given: dict[str, Any]) -> str:
    questions = (q for q in as_list(given.get("questions")) if isinstance(q, dict))
    return " / ".join(filter(None, (_first_text(q, "question") for q in questions)))


def _task_update(given: dict[str, Any]) -> str:
    task, change = _first_text(given, "taskId"), _first_text(given, "status", "subject", "owner")
    return f"#{task} {change}".rstrip() if task else change


def _send_message(given: dict[str, Any]) -> str:
    receiver = _first_text(given, "to", "recipient")
    words = _first_text(given, "summary", "content", "message")
    return f"{receiver}: {words}" if receiver and words else receiver or words


_SUMMARIES: dict[str, Callable[[dict[str, Any]], str]] = {
    "Agent": _agent,
    "AskUserQuestion": _question,
    "Bash": _bash,
    "BashOutput": _value("bash_id"),
    "Edit": _edit,
    "ExitPlanMode": _value("plan"),
    "Glob": _value("pattern"),
    "Grep": _grep,
    "KillShell": _value("shell_id"),
    "LS": path_of,
    "MultiEdit": _multi_edit,
    "NotebookEdit": _notebook_edit,
    "NotebookRead": path_of,
    "Read": path_of,
    "SendMessage": _send_message,
    "Skill": _skill,
    "SlashCommand": _value("command"),
    "Task": _agent,
    "TaskCreate": _value("subject", "description"),
    "TaskOutput": _value("task_id"),
    "TaskUpdate": _task_update,
    "TodoWrite": _todos,
    "ToolSearch": _value("query"),
    "WebFetch": _value("url"),
    "WebSearch": _value("query"),
    "Write": _write,
}
