"""Tapes: what VHS would type, that it parses, and that no shell runs any of it."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time

import pytest
from tests.cli.export.film import tape_grammar
from tests.cli.export.film.tape_grammar import Command, Refused
from tests.must import must
from tests.waiting import LIMIT

MAIN = "11111111-1111-4111-8111-111111111111"
# The terminal must be the shell's own, or no key could interrupt anything anyway.
ON_TERMINAL = (
    "import fcntl, os, sys, termios;"
    "fcntl.ioctl(0, termios.TIOCSCTTY, 0);"
    "os.execv(sys.argv[1], sys.argv[2:])"
)
HOSTILE = [
    "touch ran-by-command",
    "$(touch ran-by-substitution)",
    "`touch ran-by-backticks`",
    "x'; touch ran-by-single-quote; '",
    'x"; touch ran-by-double-quote; "',
    "a'b\"c`d'e\"f`g; touch ran-by-all-quotes",
    "\x03\x04\x1a\x1c\r\ntouch ran-by-control",
    "\x1b[200~touch ran-by-paste\x1b[201~",
    'Enter\nCtrl+C\nSource evil.tape\nType "touch ran-by-keyword"\nEnter',
    "EOF\n.\nexit\nquit\n:q!\ntouch ran-by-leaving",
    "\\\ntouch ran-by-backslash",
    "# Hide\nOutput ran-by-output.gif\nScreenshot ran-by-screenshot.png",
    "| tee ran-by-pipe > ran-by-redirection &",
    "\u2028touch ran-by-separator\x85touch ran-by-next-line\x0btouch ran-by-tab",
    "x" * 9000 + "; touch ran-by-length",
    "日本語 🎉 \u202etouch ran-by-direction \u0301",
    "\ud800 \x00 touch ran-by-nothing",
]


def tape_of(world, *arguments, session=MAIN):
    """The tape as `sess` writes it, read strictly."""
    text = world.run("sess", "export", "tape", session, "--no-sync", "-o", "-", *arguments, check=0)
    return tape_grammar.read(text.stdout)


def lines_typed(commands):
    """The lines on the screen after the reader has started."""
    start = commands.index(Command("Show"))
    return "".join(tape_grammar.keys(commands[start:])).split("\r")[:-1]


@pytest.fixture
def transcript(world):
    return world.transcript(MAIN)


def test_the_parser_rejects_what_vhs_rejects():
    for tape in (
        'Type "a"b"', "Type 'it's'", "Type a", "Type", "Sleep 2", "touch x", 'Type "a" "b"',
        "Set Colour 1", "Set FontSize large", "Wait+All /x/", 'Type "open', "Output film", "Show 2",
    ):  # fmt: skip
        with pytest.raises(Refused):
            tape_grammar.read(tape)


def test_a_tape_begins_with_the_settings_and_a_title_and_ends_with_a_pause(world, transcript):
    transcript.append(transcript.prompt("Say hello"))
    world.ingest()
    commands = tape_of(world)
    assert commands[:7] == [
        Command("Output", f"{MAIN}.mp4"),
        Command("Set", "bash", "Shell"),
        Command("Set", "26", "FontSize"),
        Command("Set", "1920", "Width"),
        Command("Set", "1080", "Height"),
        Command("Set", "30ms", "TypingSpeed"),
        Command("Set", "Catppuccin Mocha", "Theme"),
    ]
    assert lines_typed(commands) == ["# 11111111 2026-02-01 10:00 Say hello", "❯ Say hello"]
    assert commands[-2:] == [Command("Sleep", "1s"), Command("Sleep", "3s")]


def test_commands_outputs_and_outcomes_are_typed_by_the_rules(world, transcript):
    transcript.append(
        transcript.prompt("Work"),
        transcript.call("c1", command="echo 'a  b' # not a description", description="Say it"),
        transcript.result("c1", "one\n\n\ntwo\n" + "y" * 300),
        transcript.call("c2", command="false"),
        transcript.result("c2", "Exit code 1", is_error=True),
        transcript.call("c3", command="  "),
        transcript.result("c3", "of nothing"),
        transcript.call("c4", "Read", file_path="/code/demo/src/main.py"),
        transcript.result("c4", "text"),
        transcript.call("c5", "Edit", file_path="/code/demo/" + "d/" * 60, old_string="a",
                        new_string="b"),
        transcript.result("c5", "done"),
        transcript.call("c6", "Task", description="Look around", prompt="Look"),
        transcript.result("c6", "seen"),
        transcript.call("c7", "Grep", pattern="x"),
        transcript.result("c7", "found"),
        transcript.answer("Finished."),
    )  # fmt: skip
    world.ingest()
    commands = tape_of(world)
    assert lines_typed(commands)[1:] == [
        "❯ Work",
        "$ echo 'a  b' # not a description",
        "one",
        "two",
        "y" * 190 + "...",
        "# ✓ OK",
        "$ false",
        "Exit code 1",
        "# ✗ FAILED",
        "# Read: src/main.py",
        "# Edit: " + "d/" * 40 + "...",
        "# Agent: Look around",
        "● Finished.",
    ]
    pauses = [command.value for command in commands if command.name == "Sleep"]
    assert pauses == ["2s", "1s", "1s", "1s", "500ms", "500ms", "1s", "1s", "3s"]


def test_code_and_json_keep_their_indentation(world, transcript):
    transcript.append(
        transcript.prompt('{"a": {"b": 1}}'),
        transcript.answer("So:\n\n```python\nif x:\n    go()\n```"),
    )
    world.ingest()
    typed = lines_typed(tape_of(world))
    assert typed[1:6] == ["❯ {", '    "a": {', '      "b": 1', "    }", "  }"]
    assert typed[6:] == ["● So:", "  │ if x:", "  │     go()"]


def hostile_session(world, transcript):
    transcript.append(transcript.prompt("; touch ran-by-prompt"))
    for number, text in enumerate(HOSTILE):
        transcript.append(
            transcript.call(f"c{number}", command=text, description=text),
            transcript.result(f"c{number}", text, is_error=number % 2 == 0),
            transcript.call(f"r{number}", "Read", file_path=text),
            transcript.result(f"r{number}", text),
            transcript.call(f"t{number}", "Task", description=text, prompt=text),
            transcript.result(f"t{number}", text),
        )
    world.ingest()


def test_hostile_text_parses_and_every_quote_survives(world, transcript):
    hostile_session(world, transcript)
    typed = lines_typed(tape_of(world))
    assert "$ x'; touch ran-by-single-quote; '" in typed
    assert "$ a'b\"c`d'e\"f`g; touch ran-by-all-quotes" in typed
    assert "$ $(touch ran-by-substitution)" in typed
    assert '> Type "touch ran-by-keyword"' in typed
    assert "$ 日本語 🎉 <U+202E>touch ran-by-direction \u0301" in typed
    assert not re.search(r"[\x00-\x1f\x7f-\x9f]", "".join(typed))


def in_shell(keys, folder, *, path=None):
    """The output of a terminal with a real bash, started like VHS does, for these keys."""
    master, slave = pty.openpty()
    environment = {"PATH": path or os.environ["PATH"], "PS1": "> ", "TERM": "xterm-256color",
                   "HOME": str(folder), "LC_ALL": "C.UTF-8"}  # fmt: skip
    shell = subprocess.Popen(
        [sys.executable, "-c", ON_TERMINAL, must(shutil.which("bash")), "bash",
         "--noprofile", "--norc", "--login", "+o", "history"],
        stdin=slave, stdout=slave, stderr=slave, cwd=folder, env=environment,
        start_new_session=True,
    )  # fmt: skip
    os.close(slave)
    seen = b""

    def read(until=None):
        nonlocal seen
        deadline = time.monotonic() + LIMIT
        while time.monotonic() < deadline:
            ready, _, _ = select.select([master], [], [], 0.3)
            if ready:
                try:
                    seen += os.read(master, 65536)
                except OSError:
                    return
            elif until is None or until in seen:
                return
            if until is not None and until in seen:
                return

    try:
        for key in keys:
            if isinstance(key, bytes):  # what VHS waits for
                read(key)
                if key not in seen:
                    return seen.decode("utf-8", "replace"), shell.poll()
                continue
            os.write(master, key.encode("utf-8", "surrogatepass"))
            read_now, _, _ = select.select([master], [], [], 0)
            if read_now:
                seen += os.read(master, 65536)
        read()
        return seen.decode("utf-8", "replace"), shell.poll()
    except OSError:
        return seen.decode("utf-8", "replace"), shell.wait(LIMIT)
    finally:
        shell.kill()
        shell.wait()
        os.close(master)


def pressed(commands):
    """Keys, and in their place what the tape waits for."""
    found = []
    for command in commands:
        if command.name == "Wait":
            found.append(command.value.encode())
        else:
            found += tape_grammar.keys([command])
    return found


def test_a_real_shell_that_gets_the_keys_runs_nothing(world, transcript, tmp_path):
    hostile_session(world, transcript)
    folder = tmp_path / "empty"
    folder.mkdir()
    commands = tape_of(world)
    shown, ended = in_shell(pressed(commands), folder)
    assert os.listdir(folder) == []
    assert ended is None  # the reader is there to the end
    for line in lines_typed(commands):
        if line.isascii() and len(line) < 100:
            assert line in shown
    assert "command not found" not in shown


def test_the_same_keys_without_the_reader_would_run(world, transcript, tmp_path):
    """The proof above is meaningful: this shell runs what it gets."""
    folder = tmp_path / "empty"
    folder.mkdir()
    in_shell([*"touch ran\r"], folder)
    assert os.listdir(folder) == ["ran"]


@pytest.mark.parametrize("missing", ["cat", "stty"])
def test_a_shell_without_the_reader_ends_before_anything_is_typed(
    world, transcript, tmp_path, missing
):
    hostile_session(world, transcript)
    programs = tmp_path / "programs"
    folder = tmp_path / "empty"
    programs.mkdir()
    folder.mkdir()
    for name in {"cat", "stty", "touch", "tee"} - {missing}:
        (programs / name).symlink_to(shutil.which(name))
    commands = tape_of(world)
    # Even if typing continues without waiting.
    keys = [key for key in pressed(commands) if isinstance(key, str)]
    in_shell(keys, folder, path=str(programs))
    assert os.listdir(folder) == []


def test_a_length_becomes_speed_and_a_choice_of_scenes(world, transcript):
    for number in range(60):
        transcript.append(
            transcript.call(f"c{number}", command=f"step {number}"),
            transcript.result(f"c{number}", "z" * 150, is_error=number == 30),
        )
    world.ingest()
    commands = tape_of(world, "--duration", "30s")
    speed = next(float(c.value) for c in commands if c.setting == "PlaybackSpeed")
    taken = {"500ms": 0.5, "1s": 1, "2s": 2, "3s": 3}
    start = commands.index(Command("Show"))
    length = 0.03 * len(tape_grammar.keys(commands[start:]))
    length += sum(taken[c.value] for c in commands if c.name == "Sleep")
    assert 28 <= length / speed <= 32
    assert "$ step 30" in lines_typed(commands)


def test_denied_calls_and_calls_without_a_result_are_not_called_failed(world, transcript):
    refusal = "The user doesn't want to proceed with this tool use. The tool use was rejected"
    transcript.append(
        transcript.call("c1", command="rm x"), transcript.result("c1", refusal, is_error=True),
        transcript.call("c2", command="sleep 9"),
    )  # fmt: skip
    world.ingest()
    marks = [line for line in lines_typed(tape_of(world))[1:] if line.startswith("# ")]
    assert marks == ["# ✗ DENIED", "# … no result"]


def test_only_errors(world, transcript):
    transcript.append(
        transcript.call("c1", command="good"), transcript.result("c1", "fine"),
        transcript.call("c2", command="bad"), transcript.result("c2", "no", is_error=True),
    )  # fmt: skip
    world.ingest()
    assert lines_typed(tape_of(world, "--only", "errors"))[1:] == ["$ bad", "no", "# ✗ FAILED"]


def fake_vhs(folder, script):
    folder.mkdir()
    (folder / "vhs").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "vhs").chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def test_vhs_films_the_tape_which_is_gone_afterwards(world, transcript, tmp_path):
    transcript.append(transcript.call("c1", command="echo hi"), transcript.result("c1", "hi"))
    world.ingest()
    script = f'pwd > {tmp_path}/where; cp "$1" {tmp_path}/kept.tape; printf film > film.mp4'
    world.env["PATH"] = fake_vhs(tmp_path / "bin", script)
    film = tmp_path / "out.mp4"
    world.run("sess", "export", "video", MAIN, "--no-sync", "--backend", "vhs", "-o", film, check=0)
    assert film.read_bytes() == b"film"
    assert Command("Type", "$ echo hi") in tape_grammar.read((tmp_path / "kept.tape").read_text())
    assert not os.path.exists((tmp_path / "where").read_text().strip())


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("exit 3", "vhs failed with exit status 3"),
        ("kill -TERM $$", "vhs was ended by signal SIGTERM"),
        ("exit 0", "vhs succeeded but wrote no film"),
    ],
)
def test_the_failure_of_vhs_is_reported(world, transcript, tmp_path, script, words):
    transcript.append(transcript.call("c1", command="echo hi"), transcript.result("c1", "hi"))
    world.ingest()
    world.env["PATH"] = fake_vhs(tmp_path / "bin", script)
    film = tmp_path / "out.mp4"
    done = world.run("sess", "export", "video", MAIN, "--no-sync", "--backend", "vhs", "-o", film)
    assert done.returncode == 69
    assert words in done.stderr
    assert not film.exists()


def test_without_vhs_one_message_says_how_to_get_it(world, transcript, tmp_path):
    transcript.append(transcript.prompt("hi"))
    world.ingest()
    world.env["PATH"] = str(tmp_path / "nothing")
    done = world.run("sess", "export", "video", MAIN, "--no-sync", "--backend", "vhs")
    assert done.returncode == 69
    assert done.stderr.splitlines()[0] == "sess: vhs is not on PATH"
    assert "brew install vhs" in done.stderr
    assert "built-in renderer" in done.stderr
