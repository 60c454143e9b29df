"""Bad files: each costs one message and itself, never other files or unbounded memory."""

from __future__ import annotations

import os
import shutil
from contextlib import closing, contextmanager

import pytest

from sess_schema.connection import open_writer
from sessiond.ingest import Ingest
from sessiond.reading.survey import survey
from sessiond.sources.claude import ClaudeSource
from sessiond.writing.transaction import Store, Transaction

HINT = "hint: the rest is indexed; skipped files are retried at each sync"


@pytest.fixture
def good(world):
    """A transcript that must be indexed whatever other files exist."""
    t = world.transcript()
    t.append(t.prompt("good words"))
    return t


@contextmanager
def opened(world):
    """The ingest of this world, to run a sync in two halves."""
    world.state.mkdir(mode=0o700)
    with closing(open_writer(world.state / "index.db")) as db:
        yield Ingest(Store(db))


def assert_skipped(world, done, skipped, *, named=False):
    """Exit 5, a line for each, one hint; the good transcript is there."""
    assert done.returncode == 5, done
    lines = [f'sessiond: skipped "{path}": {why}' for path, why in skipped.items()]
    *said, hint = done.stderr.splitlines()
    assert sorted(said) == sorted(lines)
    assert hint.startswith("hint: the rest is indexed")
    assert ("retried" in hint) is not named
    assert world.found("good") == ["good words"]
    world.check()


def test_a_missing_argument_is_named(world, good):
    """`sync FILE` of a missing file: exit 5; the other file is read."""
    missing = world.projects / "missing.jsonl"
    done = world.run("sessiond", "sync", missing, good.path)
    assert_skipped(world, done, {missing: "no such file or directory"}, named=True)


def test_a_file_that_is_not_a_transcript_is_named(world, good):
    """An argument that is not a transcript is not ignored silently."""
    other = world.projects / "notes.txt"
    other.write_text("hello")
    done = world.run("sessiond", "sync", other, good.path)
    assert_skipped(world, done, {other: "is not a known transcript format"}, named=True)


def test_unreadable_files_and_directories_are_named_and_tried_again(world, good, plain_user):
    """Mode 000 costs only itself; after a chmod the next sync reads it."""
    file = world.transcript("22222222-1111-4111-8111-111111111111")
    file.append(file.prompt("locked file"))
    inner = world.transcript("33333333-1111-4111-8111-111111111111", folder="-locked")
    inner.append(inner.prompt("locked directory"))
    os.chmod(file.path, 0)
    os.chmod(inner.path.parent, 0)
    for _ in range(2):
        done = world.run("sessiond", "sync", preexec_fn=plain_user)
        reason = "permission denied"
        assert_skipped(world, done, {file.path: reason, inner.path.parent: reason})
    assert world.sql("SELECT state, error FROM sources WHERE path = ?", str(file.path)) == [
        ("unreadable", "permission denied")
    ]
    os.chmod(file.path, 0o600)
    os.chmod(inner.path.parent, 0o700)
    done = world.run("sessiond", "sync", check=0, preexec_fn=plain_user)
    assert done.stderr == ""
    assert len(world.found("locked")) == 2
    assert world.sql("SELECT DISTINCT state FROM sources") == [("live",)]


def test_a_source_behind_a_locked_door_is_not_gone(world, good, plain_user):
    """A directory that can no longer be read does not mean that its files are gone."""
    inner = world.transcript("33333333-1111-4111-8111-111111111111", folder="-locked")
    inner.append(inner.prompt("locked directory"))
    world.run("sessiond", "sync", check=0)
    os.chmod(inner.path.parent, 0)
    done = world.run("sessiond", "sync", preexec_fn=plain_user)
    os.chmod(inner.path.parent, 0o700)
    assert_skipped(world, done, {inner.path.parent: "permission denied"})
    assert world.sql("SELECT DISTINCT state FROM sources") == [("live",)]


def test_a_root_that_may_not_be_read_is_named(world, good, plain_user):
    """Not "no transcripts found" but the obstacle; once it is removed, all is read."""
    os.chmod(world.projects, 0)
    done = world.run("sessiond", "sync", check=5, preexec_fn=plain_user)
    assert done.stderr.splitlines() == [
        f'sessiond: skipped "{world.projects}": permission denied',
        HINT,
    ]
    os.chmod(world.projects, 0o700)
    world.run("sessiond", "sync", check=0, preexec_fn=plain_user)
    assert world.found("good") == ["good words"]


def test_a_directory_named_like_a_transcript_is_walked(world, good):
    """x.jsonl may be a directory; its files are read, and nothing is skipped."""
    inner = world.transcript("22222222-1111-4111-8111-111111111111", folder="x.jsonl")
    inner.append(inner.prompt("inner words"))
    for _ in range(2):
        done = world.run("sessiond", "sync", check=0)
        assert done.stderr == ""
    assert sorted(world.found("words")) == ["good words", "inner words"]


def test_a_transcript_replaced_by_a_directory_is_gone(world, good):
    """Its rows stay, its state shows it, and the directory is scanned."""
    other = world.transcript("22222222-1111-4111-8111-111111111111")
    other.append(other.prompt("other words"))
    world.ingest()
    other.path.unlink()
    other.path.mkdir()
    world.ingest()
    assert dict(world.sql("SELECT path, state FROM sources")) == {
        str(good.path): "live",
        str(other.path): "gone",
    }
    assert len(world.found("words")) == 2


def test_pipes_links_and_devices_are_never_opened(world, good, tmp_path):
    """A FIFO does not block, a link to /dev/zero or out of the root is not followed."""
    outside = tmp_path / "outside.jsonl"
    shutil.copy(good.path, outside)
    outside.write_bytes(outside.read_bytes().replace(b"good", b"evil"))
    folder = good.path.parent
    os.mkfifo(folder / "pipe.jsonl")
    (folder / "zero.jsonl").symlink_to("/dev/zero")
    (folder / "outside.jsonl").symlink_to(outside)
    (folder / "dangling.jsonl").symlink_to(tmp_path / "nowhere")
    (folder / "self.jsonl").symlink_to("self.jsonl")
    (folder / "up").symlink_to("..")
    (folder / "note").symlink_to("nowhere")
    link = "is a symbolic link"
    skipped = {
        folder / "pipe.jsonl": "is not a regular file",
        folder / "zero.jsonl": link,
        folder / "outside.jsonl": link,
        folder / "dangling.jsonl": link,
        folder / "self.jsonl": link,
        folder / "up": "is a symbolic link to a directory",
    }
    done = world.run("sessiond", "sync")
    assert_skipped(world, done, skipped)
    assert world.found("evil") == []
    done = world.run("sessiond", "sync", folder / "pipe.jsonl", folder / "self.jsonl", check=5)
    assert sorted(done.stderr.splitlines()) == [
        "hint: the rest is indexed",
        f'sessiond: skipped "{folder}/pipe.jsonl": is not a regular file',
        f'sessiond: skipped "{folder}/self.jsonl": is a symbolic link',
    ]


def test_a_file_that_turns_into_a_pipe_or_link_after_the_walk_is_not_followed(world, good):
    """The check is made on the opened file, not on what the scan saw."""
    t = world.transcript("22222222-1111-4111-8111-111111111111")
    t.append(t.prompt("soon something else"))

    seen = survey(world.places())
    t.path.unlink()
    t.path.symlink_to("/dev/zero")
    with opened(world) as ingest:
        summary = ingest.ingest(seen)
    assert summary.skipped == [(str(t.path), "is a symbolic link")]
    assert world.found("good") == ["good words"]


def test_a_file_that_vanishes_after_the_walk_is_no_error(world, good):
    """Deleted between the scan and the opening: neither skipped nor gone nor listed."""
    t = world.transcript("22222222-1111-4111-8111-111111111111")
    t.append(t.prompt("soon gone"))
    seen = survey(world.places())
    assert len(seen.files) == 2
    t.path.unlink()
    with opened(world) as ingest:
        summary = ingest.ingest(seen)
    assert (summary.skipped, summary.gone) == ([], 0)
    assert world.sql("SELECT path FROM sources") == [(str(good.path),)]


def test_a_name_that_is_not_utf8_is_named_readably(world, good):
    """It cannot be stored as text: skipped, its bytes escaped; status can print it too."""
    strange = os.fsencode(good.path.parent) + b"/caf\xe9.jsonl"
    with open(strange, "wb") as file:
        file.write(b"{}\n")
    shown = f"{good.path.parent}/caf\\udce9.jsonl"
    assert_skipped(world, world.run("sessiond", "sync"), {shown: "has a name that is not UTF-8"})
    world.run("sessiond", "sync", "--json", check=5)
    world.run("sessiond", "status", check=3)


def test_a_name_cannot_drive_the_terminal(world, good):
    """Control characters in a file name are escaped, and one line stays one line."""
    os.mkfifo(good.path.parent / "a\x1b]0;owned\x07\nb.jsonl")
    done = world.run("sessiond", "sync")
    shown = f"{good.path.parent}/a\\x1b]0;owned\\x07\\nb.jsonl"
    assert_skipped(world, done, {shown: "is not a regular file"})


def test_many_empty_files_are_nothing_to_read(world, good):
    """500 empty transcripts: seen, not skipped, not read again, and no sessions."""
    for number in range(500):
        (good.path.parent / f"{number:08d}-1111-4111-8111-111111111111.jsonl").touch()
    first = world.ingest()
    assert (first.seen, first.changed, first.records, first.skipped) == (501, 501, 1, [])
    assert world.ingest().changed == 0
    assert world.sql("SELECT count(*) FROM sessions") == [(1,)]
    assert world.sql("SELECT count(*) FROM sources") == [(501,)]


@pytest.mark.parametrize("gigabytes", [1, pytest.param(4, marks=pytest.mark.soak)])
def test_a_sparse_file_of_gigabytes_needs_little(world, good, measured, gigabytes):
    """NULs after a few lines: under 300 MB of memory; the lines before are found."""
    t = world.transcript("22222222-1111-4111-8111-111111111111")
    t.append(*(t.prompt(f"sparse {n}") for n in range(3)))
    os.truncate(t.path, gigabytes << 30)
    done = measured("sessiond", "sync")
    assert (done.code, done.stderr) == (0, "")
    assert done.megabytes < 300
    assert len(world.found("sparse")) == 3
    assert world.found("good") == ["good words"]
    assert world.sql("SELECT offset FROM sources WHERE path = ?", str(t.path)) == [
        (gigabytes << 30,)
    ]
    assert sum(path.stat().st_size for path in world.state.iterdir()) < 4 << 20
    again = measured("sessiond", "sync")
    assert (again.code, again.stderr) == (0, "")
    assert again.megabytes_read < 100


@pytest.mark.parametrize("megabytes", [30, 100])
def test_a_huge_line_needs_bounded_memory(world, good, measured, megabytes):
    """Just below the cap and far above it: under 350 MB; the line after it is found."""
    t = world.transcript("22222222-1111-4111-8111-111111111111")
    with t.path.open("wb") as file:
        record = t.encode(t.prompt("HERE"))
        before, after = record.split(b"HERE")
        file.write(before)
        for number in range(megabytes << 4):
            file.write((b"%08x of a line " % number).ljust(16, b"x") * (1 << 12))
        file.write(after)
    t.append(t.prompt("behind it"))
    done = measured("sessiond", "sync")
    assert (done.code, done.stderr) == (0, "")
    assert done.megabytes < 350
    assert world.found("behind") == ["behind it"]
    lines = (
        "SELECT max(line), count(*) FROM records WHERE source_id ="
        " (SELECT id FROM sources WHERE path = ?)"
    )
    assert world.sql(lines, str(t.path)) == [(2, 2)]
    assert world.restored(t.path) == t.path.read_bytes()


@pytest.mark.parametrize("where", ["identify", "add_slice"])
def test_a_file_that_crashes_its_reader_is_parked(world, good, monkeypatch, where):
    """After three crashes a file is skipped until it changes; others are read each time."""
    t = world.transcript("22222222-1111-4111-8111-111111111111")
    t.append(t.prompt("poison"))
    tries = []

    def poisoned(original):
        def call(self, *arguments):
            if any(str(t.path) in (a, getattr(a, "path", None)) for a in arguments):
                tries.append(1)
                raise LookupError("a bug in the parser")
            return original(self, *arguments)

        return call

    owner = ClaudeSource if where == "identify" else Transaction
    with monkeypatch.context() as patch:
        patch.setattr(owner, where, poisoned(getattr(owner, where)))
        for number in range(5):
            good.append(good.prompt(f"good words {number}"))
            summary = world.ingest()
            parked = number >= 3
            assert summary.skipped == (
                [] if parked else [(str(t.path), "LookupError: a bug in the parser")]
            )
        assert len(tries) == 3
        assert world.sql("SELECT state, error FROM sources WHERE path = ?", str(t.path)) == [
            ("parked", "LookupError: a bug in the parser")
        ]
        t.append(t.prompt("more"))
        assert len(world.ingest().skipped) == 1
        assert len(tries) == 4
    assert len(world.found("good")) == 6
    t.append(t.prompt("mended"))
    assert world.ingest().skipped == []
    assert world.shown(t.session)[0][1] == "poison"
    assert world.sql("SELECT DISTINCT state FROM sources") == [("live",)]
    world.check()


def test_what_was_skipped_does_not_nag_the_client(world):
    """`sess` updates the index without repeating what `sessiond sync` reports."""
    t = world.transcript()
    t.append(t.prompt("good words"))
    os.mkfifo(t.path.with_name("y.jsonl"))
    assert "is not a regular file" in world.run("sessiond", "sync", check=5).stderr
    assert world.run("sess", "list", check=0).stderr == ""
