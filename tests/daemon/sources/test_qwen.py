"""Qwen Code: what a golden home has no room for."""

from __future__ import annotations

import pytest

from sessiond.sources.qwen import QwenSource

CHAT = "0e3e0000-0000-4000-8000-000000000001"


@pytest.mark.parametrize(
    ("name", "head", "session"),
    [
        (f"{CHAT}.jsonl", b'{"sessionId":"another"}', CHAT),
        ("download.jsonl", b'{"uuid":"u1","sessionId":"%s"}' % CHAT.encode(), CHAT),
        ("download.jsonl", b'{"sessionId":"none of ours"}', "download"),
    ],
)
def test_a_chat_that_was_renamed_keeps_its_session(name, head, session):
    """Qwen Code names the file after the session, which its records name too."""
    assert QwenSource().identify(f"/elsewhere/{name}", head).native_id == session
