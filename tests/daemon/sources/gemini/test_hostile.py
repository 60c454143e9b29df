"""No value in a chat makes the reader fail, and every line is archived."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.at_length import amount
from tests.gemini_home import GeminiWorld, document, encoded, header, prompt

from sessiond.sourcekit.base import SessionSpec
from sessiond.sources.gemini.chat import GeminiParser

NAMES = (
    *("id", "type", "content", "displayContent", "toolCalls", "thoughts", "tokens", "model"),
    *("text", "functionCall", "functionResponse", "response", "inlineData", "mimeType", "thought"),
    *("name", "args", "result", "resultDisplay", "fileDiff", "status", "agentId", "todos"),
    *("file_path", "command", "pattern", "include", "input", "output", "error", "cached"),
    *("$set", "$rewindTo", "$patch", "messages", "summary", "directories", "sessionId"),
    *("projectHash", "startTime", "lastUpdated", "timestamp", "subject", "description"),
)
WORDS = st.sampled_from(
    ("user", "gemini", "info", "read_file", "replace", "write_todos", "success", "cancelled", "a")
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | WORDS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=6)
    ),
    max_leaves=25,
)
RECORDS = st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=8)


@settings(max_examples=amount(100, 900))
@given(values=st.lists(RECORDS, max_size=4))
def test_any_record_is_parsed(values):
    """Every call has a kind."""
    parser = GeminiParser(SessionSpec("s"), {})
    for value in values:
        record = parser.parse(value)
        json.dumps(parser.state())
        for event in record.events:
            if event.type == "tool_use":
                assert event.kind


@settings(max_examples=amount(8, 60))
@given(values=st.lists(RECORDS, max_size=5))
def test_any_log_and_any_document_are_read(tmp_path_factory, values):
    """The lines around hostile ones are shown, and the log is restored byte for byte."""
    world = GeminiWorld(tmp_path_factory.mktemp("hostile"))
    data = encoded(header(), *values, prompt(9, "still here"))
    world.log().write_bytes(data)
    other = "dddddddd-1111-4111-8111-111111111111"
    world.document(other).write_bytes(document(*values, prompt(8, "here too"), session=other))
    summary = world.ingest()
    assert summary.skipped == []
    assert "still here" in world.texts()
    assert "here too" in world.texts(other)
    assert world.restored(world.log()) == data
    world.check()
