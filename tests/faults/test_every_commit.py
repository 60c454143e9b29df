"""A copy of the index after every commit: each is sound, and goes on to the same end."""

from __future__ import annotations

import shutil
from contextlib import closing

from tests.at_length import count
from tests.faults.history import facts, history

from sess_schema.connection import open_writer
from sessiond.ingest import Ingest
from sessiond.writing.transaction import Store


def lived(world, keep):
    """The history on one connection; `keep` is called after each commit, as a kill would be."""
    world.state.mkdir(mode=0o700)
    with closing(open_writer(world.state / "index.db")) as db:
        ingest = Ingest(Store(db))
        for step, _ in enumerate(history(world)):
            keep.step = step
            ingest.reconcile(world.places())
    return facts(world)


class Keep:
    """Copies of the files of an index; SQLite's shared memory is no part of it."""

    def __init__(self, world, folder):
        self.world, self.folder, self.step, self.made = world, folder, 0, []

    def __call__(self):
        there = self.folder / str(len(self.made))
        shutil.copytree(self.world.state, there, ignore=shutil.ignore_patterns("*-shm"))
        self.made.append((there, self.step))


def test_every_commit_leads_to_the_same_end(world, tmp_path, monkeypatch):
    """Killed right after any commit: sound, whole lines only, and the rest is read as ever."""
    monkeypatch.setattr("sessiond.writing.transaction.COMMIT_BYTES", 1)
    commit = Store.commit
    keep = Keep(world, tmp_path / "kept")

    def kept(store, **options):
        commit(store, **options)
        keep()

    with monkeypatch.context() as patch:
        patch.setattr(Store, "commit", kept)
        expected = lived(world, keep)
    assert len(keep.made) > 4
    records = 0
    for number, (copy, step) in enumerate(keep.made):
        other = type(world)(tmp_path / "other")
        records, before = assert_a_moment(other, copy), records
        assert records >= before
        goes_on(other, copy, step)
        assert facts(other) == expected, f"commit {number} of {len(keep.made)}"
        other.check()
        shutil.rmtree(other.root)
        count("snapshots")


def assert_a_moment(other, copy):
    """Offsets and rows agree. Returns the number of records."""
    shutil.copytree(copy, other.state)
    other.check()
    for lines, records in other.sql(
        "SELECT s.lines - s.blank_lines, (SELECT count(DISTINCT line) FROM records t"
        " WHERE t.source_id = s.id AND t.retired = 0) FROM sources s WHERE s.state = 'live'"
    ):
        assert lines == records
    return other.sql("SELECT count(*) FROM records")[0][0]


def goes_on(other, copy, step):
    """The same changes of the files in another home, from the step in which the copy was made."""
    shutil.rmtree(other.state)
    for number, _ in enumerate(history(other)):
        if number == step:
            adopt(other, copy)
        if number >= step:
            other.ingest()


def adopt(other, copy):
    """The copy, with the paths of this home."""
    shutil.copytree(copy, other.state)
    with closing(open_writer(other.state / "index.db")) as db:
        old = db.execute("SELECT min(path) FROM sources").get
        there = old[: old.index("/.claude/")]
        db.execute("UPDATE sources SET path = replace(path, ?, ?)", (there, str(other.root)))
