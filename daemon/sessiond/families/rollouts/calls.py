"""Calls of tools: what each one does, its output, its status and its duration."""

from __future__ import annotations

import re
import shlex
from typing import Any

import orjson

from sess_schema import calls, kinds
from sess_schema.calls import path_in, progress
from sessiond.families.rollouts.prompts import images_of
from sessiond.sourcekit.base import Described, Event, Result
from sessiond.sourcekit.toolbox import edits_of_arguments, edits_of_patch
from sessiond.sourcekit.values import (
    OPAQUE,
    as_dict,
    as_list,
    as_milliseconds,
    as_text,
    result_text,
    strings,
    without_empty,
)

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
_LONGEST_SUMMARY = 1000
_MOST_FILES = 1000


def describe(tool: str | None, given: Any) -> Described:
    kind = _kind(tool)
    if kind == kinds.SHELL:
        command = _command(given)
        if tool == "exec" and _SCRIPT in command:
            return _described_script(command)
        before, begins, _ = command.partition(_BEGIN)
        if begins and _PATCH in before:
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
        text = _ESCAPE.sub(lambda match: _ESCAPES.get(match[1], match[1]), "".join(quoted))
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
    changed = [*zip(range(_MOST_FILES), _PATCHED.finditer(patch), strict=False)]
    files = tuple((match[2], _ACTIONS[match[1]]) for _, match in changed)
    summary = ", ".join(f"{match[2]} ({match[1].lower()})" for _, match in changed)
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
        return progress(as_list(values.get("plan")))
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


def _first(given: Any, *names: str) -> str:
    values = as_dict(given)
    return next((text for name in names if (text := as_text(values.get(name)))), "")


def _line(text: str) -> str:
    text = " ".join(text[: 4 * _LONGEST_SUMMARY].split())
    return text if len(text) <= _LONGEST_SUMMARY else text[:_LONGEST_SUMMARY] + "..."


# -- how a call ended

_HEAD = 400  # Codex writes its own header before the output of a command
_LONGEST_OUTPUT = 256 << 10
_EXIT = re.compile(r"^(?:Exit code: |Process exited with code )(-?\d{1,10})\s*$", re.MULTILINE)
_WALL = re.compile(
    r"^(?:Chunk ID: \S{1,40}\n|Exit code: \S{1,12}\n|Script \w{1,20}\n)?"
    r"Wall time:? (\d{1,7}(?:\.\d{1,9})?) seconds"
)
_REFUSED = ("exec command rejected by user", "patch rejected by user", "rejected by user")
_REFUSAL = re.compile(
    r"This action was rejected due to unacceptable risk|patch rejected: |`[^`]{1,300}` rejected: "
    r'|approval policy is [^\n]{1,300}; reject command|err: "user (?:rejected|cancelled) '
)
# Some releases repeat the whole command before the header.
_COMMAND = "Command: "
_AFTER_COMMAND = re.compile(r"^(?:Chunk ID: \S{1,40}\n)?Wall time: ", re.MULTILINE)
_STOPPED = "aborted by user"
_FAILED = (
    "apply_patch verification failed",
    'err: "',
    "exec_command failed",
    "execution error",
    "failed to parse function arguments",
    "failed in sandbox",
    "Script failed",
    "Script terminated",
    "tool call error",
    "unsupported call",
    "unable to locate image at",
    "unsupported custom tool call",
    "write_stdin failed",
)
_STATES = {"failed": "error", "declined": "denied"}
SPAWN = "spawn_agent"
_FAILURES = ("error", "denied")
_CALLS = 16  # that run at the same time
_HIDDEN = frozenset((*OPAQUE, "image_url", "type"))

Outcome = tuple[str | None, int | None]  # status, duration


def spawned(output: str) -> str | None:
    """The thread that a call started, judging by its output."""
    if not output.startswith("{"):
        return None
    try:
        return as_text(as_dict(orjson.loads(output)).get("agent_id"))
    except orjson.JSONDecodeError:
        return None


def tool_result(call_id: str, output: Any, pointer: str, outcome: Outcome) -> Result:
    """`outcome` is what an event before the output reported about the call."""
    text, details = _text(output)
    status, measured = _outcome_in_text(text)
    exit_code = details.get("exit_code")
    if isinstance(exit_code, int) and not isinstance(exit_code, bool):
        status = "error" if exit_code else "ok"
    reported, duration = outcome
    if duration is None:
        duration = _seconds(details.get("duration_seconds"))
    if status != "denied" and reported is not None:
        status = reported
    return Result(
        call_id,
        text,
        status,
        duration_ms=duration if duration is not None else measured,
        images=images_of(output),
        pointer=pointer,
    )


def _text(output: Any) -> tuple[str, dict[str, Any]]:
    """The output in any of its forms, and its metadata."""
    if isinstance(output, str):
        if output.startswith('{"'):
            try:
                inner = orjson.loads(output)
            except orjson.JSONDecodeError:
                return output, {}
            if isinstance(inner, dict) and isinstance(inner.get("output"), str):
                return inner["output"], as_dict(inner.get("metadata"))
            if isinstance(inner, dict) and isinstance(inner.get("content"), list):
                return output, {"exit_code": int(inner.get("isError") is True)}  # of an MCP server
        return output, {}
    if isinstance(output, list):
        return result_text(output)[0].strip(), {}
    if isinstance(output, dict):
        for name in ("text", "content", "output"):
            if isinstance(output.get(name), str):
                return output[name], as_dict(output.get("metadata"))
    return "\n".join(strings(output, _HIDDEN)), {}


def _outcome_in_text(text: str) -> tuple[str, int | None]:
    """The status and the duration that the text of a result contains."""
    start = _AFTER_COMMAND.search(text, 0, _LONGEST_OUTPUT) if text.startswith(_COMMAND) else None
    begin = start.start() if start else 0
    head, printed, _ = text[begin : begin + _HEAD].partition("\nOutput:")
    if head.strip() in _REFUSED or _REFUSAL.match(head):
        return "denied", None
    wall, code = _WALL.search(head), _EXIT.search(head) if printed else None
    took = _seconds(float(wall[1])) if wall else None
    if code:
        return "error" if int(code[1]) else "ok", took
    last = head.rstrip()
    if last == "aborted" or head.startswith(_STOPPED) or last.endswith(f"\n{_STOPPED}"):
        return "denied", took
    return "error" if head.startswith(_FAILED) else "ok", took


def _seconds(value: Any) -> int | None:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return as_milliseconds(value * 1000)
    return None


class Outcomes:
    """What events report about calls whose outputs follow."""

    def __init__(self, state: dict[str, Any]) -> None:
        self._pending: dict[str, list[Any]] = {
            call: outcome
            for call, outcome in as_dict(state.get("outcomes")).items()
            if isinstance(outcome, list) and len(outcome) == 2
        }
        self._open = {  # tools by call
            call: as_text(tool) for call, tool in as_dict(state.get("calls")).items()
        }
        self._answered = [*filter(as_text, as_list(state.get("answered")))]

    def state(self) -> dict[str, Any]:
        return without_empty(
            outcomes=dict(self._pending),
            calls=dict(self._open),
            answered=list(self._answered),
        )

    def begin(self, call: Event) -> None:
        if call.call_id:
            self._answered = [one for one in self._answered if one != call.call_id]  # used again
            self._open[call.call_id] = call.tool
            _limit(self._open)

    def begin_turn(self) -> None:
        """Nothing answers the open calls of an aborted turn."""
        self._open.clear()

    def note(self, call: Any, end: dict[str, Any]) -> None:
        """`end` is the event that ends a command, a patch or an MCP call.

        A script is one call, but each command that it runs ends with an event: the call failed if
        one of them did.
        """
        call_id = as_text(call)
        if call_id is None or call_id in self._answered:  # it went on in the background
            return
        outcome = [_status(end), _duration(end.get("duration"))]
        if call_id not in self._open and len(self._open) == 1 and outcome[0] in _FAILURES:
            (call_id,) = self._open
            outcome[1] = None
        elif self._pending.get(call_id, [None])[0] in _FAILURES and outcome[0] == "ok":
            return
        self._pending.pop(call_id, None)
        self._pending[call_id] = outcome
        _limit(self._pending)

    def take(self, call_id: str) -> tuple[str | None, Outcome]:
        """The tool of a call, and what was reported about it."""
        self._answered = [*self._answered, call_id][-_CALLS:]
        status, duration = self._pending.pop(call_id, (None, None))
        reported = as_text(status), duration if isinstance(duration, int) else None
        return self._open.pop(call_id, None), reported


def _limit(calls: dict[str, Any]) -> None:
    if len(calls) > _CALLS:
        del calls[next(iter(calls))]


def _status(end: dict[str, Any]) -> str | None:
    state = as_text(end.get("status"))
    if state in _STATES:
        return _STATES[state]
    code, result = end.get("exit_code"), end.get("result")
    if isinstance(code, int) and not isinstance(code, bool):
        return "error" if code else "ok"
    if end.get("success") is False:
        return "error"
    if isinstance(result, dict):
        inner = as_dict(result.get("Ok", result))
        return "error" if "Err" in result or inner.get("isError") is True else "ok"
    return None


def _duration(value: Any) -> int | None:
    fields = as_dict(value)
    secs, nanos = fields.get("secs"), fields.get("nanos", 0)
    if not isinstance(secs, (int, float)) or not isinstance(nanos, (int, float)):
        return None
    return as_milliseconds(secs * 1000 + nanos / 1e6)
