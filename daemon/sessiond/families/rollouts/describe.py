"""Describes calls of tools: their kind, files and edits."""

from __future__ import annotations

import re
import shlex
from typing import Any

import orjson

from sess_schema import calls, kinds
from sess_schema.calls import path_in, progress
from sessiond.sourcekit.base import Described
from sessiond.sourcekit.changes import edits_of_arguments
from sessiond.sourcekit.patches import edits_of_patch
from sessiond.sourcekit.values import as_dict, as_text

_TOOLS = {
    kinds.SHELL: (
        *("bash", "container.exec", "exec", "exec_command", "local_shell", "run_shell_command"),
        *("shell", "shell_command", "unified_exec", "write_stdin"),
    ),
    kinds.READ: ("Read", "read_file", "view_image"),
    kinds.EDIT: ("apply_patch",),
    kinds.SEARCH: ("grep_files", "list_dir"),
    kinds.FETCH: ("web_search",),
    kinds.AGENT: ("spawn_agent",),
    kinds.PLAN: ("create_goal", "get_goal", "update_goal", "update_plan"),
    kinds.QUESTION: ("request_user_input",),
    kinds.MCP: ("list_mcp_resource_templates", "list_mcp_resources", "read_mcp_resource"),
}
_KINDS = {tool: kind for kind, tools in _TOOLS.items() for tool in tools}
_SHELLS = re.compile(r"(?:.*/)?(?:ba|z|da|k)?sh")
_PATCH, _BEGIN = "apply_patch", "*** Begin Patch"
_PATCHED = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+?)\s*$", re.MULTILINE)
_QUOTED = r"""(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|`((?:[^`\\]|\\.)*)`)"""
# In a script that calls tools, as `tools.exec_command({cmd: "ls"})`.
_SCRIPTED = re.compile(rf"(?:\b(cmd|command)[\"']?\s*:\s*)?{_QUOTED}", re.DOTALL)
_SCRIPT = "tools."
_LONGEST_SCRIPT = 256 << 10
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_ACTIONS = {"Add": "write", "Update": "edit", "Delete": "edit"}
_LONGEST = 1000
_MOST_FILES = 1000


def decoded(given: Any) -> Any:
    """Arguments are JSON in a string; custom tools take any text."""
    if isinstance(given, str) and given.lstrip()[:1] == "{":
        try:
            return orjson.loads(given)
        except orjson.JSONDecodeError:
            return given
    return given


def describe(tool: str | None, given: Any) -> Described:
    kind = _kind(tool)
    if kind == kinds.SHELL:
        command = _command(given)
        if tool == "exec" and _SCRIPT in command:
            return _described_script(command)
        before, found, _ = command.partition(_BEGIN)
        if found and _PATCH in before:
            return _patched(command)
        return Described(kind, _line(command))
    if kind == kinds.EDIT:
        patch = given if isinstance(given, str) else _first(given, "input", "patch")
        return _patched(patch)
    values = as_dict(given)
    if kind == kinds.READ:
        path = path_in(calls.named(values))
        return Described(kind, _line(path), ((path, "read"),) if path else ())
    if kind in (kinds.OTHER, kinds.MCP):
        path = path_in(calls.named(values))
        if path and ("old_string" in values or "new_string" in values):
            edits = edits_of_arguments(path, values)
            return Described(kinds.EDIT, _line(f"{path} (edit)"), ((path, "edit"),), edits)
    return Described(kind, _line(_summary(tool, given)))


def _described_script(script: str) -> Described:
    """A script's commands and patches: it calls other tools, as in `tools.exec_command({...})`."""
    commands = list[str]()
    patches = list[str]()
    for named, *quoted in _SCRIPTED.findall(script[:_LONGEST_SCRIPT]):
        text = _ESCAPE.sub(lambda found: _ESCAPES.get(found[1], found[1]), "".join(quoted))
        if _BEGIN in text:
            patches.append(text)
        elif named:
            commands.append(text)
    if not patches:
        return Described(kinds.SHELL, _line(" ; ".join(commands) or script))
    changed = _patched("\n".join(patches))
    summary = " ; ".join((changed.summary, *commands))
    return Described(kinds.EDIT, _line(summary), changed.files, changed.edits)


def _kind(tool: str | None) -> str:
    if tool is not None and tool.startswith("mcp__"):
        return kinds.MCP
    return _KINDS.get(tool or "", kinds.OTHER)


def _patched(patch: str) -> Described:
    found = [*zip(range(_MOST_FILES), _PATCHED.finditer(patch), strict=False)]
    files = tuple((match[2], _ACTIONS[match[1]]) for _, match in found)
    summary = ", ".join(f"{match[2]} ({match[1].lower()})" for _, match in found)
    return Described(kinds.EDIT, _line(summary), files, edits_of_patch(patch))


def _command(given: Any) -> str:
    """The command line of a call, without the shell wrapper."""
    if isinstance(given, str):
        return given
    values = as_dict(given)
    for name in ("command", "cmd", "chars"):
        command = values.get(name)
        if isinstance(command, str):
            return command
        if isinstance(command, list):
            words = [word for word in command if isinstance(word, str)]
            if len(words) == 3 and _SHELLS.fullmatch(words[0]) and words[1].startswith("-"):
                return words[2]
            return " ".join(words) if _PATCH in words[:1] else shlex.join(words)
    return ""


def _summary(tool: str | None, given: Any) -> str:
    if isinstance(given, str):
        return given
    values = as_dict(given)
    if tool == "update_plan":
        return _plan(values)
    asked = values.get("questions")
    if isinstance(asked, list):
        return " / ".join(filter(None, (_first(one, "question") for one in asked)))
    for name in (
        *("question", "query", "url", "pattern", "message", "objective", "path", "dir_path"),
        *("uri", "target"),
    ):
        text = as_text(values.get(name))
        if text:
            return text
    queries = values.get("queries")
    if isinstance(queries, list):
        return " / ".join(query for query in queries if isinstance(query, str))
    texts = (text for value in values.values() if (text := as_text(value)))
    return next(texts, "") or ", ".join(sorted(values))


def _plan(values: dict[str, Any]) -> str:
    plan = values.get("plan")
    return progress(plan if isinstance(plan, list) else [])


def _first(given: Any, *names: str) -> str:
    values = as_dict(given)
    return next((text for name in names if (text := as_text(values.get(name)))), "")


def _line(text: str) -> str:
    text = " ".join(text[: 4 * _LONGEST].split())
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."
