"""Describes calls of Claude Code's tools: kind, files and edits."""

from __future__ import annotations

from typing import Any

from sess_schema import kinds
from sess_schema.edits import Edit, Hunks
from sessiond.sourcekit.base import Described
from sessiond.sourcekit.changes import as_hunk, edits_of_arguments
from sessiond.sourcekit.values import as_text
from sessiond.sources.claude.summary import TEXT_EDITORS, path_of, summarize, touched_files

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
_EDITOR_KINDS = {
    "view": kinds.READ,
    "create": kinds.WRITE,
    "str_replace": kinds.EDIT,
    "insert": kinds.EDIT,
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
    patch = details.get("structuredPatch") if isinstance(details, dict) else None
    found = map(as_hunk, patch) if isinstance(patch, list) else ()
    return tuple(hunk for hunk in found if hunk is not None)


def _kind(tool: str | None, given: Any) -> str:
    if tool in TEXT_EDITORS and isinstance(given, dict):
        return _EDITOR_KINDS.get(as_text(given.get("command")) or "", kinds.OTHER)
    if tool is not None and tool.startswith("mcp__"):
        return kinds.MCP
    return _KINDS.get(tool or "", kinds.OTHER)


def _edits(tool: str | None, given: dict[str, Any]) -> tuple[Edit, ...]:
    path = path_of(given)
    if tool in TEXT_EDITORS and given.get("command") == "insert":
        text = as_text(given.get("insert_text")) or as_text(given.get("new_str"))
        return (Edit(path, "", text),) if path and text else ()
    return edits_of_arguments(path, given)
