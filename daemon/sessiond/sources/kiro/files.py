"""Which session the files are of: a log, or the file beside it that describes the session."""

from __future__ import annotations

import os
from typing import Any

from sessiond.sourcekit.base import SessionSpec
from sessiond.sourcekit.folders import absolute
from sessiond.sourcekit.values import as_text

MESSAGES, SESSION, SUBAGENTS = "messages.jsonl", "session.json", "sub-executions"
_CREATED_BY_AGENT = "subagent"


def spec_of(path: str, facts: dict[str, Any]) -> SessionSpec:
    """The session of a log or of the file beside it that describes it."""
    folder, name = os.path.split(path)
    project = absolute(as_text(facts.get("cwd")))
    parent = as_text(facts.get("parent_session_id"))
    if name in (MESSAGES, SESSION):
        session = os.path.basename(folder)
        made = facts.get("createdReason") == _CREATED_BY_AGENT
        parent = as_text(facts.get("parentSessionId")) if made else None
        for listed in (facts.get("workspacePaths"), facts.get("rootPaths")):
            project = project or (
                absolute(listed[0]) if isinstance(listed, list) and listed else None
            )
        resume = ("kiro-cli", "--v3", "--resume-id", session)
    else:
        session = os.path.splitext(name)[0]
        resume = ("kiro-cli", "chat", "--resume-id", session)
    title = as_text(facts.get("title"))
    return SessionSpec(
        session,
        kind="subagent" if parent else "main",
        parent=parent,
        title=None if title == "New Session" else title,
        project=project,
        resume=() if parent else resume,
    )


def facts_of(path: str) -> str:
    """The file that describes the session of a log."""
    folder, name = os.path.split(path)
    if os.path.basename(folder) == SUBAGENTS:
        return os.path.join(os.path.dirname(folder), SESSION)
    if name in (MESSAGES, SESSION):
        return os.path.join(folder, SESSION)
    return os.path.splitext(path)[0] + ".json"
