"""Documents that are larger than memory: read and archived piece by piece."""

from __future__ import annotations

import json
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.at_length import amount
from tests.golden_home import GoldenWorld

from sessiond.engines import documents
from sessiond.engines.documents import NotAnArray
from sessiond.engines.documents import array_elements as elements
from sessiond.writing import transaction

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


def split(data, block=1 << 20):
    return list(elements(lambda length, offset: data[offset : offset + min(length, block)]))


@settings(max_examples=amount(13, 120))
@given(st.lists(st.dictionaries(st.text(), JSON), max_size=5), st.integers(1, 9), st.booleans())
def test_elements_are_found_wherever_the_blocks_end(values, block, pretty):
    """Objects of any content come out byte for byte, in blocks of any size."""
    data = json.dumps(values, indent=1 if pretty else None).encode()
    assert [json.loads(element) for element in split(data, block)] == values


@pytest.mark.parametrize("data", [b"", b"{}", b'[{"a": 1}', b'[{"a": "', b"[", b"\x00", b'"a"'])
def test_anything_else_is_not_an_array(data):
    """A file that is still being written, or of another kind, is refused."""
    with pytest.raises(NotAnArray):
        split(data)


def test_an_export_is_read_with_little_memory(tmp_path, monkeypatch):
    """Ten times as many conversations need no more memory; the archive has every byte."""
    monkeypatch.setattr(documents, "PIECE", 64 << 10)
    monkeypatch.setattr(documents, "LARGEST", 64 << 10)  # of documents that are read whole
    monkeypatch.setattr(documents, "_BLOCK", 64 << 10)
    monkeypatch.setattr(transaction, "COMMIT_BYTES", 64 << 10)
    peaks = []
    for count in (10, 11, 110):  # the first also pays for what is imported
        world = GoldenWorld(tmp_path, "claude-web", f"index-{count}")
        path = world.root / "exports" / "conversations.json"
        path.parent.mkdir()
        path.write_text(json.dumps([conversation(n) for n in range(count)]))
        tracemalloc.start()
        assert world.ingest().skipped == []
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert world.sql("SELECT count(*) FROM sessions") == [(count,)]
        assert world.restored(path) == path.read_bytes()
    assert peaks[2] < 2 * peaks[1]


def conversation(number):
    message = {"uuid": f"m-{number}", "sender": "human", "text": f"word {number} " * 3000}
    return {"uuid": f"c-{number}", "name": "", "chat_messages": [message]}
