"""Reads content in the shapes of common model APIs: message blocks, results, call arguments."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from sessiond.sourcekit.values import OPAQUE, as_text, strings

# Keys whose strings mean nothing to people.
NAMELESS = frozenset((*OPAQUE, "type", "id", "tool_use_id"))


def elements(content: Any, place: str, warnings: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(JSON pointer, block) for each block of a message's content, whatever its shape."""
    if isinstance(content, str):
        yield place, {"type": "text", "text": content}
    elif isinstance(content, dict):
        yield place, content
    elif isinstance(content, list):
        strange = False
        for index, block in enumerate(content):
            if isinstance(block, dict):
                yield f"{place}/{index}", block
            elif isinstance(block, str):
                yield f"{place}/{index}", {"type": "text", "text": block}
            else:
                strange = True
        if strange:
            warnings.append("content has elements that are not objects")
    elif content is not None:
        warnings.append("content is neither text nor a list")


def result_text(content: Any) -> tuple[str, int]:
    """The text of a result, whatever its shape, and how many images it has."""
    if isinstance(content, str):
        return content, 0
    if content is None:
        return "", 0
    if isinstance(content, list):
        texts: list[str] = []
        images = 0
        for item in content:
            if isinstance(item, str):
                texts.append(item)
            elif isinstance(item, dict):
                text, more = _item_text(item)
                images += more
                if text is not None:
                    texts.append(text)
        return "\n".join(texts), images
    if isinstance(content, dict):
        text, images = _item_text(content)
        if text is None:
            text = "" if images else "\n".join(strings(content, NAMELESS))
        return text, images
    if isinstance(content, bool):
        return ("true" if content else "false"), 0
    return str(content), 0


def _item_text(item: dict[str, Any]) -> tuple[str | None, int]:
    text = item.get("text")
    if isinstance(text, str):
        return text, 0
    kind = item.get("type")
    if kind == "image":
        return None, 1
    if kind == "web_search_result":
        found = (as_text(item.get("title")), as_text(item.get("url")))
        return "\n".join(filter(None, found)), 0
    return None, 0


def searchable_input(given: Any) -> str:
    """The values of an input, one per line, without their names."""
    if not isinstance(given, dict):
        return "\n".join(strings(given))
    lines: list[str] = []
    for value in given.values():
        if isinstance(value, str):
            if value:
                lines.append(value)
        elif isinstance(value, (dict, list)):
            lines.extend(strings(value))
        elif value is not None:
            lines.append(json.dumps(value))
    return "\n".join(lines)
