"""ChatGPT: the export of an account's conversations."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

from sess_schema import kinds, labels
from sess_schema.chains import Chain
from sessiond.sourcekit.base import (
    DOCUMENTATION,
    Conversation,
    Item,
    NotReady,
    Record,
    Result,
    SessionSpec,
    Source,
    borrowed_times,
    whole_json,
)
from sessiond.sourcekit.toolbox import Toolbox
from sessiond.sourcekit.values import NAMELESS, as_dict, as_list, as_text, as_time, strings

_EXPORT = "conversations.json"
_CONVERSATION = re.compile(rb'\A(?:\xef\xbb\xbf)?\s*\[\s*\{.*?"mapping"\s*:\s*\{', re.DOTALL)
_OWN = re.compile(rb'"(?:content_type|current_node)"\s*:')


class _Conversations:
    def conversations(self, path: str, data: bytes) -> Iterator[Conversation]:  # noqa: ARG002
        value = whole_json(data)
        if not isinstance(value, dict):
            raise NotReady("is not an export of conversations")
        session = as_text(value.get("conversation_id")) or as_text(value.get("id"))
        nodes = value.get("mapping")
        if session is None or not isinstance(nodes, dict):
            return
        began = as_time(value.get("create_time"))
        items = [*_items(nodes)]
        yield Conversation(
            SessionSpec(session, title=as_text(value.get("title"))),
            items=items,
            times=borrowed_times(items, began),
            created_at=began,
            updated_at=as_time(value.get("update_time")),
        )


class ChatGptSource(Source):
    agent = "chatgpt"
    title = "ChatGPT"
    reads = "The export of an account (`conversations.json`), handed over with `sess import`."
    leaves = (
        ("chat.html, shared_conversations.json", "repeat what conversations.json has"),
        ("user.json, message_feedback.json", "account data, not conversations"),
    )
    known_from = DOCUMENTATION
    chain = Chain("id", "parent")
    records_tokens = False
    subscription = True
    documents = _Conversations()
    streams = True

    def places(self) -> list[str]:
        return []

    def classify(self, path: str) -> str | None:
        return "document" if os.path.basename(path) == _EXPORT else None

    def claims(self, path: str, head: bytes) -> bool:  # noqa: ARG002 - the content decides
        return _CONVERSATION.match(head) is not None and _OWN.search(head) is not None


# -- one conversation: a tree of messages, of which each regenerated answer is a branch

_TOOLS = Toolbox(
    {
        kinds.SHELL: ("python", "container.exec", "code_interpreter"),
        kinds.READ: ("file_search", "myfiles_browser", "file_search.mclick"),
        kinds.WRITE: ("canmore.create_textdoc",),
        kinds.EDIT: ("canmore.update_textdoc",),
        kinds.SEARCH: ("file_search.msearch",),
        kinds.FETCH: ("browser", "web", "web.run", "web.search", "search"),
        kinds.AGENT: ("research_kickoff_tool.start_research_task",),
        kinds.QUESTION: ("research_kickoff_tool.clarify_with_text",),
    }
)
_EVERYBODY = frozenset({None, "all"})
_DEEPEST = 64  # nodes between a result and its call


def _items(nodes: dict[str, Any]) -> Iterator[Item]:
    for number, name in enumerate(_in_order(nodes)):
        node = as_dict(nodes[name])
        message = node.get("message")
        if isinstance(message, dict):
            yield Item(name, number, value=node, record=_record(name, node, message, nodes))


def _in_order(nodes: dict[str, Any]) -> list[str]:
    """Parents before children, and what a node itself says is its parent wins."""
    children: dict[str | None, list[str]] = {}
    for name, node in nodes.items():
        parent = as_text(as_dict(node).get("parent"))
        known = parent if parent in nodes and parent != name else None
        children.setdefault(known, []).append(name)
    listed: dict[str, None] = {}
    waiting = children.get(None, [])[::-1]
    while waiting:
        name = waiting.pop()
        listed[name] = None
        waiting += children.get(name, [])[::-1]
    return [*listed, *(name for name in nodes if name not in listed)]


def _record(
    name: str, node: dict[str, Any], message: dict[str, Any], nodes: dict[str, Any]
) -> Record:
    author, facts = as_dict(message.get("author")), as_dict(message.get("metadata"))
    role, content = as_text(author.get("role")) or "system", as_dict(message.get("content"))
    record = Record(
        role,
        role="user" if role == "tool" else role,
        native_id=name,
        parent_id=as_text(node.get("parent")),
        ts=as_time(message.get("create_time")),
    )
    text, images = _words(content)
    kind, recipient = as_text(content.get("content_type")), as_text(message.get("recipient"))
    if role == "user" and kind != "user_editable_context":
        record.ask(text, images)
    elif role == "tool":
        _read_result(record, node, message, nodes, (text, images))
    elif role == "assistant":
        record.model = as_text(facts.get("model_slug"))
        if kind == "thoughts":
            record.say("thinking", text)
        elif recipient in _EVERYBODY:
            record.say("assistant", text or "[image]" * bool(images))
        else:
            given = {"code": text} if recipient == "python" else text
            record.events.append(_TOOLS.call(recipient, given, name, "/message/content"))
    else:
        record.say("system", text, labels.CONTEXT)
    return record


def _words(content: dict[str, Any]) -> tuple[str, int]:
    """What a message says, and how many images it shows."""
    texts, images = list[str](), 0
    for part in as_list(content.get("parts")):
        if isinstance(part, str):
            texts.append(part)
        elif as_text(as_dict(part).get("content_type")) == "image_asset_pointer":
            images += 1
        else:
            texts.append(as_text(as_dict(part).get("text")) or "")
    for thought in map(as_dict, as_list(content.get("thoughts"))):
        texts += filter(None, (as_text(thought.get("summary")), as_text(thought.get("content"))))
    if not texts and not images:
        texts += strings(content, NAMELESS | {"content_type", "language", "response_format_name"})
    return "\n".join(filter(None, texts)).strip(), images


def _read_result(
    record: Record,
    node: dict[str, Any],
    message: dict[str, Any],
    nodes: dict[str, Any],
    said: tuple[str, int],
) -> None:
    call = _call_of(node, nodes)
    if call is None:
        record.say("system", said[0], labels.TOOL_RESULT)
        return
    run = as_dict(as_dict(message.get("metadata")).get("aggregate_result"))
    content = as_dict(message.get("content"))
    broke = content.get("content_type") == "system_error" or "failed" in str(run.get("status"))
    record.results.append(
        Result(
            call,
            said[0],
            "error" if broke else "ok",
            images=said[1],
            pointer="/message/content",
        )
    )


def _call_of(node: dict[str, Any], nodes: dict[str, Any]) -> str | None:
    """The nearest message above that was addressed to a tool."""
    for _ in range(_DEEPEST):
        above = as_text(node.get("parent"))
        if above is None or above not in nodes:
            return None
        node = as_dict(nodes[above])
        message = as_dict(node.get("message"))
        role = as_text(as_dict(message.get("author")).get("role"))
        if role == "assistant" and as_text(message.get("recipient")) not in _EVERYBODY:
            return above
        if role == "user":
            return None
    return None


SOURCE = ChatGptSource
