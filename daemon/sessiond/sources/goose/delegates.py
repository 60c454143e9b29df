"""Finds the call that started a subagent: the one that gave it its first prompt."""

from __future__ import annotations

from typing import Any

from sess_schema import kinds
from sessiond.sourcekit.foreign import Foreign
from sessiond.sourcekit.values import as_dict, as_text, decoded, strings
from sessiond.sources.goose.calls import kind_of


def starting_call(db: Foreign, parent: str, child: str) -> str | None:
    """The id of the call in the parent session, if one is certain."""
    first = db.rows(
        "SELECT content_json FROM messages WHERE session_id = ? AND role = 'user'"
        " ORDER BY created_timestamp, id LIMIT 1",
        (child,),
    )
    said = "\n".join(strings(_blocks(first[0][0]))) if first else ""
    found = []
    for (content,) in db.rows(
        "SELECT content_json FROM messages WHERE session_id = ? AND role = 'assistant'"
        " AND content_json LIKE '%toolRequest%'",
        (parent,),
    ):
        for block in _blocks(content):
            value = as_dict(as_dict(as_dict(block).get("toolCall")).get("value"))
            tool, given = as_text(value.get("name")), as_dict(value.get("arguments"))
            call_id = as_text(as_dict(block).get("id"))
            if call_id and kind_of(tool, given) == kinds.AGENT and _is_given(given, said):
                found.append(call_id)
    return found[0] if len(found) == 1 else None


def _is_given(given: dict[str, Any], said: str) -> bool:
    tasks = [as_text(given.get(name)) for name in ("instructions", "prompt", "task")]
    return any(task and task.strip() in said for task in tasks)


def _blocks(content: Any) -> list[Any]:
    value = decoded(content)
    return value if isinstance(value, list) else []
