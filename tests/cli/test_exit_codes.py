"""Exit codes: one meaning each, for scripts that branch on them."""

from __future__ import annotations

import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.forked import BIN

from sess_common import program
from sess_common.errors import Exit

README = Path(__file__).parents[2] / "README.md"


@pytest.fixture
def indexed(world):
    t = world.transcript()
    t.append(t.prompt("some words"), t.answer("an answer", timestamp=datetime.now(UTC).isoformat()))
    world.ingest()
    return world


def test_help_readme_and_code_agree():
    """The table in the help, the line in the README and the enumeration have the same codes."""
    codes = {int(code) for code in Exit}
    assert {
        int(code) for code in re.findall(r"^ +(\d+)  ", program.EXIT_CODES, re.MULTILINE)
    } == codes
    line = README.read_text("utf-8").split("Exit codes: ")[1].split("\n\n")[0]
    assert {int(code) for code in re.findall(r"(?:^|· )(\d+) ", line)} == codes


def test_above_the_budget_is_not_daemon_not_running(indexed):
    """A budget that was exceeded has its own code; a stopped daemon is 3."""
    stats = ("stats", "windows", "--no-sync", "--budget")
    done = indexed.run("sess", *stats, "0.000001/month", check=6)
    assert "over budget" in done.stdout
    indexed.run("sess", *stats, "1000000/month", check=0)
    indexed.run("sessiond", "status", check=3)


def test_a_program_that_is_missing_or_fails_is_69(indexed, tmp_path):
    """Neither a missing `gh` nor a failing one is a usage error, and what it said is passed on."""
    export = ("export", "html", "last", "--no-sync", "--gist", "--yes", "-o", tmp_path / "a.html")
    indexed.env["PATH"] = str(tmp_path)
    done = indexed.run("sess", *export, check=69)
    assert "sess: gh is not on PATH, so nothing was uploaded\n" in done.stderr
    gh = tmp_path / "gh"
    gh.write_text("#!/bin/sh\necho not logged in >&2\nexit 4\n")
    gh.chmod(0o755)
    indexed.env["PATH"] = f"{tmp_path}:/usr/bin:/bin"
    done = indexed.run("sess", *export, check=69)
    assert "sess: gh cannot upload: not logged in\n" in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize(
    "arguments",
    [("list",), ("list", "--json"), ("search", "words"), ("show", "last"), ("sql", "SELECT 1")],
)
def test_a_full_disk_under_stdout_is_not_blamed_on_the_index(indexed, arguments):
    """What cannot be written is named: standard output, not the index, which is fine."""
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [BIN / "sess", *arguments, "--no-sync"],
            env=indexed.env, stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.stderr == "sess: cannot write to standard output: no space left on device\n"
    assert done.returncode == 2
