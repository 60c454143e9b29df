"""Ways to hurt a program: without root's rights, with small limits, watched for its memory."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

BIN = Path(sys.executable).parent
PR_CAPBSET_DROP = 24
CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 1, 2


def wait_until(happens, seconds=15.0, what="it did not happen"):
    """Until a condition holds; fails after the deadline."""
    end = time.monotonic() + seconds
    while not (found := happens()):
        assert time.monotonic() < end, what
        time.sleep(0.03)
    return found


def obey_permissions():
    """In a child before exec: root loses the right to read what its mode forbids."""
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
            if libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0):
                raise OSError(ctypes.get_errno(), "prctl")


class Measured:
    """A finished program with the most memory and the time it took."""

    def __init__(self, code, stdout, stderr, megabytes, seconds):
        self.code, self.stdout, self.stderr = code, stdout, stderr
        self.megabytes, self.seconds = megabytes, seconds


def resident_peak(pid):
    """Megabytes, from /proc. getrusage would count this process too, up to the child's exec."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:"))


@pytest.fixture
def measured(world, tmp_path):
    """Run a program and tell its peak resident memory."""

    def run(program, *arguments):
        out, err = tmp_path / "measured.out", tmp_path / "measured.err"
        started = time.monotonic()
        with out.open("wb") as stdout, err.open("wb") as stderr:
            process = subprocess.Popen(
                [BIN / program, *map(str, arguments)], env=world.env, stdout=stdout, stderr=stderr
            )
            peak = 0.0
            while process.poll() is None:
                peak = max(peak, resident_peak(process.pid))
                time.sleep(0.01)
        return Measured(
            process.returncode,
            out.read_text(),
            err.read_text(),
            peak,
            time.monotonic() - started,
        )

    return run


@pytest.fixture
def until():
    return wait_until


@pytest.fixture
def plain_user():
    """For `preexec_fn`: permissions count, even when the tests run as root."""
    if not sys.platform.startswith("linux") and os.geteuid() == 0:
        pytest.skip("root can only give up its rights on Linux")
    return obey_permissions
