"""Claude on the web and in the desktop app: the export of an account's conversations."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

from sess_schema import kinds
from sess_schema.chains import Chain
from sess_schema.edits import Edit
from sessiond.families.blocks import read_blocks
from sessiond.sourcekit.base import (
    DOCUMENTATION,
    Conversation,
    Described,
    Event,
    Item,
    NotReady,
    Record,
    SessionSpec,
    Source,
    whole_json,
)
from sessiond.sourcekit.toolbox import Toolbox
from sessiond.sourcekit.values import as_dict, as_list, as_text, as_time

_EXPORT = "conversations.json"
_CONVERSATION = re.compile(rb'\A(?:\xef\xbb\xbf)?\s*\[\s*\{.*?"chat_messages"\s*:', re.DOTALL)


class _Conversations:
    def conversations(self, path: str, data: bytes) -> Iterator[Conversation]:  # noqa: ARG002
        value = whole_json(data)
        if not isinstance(value, dict):
            raise NotReady("is not an export of conversations")
        session = as_text(value.get("uuid"))
        messages = value.get("chat_messages")
        if session is None or not isinstance(messages, list):
            return
        model = as_text(value.get("model"))
        items = [_item(number, message, model) for number, message in enumerate(messages)]
        yield Conversation(
            SessionSpec(session, title=as_text(value.get("name"))),
            items=items,
            model=model,
            created_at=as_time(value.get("created_at")),
            updated_at=as_time(value.get("updated_at")),
        )


class ClaudeWebSource(Source):
    agent = "claude-web"
    title = "Claude (web and desktop)"
    edition = 3
    reads = "The export of an account (`conversations.json`), handed over with `sess import`."
    leaves = (
        ("the desktop app's cache", "chats are on Anthropic's servers; only an export has them"),
        ("users.json, projects.json, memories.json", "account data, not conversations"),
    )
    known_from = DOCUMENTATION
    chain = Chain("uuid", "parent_message_uuid")
    records_tokens = False
    subscription = True
    documents = _Conversations()
    streams = True

    def places(self) -> list[str]:
        return []

    def classify(self, path: str) -> str | None:
        return "document" if os.path.basename(path) == _EXPORT else None

    def claims(self, path: str, head: bytes) -> bool:  # noqa: ARG002 - the content decides
        return _CONVERSATION.match(head) is not None


# -- one conversation of an export

_ARTIFACTS, _UPDATE = "artifacts", "update"


class _Tools(Toolbox):
    def describe(
        self, tool: str | None, given: Any, kind: str = "", edits: tuple[Edit, ...] = ()
    ) -> Described:
        """Artifacts are documents with an id instead of a path."""
        fields = as_dict(given)
        if tool == _ARTIFACTS and (name := as_text(fields.get("id"))):
            kind = kinds.EDIT if fields.get("command") == _UPDATE else kinds.WRITE
            given = {**fields, "path": name}
        return super().describe(tool, given, kind, edits)


_TOOLS = _Tools(
    {
        kinds.SHELL: ("bash_tool", "repl", "analysis_tool"),
        kinds.READ: ("view", "google_drive_fetch"),
        kinds.WRITE: ("create_file", _ARTIFACTS),
        kinds.EDIT: ("str_replace",),
        kinds.SEARCH: (
            *("conversation_search", "recent_chats", "project_knowledge_search"),
            *("google_drive_search", "drive_search"),
        ),
        kinds.FETCH: ("web_search", "web_fetch", "fetch_sports_data", "weather_fetch"),
        kinds.AGENT: ("launch_extended_search_task",),
        kinds.QUESTION: ("ask_user_input", "ask_user_input_v0"),
    }
)
_ROLES = {"human": "user", "assistant": "assistant"}
_CALL, _RESULT, _TEXT, _SPOKEN = "tool_use", "tool_result", "text", "voice_note"


def _item(number: int, message: Any, model: str | None) -> Item:
    value = message if isinstance(message, dict) else {"text": message}
    name = as_text(value.get("uuid"))
    sender = as_text(value.get("sender")) or "human"
    record = Record(
        sender,
        role=_ROLES.get(sender, "system"),
        native_id=name,
        parent_id=as_text(value.get("parent_message_uuid")),
        ts=as_time(value.get("created_at")),
    )
    if record.role == "assistant":
        record.model = model
    content = value.get("content")
    blocks = _named(content, name or str(number)) if isinstance(content, list) else []
    if any(map(_says_something, blocks)):
        read_blocks(record, blocks, "/content", _TOOLS)
    else:
        read_blocks(record, value.get("text"), "/text", _TOOLS)
    _read_files(record, value)
    return Item(name or f"#{number}", number, value=value, record=record)


def _says_something(block: Any) -> bool:
    """Otherwise the words of a message are only in its `text`, which repeats those of blocks."""
    facts = as_dict(block)
    return bool(facts.get("type") != _TEXT or as_text(facts.get("text")))


def _named(content: list[Any], message: str) -> list[Any]:
    """The same blocks with ids: older exports pair a call with its result by order."""
    named = list[Any]()
    waiting = list[tuple[str | None, str]]()
    for number, block in enumerate(content):
        kind, tool = as_dict(block).get("type"), as_text(as_dict(block).get("name"))
        if kind == _CALL and not as_text(block.get("id")):
            waiting.append((tool, f"{message}/{number}"))
            named.append({**block, "id": waiting[-1][1]})
        elif kind == _RESULT and not as_text(block.get("tool_use_id")):
            at = next((n for n, one in enumerate(waiting) if one[0] == tool), None)
            call = f"{message}/{number}" if at is None else waiting.pop(at)[1]
            named.append({**block, "tool_use_id": call})
        elif kind == _SPOKEN:
            named.append({**block, "type": _TEXT})
        else:
            named.append(block)
    return named


def _read_files(record: Record, value: dict[str, Any]) -> None:
    """Files that a person gave, some as the text that the model got of them."""
    names = list[str]()
    for facts in _facts_of(value.get("attachments")):
        lines = (as_text(facts.get("file_name")), as_text(facts.get("extracted_content")))
        names.append(lines[0] or "file")
        if text := "\n".join(filter(None, lines)):
            record.events.append(Event("system", text, label="attachment"))
    files = _facts_of(value.get("files"))
    names += [as_text(facts.get("file_name")) or "file" for facts in files]
    prompt = next((event for event in record.events if event.type == "user"), None)
    if prompt is None and names and record.role == "user":
        prompt = Event("user", f"[{', '.join(names)}]")
        record.events.insert(0, prompt)
    if prompt is not None:
        prompt.images += len(files)


def _facts_of(given: Any) -> list[dict[str, Any]]:
    return [as_dict(one) for one in as_list(given)]


SOURCE = ClaudeWebSource
