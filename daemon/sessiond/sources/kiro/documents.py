"""Files that are rewritten whole: what describes a log, and sessions of the editor before 1.0."""

from __future__ import annotations

import base64
import binascii
import os
from typing import Any

from sess_schema import labels
from sessiond.sourcekit.base import (
    Conversation,
    Event,
    Item,
    Record,
    SessionSpec,
    Usage,
    borrowed_times,
    whole_json,
)
from sessiond.sourcekit.folders import absolute
from sessiond.sourcekit.values import (
    as_count,
    as_dict,
    as_list,
    as_text,
    as_time,
    decoded,
    result_text,
    strings,
)

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


# -- the files

_COUNTS = ("input", "output", "cache_write_input", "cache_read_input")
_INJECTED = ("<identity>", "## Included Rules", "<steering-reminder>", "<EnvironmentContext>")
_UNDER_WAY = "On it."  # in place of an answer that another file has


def described_session(path: str, data: bytes) -> Conversation:
    """What describes a session since version 3, but for its log."""
    facts = as_dict(whole_json(data))
    spec = spec_of(path, facts)
    model = as_text(facts.get("modelId"))
    record = Record("session", native_id=f"{spec.native_id}/session")
    record.ts = as_time(facts.get("createdAt"))
    kept = {name: facts.get(name) for name in ("id", "modelId", "agentMode", "createdAt")}
    return Conversation(
        spec,
        items=[Item("session", value=kept, record=record)],
        project=spec.project,
        project_rank=1 if spec.project else 0,
        mode=as_text(facts.get("agentMode")),
        model=model if model != "auto" else None,
        created_at=record.ts,
    )


def turns(path: str, data: bytes) -> Conversation:
    """What each turn of a session of version 2 used, and how it failed."""
    facts = as_dict(whole_json(data))
    spec = spec_of(path, facts)
    state = as_dict(facts.get("session_state"))
    about = as_dict(as_dict(state.get("rts_model_state")).get("model_info"))
    model = as_text(about.get("model_id")) or as_text(about.get("model_name"))
    window = as_count(about.get("context_window_tokens")) or None
    listed = as_dict(state.get("conversation_metadata")).get("user_turn_metadatas")
    return Conversation(
        spec,
        items=[
            _turn(spec.native_id, number, as_dict(turn), model, window)
            for number, turn in enumerate([{}, *as_list(listed)])
        ],
        project=spec.project,
        project_rank=1 if spec.project else 0,
        model=model if model != "auto" else None,
        created_at=as_time(facts.get("created_at")),
    )


def _turn(
    session_id: str, number: int, turn: dict[str, Any], model: str | None, window: int | None
) -> Item:
    record = Record("turn", native_id=f"{session_id}/turn-{number}")
    record.ts = as_time(turn.get("end_timestamp"))
    model = as_text(turn.get("model")) or model
    given, said, written, read = (as_count(turn.get(f"{name}_token_count")) for name in _COUNTS)
    if given or said or written or read:
        record.usage = Usage(
            record.native_id,
            None,
            model,
            None,
            given,
            said,
            written,
            0,
            read,
            context_window=window,
        )
    problem = as_dict(turn.get("result")).get("Err")
    if problem is not None and turn.get("end_reason") == "Error":
        text = "\n".join(dict.fromkeys(strings(problem))) or "error"
        record.events.append(Event("system", text, label=labels.API_ERROR))
    counts = {f"{name}_token_count": turn.get(f"{name}_token_count") for name in _COUNTS}
    kept = {"turn": number, "model": model, "error": problem, "window": window, **counts}
    kept["end_timestamp"] = turn.get("end_timestamp")
    return Item(f"turn-{number}", value=kept, record=record)


# -- sessions of the editor before 1.0


def editor_session(path: str, data: bytes, listed: bytes) -> Conversation:
    facts = as_dict(whole_json(data))
    folder, name = os.path.split(path)
    native_id = as_text(facts.get("sessionId")) or os.path.splitext(name)[0]
    entries = decoded(listed)
    entry: dict[str, Any] = next(
        (one for one in map(as_dict, as_list(entries)) if one.get("sessionId") == native_id),
        {},
    )
    began = as_time(entry.get("dateCreated"))
    items = [
        _said(native_id, number, as_dict(entry))
        for number, entry in enumerate(as_list(facts.get("history")))
    ]
    places = (facts.get("workspaceDirectory"), facts.get("workspacePath"))
    project = next((workspace for place in places if (workspace := absolute(place))), None)
    model = as_text(facts.get("selectedModel"))
    title = as_text(facts.get("title")) or as_text(entry.get("title"))
    return Conversation(
        SessionSpec(native_id, title=None if title == "New Session" else title),
        items=items,
        times=borrowed_times(items, began),
        project=project or _named(os.path.basename(folder)),
        project_rank=1,
        model=model if model != "auto" else None,
        created_at=began,
    )


def _said(session_id: str, number: int, entry: dict[str, Any]) -> Item:
    message = as_dict(entry.get("message"))
    role = as_text(message.get("role")) or "other"
    name = as_text(message.get("id")) or str(number)
    record = Record(role, role=role, native_id=f"{session_id}/{name}")
    text, images = result_text(message.get("content"))
    text = text.strip()
    if role == "user" and text.startswith(_INJECTED):
        record.events.append(Event("system", text, label=labels.CONTEXT, images=images))
    elif role == "user":
        record.ask(text, images)
    elif role == "assistant":
        if text in ("", _UNDER_WAY):
            text = _completion(entry.get("promptLogs")) or text
        if text:
            record.events.append(Event("assistant", text))
    elif text:
        record.events.append(Event("system", text, label=role))
    return Item(f"{number}:{name}", value=entry, record=record)


def _completion(logs: Any) -> str:
    for log in logs if isinstance(logs, list) else [logs]:
        if text := as_text(as_dict(log).get("completion")):
            return text.strip()
    return ""


def _named(folder: str) -> str | None:
    """The path that a folder's name is in base64."""
    code = folder.rstrip("_=")
    try:
        plain = base64.urlsafe_b64decode(code + "=" * (-len(code) % 4))
        return absolute(plain.decode())
    except (binascii.Error, ValueError):
        return None
