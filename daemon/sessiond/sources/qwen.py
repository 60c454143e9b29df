"""Qwen Code: its chats, and the subagents that they started."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from sess_schema import kinds, labels
from sess_schema.chains import Chain, Pack
from sessiond.sourcekit.base import (
    SOURCE_CODE,
    TITLE_AI,
    Event,
    Parser,
    Record,
    Result,
    Retire,
    SessionSpec,
    Source,
    Title,
    Usage,
)
from sessiond.sourcekit.disk import small_json
from sessiond.sourcekit.toolbox import Toolbox, exited_with_error
from sessiond.sourcekit.values import (
    OPAQUE,
    SCOPE,
    as_count,
    as_dict,
    as_list,
    as_milliseconds,
    as_text,
    as_time,
    is_uuid,
    scoped,
    strings,
    without_empty,
)

_CHATS, _ARCHIVE, _SUBAGENTS = "chats", "archive", "subagents"
_AGENT, _LOG, _META = "agent-", ".jsonl", ".meta.json"
_OWN = re.compile(rb'"parentUuid"\s*:.{0,4096}"parts"\s*:\s*\[', re.DOTALL)
_SESSION = re.compile(rb'"sessionId"\s*:\s*"([\w.:-]{1,200})"')
_PARENT = re.compile(rb'"parentSessionId"\s*:\s*"([\w.:-]{1,200})"')


class QwenSource(Source):
    agent = "qwen"
    title = "Qwen Code"
    variables = ("QWEN_RUNTIME_DIR", "QWEN_HOME")
    reads = "Chats, archived ones included, and the transcripts of background subagents."
    leaves = (
        ("usage_record.jsonl, usage/", "sums of what the chats have"),
        ("tmp/*/chats/session-*.json", "chats of 2025, before Qwen Code had a format of its own"),
        ("*.runtime.json, file-history/", "state of the program, not conversations"),
    )
    known_from = SOURCE_CODE
    # The parts of a message share its id, and are numbered in the index.
    chain = Chain(
        "uuid",
        "parentUuid",
        own=rf"{SCOPE}(.*?)(?:\.\d+)?",
        from_last=True,
        packs=(Pack("chat_compression", "systemPayload.compressedHistory"),),
    )

    def places(self) -> list[str]:
        home = self._home()
        return [os.path.join(home, "projects"), os.path.join(home, "tmp")]

    def classify(self, path: str) -> str | None:
        folder, name = os.path.split(path)
        above, outer = os.path.basename(folder), os.path.basename(os.path.dirname(folder))
        if outer == _SUBAGENTS and name.startswith(_AGENT):
            if name.endswith(_META):
                return "sidecar"
            return "transcript" if name.endswith(_LOG) else None
        chat = above == _CHATS or (above == _ARCHIVE and outer == _CHATS)
        return "transcript" if chat and name.endswith(_LOG) else None

    def claims(self, path: str, head: bytes) -> bool:  # noqa: ARG002 - the content decides
        return bool(_OWN.search(head))

    def enters(self, directory: str) -> bool:
        """Skips what a project's folder also holds: memory, tool outputs, history of files."""
        parts = directory.split(os.sep)
        for root in ("projects", "tmp"):
            if root in parts:
                below = parts[len(parts) - parts[::-1].index(root) :]
                return len(below) < 2 or below[1] in (_CHATS, _SUBAGENTS)
        return True

    def sidecars(self, path: str) -> Sequence[str]:
        return (path.removesuffix(_LOG) + _META,) if _is_subagent(path) else ()

    def owner(self, sidecar: str) -> str:
        return sidecar.removesuffix(_META) + _LOG

    def identify(self, path: str, head: bytes) -> SessionSpec:
        folder, name = os.path.split(path)
        stem = name.removesuffix(_LOG)
        if _is_subagent(path):
            meta = small_json(path.removesuffix(_LOG) + _META)
            parent = as_text(meta.get("parentSessionId")) or os.path.basename(folder)
            return SessionSpec(
                as_text(meta.get("agentId")) or stem.removeprefix(_AGENT),
                home=parent,
                kind="subagent",
                parent=parent,
                agent_type=as_text(meta.get("agentType")),
                title=as_text(meta.get("description")),
                call_id=as_text(meta.get("toolUseId")),
            )
        named = None if is_uuid(stem) else _SESSION.search(head)  # a file may have been renamed
        session = named[1].decode() if named else stem
        spawned = _PARENT.search(head)
        if spawned:  # a session of its own that another one started
            return SessionSpec(session, kind="subagent", parent=spawned[1].decode())
        return SessionSpec(session, resume=("qwen", "--resume", session))

    def parser(self, spec: SessionSpec, state: dict[str, Any]) -> Parser:
        return QwenParser(spec, state)

    def probe(self, word: str) -> dict[str, bytes]:
        session = "d0c70000-0000-4000-8000-0000000000ab"
        record = {
            "uuid": "d0c70000-0000-4000-8000-0000000000ac",
            "parentUuid": None,
            "sessionId": session,
            "timestamp": "2026-01-01T00:00:00.000Z",
            "type": "user",
            "cwd": "/doctor",
            "message": {"role": "user", "parts": [{"text": f"put the {word} on"}]},
        }
        path = os.path.join(self.places()[0], "-doctor", _CHATS, session + _LOG)
        return {path: orjson.dumps(record) + b"\n"}

    def _home(self) -> str:
        moved = next(filter(None, map(self.moved, self.variables)), None)
        return moved or os.path.join(self.folders.home(), ".qwen")


def _is_subagent(path: str) -> bool:
    return os.path.basename(os.path.dirname(os.path.dirname(path))) == _SUBAGENTS


# -- records: messages in Gemini's form, and notes of the program

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
        self._reported: list[list[Any]] = as_list(state.get("reported"))

    def state(self) -> dict[str, Any]:
        return without_empty(
            last=self._last, parts=dict(self._parts), reported=list(self._reported)
        )

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
            record.link(agent, call)
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
        used = _usage(key, record.model, counts, tokens.get("thoughtsTokenCount"))
        used.context_window = as_count(value.get("contextWindowSize")) or None
        return used

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
                shown = (
                    as_text(as_dict(item).get("text")) or ""
                    for item in as_list(payload.get("outputHistoryItems"))
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
        record.say("system", "Conversation compacted", labels.COMPACT)
        for content in as_list(payload.get("compressedHistory")):
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
        input_tokens=max(0, entered - cached),
        output_tokens=output,
        cache_read_tokens=cached,
        reasoning_tokens=min(output, as_count(reasoning)),
    )


# -- messages

_TOOLS = Toolbox(
    {
        kinds.SHELL: ("run_shell_command", "shell", "bash"),
        kinds.READ: ("read_file", "read_many_files"),
        kinds.WRITE: ("write_file",),
        kinds.EDIT: ("edit", "replace", "notebook_edit"),
        kinds.SEARCH: (
            *("glob", "grep_search", "list_directory", "ls", "lsp", "ripgrep"),
            *("search_file_content",),
        ),
        kinds.FETCH: ("web_fetch", "web_search", "google_web_search"),
        kinds.AGENT: ("task", "agent"),
        kinds.PLAN: ("todo_write", "enter_plan_mode", "exit_plan_mode"),
        kinds.QUESTION: ("ask_user_question", "ask_user"),
    }
)
_HOOK = "<qwen:user-prompt-submit-context>"
# How text starts that the program adds to a prompt, and its label.
_INJECTED = (
    (_HOOK, "hook"),
    ("<system-reminder>", labels.REMINDER),
    ("--- Content from ", "files"),
    ("This is the Qwen Code. We are setting up the context for our chat.", labels.CONTEXT),
)
_ENDS = {"error": "error", "failed": "error", "cancelled": "denied", "canceled": "denied"}
_HIDDEN = OPAQUE | {"id", "name", "mimeType", "thoughtSignature"}

Piece = tuple[str, dict[str, Any]]


def pieces(value: dict[str, Any]) -> Iterator[Piece]:
    """(JSON pointer, piece) pairs of a record's message."""
    message = value.get("message")
    parts = as_dict(message).get("parts")
    if isinstance(message, str) or isinstance(parts, str):
        yield "/message", {"text": message if isinstance(message, str) else parts}
        return
    for number, piece in enumerate(as_list(parts)):
        if isinstance(piece, dict):
            yield f"/message/parts/{number}", piece
        elif isinstance(piece, str):
            yield f"/message/parts/{number}", {"text": piece}


def read_prompt(record: Record, value: dict[str, Any]) -> None:
    """What was shown is what was typed; the rest of the message was added to it."""
    shown = (as_text(as_dict(value.get("systemPayload")).get("displayText")) or "").strip()
    typed, added, images = [], list[tuple[str, str]](), 0
    for _, piece in pieces(value):
        text = (as_text(piece.get("text")) or "").strip()
        label = next((label for start, label in _INJECTED if text.startswith(start)), None)
        if label is None and added and added[-1][1] == "files":
            label = "files"  # one piece per file
        if text and label:
            added.append((text, label))
        elif text and shown and text not in shown:
            added.append((text, labels.CONTEXT))
        elif text:
            typed.append(text)
        mime = as_text(as_dict(piece.get("inlineData") or piece.get("fileData")).get("mimeType"))
        images += bool(mime and mime.startswith("image/"))
    prompt = shown or "\n".join(typed)
    if prompt or images:
        queued = labels.QUEUED if record.kind == "mid_turn_user_message" else None
        record.ask(prompt, images, label=queued)
    record.events += [Event("system", text, label=label) for text, label in added]


def read_answer(record: Record, value: dict[str, Any]) -> None:
    for place, piece in pieces(value):
        text = as_text(piece.get("text")) or ""
        call = piece.get("functionCall")
        if text.strip():
            kind = "thinking" if piece.get("thought") is True else "assistant"
            last = record.events[-1] if record.events else None
            if last is not None and last.type == kind:
                last.text += text.rstrip()
            else:
                record.events.append(Event(kind, text.strip()))
        elif isinstance(call, dict):
            name, given = as_text(call.get("name")), call.get("args")
            pointer = f"{place}/functionCall/args"
            record.events.append(_TOOLS.call(name, given, as_text(call.get("id")), pointer))


def read_result(record: Record, value: dict[str, Any]) -> None:
    facts = as_dict(value.get("toolCallResult"))
    ended = _ENDS.get(as_text(facts.get("status")) or "")
    for place, piece in pieces(value):
        response = piece.get("functionResponse")
        if not isinstance(response, dict):
            continue
        call_id = as_text(facts.get("callId")) or as_text(response.get("id")) or record.native_id
        if call_id is None:
            continue
        output, failed = _output(response.get("response"))
        status = ended or ("error" if failed else "ok")
        if status == "ok" and _TOOLS.kind(as_text(response.get("name"))) == kinds.SHELL:
            status = "error" if exited_with_error(output) else "ok"
        shown = facts.get("resultDisplay")
        record.results.append(
            Result(
                call_id,
                output or as_text(shown) or "",
                status,
                duration_ms=as_milliseconds(facts.get("durationMs")),
                images=sum("inlineData" in one for one in _media(response)),
                pointer=f"{place}/functionResponse/response",
            )
        )
    call_id = as_text(facts.get("callId"))
    if call_id and not record.results:  # only how it ended, and what was shown
        shown = as_text(facts.get("resultDisplay")) or ""
        record.results.append(Result(call_id, shown, ended or "ok", pointer="/toolCallResult"))


def _media(response: dict[str, Any]) -> list[dict[str, Any]]:
    parts = response.get("parts")
    return [one for one in parts if isinstance(one, dict)] if isinstance(parts, list) else []


def _output(response: Any) -> tuple[str, bool]:
    """The text of a response, and whether it is an error."""
    fields = as_dict(response)
    for name, failed in (("error", True), ("output", False), ("result", False)):
        if fields.get(name):
            return "\n".join(strings(fields[name], _HIDDEN)), failed
    return "\n".join(strings(response, _HIDDEN)), fields.get("success") is False


SOURCE = QwenSource
