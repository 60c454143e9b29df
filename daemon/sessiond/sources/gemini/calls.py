"""Reads tool calls, which contain their results: what each one does, its output and status."""

from __future__ import annotations

from typing import Any

from sess_schema import kinds
from sess_schema.calls import named, path_in, progress
from sess_schema.edits import Edit
from sessiond.sourcekit.base import LINK_RESULT, Described, Event, Link
from sessiond.sourcekit.changes import edits_of_arguments
from sessiond.sourcekit.toolbox import exited_with_error
from sessiond.sourcekit.values import OPAQUE, as_dict, as_text, strings

_TOOLS = {
    kinds.SHELL: ("run_shell_command", "run_command", "shell"),
    kinds.READ: ("read_file", "read_many_files"),
    kinds.WRITE: ("write_file",),
    kinds.EDIT: ("edit", "replace", "smart_edit"),
    kinds.SEARCH: ("glob", "grep_search", "list_directory", "search_file_content"),
    kinds.FETCH: ("google_web_search", "web_fetch"),
    kinds.AGENT: (
        *("browser_agent", "cli_help", "codebase_investigator", "delegate_to_agent"),
        *("generalist", "invoke_agent", "invoke_subagent"),
    ),
    kinds.PLAN: ("enter_plan_mode", "exit_plan_mode", "update_topic", "write_todos"),
    kinds.QUESTION: ("ask_user",),
}
_KINDS = {tool: kind for kind, tools in _TOOLS.items() for tool in tools}
_ACTIONS = {kinds.READ: "read", kinds.WRITE: "write", kinds.EDIT: "edit"}
_ENDS = {"error": "error", "cancelled": "denied", "canceled": "denied", "rejected": "denied"}
_ENDED = frozenset({"success", "completed", "ok", "done"})
_SUBJECTS = (
    *("command", "objective", "task", "prompt", "query", "url", "fact", "plan_path", "title"),
    *("question", "name"),
)
_GLOBS = frozenset("*?[{")
_LONGEST = 1000  # the event also keeps the whole input
_HIDDEN = OPAQUE | {"id", "name", "mimeType", "thoughtSignature"}


def tool_call(call: dict[str, Any], place: str) -> Event:
    """An event, complete unless the call is still running."""
    tool, given = as_text(call.get("name")), call.get("args")
    output, failed, images = _output(call)
    described = describe(tool, call)
    return Event(
        "tool_use",
        tool=tool,
        status=_status(call, output, failed=failed),
        summary=described.summary,
        input="\n".join(strings(given)),
        output=output,
        images=images,
        call_id=as_text(call.get("id")),
        pointer=f"{place}/args",
        files=described.files,
        kind=described.kind,
        edits=described.edits,
    )


def links_of(call: dict[str, Any]) -> list[Link]:
    """A link to the subagent that ran a call."""
    agent, call_id = as_text(call.get("agentId")), as_text(call.get("id"))
    return [Link(agent, call_id, LINK_RESULT)] if agent and call_id else []


def describe(tool: str | None, call: dict[str, Any]) -> Described:
    """`call` has the arguments and, once it ended, the displayed result."""
    given = as_dict(call.get("args"))
    kind = _kind(tool, call)
    path = _path(given)
    edits: tuple[Edit, ...] = ()
    if kind in (kinds.WRITE, kinds.EDIT):
        diff = as_text(as_dict(call.get("resultDisplay")).get("fileDiff"))
        edits = (Edit(path, patch=diff),) if diff and path else edits_of_arguments(path, given)
    return Described(kind, _one_line(_summary(kind, given, path)), _files(kind, given, path), edits)


def response_text(piece: Any) -> tuple[str, bool]:
    """The text of a `functionResponse`, and whether it is an error."""
    response = as_dict(as_dict(piece).get("functionResponse")).get("response")
    fields = as_dict(response)
    known = [fields[name] for name in ("output", "error", "result") if name in fields]
    return "\n".join(strings(known or response, _HIDDEN)), "error" in fields


def _output(call: dict[str, Any]) -> tuple[str, bool, int]:
    """The text of a result, whether it is an error, and how many images it has."""
    result = call.get("result")
    if isinstance(result, str):
        return result, False, 0
    texts, failed, images = list[str](), False, 0
    pieces = result if isinstance(result, list) else [result]
    own = [piece for piece in pieces if _answers(piece, call.get("id"))]
    for piece in own or pieces:  # a copy of what the model got has those of other calls too
        if isinstance(piece, dict) and "functionResponse" in piece:
            text, is_error = response_text(piece)
            failed = failed or is_error
        elif isinstance(piece, dict) and "inlineData" in piece:
            text, images = "", images + 1
        else:
            text = "\n".join(strings(piece, _HIDDEN))
        texts += [text] if text else []
    shown = call.get("resultDisplay")
    if not texts and isinstance(shown, str):
        texts.append(shown)
    return "\n".join(texts), failed, images


def _answers(piece: Any, call_id: Any) -> bool:
    response = as_dict(as_dict(piece).get("functionResponse"))
    return call_id is not None and response.get("id") == call_id


def command_failed(tool: str | None, output: str) -> bool:
    """A failed command is a successful call for the agent."""
    return _KINDS.get(tool or "") == kinds.SHELL and exited_with_error(output)


def _status(call: dict[str, Any], output: str, *, failed: bool) -> str:
    status = as_text(call.get("status")) or ""
    if status in _ENDS:
        return _ENDS[status]
    if failed or command_failed(as_text(call.get("name")), output):
        return "error"
    return "ok" if status in _ENDED or (output and not status) else "pending"


def _kind(tool: str | None, call: dict[str, Any]) -> str:
    name = tool or ""
    if name in _KINDS:
        return _KINDS[name]
    if as_text(call.get("agentId")):
        return kinds.AGENT
    return kinds.MCP if name.startswith("mcp_") or "__" in name else kinds.OTHER


def _path(given: dict[str, Any]) -> str:
    return path_in(named(given))


def _files(kind: str, given: dict[str, Any], path: str) -> tuple[tuple[str, str], ...]:
    action = _ACTIONS.get(kind)
    if action is None:
        return ()
    return tuple((one, action) for one in ([path] if path else _listed(given)))


def _listed(given: dict[str, Any]) -> list[str]:
    """The files that are given by name, not by a pattern."""
    named = (given.get(name) for name in ("paths", "include"))
    found = next((paths for paths in named if isinstance(paths, list)), [])
    return [path for path in found if as_text(path) and _GLOBS.isdisjoint(path)]


def _summary(kind: str, given: dict[str, Any], path: str) -> str:
    if kind == kinds.SHELL:
        command, about = as_text(given.get("command")), as_text(given.get("description"))
        return f"{command} # {about}" if command and about else command or ""
    if kind == kinds.SEARCH:
        pattern = as_text(given.get("pattern"))
        return " in ".join(filter(None, (pattern, path))) if pattern else path
    if path and kind in _ACTIONS:
        return f"{path} (edit)" if kind == kinds.EDIT else path
    if kind == kinds.AGENT:
        name = as_text(given.get("agent_name"))
        task = next((text for key in _SUBJECTS if (text := as_text(given.get(key)))), "")
        return f"[{name}] {task}".rstrip() if name else task
    if isinstance(given.get("todos"), list):
        return progress(given["todos"])
    subject = next((text for key in _SUBJECTS if (text := as_text(given.get(key)))), "")
    return subject or path or ", ".join(_listed(given)) or ", ".join(sorted(given))


def _one_line(text: str) -> str:
    text = " ".join(text[: 4 * _LONGEST].split()) if "\n" in text or "\r" in text else text
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."
