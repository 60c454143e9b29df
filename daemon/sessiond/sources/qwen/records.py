"""Parses each record of a chat: messages in Gemini's form, and notes of the program."""

from __future__ import annotations

from typing import Any

from sess_schema import labels
from sessiond.sourcekit.base import (
    LINK_RESULT,
    TITLE_AI,
    Event,
    Link,
    Record,
    Retire,
    SessionSpec,
    Title,
    Usage,
)
from sessiond.sourcekit.ids import scoped
from sessiond.sourcekit.values import as_count, as_dict, as_text, as_time, strings
from sessiond.sources.qwen.messages import pieces, read_answer, read_prompt, read_result

_ROLES = {"user": "user", "assistant": "assistant", "tool_result": "user"}
# Subtypes of messages that a person typed.
_TYPED = ("mid_turn_user_message", "realtime_message")
_SILENT = frozenset(
    {
        *("agent_bootstrap", "agent_retry", "agent_session_ready", "at_command"),
        *("attribution_snapshot", "branch_checkpoint", "file_history_snapshot", "goal_state"),
        *("goal_turn_end", "omni_recall", "parent_session", "session_approval_mode"),
        *("session_artifact_event", "session_artifact_snapshot", "session_execution_engine"),
        *("session_notes", "session_source", "session_sources_snapshot", "turn_result"),
        *("user_text_elements",),
    }
)
_RESPONSE = "api_response"
_WAITING = 16  # reported responses whose messages have not come yet
_SPLIT = 64  # messages in several records
_SNAPSHOT = "<state_snapshot>"


class QwenParser:
    """Reads the records of one chat in order."""

    def __init__(self, spec: SessionSpec, state: dict[str, Any]) -> None:
        self._session = spec.native_id
        self._is_subagent = spec.kind == "subagent"
        self._last = as_text(state.get("last"))  # id of the last record
        self._parts = {  # how many records a message has, if several
            uuid: count
            for uuid, count in as_dict(state.get("parts")).items()
            if isinstance(count, int)
        }
        reported = state.get("reported")
        self._reported: list[list[Any]] = reported if isinstance(reported, list) else []

    def state(self) -> dict[str, Any]:
        kept = {"last": self._last, "parts": dict(self._parts), "reported": list(self._reported)}
        return {name: value for name, value in kept.items() if value}

    def parse(self, value: dict[str, Any]) -> Record:
        kind = as_text(value.get("type")) or "unknown"
        record = Record(
            as_text(value.get("subtype")) or kind,
            role=_ROLES.get(kind, "system"),
            native_id=self._name(as_text(value.get("uuid"))),
            parent_id=scoped(self._session, as_text(value.get("parentUuid"))),
            ts=as_time(value.get("timestamp")),
            forked=isinstance(value.get("forkedFrom"), dict),
            cwd=as_text(value.get("cwd")),
            git_branch=as_text(value.get("gitBranch")),
            version=as_text(value.get("version")),
            model=as_text(value.get("model")),
        )
        if kind == "user":
            self._read_user(record, value)
        elif kind == "assistant":
            read_answer(record, value)
            record.usage = self._usage(record, value)
        elif kind == "tool_result":
            read_result(record, value)
        elif kind == "system":
            self._read_system(record, value)
        else:
            record.warnings.append("record of an unknown type")
        return record

    def _name(self, uuid: str | None) -> str | None:
        """Records of one message share its id; each gets a number."""
        if uuid is None:
            return None
        count = self._parts.get(uuid, 1) + 1 if uuid == self._last else 1
        if count > 1:
            self._parts[uuid] = count
            if len(self._parts) > _SPLIT:
                del self._parts[next(iter(self._parts))]
        self._last = uuid
        name = scoped(self._session, uuid)
        return name if count == 1 else f"{name}.{count}"

    # -- messages

    def _read_user(self, record: Record, value: dict[str, Any]) -> None:
        subtype = as_text(value.get("subtype"))
        source = as_text(value.get("provenance")) or "real_user"
        injected = (subtype is not None and subtype not in _TYPED) or source != "real_user"
        task = as_dict(as_dict(value.get("systemPayload")).get("backgroundTask"))
        agent, call = as_text(task.get("taskId")), as_text(task.get("toolUseId"))
        if agent and call and task.get("kind") == "agent":
            record.links.append(Link(agent, call, LINK_RESULT))
        if not injected or self._is_subagent:
            read_prompt(record, value)
            return
        shown = as_text(as_dict(value.get("systemPayload")).get("displayText"))
        texts = (text for _, piece in pieces(value) if (text := as_text(piece.get("text"))))
        label = labels.TASK if subtype == "notification" else subtype or source
        record.say("system", shown or "\n".join(texts), label)

    def _usage(self, record: Record, value: dict[str, Any]) -> Usage | None:
        tokens = as_dict(value.get("usageMetadata"))
        counts = [
            as_count(tokens.get(name))
            for name in ("promptTokenCount", "cachedContentTokenCount", "candidatesTokenCount")
        ]
        if not any(counts):
            return None
        key = record.native_id or ""
        for reported in self._reported:
            if reported[1:] == counts:  # the same response
                key = as_text(reported[0]) or key
                self._reported = [one for one in self._reported if one is not reported]
                break
        found = _usage(key, record.model, counts, tokens.get("thoughtsTokenCount"))
        found.context_window = as_count(value.get("contextWindowSize")) or None
        return found

    # -- what the program notes

    def _read_system(self, record: Record, value: dict[str, Any]) -> None:
        payload = as_dict(value.get("systemPayload"))
        kind = record.kind
        if kind == "rewind":
            self._rewind(record, value)
        elif kind == "custom_title":
            if title := " ".join((as_text(payload.get("customTitle")) or "").split()):
                record.titles.append(Title(title, TITLE_AI))  # the last one counts
        elif kind == "chat_compression":
            self._read_compression(record, payload)
        elif kind == "ui_telemetry":
            self._read_report(record, as_dict(payload.get("uiEvent")))
        elif kind == "slash_command":
            if payload.get("phase") == "invocation":
                record.say("system", payload.get("rawCommand"), labels.COMMAND)
            else:
                items = payload.get("outputHistoryItems")
                shown = (
                    as_text(as_dict(item).get("text")) or ""
                    for item in (items if isinstance(items, list) else ())
                )
                record.say("system", "\n".join(filter(None, shown)), labels.COMMAND_OUTPUT)
        elif kind == "session_model":
            record.model = as_text(payload.get("modelId"))
        elif kind not in _SILENT:
            texts = [text for _, piece in pieces(value) if (text := as_text(piece.get("text")))]
            record.say("system", "\n".join(texts) or "\n".join(strings(payload)), kind)
            if "subtype" in value:
                record.warnings.append("record of an unknown type")

    def _rewind(self, record: Record, value: dict[str, Any]) -> None:
        """The record after which the conversation goes on is the parent."""
        target = as_text(as_dict(value.get("systemPayload")).get("targetUuid"))
        kept = as_text(value.get("parentUuid")) or target
        if kept is None:
            record.warnings.append("a rewind names no record")
            return
        name, count = scoped(self._session, kept), self._parts.get(kept, 1)
        record.retires.append(
            Retire(name if count == 1 else f"{name}.{count}", onward=True, after=True)
        )

    def _read_compression(self, record: Record, payload: dict[str, Any]) -> None:
        record.events.append(Event("system", "Conversation compacted", label=labels.COMPACT))
        history = payload.get("compressedHistory")
        for content in history if isinstance(history, list) else ():
            for _, piece in pieces({"message": content}):
                text = (as_text(piece.get("text")) or "").strip()
                if text.startswith(_SNAPSHOT):
                    record.events.append(Event("summary", text, label=labels.COMPACT))
                    return

    def _read_report(self, record: Record, event: dict[str, Any]) -> None:
        """Each response is reported; those of subagents have no message here."""
        name = (as_text(event.get("event.name")) or "").rpartition(".")[2]
        if name == "api_error":
            record.say("system", event.get("error_message") or event.get("error"), labels.API_ERROR)
        if name != _RESPONSE:
            return
        counts = [
            as_count(event.get(f"{what}_token_count"))
            for what in ("input", "cached_content", "output")
        ]
        if any(counts):
            key = record.native_id or ""
            model = as_text(event.get("model"))
            record.usage = _usage(key, model, counts, event.get("thoughts_token_count"))
            self._reported = [*self._reported, [key, *counts]][-_WAITING:]


def _usage(key: str, model: str | None, counts: list[int], reasoning: Any) -> Usage:
    """Input includes what came from the cache, output what was thought."""
    entered, cached, output = counts
    return Usage(
        message_id=key,
        request_id=key,
        model=model,
        stop_reason=None,
        input_tokens=max(0, entered - cached),
        output_tokens=output,
        cache_write_tokens=0,
        cache_write_1h_tokens=0,
        cache_read_tokens=cached,
        reasoning_tokens=min(output, as_count(reasoning)),
    )
