"""Asks the only writer to do something: the daemon if it runs, else a process made for it.

A request is a file in `requests/` below the data directory, private like everything there; the
answer is another one beside it. Nothing waits forever: if the daemon ends, so does the wait.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sess_common import lock
from sess_common.errors import Exit, SessError
from sess_common.paths import Home, make_private
from sess_common.program import Ended, module

_POLL = 0.02


def folder(home: Home) -> Path:
    return home.data / "requests"


def ask(
    home: Home, what: str, *, meanwhile: Callable[[], None] = lambda: None, **values: Any
) -> dict[str, Any]:
    """What the writer answers; its errors are raised here. `meanwhile` is called while it works."""
    request = {"what": what, **values}
    while True:
        runs = lock.daemon_runs(home.lock)
        answer = _ask_daemon(home, request, meanwhile) if runs else _ask_child(request)
        if answer is not None:
            break
    if "error" in answer:
        raise SessError(answer["error"], hint=answer.get("hint"), code=answer["code"])
    return answer


def _ask_daemon(
    home: Home, request: dict[str, Any], meanwhile: Callable[[], None]
) -> dict[str, Any] | None:
    """None if it ended without an answer."""
    make_private(folder(home))
    path = folder(home) / f"{time.time_ns()}-{secrets.token_hex(4)}.json"
    reply = path.with_suffix(".done")
    write(path, request)
    try:
        while not reply.exists():
            if not lock.daemon_runs(home.lock) and not reply.exists():
                return None
            meanwhile()
            time.sleep(_POLL)
        answer: dict[str, Any] = json.loads(reply.read_text("utf-8"))
        return answer
    finally:
        for one in (path, reply):
            with contextlib.suppress(OSError):
                one.unlink()


def _ask_child(request: dict[str, Any]) -> dict[str, Any]:
    child = subprocess.run(
        module("sessiond.service.requests"),
        input=json.dumps(request),
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if child.returncode == Exit.INTERRUPTED:
        raise KeyboardInterrupt
    try:
        answer: dict[str, Any] = json.loads(child.stdout)
    except ValueError:
        raise Ended(max(child.returncode, 0) or Exit.INTERNAL) from None  # it has printed why
    return answer


def write(path: Path, value: dict[str, Any]) -> None:
    """Write a file that is there whole or not at all."""
    beside = path.with_suffix(".part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with os.fdopen(os.open(beside, flags, 0o600), "w", encoding="utf-8") as file:
        json.dump(value, file)
    os.replace(beside, path)
