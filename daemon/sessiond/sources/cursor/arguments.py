"""Reads the arguments of a call, as Cursor parsed them and as the model wrote them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from sess_schema.calls import bare
from sessiond.sourcekit.values import as_text
from sessiond.sources.cursor.richtext import structured
from sessiond.sources.cursor.texts import MACHINERY, gather, is_binary, is_empty, loose

# Keys of a call's arguments, best first: as Cursor parsed them, then as the model wrote them.
PLACES = ("params", "rawArgs", "args", "arguments", "input")
_NESTED_JSON = frozenset({"parameters", "args", "arguments"})


@dataclass(slots=True)
class Arguments:
    named: dict[str, Any] = field(default_factory=dict)
    loose: list[str] = field(default_factory=list)  # texts that are not JSON, maybe cut off
    images: int = 0
    places: list[str] = field(default_factory=list)  # keys that gave something
    tool: str | None = None  # the tool called through a gateway

    def pointer(self, call: str) -> str | None:
        """Leads from the record to the arguments; `call` leads to the call."""
        return "\n".join(f"{call}/{place}" for place in self.places) or None


def read_arguments(data: dict[str, Any]) -> Arguments:
    arguments = Arguments()
    for place in PLACES:
        value = structured(data.get(place))
        if is_empty(value):
            continue
        if isinstance(value, dict):
            if _merge(arguments, value) or not arguments.places:
                arguments.places.append(place)
            continue
        texts, images = loose(value) if isinstance(value, str) else gather(value)
        arguments.loose += texts
        arguments.images += images
        if not arguments.places:
            arguments.places.append(place)
    return arguments


def _merge(arguments: Arguments, more: dict[str, Any]) -> bool:
    """Add arguments that are new; one name may be `target_file` or `targetFile`."""
    tools = more.get("tools")
    if isinstance(tools, list) and len(tools) == 1 and isinstance(tools[0], dict):
        arguments.tool = as_text(tools[0].get("name"))
        inner = structured(tools[0].get("parameters"))
        if isinstance(inner, dict):
            more = inner
    named = arguments.named
    known = {bare(name) for name, value in named.items() if not is_empty(value)}
    texts = {value for value in named.values() if isinstance(value, str)}
    new = {
        name: structured(value) if name in _NESTED_JSON else value
        for name, value in more.items()
        if bare(name) not in known and not (isinstance(value, str) and value in texts)
    }
    named |= new
    return any(not is_empty(value) for value in new.values())


def tool_name(data: dict[str, Any], arguments: Arguments) -> str:
    name = given_name(data)
    if name.startswith("mcp") and not name.removeprefix("mcp").strip("-_"):
        name = as_text(arguments.named.get("name")) or arguments.tool or name
    if name:
        return name
    number = data.get("tool")
    if isinstance(number, int) and not isinstance(number, bool):
        return f"tool-{number}"
    return as_text(number) or "unknown"


def given_name(data: dict[str, Any]) -> str:
    return (as_text(data.get("name")) or as_text(data.get("toolName")) or "").strip()


def searchable(arguments: Arguments) -> tuple[str, int]:
    """The values of the arguments, one per line without their names, and the number of images."""
    lines: list[str] = []
    images = arguments.images
    for name, value in arguments.named.items():
        if name in MACHINERY or value is None or is_binary(name, value):
            continue
        if isinstance(value, (str, dict, list)):
            texts, more = gather(value)
            lines += texts
            images += more
        else:
            lines.append(json.dumps(value))
    return "\n".join((*lines, *arguments.loose)), images
