"""Reads the fields that surround the content of a record."""

from __future__ import annotations

from typing import Any

from sessiond.sourcekit.base import Record, Retire, SessionSpec
from sessiond.sourcekit.values import as_text
from sessiond.sources.claude.injected import agent_file

# Earlier records that left the conversation, as when another model answers instead.
_WITHDRAWN = ("retractedMessageUuids", "supersedesUuids")
_MOST_WITHDRAWN = 1000


def read_envelope(record: Record, value: dict[str, Any], spec: SessionSpec) -> None:
    """Everything but the time, which may come from the record before."""
    record.native_id = as_text(value.get("uuid"))
    record.parent_id = as_text(value.get("parentUuid"))
    record.cwd = as_text(value.get("cwd"))
    record.git_branch = as_text(value.get("gitBranch"))
    record.version = as_text(value.get("version"))
    record.mode = as_text(value.get("permissionMode"))
    record.sidechain = value.get("isSidechain") is True
    if record.sidechain:
        agent_id = as_text(value.get("agentId"))
        record.subagent = agent_file(agent_id) if agent_id else None
    record.forked = bool(value.get("forkedFrom")) or value.get("sessionKind") == "bg"
    if spec.kind == "main":
        session = as_text(value.get("sessionId"))
        if session != spec.native_id:
            record.session_alias = session
    for name in _WITHDRAWN:
        if name in value:
            record.retires += _withdrawn(record, value[name])


def _withdrawn(record: Record, listed: Any) -> list[Retire]:
    ids = listed[:_MOST_WITHDRAWN] if isinstance(listed, list) else []
    return [Retire(one) for one in ids if as_text(one) and one != record.native_id]
