"""Every command over sessions that are made to need memory stays below 350 MB."""

from __future__ import annotations

import random

import pytest

MEGABYTES = 350
MEGA = 30 << 20  # bytes
SESSION = "22222222-1111-4111-8111-111111111111"

pytestmark = pytest.mark.soak


def short_lines(_t):
    """Two bytes a line."""
    yield b"5\n" * 1_000_000


def different_words(t):
    """Each one new to the full text."""
    chance = random.Random(1)
    words = " ".join(f"{chance.getrandbits(48):x}" for _ in range(MEGA // 13))
    yield t.encode(t.prompt(words))


def pictures(t):
    """Four bytes a letter, and four bytes each in memory."""
    yield t.encode(t.prompt("🙂🙃 " * (MEGA // 9 // 3)))


def long_output(t):
    """A call whose output is a file of many lines."""
    yield t.encode(t.call("c1", command="cat"))
    yield t.encode(t.result("c1", "a line of some file, and then the next one\n" * (MEGA // 44)))


def many_calls(t):
    for number in range(15_000):
        yield t.encode(t.call(f"c{number}", command=f"make {number}"))
        yield t.encode(t.result(f"c{number}", "done " * 100))


COMMANDS = (
    ("sess", "list"),
    ("sess", "search", "make"),
    ("sess", "search", "--json", "line"),
    ("sess", "search", "--regex", "wor.s"),
    ("sess", "search", "--substring", "ext on"),
    ("sess", "show", SESSION),
    ("sess", "show", "--json", SESSION),
    ("sess", "stats"),
    ("sess", "stats", SESSION),
    ("sess", "export", "html", SESSION),
    ("sess", "export", "md", SESSION),
    ("sess", "export", "json", SESSION),
    ("sess", "export", "sqlite", SESSION),
    ("sess", "export", "cast", SESSION),
    ("sess", "restore", SESSION, "-o", "-"),
    ("sess", "check"),
    ("sess", "backup"),
    ("sess", "doctor", "--deep"),
    ("sessiond", "sync"),
    ("sessiond", "status"),
    ("sessiond", "repair"),
    ("sess", "forget", "--yes", SESSION),
)


@pytest.mark.parametrize(
    "make", [short_lines, different_words, pictures, long_output, many_calls],
    ids=lambda make: make.__name__,
)  # fmt: skip
def test_no_command_needs_much_memory(world, measured, tmp_path, make):
    """The first sync, every way to look at it and to export it, and everything that mends."""
    t = world.transcript(SESSION)
    t.append(*make(t))
    t.append(t.prompt("behind it"))
    over = {}
    for number, command in enumerate([("sessiond", "sync"), *COMMANDS]):
        options = ["--no-sync"] if command[0] == "sess" and command[1] not in QUIET else []
        if command[1] in ("export", "backup"):
            target = tmp_path / f"out{number}"
            options += [target] if command[1] == "backup" else ["-o", target]
        done = measured(*command, *options)
        assert done.code in (0, 1, 3, 5), (command, done.code, done.stderr[-500:])
        assert "Traceback" not in done.stderr, done.stderr
        if done.megabytes >= MEGABYTES:
            over[" ".join(command)] = done.megabytes
    assert over == {}


QUIET = ("doctor", "check")  # they take no --no-sync
