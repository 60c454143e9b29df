"""Adds a value to a settings file of JSON (comments allowed) or TOML, and changes nothing else.

The text is edited where the value belongs, so comments, order and spacing survive. The result is
parsed again and compared: it says what it said before, and the new value.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

_BLANK = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)+", re.DOTALL)
_SCALAR = re.compile(r"[^\s,:\[\]{}/\"]+")
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_DEEPEST = 200


class NotUnderstood(Exception):
    """The text is not what its ending promises."""


@dataclass(slots=True)
class _Node:
    """A value, and where it stands in the text."""

    start: int
    end: int
    value: Any
    members: dict[str, _Node] = field(default_factory=dict)  # of an object
    last: int = 0  # the end of the last member or item
    comma: bool = False  # after that
    indent: str | None = None  # of the first member or item, if it begins a line


class _Json:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 1 if text.startswith("\ufeff") else 0
        self.root = self._value(0)
        self._skip()
        if self._at < len(text):
            self._fail("more after the end")

    def _fail(self, what: str) -> None:
        line = self._text.count("\n", 0, self._at) + 1
        raise NotUnderstood(f"line {line}: {what}")

    def _skip(self) -> None:
        if match := _BLANK.match(self._text, self._at):
            self._at = match.end()

    def _peek(self) -> str:
        self._skip()
        return self._text[self._at : self._at + 1]

    def _value(self, depth: int) -> _Node:
        if depth > _DEEPEST:
            self._fail("nested too deeply")
        sign = self._peek()
        if sign == "{":
            return self._collection(depth, "}")
        if sign == "[":
            return self._collection(depth, "]")
        start = self._at
        match = (_STRING if sign == '"' else _SCALAR).match(self._text, start)
        if match is None:
            self._fail("a value is missing")
        assert match is not None
        self._at = match.end()
        try:
            return _Node(start, self._at, json.loads(match[0]))
        except ValueError:
            self._at = start
            self._fail(f"not a value: {match[0][:20]}")
            raise

    def _collection(self, depth: int, closing: str) -> _Node:
        node = _Node(self._at, 0, {} if closing == "}" else [], last=self._at + 1)
        self._at += 1
        while True:
            sign = self._peek()
            if sign == closing:
                self._at += 1
                node.end = self._at
                return node
            if node.value and not node.comma:
                self._fail("a comma is missing")
            if node.indent is None:
                head = self._text[self._text.rfind("\n", 0, self._at) + 1 : self._at]
                node.indent = head if not head.strip() and "\n" in self._text[: self._at] else None
            self._member(node, depth)
            node.last = self._at
            node.comma = self._peek() == ","
            if node.comma:
                self._at += 1

    def _member(self, node: _Node, depth: int) -> None:
        if isinstance(node.value, list):
            node.value.append(self._value(depth + 1).value)
            return
        name = self._value(depth + 1)
        if not isinstance(name.value, str) or self._peek() != ":":
            self._fail("a name and a colon are missing")
        self._at += 1
        member = self._value(depth + 1)
        node.members[name.value] = member
        node.value[name.value] = member.value


def read_json(text: str) -> Any:
    """The value of JSON with comments and trailing commas; an empty text has no values."""
    return _Json(text).root.value if text.strip("\ufeff \t\r\n") else {}


def with_json(text: str, path: Sequence[str], value: Any, *, item: bool = False) -> str:
    """The text with a value at a path; with `item`, as one more item of the list there."""
    if text.count("\r\n") == text.count("\n") > 0:
        lines = with_json(text.replace("\r\n", "\n"), path, value, item=item)
        return lines.replace("\n", "\r\n")
    before = read_json(text)
    after = _placed(before, path, value, item=item)
    if after == before:
        return text
    if not text.strip("\ufeff \t\r\n"):
        return json.dumps(after, indent=2, ensure_ascii=False) + "\n"
    edited = _edited(text, path, value, item=item)
    if read_json(edited) != after:
        raise NotUnderstood("it could not be changed without changing something else")
    return edited


def _placed(before: Any, path: Sequence[str], value: Any, *, item: bool) -> Any:
    if not path:
        if item:
            items = [] if before is None else before
            if not isinstance(items, list):
                raise NotUnderstood("a list was expected")
            return items if value in items else [*items, value]
        return value
    inside = {} if before is None else before
    if not isinstance(inside, dict):
        raise NotUnderstood(f'no object to put "{path[0]}" into')
    return {**inside, path[0]: _placed(inside.get(path[0]), path[1:], value, item=item)}


def _edited(text: str, path: Sequence[str], value: Any, *, item: bool) -> str:
    node, rest = _Json(text).root, [*path]
    parents: list[_Node] = []
    while rest and rest[0] in node.members:
        parents.append(node)
        node = node.members[rest.pop(0)]
    unit = _unit(text)
    if not rest and not item:
        return (
            text[: node.start] + _dumped(value, unit, _margin(text, node.start)) + text[node.end :]
        )
    new = [value] if item and rest else value
    for name in reversed(rest[1:]):
        new = {name: new}
    inner = node.indent if node.indent is not None else _margin(text, node.start) + unit
    name = f"{json.dumps(rest[0], ensure_ascii=False)}: " if rest else ""
    member = f"{name}{_dumped(new, unit, inner)}"
    one_line = node.indent is None and "\n" not in text[node.start : node.end] and node.value
    if one_line:
        return (
            f"{text[: node.last]}, {name}{json.dumps(new, ensure_ascii=False)}{text[node.last :]}"
        )
    end = "" if node.value else f"\n{_margin(text, node.start)}"
    comma = "," if node.value and not node.comma else ""
    at = text.index(",", node.last) + 1 if node.comma else node.last
    tail = "," if node.comma else ""
    head = text[: node.last] + comma + text[node.last : at]
    return f"{head}\n{inner}{member}{tail}{end}{text[at:].lstrip() if end else text[at:]}"


def _unit(text: str) -> str:
    match = re.search(r"^([ \t]+)\S", text, re.MULTILINE)
    return match[1] if match else "  "


def _margin(text: str, at: int) -> str:
    """The white space at the start of the line."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip())]


def _dumped(value: Any, unit: str, margin: str) -> str:
    return json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", f"\n{margin}")


def with_toml(text: str, table: Sequence[str], values: dict[str, Any]) -> str:
    """The text with a table at its end, or with the table that is there replaced."""
    try:
        before = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise NotUnderstood(str(error)) from None
    after = _placed(before, table, values, item=False)
    if after == before:
        return text
    head = f"[{'.'.join(table)}]"
    body = "".join(
        f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in values.items()
    )
    own = re.compile(rf"^{re.escape(head)}[ \t]*\n(?:(?!\[).*\n?)*", re.MULTILINE)
    if match := own.search(text):
        kept = re.search(r"(?:\n[ \t]*(?:#.*)?)*\Z", match[0])
        rest = kept[0].lstrip("\n") if kept else ""
        edited = (
            f"{text[: match.start()]}{head}\n{body}{rest and chr(10)}{rest}{text[match.end() :]}"
        )
    else:
        gap = "" if not text.strip() else "\n" if text.endswith("\n") else "\n\n"
        edited = f"{text}{gap}{head}\n{body}"
    try:
        if tomllib.loads(edited) == after:
            return edited
    except tomllib.TOMLDecodeError:
        pass
    raise NotUnderstood("it could not be changed without changing something else")
