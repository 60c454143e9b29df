"""`sess restore` as a program."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

MAIN = "11111111-1111-4111-8111-111111111111"


@pytest.fixture
def odd(world):
    """A transcript with a broken line, bad bytes and an unfinished end, then deleted."""
    t = world.transcript(MAIN)
    t.append(t.prompt("hello"), b"{broken\n", b"\n", b'\xff\xfe\x00"\r\n', b'{"type":"user')
    raw = t.path.read_bytes()
    world.ingest()
    t.path.unlink()
    world.ingest()
    return raw


def test_a_deleted_transcript_comes_back_byte_for_byte(world, sess, odd, tmp_path):
    """The file is the same, and private, whatever the umask."""
    out = tmp_path / "back.jsonl"
    done = sess("restore", "1111", "-o", out)
    assert out.read_bytes() == odd
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert (done.stdout, done.stderr) == ("", f'wrote {len(odd)} bytes to "{out}"\n')
    assert sorted(path.name for path in tmp_path.iterdir() if "part" in path.name) == []


def test_a_pipe_gets_the_bytes(world, odd):
    """Without a file they go to stdout, unchanged."""
    program = Path(sys.executable).parent / "sess"
    for extra in ([], ["-o", "-"]):
        command = [program, "restore", "--no-sync", "1111", *extra]
        assert subprocess.run(command, env=world.env, capture_output=True, check=True).stdout == odd


def test_a_source_can_be_named_by_its_path(world, sess, odd, tmp_path):
    """The path that `list --json` shows works as an id; it is looked up, not opened."""
    path = world.transcript(MAIN).path
    sess("restore", str(path), "-o", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == odd
    sess("restore", "/etc/passwd", "-o", tmp_path / "x", code=1)


def test_an_existing_file_is_not_replaced_unasked(sess, odd, tmp_path):
    """--force replaces it; a link is never written through, a directory never replaced."""
    out = tmp_path / "taken"
    out.write_text("mine")
    assert sess("restore", "1111", "-o", out, code=2).stderr == (
        f'sess: "{out}" already exists\nhint: `--force` overwrites it\n'
    )
    assert out.read_text() == "mine"
    link = tmp_path / "link"
    link.symlink_to(out)
    for target in (link, tmp_path):
        sess("restore", "1111", "-o", target, "--force", code=2)
    assert out.read_text() == "mine"
    sess("restore", "1111", "-o", out, "--force")
    assert out.read_bytes() == odd


def test_a_missing_folder_is_a_clear_line(sess, odd, tmp_path):
    """The error names the path as it was given, not a temporary one."""
    out = tmp_path / "no" / "file"
    done = sess("restore", "1111", "-o", out, code=2)
    assert done.stderr == f'sess: cannot write "{out}": No such file or directory\n'
    assert sess("restore", "1111", "-o", "", code=2).stderr.startswith('sess: "" is a directory\n')


def test_only_a_regular_file_is_ever_replaced(sess, odd, tmp_path):
    """`--force` must not put a file in the place of a device or a pipe."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    done = sess("restore", "1111", "-o", pipe, "--force", code=2)
    assert done.stderr.startswith(f'sess: "{pipe}" is not a regular file\n')
    assert pipe.is_fifo()


def test_a_terminal_is_spared_the_bytes(sess, odd):
    """On a terminal a file must be named."""
    text, code = sess.on_terminal("restore", "--no-sync", "1111")
    assert code == 2
    assert "hint: name a file with `-o FILE`" in text


def test_one_of_several_sources_is_chosen(world, sess, tmp_path):
    """A session in two files asks which one, and takes its number or path."""
    first = world.transcript(MAIN)
    first.append(first.prompt("one"))
    second = world.transcript(MAIN, "-other")
    second.append(second.prompt("two", uuid="aaaaaaaa-0000-4000-8000-000000000000"))
    world.ingest()
    done = sess("restore", "1111", code=2)
    assert "has 2 transcripts:\n  1  " in done.stderr
    sess("restore", "1111", "--source", "2", "-o", tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == second.path.read_bytes()
    sess("restore", "1111", "--source", "3", code=1)
