"""Qwen Code: what a golden home has no room for."""

from __future__ import annotations

import pytest

from sessiond.sourcekit.base import SessionSpec
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


@pytest.mark.parametrize(
    ("facts", "result"),
    [
        ({"callId": "c1", "status": "success", "resultDisplay": "done"}, ("c1", "done", "ok")),
        ({"callId": "c1", "status": "error"}, ("c1", "", "error")),
    ],
)
def test_a_result_may_only_say_how_a_call_ended(facts, result):
    """Without the message to the model."""
    parser = QwenSource().parser(SessionSpec(CHAT), {})
    (found,) = parser.parse({"type": "tool_result", "toolCallResult": facts}).results
    assert (found.call_id, found.output, found.status) == result
