"""`sess forget` as a program: nothing is left of what is forgotten, and all else stays."""

from __future__ import annotations

import pytest
from tests.waiting import wait_until

FIRST = "11111111-1111-4111-8111-111111111111"
SECOND = "22222222-2222-4222-8222-222222222222"


@pytest.fixture
def two(world):
    """Two sessions: a fork of the first has its first prompt, too."""
    first = world.transcript(FIRST)
    first.append(
        first.prompt("shared words"),
        first.prompt("quinquireme of Nineveh"),
        first.call("c1", command="cat ophirgold"),
        first.result("c1", "apesandpeacocks"),
    )
    second = world.transcript(SECOND, "-other")
    line = first.path.read_bytes().splitlines(keepends=True)[0]
    second.append(line.replace(FIRST.encode(), SECOND.encode()))
    second.append(second.prompt("dirty British coaster", timestamp="2026-02-02T10:00:00.000Z"))
    world.ingest()
    return first, second


def leftovers(world, *words):
    """Words that any file of the installation still contains, in any page."""
    raw = b"".join(path.read_bytes() for path in world.state.glob("index.db*"))
    return [word for word in words if word.encode() in raw]


def test_nothing_is_left_of_a_forgotten_session(world, two):
    """Not in searches, the archive, the full text or free pages; the fork keeps what it shares."""
    words = ("quinquireme", "Nineveh", "ophirgold", "apesandpeacocks")
    assert leftovers(world, *words) == list(words)
    done = world.run("sess", "forget", FIRST, "--yes", check=0)
    assert done.stderr == "forgot 1 session, subagents included\n"
    assert leftovers(world, *words) == []
    assert leftovers(world, "coaster", "shared") == ["coaster", "shared"]
    assert [text for _, text, _ in world.shown(SECOND)] == ["shared words", "dirty British coaster"]
    assert world.sql("SELECT native_id FROM sessions") == [(SECOND,)]
    world.check()
    world.run("sess", "check", check=0)


def test_a_forgotten_transcript_is_not_read_again(world, two):
    """Neither as it is nor when it grows, moves or is deleted; its file is not touched."""
    first, _ = two
    raw = first.path.read_bytes()
    world.run("sess", "forget", FIRST, "--yes", check=0)
    assert first.path.read_bytes() == raw
    first.append(first.prompt("and ivory"))
    world.run("sessiond", "sync", check=0)
    assert world.found("ivory") == []
    first.path.unlink()
    world.run("sessiond", "sync", check=0)
    assert world.sql("SELECT state FROM sources WHERE path = ?", str(first.path)) == [
        ("forgotten",)
    ]


def test_the_daemon_forgets_when_it_runs(world, two):
    """The client hands it over; the running daemon does not read the file again."""
    first, _ = two
    daemon = world.start()
    try:
        wait_until(lambda: world.run("sessiond", "status").returncode == 0)
        done = world.run("sess", "forget", FIRST, "--yes", check=0)
        assert done.stderr == "forgot 1 session, subagents included\n"
        assert world.found("Nineveh") == []
        first.append(first.prompt("and ivory"))
        second = world.transcript(SECOND, "-other")
        second.append(second.prompt("with a cargo", uuid="c" * 36))
        wait_until(lambda: world.found("cargo"))
        assert world.found("ivory") == []
        assert list((world.state / "requests").iterdir()) == []
    finally:
        daemon.terminate()
        daemon.wait()


def test_what_is_chosen_is_shown_and_asked_for(world, two):
    """Without --yes and a terminal nothing happens; --dry-run only lists; filters select."""
    done = world.run("sess", "forget", "--project", "/code", stdin=-3, check=2)
    assert done.stderr == "sess: nobody to ask\nhint: `--yes` forgets without asking\n"
    listed = world.run("sess", "forget", "--older-than", "2026-02-02", "--dry-run", check=0)
    assert [line.split()[0] for line in listed.stdout.splitlines()] == [FIRST]
    assert world.run("sess", "forget", check=2).stderr.startswith("sess: nothing to forget\n")
    world.run("sess", "forget", "--agent", "nobody", "--yes", check=1)
    assert len(world.sql("SELECT 1 FROM sessions")) == 2
