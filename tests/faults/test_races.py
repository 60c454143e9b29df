"""Files that change while they are read or compared: the next look finds it."""

from __future__ import annotations

import os
from contextlib import closing

import pytest

from sess_schema.connection import open_writer
from sessiond.ingest import Ingest, comparing
from sessiond.reading import tail
from sessiond.writing.transaction import Store


@pytest.fixture
def t(world):
    """A transcript of some 30 kB, read once."""
    one = world.transcript()
    one.append(*(one.prompt(f"line {number} " + "filler " * 40) for number in range(60)))
    world.ingest()
    return one


def replace(path, data):
    """As editors do it: a new file under the old name."""
    new = path.with_suffix(".new")
    new.write_bytes(data)
    os.replace(new, path)


def assert_as_the_file(world, t):
    assert world.restored(t.path) == t.path.read_bytes()
    texts = [text for _, text, _ in world.shown(t.session)]
    assert len(texts) == t.path.read_bytes().count(b"\n")
    assert all(text.encode() in t.path.read_bytes() for text in texts)
    world.check()


def test_a_file_replaced_again_during_the_comparison_is_read_right(world, t, monkeypatch):
    """What is compared is what is read, and what replaced it meanwhile is read at the next look."""
    monkeypatch.setattr(comparing.Recheck, "some", lambda *_: None)  # would find it later
    data = t.path.read_bytes() + t.encode(t.prompt("one more"))
    compare = comparing.common_prefix

    def replaced_meanwhile(*arguments):
        kept = compare(*arguments)
        replace(t.path, data.replace(b"line 30 ", b"LINE 30 "))  # the same at both ends
        return kept

    replace(t.path, data)
    with monkeypatch.context() as patch:
        patch.setattr(comparing, "common_prefix", replaced_meanwhile)
        world.ingest()
    world.ingest()
    assert_as_the_file(world, t)


def test_a_file_overwritten_after_reading_is_not_taken_as_read(world, t, monkeypatch):
    """The marks are those of the bytes that were read, not of what stands there a moment later."""
    read = tail.blocks

    def overwritten_meanwhile(fd, checkpoint):
        for block in read(fd, checkpoint):
            data = t.path.read_bytes()
            t.path.write_bytes(data.replace(b"new line", b"NEW LINE"))
            yield block

    t.append(t.prompt("new line"))
    with monkeypatch.context() as patch:
        patch.setattr(tail, "blocks", overwritten_meanwhile)
        world.ingest()
    t.append(t.prompt("an append, which alone would not be compared"))
    world.ingest()
    assert_as_the_file(world, t)


def test_an_edit_in_the_middle_with_an_append_is_found_in_turn(world, t, monkeypatch):
    """Neither size nor marks tell; older parts are compared a few at a time until one differs."""
    other = world.transcript("22222222-1111-4111-8111-111111111111")
    other.append(*(other.prompt(f"other {number} " + "filler " * 40) for number in range(60)))
    world.ingest()
    monkeypatch.setattr(comparing, "BYTES", 1)  # one piece each time
    data = t.path.read_bytes()
    with t.path.open("r+b") as file:
        file.seek(data.index(b"line 30 "))
        file.write(b"LINE 30 ")
    t.append(t.prompt("an append"))
    with closing(open_writer(world.state / "index.db")) as db:
        ingest = Ingest(Store(db))
        ingest.reconcile(world.places())
        assert db.execute("SELECT generation FROM sources WHERE id = 1").get == 1  # not seen yet
        for _ in range(3):
            ingest.reconcile(world.places())
    assert_as_the_file(world, t)


def test_older_parts_are_compared_in_turn(world, t, monkeypatch):
    """Each look goes on where the last one ended, over all files, and then begins again."""
    for letter in "abc":
        one = world.transcript(f"{letter * 8}-1111-4111-8111-111111111111")
        one.append(one.prompt("words"))
    world.ingest()
    monkeypatch.setattr(comparing, "BYTES", 1)
    compared = []
    monkeypatch.setattr(comparing, "_differs", lambda source, *_, **__: compared.append(source.id))
    with closing(open_writer(world.state / "index.db")) as db:
        ingest = Ingest(Store(db))
        for _ in range(8):
            ingest.reconcile(world.places())
    assert len(compared) == 8
    assert sorted(compared[:4]) == sorted(compared[4:]) == [1, 2, 3, 4]
