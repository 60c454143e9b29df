"""Starts in the background, stops and restarts: a kernel lock shows who runs, signals end it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from typing import Any

from sess_common import lock, paths, program, upkeep
from sess_common.errors import Exit, SessError
from sessiond.service import manager
from sessiond.service.startup import end_background

Say = Callable[[str], None]
START_SECONDS = 15.0
STOP_SECONDS = 10.0


def start_detached(say: Say) -> int:
    """Start the daemon in a new process session and wait until it serves."""
    home = paths.home()
    home.create()
    holder = lock.holder(home.lock)
    if holder is not None and not holder.get("background"):  # which gives way
        raise lock.already_running(home.lock)
    if manager.installed() is not None:
        say("note: this daemon runs outside the service; `sessiond restart` starts the service")
    process = subprocess.Popen(
        [*program.module("sessiond"), "start"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd=home.data,
        env={**os.environ, **_absolute_home(home)},
    )
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise SessError(
                f"sessiond failed to start: exit code {process.returncode}",
                hint="see `sessiond logs`, or run `sessiond start` in the foreground",
                code=max(process.returncode, 0) or Exit.NO_DAEMON,
            )
        beat = upkeep.writer_status(home.status)
        if beat.get("pid") == process.pid and not beat.get(upkeep.DOING):
            say(f"sessiond started (pid {process.pid})")
            return Exit.OK
        time.sleep(0.05)
    say(f"sessiond started (pid {process.pid}); still indexing existing transcripts")
    return Exit.OK


def _absolute_home(home: paths.Home) -> dict[str, str]:
    """A relative SESSIOND_HOME would be another directory from the daemon's working directory."""
    return {"SESSIOND_HOME": str(home.data)} if "SESSIOND_HOME" in os.environ else {}


def running() -> dict[str, Any] | None:
    holder = lock.holder(paths.home().lock)
    return holder if holder is not None and holder.get("mode") == "daemon" else None


def stop(say: Say) -> int:
    holder = running()
    if holder is None and (pid := end_background(paths.home())) is not None:
        say(f"stopped reading in the background (pid {pid}); the next command goes on")
        return Exit.OK
    if holder is None:
        raise SessError(
            "no daemon is running", hint="run `sessiond start --detach`", code=Exit.NO_DAEMON
        )
    _end(holder)
    say(f"sessiond stopped (pid {holder['pid']})")
    return Exit.OK


def restart(say: Say) -> int:
    """Where a service is installed or runs, the manager starts it: never something beside it."""
    holder = running()
    by_manager = holder is not None and holder.get("service")
    if not by_manager and manager.installed() is None:
        if holder is not None:
            _end(holder)
        return start_detached(say)
    if holder is not None and not by_manager:
        _end(holder)
        say(f"stopped the daemon that ran outside the service (pid {holder['pid']})")
    if trouble := manager.restart():
        hint = "`sessiond start --detach` starts one outside the service manager"
        raise SessError(trouble, hint=hint, code=Exit.PROGRAM_FAILED)
    say("sessiond restarted by the service manager")
    return Exit.OK


def _end(holder: dict[str, Any]) -> None:
    home = paths.home()
    pid = int(holder["pid"])
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return
    deadline = time.monotonic() + STOP_SECONDS
    while lock.holder(home.lock) is not None:
        if time.monotonic() > deadline:
            raise SessError(
                f"sessiond (pid {pid}) did not stop within {STOP_SECONDS:.0f} s",
                hint=f"`kill -9 {pid}` is safe: the index stays consistent",
                code=Exit.PROGRAM_FAILED,
            )
        time.sleep(0.02)
