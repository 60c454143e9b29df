"""Reads a session of Claude Code on the web: `{"loglines": [...]}`, records as in transcripts."""

from __future__ import annotations

import os
from typing import Any

from sessiond.sourcekit.base import Conversation, Item, NotReady, SessionSpec
from sessiond.sourcekit.documents import whole_json
from sessiond.sourcekit.values import as_text
from sessiond.sources.claude.records import ClaudeParser

_AFTER_TRANSCRIPTS = 1  # `fallback`: the same session may be here as a transcript, too


def read_saved(path: str, data: bytes) -> Conversation:
    value = whole_json(data)
    lines = value.get("loglines") if isinstance(value, dict) else None
    if not isinstance(lines, list):
        raise NotReady("has no loglines")
    spec = SessionSpec(
        _session(value, lines) or os.path.splitext(os.path.basename(path))[0],
        title=as_text(value.get("title")) or as_text(value.get("name")),
        fallback=_AFTER_TRANSCRIPTS,
    )
    parser = ClaudeParser(spec, {})
    items = []
    for number, line in enumerate(lines):
        record = line if isinstance(line, dict) else {"type": "other", "content": line}
        key = as_text(record.get("uuid")) or f"#{number}"
        items.append(Item(key, number, value=record, record=parser.parse(record)))
    project = next((item.record.cwd for item in items if item.record and item.record.cwd), None)
    return Conversation(spec, items=items, project=project, project_rank=1 if project else 0)


def _session(value: dict[str, Any], lines: list[Any]) -> str | None:
    named = (as_text(line.get("sessionId")) for line in lines if isinstance(line, dict))
    here = (as_text(value.get(name)) for name in ("id", "session_id", "uuid"))
    return next(filter(None, named), None) or next(filter(None, here), None)
