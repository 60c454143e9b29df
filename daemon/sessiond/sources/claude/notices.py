"""Reads records other than prompts and answers: notices, attachments and notes."""

from __future__ import annotations

from typing import Any

from sess_common import escape
from sess_schema import labels
from sessiond.sourcekit.base import Event
from sessiond.sourcekit.values import OPAQUE, as_count, as_dict, as_milliseconds, as_text, strings
from sessiond.sources.claude.injected import mailbox, split_prompt

# Metadata of a record; its message is elsewhere.
_ENVELOPE = frozenset({
    "agentId", "cwd", "effort", "entrypoint", "forkedFrom", "gitBranch", "isMeta", "isSidechain",
    "level", "logicalParentUuid", "messageId", "parentToolUseID", "parentUuid", "permissionMode",
    "promptId", "promptSource", "requestId", "sessionId", "sessionKind", "session_id", "slug",
    "source_uuid", "subtype", "teamName", "timestamp", "toolUseID", "type", "userType", "uuid",
    "version",
})  # fmt: skip
_IDS = frozenset({
    "bridgeSessionId", "hash", "id", "key", "leafUuid", "originalHeadCommit", "ownerAccountUuid",
    "ownerOrganizationUuid", "refusedUserMessageUuid", "requestID", "retractedMessageUuids",
    "taskId", "toolUseId", "tool_use_id",
})  # fmt: skip
_NOT_TEXT = _ENVELOPE | _IDS | OPAQUE
# People read the message of an error; the rest is headers and stack.
_ERROR_NOISE = _NOT_TEXT | {"headers", "request", "response", "stack"}
_SYSTEM_REST = _NOT_TEXT | {"cause", "content", "direction", "error", "scope", "source"}

# Settings and bookkeeping that are appended repeatedly.
SILENT = frozenset({
    "agent-name", "agent-setting", "atis-latch", "bridge-session", "file-history-snapshot",
    "last-prompt", "mode", "permission-mode", "session-id", "started", "worktree-state",
})  # fmt: skip


def system_events(value: dict[str, Any]) -> list[Event]:
    """The events of a `system` record."""
    subtype = as_text(value.get("subtype"))
    content = value.get("content")
    if subtype == "compact_boundary":
        return [_compaction(value)]
    if isinstance(content, str) and content.startswith("<"):
        return [
            Event(segment.type, segment.text, label=segment.label)
            for segment in split_prompt(content)
        ]
    lines = [*strings(content, _NOT_TEXT)]
    if value.get("error") is not None or value.get("cause") is not None:
        lines += strings([value.get("error"), value.get("cause")], _ERROR_NOISE)
        attempt, attempts = as_count(value.get("retryAttempt")), as_count(value.get("maxRetries"))
        if attempt:
            lines.append(f"retry {attempt} of {attempts}")
    lines += strings(value, _SYSTEM_REST)
    duration = as_milliseconds(value.get("durationMs"))
    if subtype == "turn_duration" and duration:
        lines.append(f"turn took {duration / 1000:.1f} s")
    text = _joined(lines)
    return [Event("system", text, label=subtype or "notice", duration_ms=duration)] if text else []


def attachment_events(attachment: dict[str, Any]) -> list[Event]:
    """Context that the client added to a message."""
    label = as_text(attachment.get("type")) or "attachment"
    if label == "teammate_mailbox":
        return [Event("system", text, label=label) for label, text in mailbox(attachment)]
    text = _joined([*strings(attachment, _NOT_TEXT)])
    return [Event("system", text, label=label)] if text else []


def other_event(kind: str, value: dict[str, Any]) -> Event | None:
    """The strings of a record of an unknown kind."""
    text = _joined([*strings(value, _NOT_TEXT)])
    return Event("system", text, label=kind) if text else None


def history_event(value: dict[str, Any]) -> Event | None:
    """A line of the prompt history; the prompt itself is in its session."""
    lines = [as_text(value.get("display")) or "", *strings(value.get("pastedContents"), _NOT_TEXT)]
    text = _joined(lines)
    return Event("system", text, label="history") if text else None


def _compaction(value: dict[str, Any]) -> Event:
    facts = as_dict(value.get("compactMetadata"))
    text = as_text(value.get("content")) or "Conversation compacted"
    before, after = as_count(facts.get("preTokens")), as_count(facts.get("postTokens"))
    details = [as_text(facts.get("trigger")) or ""]
    if before and after:
        details.append(f"{before} to {after} tokens")
    elif before:
        details.append(f"{before} tokens")
    detail = ", ".join(filter(None, details))
    return Event(
        "system",
        f"{text} ({detail})" if detail else text,
        label=labels.COMPACT,
        duration_ms=as_milliseconds(facts.get("durationMs")),
    )


def _joined(lines: list[str]) -> str:
    """The non-empty lines, each once: hooks repeat their output under several names."""
    trimmed = (escape.without_sequences(line).strip() for line in lines)
    return "\n".join(dict.fromkeys(line for line in trimmed if line))
