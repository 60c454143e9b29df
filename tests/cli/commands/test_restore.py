"""`sess restore` as a program."""

from __future__ import annotations

import io
import json
import os
import re
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from tests.forked import BIN
from tests.must import must

from sess_schema import page_sums

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
    ways: tuple[list[str], ...] = ([], ["-o", "-"])
    for extra in ways:
        command: list[str | Path] = [program, "restore", "--no-sync", "1111", *extra]
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
        f'sess: "{out}" exists already\nhint: `--force` replaces it\n'
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
    assert done.stderr.startswith(f'sess: no such directory: "{out.parent}"\n')
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
    numbers = re.findall(r"^  (\d)  (.*?)(?:  .*)?$", done.stderr, re.MULTILINE)
    assert [number for number, _ in numbers] == ["1", "2"]
    for number, name in numbers:
        sess("restore", "1111", "--source", number, "-o", tmp_path / number)
        path = second.path if "-other" in name else first.path
        assert (tmp_path / number).read_bytes() == path.read_bytes()
    sess("restore", "1111", "--source", "3", code=1)


def test_an_emptied_transcript_keeps_its_sessions_and_its_bytes(world, sess, tmp_path):
    """A file emptied and then deleted is listed, shown and restored as it was before."""
    t = world.transcript(MAIN)
    t.append(t.prompt("hello"), t.answer("there"))
    raw = t.path.read_bytes()
    world.ingest()
    t.path.write_bytes(b"")
    world.ingest()
    world.ingest()
    assert [row["session"] for row in sess.json("list")] == [MAIN]
    t.path.unlink()
    world.ingest()
    sess("restore", "1111", "-o", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == raw
    assert [row["session"] for row in sess.json("list")] == [MAIN]


def test_every_content_of_a_rewritten_file_can_be_restored(world, sess, tmp_path):
    """--list names the generations; each gives the bytes the file had then."""
    t = world.transcript(MAIN)
    contents = []
    for words in (["first"], ["second", "longer"], ["third"]):
        t.path.write_bytes(b"")
        t.append(*(t.prompt(word) for word in words))
        contents.append(t.path.read_bytes())
        world.ingest()
    listed = sess.json("restore", "1111", "--list")
    assert [(one["generation"], one["bytes"], one["latest"]) for one in listed] == [
        (3, len(contents[2]), True),
        (2, len(contents[1]), False),
        (1, len(contents[0]), False),
    ]
    for number, raw in enumerate(contents, 1):
        out = tmp_path / str(number)
        sess("restore", "1111", "--generation", number, "-o", out)
        assert out.read_bytes() == raw
    done = sess("restore", "1111", "--generation", 9, "-o", tmp_path / "no", code=1)
    assert done.stderr.endswith("has no generation 9\nhint: there are 1, 2, 3\n")
    assert "generation 2: " in sess("restore", "1111", "--list").stdout


def test_a_flipped_bit_is_an_error_and_never_other_bytes(world, sess, tmp_path):
    """Wherever the archive was damaged, restore refuses, and others say what they lack."""
    t = world.transcript(MAIN)
    t.append(t.prompt("hello"), t.call("c1", command="make tea"), t.result("c1", "done"))
    raw = t.path.read_bytes()
    world.ingest()
    ((packed,),) = world.sql("SELECT data FROM chunks")
    index = world.state / "index.db"
    out = tmp_path / "back"
    for bit in range(64, len(packed) * 8, len(packed) // 2):
        damaged = bytearray(packed)
        damaged[bit // 8] ^= 1 << (bit % 8)
        with closing(page_sums.opened(str(index))) as db:
            db.execute("UPDATE chunks SET data = ?", (bytes(damaged),))
        done = sess("restore", "1111", "-o", out, code=4)
        assert done.stderr == (
            "sess: the archive from byte 0 on is damaged\n"
            "hint: `--skip-damaged` leaves such pieces out; `sess check` lists them\n"
        )
        assert not out.exists()
    shown = sess("show", "1111", "--json", code=5)
    assert "make tea" in shown.stdout
    assert shown.stderr.startswith("sess: incomplete: a piece of the archive could not be read\n")
    exported = tmp_path / "x.json"
    world.run("sess", "export", "json", "--no-sync", "1111", "-o", exported, check=5)
    records = json.loads(exported.read_bytes())["records"]
    assert [record.get("damaged") for record in records] == [True] * raw.count(b"\n")
    t.path.touch()
    world.ingest()  # the file still has the bytes: they are archived again
    sess("restore", "1111", "-o", out)
    assert out.read_bytes() == raw


def test_a_reader_that_has_enough_hears_of_no_loss(world):
    """Also unbuffered, where the pipe takes a part of a write: quiet, and no error."""
    t = world.transcript(MAIN)
    t.append(t.prompt("x" * 500_000))
    world.ingest()
    world.env["PYTHONUNBUFFERED"] = "1"
    with subprocess.Popen(
        [BIN / "sess", "restore", "1111", "--no-sync"],
        env=world.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        assert isinstance(running.stdout, io.BufferedReader)
        assert running.stdout.read1(10)
        running.stdout.close()
        assert (must(running.stderr).read(), running.wait()) == (b"", 0)
