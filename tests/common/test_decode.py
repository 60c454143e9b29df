"""Decoding: every line becomes values or is called broken, and no byte is passed over."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sess_common.decode import at_pointer, decode, split_line

RECORD = b'{"type":"user","uuid":"u1","message":{"role":"user","content":"hi"}}'


@given(st.binary(max_size=300))
def test_pieces_cover_the_line_without_gaps(line):
    """Whatever the bytes, the pieces stand one behind the other from first to last byte."""
    pieces = split_line(line)
    assert [piece.start for piece in pieces[1:]] == [piece.end for piece in pieces[:-1]]
    assert (pieces[0].start, pieces[-1].end) == (0, len(line))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


@given(JSON)
def test_json_of_any_value_is_one_piece(value):
    """What Python's encoder writes, lone surrogates and huge integers included, is read."""
    [piece] = split_line(json.dumps(value).encode())
    assert not piece.broken


@pytest.mark.parametrize(
    ("line", "starts"),
    [
        (RECORD + RECORD, [0, len(RECORD)]),
        (RECORD[:30] + RECORD, [0, 30]),
        (RECORD + RECORD[:30], [0, len(RECORD)]),
        (b"\0\0" + RECORD, [0]),
        (RECORD[:-2], [0]),
    ],
    ids=["glued", "torn then whole", "whole then torn", "NUL first", "only torn"],
)
def test_glued_and_torn_records_are_told_apart(line, starts):
    """Whole records inside a damaged line are salvaged; a block inside a torn one is not."""
    pieces = split_line(line)
    assert [piece.start for piece in pieces] == starts
    whole = [piece.value for piece in pieces if not piece.broken]
    assert all(value == json.loads(RECORD) for value in whole)
    assert len(whole) == line.count(b'"hi"}}')


@pytest.mark.parametrize(
    ("raw", "value", "problem"),
    [
        (b'"\xff"', "\ufffd", "bad UTF-8 replaced"),
        (rb'"\ud800"', "\ufffd", "unusual JSON: lone surrogate, control character or number"),
        (b"\0\0[1]", [1], "NUL bytes before the record"),
        (b'{"a":1}', {"a": 1}, None),
    ],
)
def test_what_was_mended_is_told(raw, value, problem):
    """The value comes with the reason why it is not quite what was written."""
    assert decode(raw) == (value, problem)


@pytest.mark.parametrize(
    ("pointer", "value"),
    [("/a/1/b~1c", "x"), ("/a/9", None), ("/a/b", None), ("", {"a": [0, {"b/c": "x"}]})],
)
def test_pointers_lead_to_values_or_to_none(pointer, value):
    """RFC 6901, without an error for what is not there."""
    assert at_pointer({"a": [0, {"b/c": "x"}]}, pointer) == value
