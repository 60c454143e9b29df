"""Completion: what the programs offer, and that real shells take it as text."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from tests.conftest import World
from tests.forked import BIN
from typer.main import get_command

from sess_cli.main import app
from sess_common import completion
from sessiond.main import app as daemon

MAIN = "11111111-1111-4111-8111-111111111111"
EVIL = "x$(touch pwned)`touch pwned`;touch pwned"


@pytest.fixture
def home(world):
    t = world.transcript(MAIN)
    t.append(
        t.prompt(f"fix it {EVIL}\n\x1b[31m", gitBranch="feat/a b"),
        t.call("c1", command="ls"),
        t.result("c1", "a"),
        t.call("c2", "mcp__x", path=1),
        t.call("c3", EVIL),
        t.answer("done", gitBranch="feat/a b"),
    )
    world.ingest()
    return world


def offered(world, *words, shell="fish", program="sess"):
    world.env[f"_{program.upper()}_COMPLETE"] = shell
    done = world.run(program, *words, check=0)
    assert done.stderr == ""
    return done.stdout.splitlines()


def names(world, *words):
    return [line.partition("\t")[0] for line in offered(world, *words)]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["sea"], ["search"]),
        (["search", "--tool", "m"], ["mcp__x"]),
        (["search", "--tool=B"], ["--tool=Bash"]),
        (["search", "tool:B"], ["tool:Bash"]),
        (["search", "-tool:B"], []),
        (["search", "too"], ["tool:"]),
        (["search", "--", "tool:B"], ["tool:Bash"]),
        (["search", "branch:"], ['branch:"feat/a b"']),
        (["search", "--agent", ""], ["claude"]),
        (["search", "--model", ""], ["claude-opus-4-5"]),
        (["search", "--branch", "FEAT"], ["feat/a b"]),
        (["search", "--project", "d"], ["demo"]),
        (["search", "--sort", ""], ["relevance", "newest", "oldest"]),
        (["search", "--fields", "session,ev"], ["session,event"]),
        (["search", "--limit", ""], []),
        (["search", "--kind", "s"], ["shell", "search"]),
        (["search", "--type", "t"], ["thinking", "tool_use"]),
        (["search", "--type", "e"], ["error"]),
        (["search", "--role", ""], ["user", "assistant", "tool", "system"]),
        (["search", "--is", "de"], ["denied"]),
        (["search", "is:fai"], ["is:failed"]),
        (["search", "--has", ""], ["image", "commit"]),
        (["search", "-has:i"], []),
        (["stats", "--by", "day,mo"], ["day,month", "day,model"]),
        (["stats", "c"], ["cache", "context", "calendar"]),
        (["stats", "1"], ["11111111"]),
        (["show", "1"], ["11111111"]),
        (["show", "la"], ["last"]),
        (["--debug", "show", "la"], ["last"]),
        (["export", "html", "--style", "t"], ["timeline"]),
        (["export", "html", "last", "-o", ""], [":files"]),
        (["export", "html", "--lev"], ["--level"]),
        (["export", "v"], ["video"]),
        (["nonsense", "x"], []),
    ],
)
def test_every_place_has_its_values(home, words, expected):
    """The unfinished last word decides; what is before it says of what."""
    assert names(home, *words) == expected


def test_no_option_with_a_value_prints_an_error(home):
    """Each option of each command can be completed, whatever it takes, in either program."""

    def commands(command, path):
        for name, one in getattr(command, "commands", {}).items():
            yield from commands(one, [*path, name])
        if not hasattr(command, "commands"):
            yield path, command

    tried = 0
    for program, root in (("sess", app), ("sessiond", daemon)):
        for path, command in commands(get_command(root), []):
            for one in command.params:
                if one.param_type_name == "option" and not one.is_flag:
                    offered(home, *path, one.opts[0], "", program=program)
                    tried += 1
    assert tried > 60


def test_a_session_comes_with_its_title(home):
    """On one line, without anything that a terminal would obey."""
    (line,) = offered(home, "show", "11111")
    value, text = line.split("\t")
    assert value == "11111111"
    assert text.startswith("fix it x$(touch pwned)")
    assert text.isprintable()


def test_without_an_index_nothing_is_offered(world):
    """And nothing is made, said or waited for."""
    assert names(world, "search", "--tool", "") == []
    assert not world.state.exists()


@pytest.mark.parametrize("program", ["sess", "sessiond"])
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_is_shown_for_the_shell_that_was_named(world, program, shell):
    """Whatever shell runs the program."""
    shown = world.run(program, "--show-completion", shell, check=0).stdout
    assert shown == completion.script_for(program, shell)
    done = world.run(program, "--show-completion", "csh", check=2)
    assert done.stderr.endswith('no completion for "csh"\nhint: one of bash, zsh, fish\n')


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_installing_twice_adds_one_line(world, shell):
    """The scripts of both are where the shell looks, and start-up files are changed once."""
    for _ in range(2):
        world.run("sess", "--install-completion", shell, check=0)
    scripts = {
        "bash": ".bash_completions/{}.sh",
        "zsh": ".zfunc/_{}",
        "fish": ".config/fish/completions/{}.fish",
    }
    for program in ("sess", "sessiond"):
        written = (world.root / scripts[shell].format(program)).read_text()
        assert written == completion.script_for(program, shell)
    rc, lines = {"bash": (".bashrc", 2), "zsh": (".zshrc", 1)}.get(shell, ("", 0))
    if rc:
        assert len((world.root / rc).read_text().splitlines()) == lines


def test_bash_finds_the_script_in_a_home_with_a_space(tmp_path):
    """In a new shell the completion is there."""
    world = World(tmp_path / "my home")
    world.run("sess", "--install-completion", "bash", check=0)
    code = 'source "$HOME/.bashrc" && complete -p sess'
    done = subprocess.run(
        ["bash", "-c", code], env=world.env, capture_output=True, text=True, check=False
    )
    assert done.stdout.split()[-2:] == ["_sess_complete", "sess"], done.stderr


BASH = """
source <(sess --show-completion bash)
COMP_WORDS=({words}) COMP_CWORD={last}
_sess_complete
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
ZSH = """
compdef() {{ }}
compadd() {{ print -rl -- $values }}
source <(sess --show-completion zsh)
words=({words}) CURRENT={current} PREFIX="${{words[-1]}}" COLUMNS=80
_sess
"""
FISH = """
sess --show-completion fish | source
complete -C "{line}"
"""


def in_shell(world, shell, words):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    quoted = " ".join(f"'{word}'" for word in words)
    script = {"bash": BASH, "zsh": ZSH, "fish": FISH}[shell].format(
        words=quoted, last=len(words) - 1, current=len(words), line=" ".join(words)
    )
    options = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}[shell]
    done = subprocess.run(
        [shell, *options, "-c", script],
        env={**world.env, "PATH": f"{BIN}:{world.env['PATH']}"},
        cwd=world.root, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    return [line.partition("\t")[0] for line in done.stdout.splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_real_shells_take_it_as_text(home, shell):
    """Values and titles out of transcripts are offered, and never run."""
    tools = in_shell(home, shell, ["sess", "search", "--tool", ""])
    assert sorted(tool.replace("\\", "") for tool in tools) == ["Bash", "mcp__x", EVIL]
    assert "11111111" in in_shell(home, shell, ["sess", "show", "1"])
    if shell != "fish":
        split = ["--tool", "=", "B"] if shell == "bash" else ["--tool=B"]
        whole = in_shell(home, shell, ["sess", "search", *split])
        assert whole == (["Bash"] if shell == "bash" else ["--tool=Bash"])
    assert not [*home.root.rglob("pwned")]
