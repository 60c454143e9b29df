"""Claude on the web and in the desktop app: the export of an account's conversations."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from sessiond.sourcekit.base import DOCUMENTATION, Conversation, Source

__all__ = ["SOURCE", "ClaudeWebSource"]

_EXPORT = "conversations.json"
_CONVERSATION = re.compile(rb'\A(?:\xef\xbb\xbf)?\s*\[\s*\{.*?"chat_messages"\s*:', re.DOTALL)


class _Conversations:
    def conversations(self, path: str, data: bytes) -> Iterator[Conversation]:  # noqa: ARG002
        from sessiond.sources.claude_web.messages import read_conversation  # when something changed

        yield from read_conversation(data)


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


SOURCE = ClaudeWebSource
