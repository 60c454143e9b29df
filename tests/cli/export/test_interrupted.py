"""An interrupted export leaves no incomplete file, and can be run again."""

from __future__ import annotations

import signal
import subprocess
import time

import pytest
from tests.conftest import BIN, World

pytestmark = pytest.mark.slow

MAIN = "11111111-1111-4111-8111-111111111111"


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Takes long enough to be stopped in the middle."""
    world = World(tmp_path_factory.mktemp("large"))
    t = world.transcript()
    t.append(t.prompt("go"))
    output = "".join(f"line {number} of <many>\n" for number in range(400_000))
    for number in range(4):
        t.append(t.call(f"c{number}", command="yes"), t.result(f"c{number}", output))
    world.ingest()
    return world


def stopped(world, folder, number, *arguments):
    """Its exit code, after a signal that came while it wrote."""
    folder.mkdir()
    with subprocess.Popen(
        [BIN / "sess", "export", *arguments, "--no-sync"],
        env=world.env,
        cwd=folder,
        stderr=subprocess.DEVNULL,
    ) as process:
        while not [*folder.rglob(".sess-*")] and process.poll() is None:
            time.sleep(0.005)
        process.send_signal(number)
    return process.returncode


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
KINDS = ("html", "json", "md", "sqlite")


@pytest.mark.parametrize(
    ("kind", "number"),
    [*(("html", number) for number in SIGNALS), *zip(KINDS[1:], SIGNALS, strict=True)],
)
def test_no_partial_file_is_left(large, tmp_path, number, kind):
    folder = tmp_path / "out"
    assert stopped(large, folder, number, kind, MAIN, "-o", "whole") == 128 + number
    assert [*folder.iterdir()] == []


def test_a_site_that_was_interrupted_can_be_finished(large, tmp_path):
    folder = tmp_path / "out"
    assert stopped(large, folder, signal.SIGINT, "site", "-o", "site") == 130
    assert not [*folder.rglob(".sess-*")]
    done = large.run("sess", "export", "site", "-o", folder / "site", "--no-sync", check=0)
    assert "1 drawn" in done.stderr
