"""Logs that their agent compresses later: the same log under the same path."""

from __future__ import annotations

import pytest
import zstandard
from tests.gemini_home import SESSION, GeminiWorld, answer, encoded, header, prompt

LINES = encoded(header(), prompt(1, "one"), answer(2, "two"))
MORE = encoded(prompt(3, "three"))


@pytest.fixture
def world(tmp_path):
    return GeminiWorld(tmp_path)


def pack(world, data):
    """Pack the log as its agent does, and remove the plain file."""
    world.log().with_name(world.log().name + ".zst").write_bytes(
        zstandard.ZstdCompressor().compress(data)
    )
    world.log().unlink(missing_ok=True)


def unpack(world, data):
    world.log().write_bytes(data)
    world.log().with_name(world.log().name + ".zst").unlink()


@pytest.fixture
def known(world):
    """A log that was read before it was packed; returns its events."""
    world.log().write_bytes(LINES)
    world.ingest()
    return events(world)


def events(world):
    return world.sql("SELECT id, record_id, ts FROM events WHERE retired = 0 ORDER BY id")


def sources(world):
    return world.sql("SELECT path, state, generation FROM sources")


def test_packing_a_log_changes_nothing(world, known):
    """It is the same source: nothing is gone, retired, read twice or shown twice."""
    pack(world, LINES)
    world.ingest()
    assert events(world) == known
    assert sources(world) == [(str(world.log()), "live", 1)]
    assert world.texts() == ["one", "two"]
    world.check()


def test_a_packed_log_grows(world, known):
    """Lines added before packing and after unpacking are read."""
    pack(world, LINES + MORE)
    world.ingest()
    assert world.texts() == ["one", "two", "three"]
    unpack(world, LINES + MORE + encoded(prompt(4, "four")))
    world.ingest()
    assert world.texts() == ["one", "two", "three", "four"]
    assert events(world)[: len(known)] == known
    assert sources(world) == [(str(world.log()), "live", 1)]
    world.check()


def test_a_log_that_was_always_packed_is_read(world):
    pack(world, LINES)
    summary = world.ingest()
    assert (summary.seen, summary.skipped) == (1, [])
    assert world.texts() == ["one", "two"]


def test_a_log_packed_in_several_frames_is_read_whole(world):
    packed = b"".join(map(zstandard.ZstdCompressor().compress, (LINES, MORE, MORE[:0])))
    world.log().with_name(world.log().name + ".zst").write_bytes(packed)
    world.ingest()
    assert world.texts() == ["one", "two", "three"]


def test_of_a_packed_and_a_plain_log_the_plain_one_is_read(world):
    """Both exist briefly while an agent packs a log; the plain one may have more lines."""
    pack(world, LINES)
    world.log().write_bytes(LINES + MORE)
    assert world.ingest().seen == 1
    assert world.texts() == ["one", "two", "three"]


def test_a_packed_log_that_did_not_change_is_not_read_again(world, known):
    pack(world, LINES)
    world.ingest()
    summary = world.ingest()
    assert (summary.changed, summary.read_bytes) == (0, 0)


@pytest.mark.parametrize("damage", [b"", b"not zstd", "cut"], ids=["empty", "other", "cut"])
def test_a_damaged_packed_log_has_one_clear_reason(world, known, damage):
    """The index keeps what it has, the reason is reported once, and a complete file is read."""
    whole = zstandard.ZstdCompressor().compress(LINES + MORE)
    packed = world.log().with_name(world.log().name + ".zst")
    world.log().unlink()
    packed.write_bytes(whole[:-9] if damage == "cut" else damage)
    summary = world.ingest()
    assert summary.skipped == [(str(world.log()), "is not a complete zstd file")]
    assert world.sql("SELECT state, error FROM sources") == [
        ("unreadable", "is not a complete zstd file")
    ]
    assert world.texts() == ["one", "two"]
    packed.write_bytes(whole)
    world.ingest()
    assert world.texts() == ["one", "two", "three"]
    assert world.sql("SELECT state, error FROM sources") == [("live", None)]


def test_a_deleted_packed_log_is_gone(world, known):
    pack(world, LINES)
    world.ingest()
    world.log().with_name(world.log().name + ".zst").unlink()
    world.ingest()
    assert sources(world) == [(str(world.log()), "gone", 1)]
    assert world.texts() == ["one", "two"]


def test_restore_writes_the_plain_bytes(world, tmp_path):
    pack(world, LINES + MORE)
    world.ingest()
    out = tmp_path / "out.jsonl"
    world.run("sess", "restore", SESSION, "-o", out, "--no-sync", check=0)
    assert out.read_bytes() == LINES + MORE
