"""`sess demo`: a built-in sample in a temporary home: listed, searched and shown."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from sess_cli.terminal import Terminal
from sess_common import times
from sess_common.program import module

if TYPE_CHECKING:
    import subprocess
    from importlib.resources.abc import Traversable

_TIMESTAMP = re.compile(r'(?<="timestamp":")[^"]+(?=")')
_SCENES = (
    (["list"], "all sessions, newest first"),
    (["search", "kitchen", "clock"], "searches everything said, run and printed"),
    (["search", "--error", "test*"], "only failed calls"),
    (["show", "7ea9"], "one session; the first characters of its ID are enough"),
)
# No other variable is passed: any of them might lead an agent to another home.
_KEPT = (
    "PATH", "PYTHON", "VIRTUAL_ENV", "LANG", "LC_", "TZ", "TERM", "COLORTERM", "NO_COLOR",
    "FORCE_COLOR", "COLUMNS", "LINES", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT", "LD_LIBRARY_PATH",
    "DYLD_",
)  # fmt: skip


def demo() -> None:
    """Try sess on a built-in sample, away from your own data."""
    terminal = Terminal()
    with throw_away() as sandbox:
        install_sample(sandbox.projects)
        for number, (arguments, why) in enumerate(_SCENES):
            if number:
                terminal.write("")
            command = terminal.style(f"$ sess {shlex.join(arguments)}", "green", "bold")
            terminal.write(command + terminal.style(f"  # {why}", "dim"))
            terminal.stream.flush()
            done = sandbox.sess(*arguments)
            if done.returncode:
                raise typer.Exit(done.returncode)
    terminal.write("")
    terminal.write("That was a sample. `sess list` lists your own sessions.")


def install_sample(projects: Path) -> None:
    """Copy the sample to where Claude Code keeps its transcripts, dated as if just written."""
    from importlib import resources

    sample = resources.files("sess_cli") / "sample"
    texts = dict(_texts(sample, ()))
    last = max(times.since(stamp) for text in texts.values() for stamp in _TIMESTAMP.findall(text))
    # By whole days, because the story depends on the hour.
    shift = (times.now_ms() - last) // times.DAY * times.DAY
    for parts, text in texts.items():
        path = projects.joinpath(*parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        moved = _TIMESTAMP.sub(lambda m: times.iso(times.since(m[0]) + shift) or m[0], text)
        path.write_text(moved, "utf-8")


def _texts(folder: Traversable, above: tuple[str, ...]) -> list[tuple[tuple[str, ...], str]]:
    """The files of a folder: the parts of each path, and its text."""
    texts = []
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        parts = (*above, entry.name)
        if entry.is_dir():
            texts += _texts(entry, parts)
        elif entry.name.endswith((".jsonl", ".json")):
            texts.append((parts, entry.read_text("utf-8")))
    return texts


class Sandbox:
    """A home directory in which our programs find only what was put there."""

    def __init__(self, root: Path) -> None:
        import site

        self.root = root
        self.projects = root / ".claude" / "projects"
        self.projects.mkdir(parents=True)
        self.environment = {
            **{name: text for name, text in os.environ.items() if name.upper().startswith(_KEPT)},
            "HOME": str(root),
            "USERPROFILE": str(root),
            "SESSIOND_HOME": str(root / "sessiond"),
            "PAGER": "cat",
            # `pip install --user` puts packages in the real home.
            "PYTHONUSERBASE": os.environ.get("PYTHONUSERBASE") or site.getuserbase(),
        }

    def sess(self, *arguments: str, capture: bool = False) -> subprocess.CompletedProcess[str]:
        """Run this client inside."""
        return self.run("sess_cli", *arguments, capture=capture)

    def run(
        self, name: str, *arguments: str, capture: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run one of our modules inside."""
        import subprocess

        sys.stdout.flush()
        return subprocess.run(
            [*module(name), *arguments],
            env=self.environment,
            capture_output=capture,
            text=True,
            errors="replace",
            check=False,
        )


@contextmanager
def throw_away() -> Iterator[Sandbox]:
    """A sandbox that is removed afterwards, whatever happens."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="sess-", ignore_cleanup_errors=True) as root:
        yield Sandbox(Path(root).resolve())
