"""The tools of Antigravity, and what calls return."""

from __future__ import annotations

import re
from typing import Any

from sess_schema import kinds
from sess_schema.edits import Edit
from sessiond.sourcekit.base import Event
from sessiond.sourcekit.folders import absolute
from sessiond.sourcekit.toolbox import Toolbox, event_of
from sessiond.sourcekit.values import as_dict, as_text, decoded

_TOOLS = Toolbox(
    {
        kinds.SHELL: ("run_command", "command_status", "send_command_input", "read_terminal"),
        kinds.READ: (
            *("view_file", "view_file_outline", "view_code_item", "view_content_chunk"),
            *("read_resource", "view_image"),
        ),
        kinds.WRITE: ("write_to_file",),
        kinds.EDIT: ("replace_file_content", "multi_replace_file_content", "edit_file"),
        kinds.SEARCH: (
            *("list_dir", "find_by_name", "grep_search", "codebase_search", "search_in_file"),
            "list_resources",
        ),
        kinds.FETCH: ("read_url_content", "search_web", "open_browser_url", "read_browser_page"),
        kinds.AGENT: ("browser_subagent", "invoke_subagent", "define_subagent"),
        kinds.PLAN: ("task_boundary", "manage_task", "write_todos"),
        kinds.QUESTION: ("notify_user", "ask_question", "ask_permission"),
    }
)
_SHOWN = ("toolAction", "toolSummary")  # what the program shows of a call
_REFUSED = re.compile(
    r"(?:user|permission)\b.{0,40}\b(?:denied|rejected|declined|cancel+ed)"
    r"|(?:denied|rejected|declined|cancel+ed) by (?:the )?user",
    re.IGNORECASE,
)
_EXIT = re.compile(r"^The command (?:exited|failed) with (?:exit )?code:? (-?\d+)", re.MULTILINE)
_HEAD = 2000  # characters that tell how a call ended


def call(name: str | None, given: Any, call_id: str | None, pointer: str) -> Event:
    fields = {key: value for key, value in as_dict(given).items() if key not in _SHOWN}
    described = _TOOLS.describe(name, fields, edits=tuple(_edits(fields)))
    return event_of(described, name, fields, call_id, pointer)


def folder_of(given: Any) -> str | None:
    """Where a command runs."""
    return absolute(as_dict(given).get("Cwd"))


def unwrapped(given: Any) -> dict[str, Any]:
    """Arguments in a transcript: each is JSON in a string."""
    found: dict[str, Any] = {}
    for name, value in as_dict(given).items():
        inner = decoded(value) if isinstance(value, str) else None
        found[name] = value if inner is None else inner
    return found


def status_of(text: str, *, failed: bool) -> str:
    if failed and _REFUSED.search(text[:_HEAD]):
        return "denied"
    ended = _EXIT.search(text[:_HEAD])
    return "error" if failed or (ended is not None and ended[1] != "0") else "ok"


def _edits(given: dict[str, Any]) -> list[Edit]:
    path = as_text(given.get("TargetFile")) or ""
    chunks = given.get("ReplacementChunks")
    chunks = decoded(chunks) if isinstance(chunks, str) else chunks
    edits = []
    for chunk in [given, *map(as_dict, chunks if isinstance(chunks, list) else ())]:
        old, new = chunk.get("TargetContent"), chunk.get("ReplacementContent")
        if path and isinstance(old, str) and isinstance(new, str):
            edits.append(Edit(path, old, new))
    whole = given.get("CodeContent")
    if path and isinstance(whole, str):
        edits.append(Edit(path, new=whole))
    return edits
