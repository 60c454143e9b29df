"""Faults for programs: no root privileges, small limits, measured memory."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests import at_length
from tests.rights import obey_permissions
from tests.waiting import wait_until

BIN = Path(sys.executable).parent


class Measured:
    """A finished program with its peak memory and the bytes it read."""

    def __init__(self, code, stdout, stderr, megabytes, megabytes_read):
        self.code, self.stdout, self.stderr = code, stdout, stderr
        self.megabytes, self.megabytes_read = megabytes, megabytes_read


def told_by_kernel(pid, file, name):
    """A number from /proc. getrusage would count this process too, up to the child's exec."""
    try:
        lines = Path(f"/proc/{pid}/{file}").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith(name))


@pytest.fixture
def measured(world, tmp_path):
    """Run a program and measure its peak resident memory."""

    def run(program, *arguments):
        out, err = tmp_path / "measured.out", tmp_path / "measured.err"
        with out.open("wb") as stdout, err.open("wb") as stderr:
            process = subprocess.Popen(
                [BIN / program, *map(str, arguments)], env=world.env, stdout=stdout, stderr=stderr
            )
            peak = read = 0
            while process.poll() is None:
                peak = max(peak, told_by_kernel(process.pid, "status", "VmHWM:"))
                read = max(read, told_by_kernel(process.pid, "io", "rchar:"))
                time.sleep(0.01)
        at_length.peak(peak, f"{program} {' '.join(map(str, arguments[:2]))}")
        return Measured(
            process.returncode,
            out.read_text(),
            err.read_text(),
            peak / 1024,
            read / 1e6,
        )

    return run


@pytest.fixture
def until():
    return wait_until


@pytest.fixture
def plain_user():
    """For `preexec_fn`: permissions apply, even when the tests run as root."""
    if not sys.platform.startswith("linux") and os.geteuid() == 0:
        pytest.skip("root can only give up its rights on Linux")
    return obey_permissions
