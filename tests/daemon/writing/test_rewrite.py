"""Files that change in other ways than growing: every version is kept, the newest is shown."""

from __future__ import annotations

import os

import pytest


def texts(world, session):
    return [text for _, text, _ in world.shown(session)]


def test_a_truncated_file_keeps_what_was_cut_but_does_not_show_it(world):
    """The cut line is retired: out of the session and of its counters, still in the index."""
    t = world.transcript()
    t.append(t.prompt("one"), t.prompt("two"), t.prompt("three"))
    world.ingest()
    size = t.path.stat().st_size
    os.truncate(t.path, size - len(t.encode(t.prompt("three"))))
    world.ingest()
    assert texts(world, t.session) == ["one", "two"]
    assert world.sql("SELECT events, records FROM sessions") == [(2, 3)]
    assert world.sql(
        "SELECT text, retired FROM events e JOIN event_texts USING (id) WHERE retired"
    ) == [("three", 2)]
    assert world.restored(t.path) == t.path.read_bytes()
    world.check()


def test_a_rewrite_that_grew_past_the_old_size_is_noticed(world):
    """Last line removed and more appended before the next look: a size test would miss it."""
    t = world.transcript()
    lines = [t.encode(t.prompt(f"line {n}")) for n in range(5)]
    t.path.write_bytes(b"".join(lines))
    world.ingest()
    more = [t.encode(t.prompt(f"new {n}")) for n in range(3)]
    t.path.write_bytes(b"".join(lines[:4] + more))
    world.ingest()
    assert texts(world, t.session) == [
        "line 0", "line 1", "line 2", "line 3", "new 0", "new 1", "new 2"
    ]  # fmt: skip
    assert world.restored(t.path) == t.path.read_bytes()
    world.check()


def test_a_rewrite_to_equal_size_and_time_is_noticed(world):
    """One letter in the middle changed, size and mtime set back: the change is read."""
    t = world.transcript()
    t.append(*(t.prompt(f"line {n} apple") for n in range(500)))
    world.ingest()
    before = t.path.stat()
    data = t.path.read_bytes()
    t.path.write_bytes(data.replace(b"line 250 apple", b"line 250 grape"))
    os.utime(t.path, ns=(before.st_atime_ns, before.st_mtime_ns))
    world.ingest()
    assert texts(world, t.session)[250] == "line 250 grape"
    assert len(world.shown(t.session)) == 500
    assert world.sql("SELECT count(*) FROM events WHERE retired") == [(1,)]
    assert world.restored(t.path) == t.path.read_bytes()
    world.check()


def test_event_ids_survive_a_rewrite(world):
    """What a rewritten file still says keeps its rows, so links to it stay good."""
    t = world.transcript()
    lines = [t.prompt("keep me"), t.prompt("drop me"), t.prompt("keep me too")]
    t.append(*lines)
    world.ingest()
    ids = dict(world.sql("SELECT text, id FROM event_texts"))
    t.path.write_bytes(b"".join(map(t.encode, (lines[0], lines[2]))))
    world.ingest()
    after = dict(world.sql("SELECT text, id FROM event_texts"))
    assert after == ids
    assert world.sql("SELECT line, retired FROM records ORDER BY id") == [(1, 0), (2, 2), (2, 0)]


def test_a_record_cut_from_the_original_lives_on_in_its_fork(world):
    """The fork becomes the owner, so search still finds the record."""
    original = world.transcript("aaaaaaaa-1111-4111-8111-111111111111")
    lines = [original.prompt("shared words"), original.prompt("kept words")]
    original.append(*lines)
    fork = world.transcript("bbbbbbbb-1111-4111-8111-111111111111")
    fork.append(*({**line, "sessionId": fork.session} for line in lines))
    world.ingest()
    original.path.write_bytes(original.encode(lines[1]))
    world.ingest()
    assert texts(world, fork.session) == ["shared words", "kept words"]
    assert texts(world, original.session) == ["kept words"]
    assert world.sql(
        "SELECT s.native_id, e.retired FROM events e JOIN event_texts x ON x.id = e.id"
        " JOIN sessions s ON s.id = e.session_id WHERE x.text = 'shared words'"
    ) == [(fork.session, 0)]


def test_a_moved_file_is_the_same_source(world):
    """A rename keeps the source and reads nothing again; the other path is not called gone."""
    t = world.transcript()
    t.append(t.prompt("before the move"))
    world.ingest()
    there = world.projects / "-moved" / t.path.name
    there.parent.mkdir()
    t.path.rename(there)
    t.path = there
    t.append(t.prompt("after the move"))
    summary = world.ingest()
    assert summary.gone == 0
    assert world.sql("SELECT path, state, generation FROM sources") == [(str(there), "live", 1)]
    assert texts(world, t.session) == ["before the move", "after the move"]


def test_a_new_file_with_the_inode_of_a_deleted_one_is_another_source(world):
    """ext4 gives the number to the next file; the bytes tell them apart."""
    t = world.transcript()
    t.append(t.prompt("the first file"))
    world.ingest()
    t.path.unlink()
    other = world.transcript("22222222-1111-4111-8111-111111111111")
    other.append(other.prompt("a second file"))
    world.ingest()
    assert sorted(world.sql("SELECT state, lines FROM sources")) == [("gone", 1), ("live", 1)]
    assert texts(world, t.session) == ["the first file"]
    assert texts(world, other.session) == ["a second file"]


def test_a_deleted_source_stays_and_may_come_back(world):
    """Deleting marks it gone; the same file again is live, with nothing doubled."""
    t = world.transcript()
    t.append(t.prompt("precious"))
    world.ingest()
    data = t.path.read_bytes()
    t.path.unlink()
    assert world.ingest().gone == 1
    assert world.sql("SELECT state FROM sources") == [("gone",)]
    assert len(world.found("precious")) == 1
    assert world.restored(t.path) == data
    t.path.write_bytes(data)
    world.ingest()
    assert world.sql("SELECT state FROM sources") == [("live",)]
    assert texts(world, t.session) == ["precious"]
    assert world.sql("SELECT count(*) FROM events") == [(1,)]


@pytest.mark.parametrize("write", ["replace", "in place"])
def test_an_atomic_save_is_an_append_if_it_only_adds(world, write):
    """An editor's rename over the file with one more line reads one more line."""
    t = world.transcript()
    t.append(t.prompt("one"))
    world.ingest()
    data = t.path.read_bytes() + t.encode(t.prompt("two"))
    new = t.path.with_suffix(".tmp")
    new.write_bytes(data)
    if write == "replace":
        os.replace(new, t.path)
    else:
        t.path.write_bytes(data)
    world.ingest()
    assert texts(world, t.session) == ["one", "two"]
    assert world.sql("SELECT generation FROM sources") == [(1,)]


def test_a_touched_file_reads_nothing_again(world):
    """A new mtime without new bytes changes no row."""
    t = world.transcript()
    t.append(t.prompt("one"))
    world.ingest()
    before = world.dump()
    os.utime(t.path)
    assert world.ingest().records == 0
    assert world.dump() == before
