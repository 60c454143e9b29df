"""Reports the daemon's state to the service manager (sd_notify protocol, without libsystemd).

Calls do nothing if no manager listens, and never raise.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time

LAUNCHD_LABEL = "io.github.sessiond"
_BUSY_SECONDS = 120  # without another report by then, the manager may stop us
_BUSY_EVERY = 1.0
_last_busy = -_BUSY_EVERY


def ready(status: str) -> None:
    """Startup or a reload is complete."""
    _send("READY=1", _status(status))


def status(text: str) -> None:
    """One line for `systemctl --user status`."""
    _send(_status(text))


def alive() -> None:
    """Feed the watchdog; call it from the loop whose progress matters, not from a timer."""
    _send("WATCHDOG=1")


def busy(text: str) -> None:
    """Report long work, such as an index upgrade; may be called often.

    Without it, the manager would stop a long startup and retry it forever.
    """
    global _last_busy  # noqa: PLW0603
    if time.monotonic() - _last_busy < _BUSY_EVERY:
        return
    _last_busy = time.monotonic()
    _send(f"EXTEND_TIMEOUT_USEC={_BUSY_SECONDS * 1_000_000}", "WATCHDOG=1", _status(text))


def reloading() -> None:
    """The configuration is being reloaded, until `ready`."""
    # systemd ignores RELOADING without the time it was sent.
    _send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")


def stopping() -> None:
    """The daemon is stopping."""
    _send("STOPPING=1")


def under_launchd() -> bool:
    """Whether launchd started this process as our agent, and not a shell in Terminal."""
    return os.environ.get("XPC_SERVICE_NAME") == LAUNCHD_LABEL


def _status(text: str) -> str:
    # A line break would start another assignment.
    return "STATUS=" + " ".join(text.split())


def _send(*assignments: str) -> None:
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    message = "\n".join(assignments).encode(errors="replace")
    if address.startswith("@"):
        address = "\0" + address[1:]
    # ValueError: a NUL inside the address.
    with (
        contextlib.suppress(OSError, ValueError),
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel,
    ):
        # A busy manager must not block the ingest loop.
        channel.settimeout(1)
        channel.connect(os.fsencode(address))
        channel.send(message)
