"""Archived pieces: what is read back is what was archived, or damage that is named."""

from __future__ import annotations

import pytest

from sess_schema import archive


def test_any_flipped_bit_of_a_piece_is_noticed():
    """Also where the frame is still one: a piece carries a checksum."""
    raw = b"ivory, and apes and peacocks " * 40 + bytes(range(256))
    packed = archive.pack(raw)
    assert archive.unpack(packed) == raw
    for place in range(len(packed)):
        spoiled = bytearray(packed)
        spoiled[place] ^= 1
        try:
            assert archive.unpack(bytes(spoiled)) == raw  # a bit that says nothing
        except archive.Damaged:
            archive.met.clear()


def test_what_is_no_piece_is_damaged():
    for packed in (b"", b"ivory", bytes(99)):
        with pytest.raises(archive.Damaged):
            archive.unpack(packed)
    archive.met.clear()
