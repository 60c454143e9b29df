"""Reads the turns of a chat of cursor-agent: all that was said, also what its model no longer sees.

They are protobuf, and become messages as the chat keeps them for its model. Field numbers are those
of Cursor's `agent.v1`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from sessiond.sourcekit.foreign import Foreign
from sessiond.sourcekit.values import as_milliseconds, as_time
from sessiond.sources.cursor.protobuf import fields, member, members, text, whole_number
from sessiond.sources.cursor.richtext import readable
from sessiond.sources.cursor.storedb import resolve

_AGENT, _SHELL_TURN = 1, 2  # kinds of turns
_ASSISTANT, _CALL, _THINKING = 1, 2, 3  # kinds of steps
_CALL_ID, _CALL_STARTED, _CALL_ENDED = 57, 59, 60
_SHELL, _EDIT, _MCP = 1, 12, 15
_SUCCESS = 1
_DENIED = {_SHELL: (4, 7)}  # fields of a result that mean that a person refused
_DEEPEST = 6


class _Tool(NamedTuple):
    name: str
    arguments: dict[int, str]


_TOOLS = {
    _SHELL: _Tool("Shell", {1: "command", 2: "working_directory", 15: "description"}),
    3: _Tool("Delete", {1: "path"}),
    4: _Tool("Glob", {1: "target_directory", 2: "glob_pattern"}),
    5: _Tool("Grep", {1: "pattern", 2: "path", 3: "glob"}),
    8: _Tool("Read", {1: "path"}),
    9: _Tool("TodoWrite", {}),
    _EDIT: _Tool("Edit", {1: "path", 6: "contents"}),
    13: _Tool("LS", {1: "path"}),
    14: _Tool("ReadLints", {}),
    _MCP: _Tool("CallMcpTool", {1: "name", 4: "server", 5: "tool"}),
    16: _Tool("SemanticSearch", {1: "query"}),
    17: _Tool("CreatePlan", {1: "plan"}),
    18: _Tool("WebSearch", {1: "search_term"}),
    19: _Tool("Task", {1: "description", 2: "prompt"}),
    23: _Tool("AskQuestion", {}),
    24: _Tool("Fetch", {1: "url"}),
    37: _Tool("WebFetch", {1: "url"}),
}
_OUTPUTS = {_SHELL: (5, 6)}  # fields of a success that are the output
_EXIT_CODE, _EXECUTION_TIME, _BEFORE, _AFTER = 3, 7, 6, 7


def read_turn(db: Foreign, value: bytes, name: str) -> list[dict[str, Any]]:
    """The messages of a turn; `name` makes ids for calls without one."""
    data = resolve(db, value)
    shell = member(data, _SHELL_TURN)
    if shell is not None:
        return [*_shell_turn(db, shell, name)]
    agent = member(data, _AGENT) or b""
    asked = _asked(db, agent)
    messages = []
    if asked.text:
        role = "system" if asked.simulated else "user"
        said = _message(role, {"type": "text", "text": asked.text})
        messages.append(_timed(said, asked.started))
    for number, step in enumerate(members(agent, 2)):
        messages += _step(resolve(db, step), f"{name}-{number}")
    return messages


def read_prompt(db: Foreign, value: bytes) -> str:
    """What a person asked in a turn; empty if nobody did."""
    asked = _asked(db, member(resolve(db, value), _AGENT) or b"")
    return "" if asked.simulated else asked.text


class _Asked(NamedTuple):
    text: str
    simulated: bool  # the agent told itself
    started: int | None


def _asked(db: Foreign, turn: bytes) -> _Asked:
    message = resolve(db, member(turn, 1) or b"")
    said = text(message, 1)
    if not said and (elsewhere := member(message, 18)):
        said = resolve(db, elsewhere).decode("utf-8", "replace")
    return _Asked(said.strip(), bool(whole_number(message, 5)), whole_number(message, 25))


def _message(role: str, *content: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "content": list(content)}


def _timed(message: dict[str, Any], started: int | None) -> dict[str, Any]:
    return message | ({"timestamp": started} if as_time(started) is not None else {})


def _step(step: bytes, name: str) -> Iterator[dict[str, Any]]:
    for kind, value in fields(step):
        if not isinstance(value, bytes):
            continue
        if kind == _ASSISTANT:
            said = _message("assistant", {"type": "text", "text": text(value, 1)})
            yield _timed(said, whole_number(value, 2))
        elif kind == _THINKING:
            thought = _message("assistant", {"type": "reasoning", "text": text(value, 1)})
            yield _timed(thought, whole_number(value, 3))
        elif kind == _CALL:
            yield _call(value, name)


def _call(call: bytes, name: str) -> dict[str, Any]:
    """A call with its result."""
    found = [(n, v) for n, v in fields(call) if isinstance(v, bytes) and n != _CALL_ID]
    number, value = found[0] if found else (0, b"")
    tool = _TOOLS.get(number, _Tool(f"tool-{number}", {}))
    args, result = member(value, 1) or b"", member(value, 2)
    call_id = text(call, _CALL_ID) or name
    given: dict[str, Any] = {
        key: said for field_, key in tool.arguments.items() if (said := text(args, field_))
    }
    if not tool.arguments and (texts := _texts(args)):
        given["text"] = "\n".join(texts)
    content = [{"type": "tool-call", "toolCallId": call_id, "toolName": tool.name, "args": given}]
    if result is not None:
        if number == _EDIT:
            _add_change(given, member(result, _SUCCESS) or b"")
        started, ended = whole_number(call, _CALL_STARTED), whole_number(call, _CALL_ENDED)
        took = as_milliseconds(ended - started) if started and ended else None
        content.append(_result(number, result, call_id, took, set(given.values())))
    return _timed(_message("assistant", *content), whole_number(call, _CALL_STARTED))


def _add_change(given: dict[str, Any], success: bytes) -> None:
    """The texts of a file before and after an edit."""
    before, after = member(success, _BEFORE), member(success, _AFTER)
    if after is not None:
        given.pop("contents", None)
        given["old_string"] = (before or b"").decode("utf-8", "replace")
        given["new_string"] = after.decode("utf-8", "replace")


def _result(
    number: int, result: bytes, call_id: str, took: int | None, known: set[str]
) -> dict[str, Any]:
    outcomes = [(kind, value) for kind, value in fields(result) if isinstance(value, bytes)]
    kind, value = outcomes[0] if outcomes else (_SUCCESS, b"")
    shown = _OUTPUTS.get(number, ())
    texts = [text(value, one) for one in shown] if kind <= 2 and shown else []
    if number != _EDIT or kind != _SUCCESS:
        texts = [one for one in texts if one.strip()] or _texts(value)
    output = "\n".join(one for one in texts if one not in known)
    failed = kind != _SUCCESS or (number == _SHELL and bool(whole_number(value, _EXIT_CODE)))
    block = {"type": "tool-result", "toolCallId": call_id, "result": output, "isError": failed}
    if kind in _DENIED.get(number, ()):
        block["isDenied"] = True
    if took is None and number == _SHELL:
        took = as_milliseconds(whole_number(value, _EXECUTION_TIME))
    return block | ({"durationMs": took} if took is not None else {})


def _shell_turn(db: Foreign, shell: bytes, name: str) -> Iterator[dict[str, Any]]:
    """A command that a person ran."""
    command = text(resolve(db, member(shell, 1) or b""), 1).strip()
    output = resolve(db, member(shell, 2) or b"")
    given = {"command": command}
    call = {"type": "tool-call", "toolCallId": name, "toolName": "Shell", "args": given}
    texts = [one for one in (text(output, 1), text(output, 2)) if one.strip()]
    result = {"type": "tool-result", "toolCallId": name, "result": "\n".join(texts),
              "isError": bool(whole_number(output, 3))}  # fmt: skip
    if command:
        yield _message("assistant", call, result)


def _texts(data: bytes, depth: int = 0) -> list[str]:
    """All readable texts in a message of unknown type."""
    found: list[str] = []
    for _, value in fields(data):
        if not isinstance(value, bytes) or not value:
            continue
        inner = _texts(value, depth + 1) if depth < _DEEPEST and _is_message(value) else []
        if inner:
            found += inner
        elif (said := _readable(value)) is not None:
            found.append(said)
    return found


def _is_message(value: bytes) -> bool:
    """Whether bytes can only be fields: text starts with other bytes, or ends in the middle."""
    size = 0
    for _, one in fields(value):
        size += len(one) if isinstance(one, bytes) else 1
    return _readable(value) is None and size > 0


def _readable(value: bytes) -> str | None:
    try:
        said = value.decode()
    except UnicodeDecodeError:
        return None
    if any(ord(letter) < 32 and letter not in "\t\n\r\x1b" for letter in said):
        return None
    return readable(said)[0]
