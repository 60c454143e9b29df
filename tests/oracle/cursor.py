"""Cursor's global database: `composerData:` holds conversations, `bubbleId:` their messages."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.oracle.model import Session


def read(path: Path) -> dict[str, Session]:
    """Conversations whose messages are rows of their own, by id."""
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as db:
        rows = {
            str(key): _decoded(value) for key, value in db.execute("SELECT * FROM cursorDiskKV")
        }
    found = {}
    for key, composer in rows.items():
        if not key.startswith("composerData:") or not isinstance(composer, dict):
            continue
        name = key.partition(":")[2]
        messages = []
        for header in composer.get("fullConversationHeadersOnly") or []:
            bubble = rows.get(f"bubbleId:{name}:{header.get('bubbleId')}")
            messages += [bubble] if isinstance(bubble, dict) else []
        if messages:
            found[name] = _session(name, composer, messages)
    return found


def _decoded(value: Any) -> Any:
    try:
        return json.loads(value)
    except (TypeError, ValueError):
        return None


def _session(name: str, composer: dict[str, Any], messages: list[dict[str, Any]]) -> Session:
    session = Session(name, title=composer.get("name") or None)
    for message in messages:
        tool = message.get("toolFormerData")
        if message.get("type") == 1:
            session.prompts += not composer.get("subagentInfo")  # another agent asked
        elif isinstance(tool, dict) and (tool.get("name") or tool.get("tool")):
            session.calls += 1
            session.failed += tool.get("status") in ("error", "cancelled", "rejected")
    return session
