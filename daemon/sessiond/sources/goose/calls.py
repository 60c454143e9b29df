"""What tool calls do. Older versions put the name of the extension before that of a tool."""

from __future__ import annotations

from typing import Any

from sess_schema import kinds
from sess_schema.edits import Edit
from sessiond.sourcekit.base import Event
from sessiond.sourcekit.toolbox import Toolbox, event_of
from sessiond.sourcekit.values import as_dict, as_text

_TOOLS = Toolbox(
    {
        kinds.SHELL: ("shell", "bash", "execute_code", "execute", "automation_script"),
        kinds.READ: ("read", "read_file", "read_image", "read_resource", "pdf_tool", "docx_tool"),
        kinds.WRITE: ("write",),
        kinds.EDIT: ("edit", "text_editor"),
        kinds.SEARCH: ("tree", "list", "glob", "ripgrep", "analyze", "search_files"),
        kinds.FETCH: ("web_fetch", "web_scrape", "web_search", "fetch"),
        kinds.AGENT: (
            "delegate",
            "execute_task",
            "create_task",
            "subagent",
            "subagent_execute_task",
        ),
        kinds.PLAN: ("todo_write", "todo_read"),
    }
)
_OWN = frozenset({"developer", "platform", "todo", "subagent", "dynamic_task", "summon"})
_EDITOR = "text_editor"


def call_event(block: dict[str, Any], pointer: str) -> Event:
    """A call that waits for its result, unless the model wrote one that is none."""
    asked, call_id = as_dict(block.get("toolCall")), as_text(block.get("id"))
    value = as_dict(asked.get("value"))
    tool, given = as_text(value.get("name")), value.get("arguments")
    kind, edits = kind_of(tool, as_dict(given)), _edits(tool, as_dict(given))
    described = _TOOLS.describe(_plain(tool), given, kind, edits)
    event = event_of(described, tool, given, call_id, f"{pointer}/toolCall/value/arguments")
    if asked.get("status") == "error":
        event.tool = tool or "invalid"
        event.status, event.output = "error", as_text(asked.get("error")) or ""
    return event


def _plain(tool: str | None) -> str:
    """The name without its extension."""
    return (tool or "").rpartition("__")[2]


def kind_of(tool: str | None, given: dict[str, Any]) -> str:
    extension, _, name = (tool or "").rpartition("__")
    if name == _EDITOR:
        command = given.get("command")
        if command in ("view", None):
            return kinds.READ
        return kinds.WRITE if command == "write" else kinds.EDIT
    kind = _TOOLS.kind(name)
    if name == "write" and extension == "todo":
        return kinds.PLAN
    if kind == kinds.OTHER and extension and extension not in _OWN:
        return kinds.MCP
    return kind


def _edits(tool: str | None, given: dict[str, Any]) -> tuple[Edit, ...]:
    path, before, after = (as_text(given.get(name)) for name in ("path", "before", "after"))
    if path and _plain(tool) == "edit" and (before or after):
        return (Edit(path, before or "", after or ""),)
    if path and _plain(tool) == _EDITOR and given.get("command") == "insert":
        return (Edit(path, "", as_text(given.get("new_str")) or ""),)
    return ()
