"""The finder as a program: what a terminal receives, and what it starts."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys

import pytest
from tests.cli.finder.screen import Terminal, program
from tests.conftest import BIN

from sess_cli.finder import actions

pytestmark = pytest.mark.slow

MAIN = "11111111-1111-4111-8111-111111111111"


def test_reading_and_resuming_on_a_terminal(world):
    """Enter runs the pager at the event and comes back; ctrl+r becomes `claude` in the project."""
    project = world.root / "project"
    project.mkdir()
    t = world.transcript()
    t.append(t.prompt("first words", cwd=str(project)), t.answer("a needle"))
    world.ingest()
    seen, called = world.root / "seen", world.root / "called.json"
    program(
        world.root / "bin" / "reader",
        f"import sys; text = sys.stdin.read(); open({str(seen)!r}, 'w').write(text)",
    )
    program(
        world.root / "bin" / "claude",
        "import json, os, sys\n"
        "seen = [sys.argv[1:], os.getcwd(), sorted(os.environ)]\n"
        f"json.dump(seen, open({str(called)!r}, 'w'))\n"
        "sys.exit(7)",
    )
    with Terminal(
        world,
        PATH=f"{world.root / 'bin'}{os.pathsep}{os.environ['PATH']}",
        PAGER=str(world.root / "bin" / "reader"),
    ) as terminal:
        terminal.until(lambda: "newest sessions" in terminal.text())
        terminal.send("needle")
        terminal.until(lambda: "1 hit" in terminal.text())
        before = len(terminal.received)
        terminal.send("\r")
        terminal.until(lambda: seen.exists() and "a needle" in seen.read_text())
        assert "▶ event #" in seen.read_text()
        terminal.until(lambda: b"1 hit" in terminal.received[before:])
        terminal.send("\x12")
        assert terminal.ended() == 7
    arguments, directory, environment = json.loads(called.read_text())
    assert (arguments, directory) == (["--resume", MAIN], str(project))
    assert "TEXTUAL_FPS" not in environment


def test_hostile_text_never_reaches_the_terminal(world):
    """Escape sequences, control characters and markup of a transcript are shown, not obeyed."""
    evil = (
        "\x1b]0;owned\x07needle \x1b[31mred \x9b2J\u202eevil\x07 [bold]loud[/bold] [@click=quit]x"
    )
    t = world.transcript()
    t.append(
        t.prompt(evil, cwd=f"/code/{evil}", gitBranch=evil),
        t.call("c1", evil, command=evil),
        t.result("c1", evil, is_error=True),
        {"type": "summary", "summary": evil, "leafUuid": "x"},
    )
    world.ingest()
    with Terminal(world) as terminal:
        terminal.until(lambda: "newest sessions" in terminal.text())
        terminal.send("needle")
        terminal.until(lambda: "hits" in terminal.text() and "#" in terminal.text())
        terminal.send("\t")
        terminal.until(lambda: "m md" in terminal.text())
        terminal.send("y")
        terminal.until(lambda: "copied" in terminal.text())
        terminal.send("\x11")
        assert terminal.ended() == 0
    for sequence in (b"owned\x07", b"\x1b[31mred", b"\x9b2J", "\u202e".encode(), b"\x1b]0;"):
        assert sequence not in terminal.received
    assert "[bold]loud[/bold]" in terminal.text()


@pytest.mark.parametrize(
    ("chosen", "runs", "stays"),
    [
        (None, "less -R -+F -+X", True),
        ("less -S", "less -S -R -+F -+X", True),
        ("cat", None, False),
        ("", None, False),
        ("no-such-pager", None, False),
        ("'unclosed", None, False),
    ],
)
def test_a_pager_that_leaves_by_itself_is_waited_for(world, monkeypatch, chosen, runs, stays):
    """`less` stays open even for a short text; after others, enter goes back."""
    program(world.root / "bin" / "less", "")
    program(world.root / "bin" / "cat", "")
    monkeypatch.setenv("PATH", str(world.root / "bin"))
    monkeypatch.delenv("PAGER", raising=False)
    monkeypatch.delenv("SESS_PAGER", raising=False)
    if chosen is not None:
        monkeypatch.setenv("PAGER", chosen)
    with actions._pager_that_stays() as waits:
        assert waits == stays
        assert os.environ.get("SESS_PAGER") == runs
    assert "SESS_PAGER" not in os.environ


def test_less_goes_from_match_to_match(monkeypatch):
    """It opens at the first word of the query, which is not an expression."""
    monkeypatch.setenv("SESS_PAGER", "less")
    with actions._pager_that_stays(actions._expression(["a.b(c)", "超时"])):
        words = shlex.split(os.environ["SESS_PAGER"])
    assert words[-2:] == ["-I", r"-p▶ event #|a\.b\(c\)|超时"]
    assert os.environ["SESS_PAGER"] == "less"


@pytest.mark.parametrize("key", ["\r", "\x1b"])
def test_a_script_gets_the_id_that_was_chosen(shop, key):
    """Standard output has the ID and nothing else, wherever the other streams lead; escape: 1."""
    out = shop.root / "out"
    line = f"'{sys.executable}' -m sess_cli --print-id >'{out}' 2>/dev/null </dev/null"
    with Terminal(shop, "sh", "-c", line) as terminal:
        terminal.until(lambda: "newest sessions" in terminal.text())
        assert "enter choose" in terminal.text()
        terminal.send("socket")
        terminal.until(lambda: "1 hit" in terminal.text())
        terminal.send(key)
        assert terminal.ended() == (key != "\r")
    assert out.read_text() == ("agent-abc12345\n" if key == "\r" else "")


def test_choosing_needs_a_terminal(shop):
    """Without one it says so; beside a command the option has no meaning."""
    alone = shop.run("sess", "--print-id", check=2, start_new_session=True)
    assert alone.stdout == ""
    assert alone.stderr.startswith("sess: --print-id needs a terminal to choose on\nhint: ")
    beside = shop.run("sess", "--print-id", "list", check=2)
    assert beside.stderr.startswith("sess: --print-id goes without a command: list\n")


def test_a_shell_gets_a_command_that_was_run_here(world):
    """All of it, on as many lines as it had, without what a terminal would obey."""
    here = world.root / "project"
    here.mkdir()
    t = world.transcript()
    command = "make \x1b[2Jall \u202e&&\n  make install"
    t.append(t.prompt("build it", cwd=str(here)), t.call("c1", command=command))
    t.append(t.result("c1", "done"), t.call("c2", "Read", file_path="make"))
    elsewhere = world.transcript("2" + MAIN[1:], "-elsewhere")
    elsewhere.append(elsewhere.call("c1", command="make mischief"))
    world.ingest()
    out = world.root / "out"
    line = f"cd '{here}' && '{sys.executable}' -m sess_cli --print-command >'{out}' </dev/null"
    with Terminal(world, "sh", "-c", line) as terminal:
        terminal.until(lambda: "1 hit" in terminal.text())
        assert "mischief" not in terminal.text()
        terminal.send("\r")
        assert terminal.ended() == 0
    assert out.read_text() == "make [2Jall &&\n  make install\n"


INSERTED = """
eval "$(sess init {shell})"
sess() {{ :; }}
command() {{ [ "$*" = "sess --print-command" ] && printf '%s' "touch pwned; echo \\$(x)"; }}
"""


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
def test_bash_puts_it_where_the_cursor_is_and_runs_nothing(world):
    script = (
        INSERTED.format(shell="bash")
        + "READLINE_LINE='time  | cat'; READLINE_POINT=5; __sess_insert\n"
        + 'printf \'%s|%s\' "$READLINE_POINT" "$READLINE_LINE"'
    )
    done = subprocess.run(
        ["bash", "-c", script],
        env={**world.env, "PATH": f"{BIN}{os.pathsep}{world.env['PATH']}"},
        cwd=world.root,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "27|time touch pwned; echo $(x) | cat", done.stderr
    assert not (world.root / "pwned").exists()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_take_the_script(world, shell):
    """Without a fault, and in a script without an effect."""
    script = world.run("sess", "init", shell, check=0).stdout
    assert "--print-command" in script
    if shutil.which(shell):
        done = subprocess.run([shell, "-c", script], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert world.run("sess", "init", "csh").returncode == 2
