"""Readers during writes: no error, no half-written state, no wait."""

from __future__ import annotations

import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

from sess_schema import page_sums
from sess_schema.connection import open_reader
from sess_schema.queries.search import Search
from sess_schema.queries.search.groups import grouped

BIN = Path(sys.executable).parent


def read(index, stop, states, errors):
    """Search again and again, each time with a new connection, until stopped."""
    try:
        while not stop.is_set():
            with closing(open_reader(index)) as db:
                db.execute("BEGIN")
                ((events,),) = db.execute("SELECT count(*) FROM events")
                ((texts,),) = db.execute("SELECT count(*) FROM event_texts")
                ((indexed,),) = db.execute("SELECT count(*) FROM event_index_docsize")
                found = db.execute(
                    "SELECT count(*) FROM event_index WHERE event_index MATCH 'everywhere'"
                ).get
                lines = db.execute("SELECT sum(lines) FROM sources").get
                records = db.execute("SELECT count(*) FROM records").get
                states.add((events, texts, indexed, found, lines, records))
                db.execute("COMMIT")
    except Exception as error:
        errors.append(error)


def grow(world, first, last, lines):
    for number in range(first, last):
        t = world.transcript(f"{number:08d}-1111-4111-8111-111111111111")
        t.append(*(t.prompt(f"everywhere {number} {n} " + "filler " * 200) for n in range(lines)))


def test_readers_see_whole_states_during_a_bulk_load(world, monkeypatch):
    """Four readers search continuously: each snapshot has as many texts as events and lines."""
    monkeypatch.setattr("sessiond.writing.transaction.COMMIT_BYTES", 100_000)
    grow(world, 0, 1, 10)
    world.ingest()
    grow(world, 1, 50, 40)
    stop = threading.Event()
    states: set[tuple] = set()
    errors: list[object] = []
    readers = [
        threading.Thread(target=read, args=(world.state / "index.db", stop, states, errors))
        for _ in range(4)
    ]
    for reader in readers:
        reader.start()
    try:
        world.ingest()
    finally:
        stop.set()
        for reader in readers:
            reader.join()
    assert errors == []
    assert len(states) > 5
    assert {len(set(state)) for state in states} == {1}
    assert world.sql("SELECT count(*) FROM events") == [(1970,)]
    world.check()


def test_every_way_to_search_sees_one_state(world, monkeypatch):
    """Inside a transaction words, substrings, expressions and groups find the same events,
    while another connection keeps writing."""
    monkeypatch.setattr("sessiond.writing.transaction.COMMIT_BYTES", 100_000)
    grow(world, 0, 1, 10)
    world.ingest()
    grow(world, 1, 50, 40)
    writer = threading.Thread(target=world.ingest)
    writer.start()
    seen = set()
    with closing(open_reader(world.state / "index.db")) as db:
        while writer.is_alive():
            with db:
                words = Search("everywhere", limit=0)
                found = len([*words.hits(db)])
                counts = {
                    found,
                    words.results(db).count(),
                    Search("verywher", mode="substring").results(db).count(),
                    Search("every[w]here", mode="regex").results(db).count(),
                }
                groups = grouped(db, words.results(db), 5, 80)
                assert counts == {found}
                assert len(groups) <= 5
                seen.add(found)
    writer.join()
    assert len(seen) > 1


def test_readers_in_other_processes_never_wait_for_the_writer(world):
    """Searches while another process loads: none meets a lock, each sees a whole state."""
    grow(world, 0, 1, 10)
    world.run("sessiond", "sync", check=0)
    grow(world, 1, 120, 40)
    writer = subprocess.Popen(
        [BIN / "sessiond", "sync", "--quiet"], env=world.env, stderr=subprocess.PIPE
    )
    reads, states = 0, set()
    while writer.poll() is None:
        with closing(open_reader(world.state / "index.db")) as db:
            db.set_busy_timeout(0)  # fail instead of waiting
            db.execute("BEGIN")
            found = db.execute(
                "SELECT count(*) FROM event_index WHERE event_index MATCH 'everywhere'"
            ).get
            states.add((found, db.execute("SELECT count(*) FROM events").get))
        reads += 1
    assert (writer.returncode, writer.communicate()[1]) == (0, b"")
    assert reads > 1
    assert all(found == events for found, events in states)
    assert any(one.startswith("everywhere 119 39") for one in world.found("everywhere"))
    world.check()


def test_a_foreign_writer_is_waited_for_and_then_named(world):
    """Another program holds the write lock: exit 4 with one line; it works once released."""
    t = world.transcript()
    t.append(t.prompt("first"))
    world.run("sessiond", "sync", check=0)
    t.append(t.prompt("second"))
    index = world.state / "index.db"
    with closing(page_sums.opened(str(index))) as other:
        other.execute("BEGIN IMMEDIATE")
        done = world.run("sessiond", "sync", check=4)
        assert done.stderr.splitlines()[0] == (
            f'sessiond: index "{index}" is locked by another program'
        )
        assert done.stderr.splitlines()[1].startswith("hint: ")
        assert world.found("first") == ["first"]
    world.run("sessiond", "sync", check=0)
    assert world.found("second") == ["second"]
