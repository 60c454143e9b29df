"""The tools of GitHub Copilot's agent, in its CLI and in editors."""

from __future__ import annotations

import re
from typing import Any

import orjson

from sess_schema import kinds
from sessiond.sourcekit.base import Described, Event
from sessiond.sourcekit.patches import edits_of_patch, is_patch
from sessiond.sourcekit.toolbox import Toolbox, event_of, one_line
from sessiond.sourcekit.values import as_dict, as_text

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
    given = decoded(given)
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


def decoded(given: Any) -> Any:
    if isinstance(given, str) and given.lstrip()[:1] == "{":
        try:
            return orjson.loads(given)
        except orjson.JSONDecodeError:
            return given
    return given
