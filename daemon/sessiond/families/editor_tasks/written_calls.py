"""Calls that a model wrote as tags in its text, before calls had blocks of their own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from sessiond.families.editor_tasks.tools import TOOLS

_NAMES = sorted({name for names in TOOLS.values() for name in names}, key=len, reverse=True)
_START = re.compile(rf"<({'|'.join(_NAMES)})>")
_ARGUMENT = re.compile(r"<([a-z_]+)>")
_LONG = frozenset({"content", "diff", "result", "message", "context", "arguments", "args"})
_THOUGHT = re.compile(r"<thinking>(.*?)(?:</thinking>|\Z)", re.DOTALL)


class Written(NamedTuple):
    """A piece of a model's text: prose, a thought, or a call."""

    kind: str  # text, thinking, call
    text: str = ""
    tool: str = ""
    arguments: dict[str, str] = {}  # noqa: RUF012 - never changed


def pieces(text: str) -> Iterator[Written]:
    at = seek = 0
    while found := _START.search(text, seek):
        body, seek = _body(text, found[1], found.end())
        arguments = dict(_arguments(body))
        if arguments or not body.strip():  # else it is a tag in prose
            yield from _prose(text[at : found.start()])
            yield Written("call", tool=found[1], arguments=arguments)
            at = seek
    yield from _prose(text[at:])


def _body(text: str, tool: str, start: int) -> tuple[str, int]:
    """Up to the tag that closes the call; a file's content may contain the same tag."""
    close = f"</{tool}>"
    first = text.find(close, start)
    following = _START.search(text, max(first, start))
    if first < 0 and following:  # not a call: a call that was cut off is the last thing
        return "-", start
    end = text.rfind(close, start, following.start() if following else len(text))
    return (text[start:end], end + len(close)) if end >= 0 else (text[start:], len(text))


def _arguments(body: str) -> Iterator[tuple[str, str]]:
    at = 0
    while found := _ARGUMENT.search(body, at):
        close = f"</{found[1]}>"
        seek = body.rfind if found[1] in _LONG else body.find
        end = seek(close, found.end())
        if end < 0:  # cut off
            yield found[1], body[found.end() :].strip("\n")
            return
        yield found[1], body[found.end() : end].strip("\n")
        at = end + len(close)


def _prose(text: str) -> Iterator[Written]:
    at = 0
    for found in _THOUGHT.finditer(text):
        if before := text[at : found.start()].strip():
            yield Written("text", before)
        if thought := found[1].strip():
            yield Written("thinking", thought)
        at = found.end()
    if rest := text[at:].strip():
        yield Written("text", rest)
