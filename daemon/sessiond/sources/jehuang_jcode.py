"""jcode by 1jehuang: snapshots of sessions, each with a journal of what came after it."""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

from sess_common.decode import decode
from sess_schema import kinds
from sessiond.families.blocks import read_blocks
from sessiond.sourcekit import disk
from sessiond.sourcekit.base import (
    SOURCE_CODE,
    Conversation,
    Event,
    Item,
    NotReady,
    Record,
    SessionSpec,
    Source,
    Usage,
    whole_object,
)
from sessiond.sourcekit.disk import small_file
from sessiond.sourcekit.folders import absolute
from sessiond.sourcekit.toolbox import Toolbox
from sessiond.sourcekit.values import as_count, as_dict, as_list, as_milliseconds, as_text, as_time

_PREFIX, _SNAPSHOT, _JOURNAL = "session_", ".json", ".journal.jsonl"


class JehuangJcodeSource(Source):
    agent = "jehuang-jcode"
    title = "jcode (1jehuang)"
    edition = 2
    variables = ("JCODE_HOME",)
    reads = "Snapshots of sessions, their journals, and subagents."
    leaves = (
        ("*.bak, *.corrupt.jsonl, *.pre-wipe-*", "earlier states that the program kept"),
        ("logs/, memory/, active_pids/, todos/", "state of the program"),
        ("auth.json, *_oauth.json", "sign-in data"),
    )
    known_from = SOURCE_CODE

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.documents = _Snapshots()

    def places(self) -> list[str]:
        home = self.moved("JCODE_HOME") or os.path.join(self.folders.home(), ".jcode")
        return [os.path.join(home, "sessions")]

    def classify(self, path: str) -> str | None:
        name = os.path.basename(path)
        if not name.startswith(_PREFIX):
            return None
        if name.endswith(_JOURNAL):
            return "sidecar"
        return "document" if name.endswith(_SNAPSHOT) else None

    def claims(self, path: str, head: bytes) -> bool:  # noqa: ARG002 - the content decides
        return head.lstrip().startswith((b'{"id"', b'{\n  "id"')) and b'"messages"' in head

    def sidecars(self, path: str) -> Sequence[str]:
        return (_journal_of(path),)

    def owner(self, sidecar: str) -> str:
        return sidecar.removesuffix(_JOURNAL) + _SNAPSHOT


class _Snapshots:
    def conversations(self, path: str, data: bytes) -> Iterator[Conversation]:
        yield read_session(path, data, _journal_of(path))


def _journal_of(path: str) -> str:
    return path.removesuffix(_SNAPSHOT) + _JOURNAL


# -- a snapshot and its journal are one conversation: a new snapshot takes the journal in

_TOOLS = Toolbox(
    {
        kinds.SHELL: ("bash", "bg"),
        kinds.READ: ("read",),
        kinds.WRITE: ("write",),
        kinds.EDIT: ("edit", "multiedit", "patch", "apply_patch", "batch_edit", "diff_edit"),
        kinds.SEARCH: (
            *("glob", "grep", "ls", "agentgrep", "lsp", "codesearch", "conversation_search"),
            *("session_search",),
        ),
        kinds.FETCH: ("webfetch", "websearch", "browser", "exa_search"),
        kinds.AGENT: ("task", "subagent", "swarm"),
        kinds.PLAN: ("todo", "todowrite", "todoread", "goal"),
        kinds.QUESTION: ("ask_user_question",),
        kinds.MCP: ("mcp",),
    }
)
_ENTRY, _APPENDED = r'\{"meta"', "append_messages"
_MOST_GLUED = 64
_JSON = json.JSONDecoder(strict=False)
_LARGEST_JOURNAL = 64 << 20  # a new snapshot is due at 512 KiB
_SUBAGENT = re.compile(r"(.*?) *\(@(.+) subagent\)", re.DOTALL)
_SESSION = re.compile(r"session_id: (session_[\w-]+)")
_UNIQUE = re.compile(r"\d{10}|[0-9a-f]{12}", re.IGNORECASE)
_REMINDER = "<system-reminder>"
# Their input tokens are without those from the cache; others count both.
_APART = ("claude", "anthropic", "bedrock")
_COMPACTION = "compaction"


def read_session(path: str, data: bytes, journal: str) -> Conversation:
    snapshot = whole_object(data, "messages", "is not a session of jcode")
    entries = list(_entries(journal))
    try:
        same = disk.stat_of(path).st_size == len(data)
    except OSError:
        same = False
    if not same:  # what the journal had may be in a new snapshot now
        raise NotReady("changed while it was read")
    facts = dict(snapshot)
    session = as_text(facts.get("id")) or os.path.basename(path).removesuffix(".json")
    messages: dict[str, Item] = {}
    _add(messages, session, snapshot["messages"], facts)
    for entry in entries:
        facts |= as_dict(entry.get("meta"))
        _add(messages, session, entry.get(_APPENDED), facts)
    return _conversation(session, facts, list(messages.values()))


def _entries(journal: str) -> Iterator[dict[str, Any]]:
    """Every whole entry, also those that were glued to others."""
    for line in small_file(journal, _LARGEST_JOURNAL).split(b"\n"):
        try:
            value, _ = decode(line)
        except ValueError:
            yield from _glued(line.decode("utf-8", "replace"))
            continue
        if isinstance(value, dict):
            yield value


def _glued(line: str) -> Iterator[dict[str, Any]]:
    """The whole entries in a line with several, of which some may be torn."""
    end = 0
    for start in itertools.islice(re.finditer(_ENTRY, line), _MOST_GLUED):
        at = start.start()
        if at < end:  # an argument of that name
            continue
        try:
            _, end = _JSON.raw_decode(line, at)
            value, _ = decode(line[at:end].encode("utf-8", "replace"))
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and isinstance(value.get(_APPENDED), list):
            yield value


def _add(messages: dict[str, Item], session: str, listed: Any, facts: dict[str, Any]) -> None:
    """Add messages or replace those that have come before."""
    for message in as_list(listed):
        value = message if isinstance(message, dict) else {"content": message}
        key = as_text(value.get("id")) or f"#{len(messages)}"
        record = _message(session, value, facts)
        messages[key] = Item(key, len(messages), value=value, record=record)


def _conversation(session: str, facts: dict[str, Any], items: list[Item]) -> Conversation:
    if compaction := _compaction(as_dict(facts.get(_COMPACTION))):
        covered = as_count(as_dict(facts[_COMPACTION]).get("covers_up_to_turn"))
        items.insert(covered, compaction)
    parent, title = as_text(facts.get("parent_id")), as_text(facts.get("title"))
    made = _SUBAGENT.fullmatch(title or "") if parent else None
    project = absolute(facts.get("working_dir"))
    return Conversation(
        SessionSpec(
            session,
            kind="subagent" if made else "main",
            parent=parent if made else None,
            agent_type=made[2] if made else None,
            title=as_text(facts.get("custom_title")) or (made[1] if made else title),
            resume=() if made else ("jcode", "--resume", session),
        ),
        items=items,
        project=project,
        project_rank=1 if project else 0,
        model=as_text(facts.get("model")),
        created_at=as_time(facts.get("created_at")),
        updated_at=as_time(facts.get("updated_at")),
    )


def _compaction(state: dict[str, Any]) -> Item | None:
    text = as_text(state.get("summary_text"))
    if text is None:
        return None
    record = Record(_COMPACTION, role="system", events=[Event("summary", text)])
    return Item(_COMPACTION, value={"type": _COMPACTION, "summary": text}, record=record)


def _message(session: str, value: dict[str, Any], facts: dict[str, Any]) -> Record:
    role = as_text(value.get("role")) or "user"
    name = as_text(value.get("id"))
    record = Record(
        role,
        role=role,
        native_id=name if name is None or _UNIQUE.search(name) else f"{session}/{name}",
        ts=as_time(value.get("timestamp")),
    )
    shown = as_text(value.get("display_role"))
    read_blocks(record, value.get("content"), "/content", _TOOLS, lambda text: _label(text, shown))
    took = as_milliseconds(value.get("tool_duration_ms"))
    for result in record.results:
        result.duration_ms = took
        if started := _SESSION.search(result.output):
            record.link(started[1], result.call_id, home="")
    if role == "assistant":
        record.model = as_text(facts.get("model"))
        record.usage = _usage(as_dict(value.get("token_usage")), record, facts)
    return record


def _label(text: str, shown: str | None) -> str | None:
    return shown or ("context" if text.lstrip().startswith(_REMINDER) else None)


def _usage(counts: dict[str, Any], record: Record, facts: dict[str, Any]) -> Usage | None:
    if not counts:
        return None
    entered = as_count(counts.get("input_tokens"))
    read = as_count(counts.get("cache_read_input_tokens"))
    written = as_count(counts.get("cache_creation_input_tokens"))
    provider = (as_text(facts.get("provider_key")) or "").casefold()
    if whole := as_count(counts.get("prompt_tokens")):
        entered = max(0, whole - read - written)
    elif not provider.startswith(_APART):
        entered = max(0, entered - read)
    return Usage(
        message_id=record.native_id,
        model=record.model,
        input_tokens=entered,
        output_tokens=as_count(counts.get("output_tokens")),
        cache_write_tokens=written,
        cache_read_tokens=read,
    )


SOURCE = JehuangJcodeSource
