"""Reads transcripts of older versions of cursor-agent, which are plain text.

`user:` and `assistant:` on lines of their own begin messages; `[Thinking]`, `[Tool call] NAME` with
indented arguments, and `[Tool result] NAME` begin sections of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from sessiond.sourcekit.base import Conversation, Item, NotReady, SessionSpec
from sessiond.sources.cursor.messages import parse_message

_ROLE = re.compile(r"^(user|assistant|A):[ \t]*$", re.MULTILINE)
_SECTION = re.compile(r"^\[(Thinking|Tool call|Tool result)\][ \t]?(.*)$", re.MULTILINE)
_ARGUMENT = re.compile(r"^ {1,4}([A-Za-z_][\w.-]{0,60}):[ \t]?(.*)$")


def conversation(spec: SessionSpec, data: bytes) -> Iterator[Conversation]:
    """The conversation of a file, unless the file is still empty."""
    change = Conversation(spec)
    last: int | None = None
    text = data.decode("utf-8", "replace").replace("\r\n", "\n")
    for number, message in enumerate(_messages(text, spec.native_id)):
        native_id = f"{spec.native_id}-{number}"
        record = parse_message(message, native_id=native_id)
        if record.ts is None and last is not None:
            change.times[native_id] = last
        last = record.ts or last
        change.items.append(Item(native_id, value=message, record=record))
    if change.items:
        yield change
    elif text.strip():
        raise NotReady("has no messages")


def _messages(text: str, session: str) -> Iterator[dict[str, Any]]:
    """Messages in the form of newer transcripts."""
    calls = _Calls(session)
    for start, body in _split(_ROLE, text):
        if start is None:
            continue
        if start[1] == "user":
            content = [{"type": "text", "text": body.strip()}]
        else:
            content = [*_blocks(body, calls)]
        if any(block != {"type": "text", "text": ""} for block in content):
            role = "user" if start[1] == "user" else "assistant"
            yield {"role": role, "message": {"content": content}}


def _split(mark: re.Pattern[str], text: str) -> Iterator[tuple[re.Match[str] | None, str]]:
    """The text before the first mark, then each mark with what follows it."""
    marks = [None, *mark.finditer(text)]
    ends = [*(found.start() for found in marks if found), len(text)]
    for found, end in zip(marks, ends, strict=True):
        yield found, text[found.end() + 1 if found else 0 : end]


class _Calls:
    """Gives calls ids, and finds the call of a result: the first of its name without one."""

    def __init__(self, session: str) -> None:
        self._session = session
        self._count = 0
        self._open: dict[str, list[str]] = {}

    def begin(self, tool: str) -> str:
        self._count += 1
        call_id = f"{self._session}-call-{self._count}"
        self._open.setdefault(tool, []).append(call_id)
        return call_id

    def end(self, tool: str) -> str | None:
        waiting = self._open.get(tool)
        return waiting.pop(0) if waiting else None


def _blocks(body: str, calls: _Calls) -> Iterator[dict[str, Any]]:
    for found, rest in _split(_SECTION, body):
        kind, head = (found[1], found[2].strip()) if found else ("", "")
        if not kind:
            yield from _text(rest)
        elif kind == "Thinking":
            thought, _, said = f"{head}\n{rest}".strip("\n").partition("\n\n")
            yield {"type": "thinking", "thinking": thought.strip()}
            yield from _text(said)
        elif kind == "Tool call":
            given, said = _arguments(rest)
            yield {"type": "tool_use", "id": calls.begin(head), "name": head, "input": given}
            yield from _text(said)
        else:
            call_id = calls.end(head)
            block = {"type": "tool_result", "tool_use_id": call_id, "content": rest.strip("\n")}
            yield {name: value for name, value in block.items() if value is not None}


def _text(text: str) -> Iterator[dict[str, Any]]:
    if text.strip():
        yield {"type": "text", "text": text.strip()}


def _arguments(text: str) -> tuple[dict[str, str], str]:
    """The indented arguments, whose values may have several lines, and what follows them."""
    given: dict[str, str] = {}
    name = ""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if found := _ARGUMENT.match(line):
            name = found[1]
            given[name] = found[2]
        elif not name or (not line.strip() and not _goes_on(lines[number + 1 :])):
            return given, "\n".join(lines[number:])
        else:
            given[name] += "\n" + line
    return given, ""


def _goes_on(lines: list[str]) -> bool:
    """Whether an empty line is inside of the arguments."""
    following = next((line for line in lines if line.strip()), "")
    return following.startswith(" ")
