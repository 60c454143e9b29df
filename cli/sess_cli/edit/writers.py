"""Tells whether another program has a file open for writing, and which."""

from __future__ import annotations

import contextlib
import os
import threading

_ACCESS = os.O_RDONLY | os.O_WRONLY | os.O_RDWR


def writer_of(fd: int) -> str | None:
    """A program that has the file open for writing, such as `codex (pid 7)`; None if nobody has.

    `fd` must be open for reading only. Linux answers for all programs of the machine at once: it
    grants a read lease only on a file that nobody writes to. Elsewhere the open files of all
    processes are looked through, as far as they may be seen.
    """
    free = _is_leasable(fd)
    if free:
        return None
    found = os.fstat(fd)
    named = _in_proc(found) if os.path.isdir("/proc/self/fd") else _from_lsof(fd)
    return named or ("another program" if free is False else None)


def _is_leasable(fd: int) -> bool | None:
    """False if the file is open for writing; None if leases cannot tell."""
    import signal

    if threading.current_thread() is not threading.main_thread():
        return None
    try:
        import fcntl

        take, shared, leave = fcntl.F_SETLEASE, fcntl.F_RDLCK, fcntl.F_UNLCK
    except (ImportError, AttributeError):
        return None
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)  # sent if somebody opens it just now
    try:
        fcntl.fcntl(fd, take, shared)
        fcntl.fcntl(fd, take, leave)
    except BlockingIOError:
        return False
    except OSError:  # another owner's file, or a file system without leases
        return None
    finally:
        signal.signal(signal.SIGIO, before)
    return True


def _in_proc(wanted: os.stat_result) -> str | None:
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError, ValueError):
            for number in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(FileNotFoundError):
                    there = os.stat(f"/proc/{pid}/fd/{number}")
                    if os.path.samestat(there, wanted) and _writes(pid, number):
                        return f"{_name(pid)} (pid {pid})"
    return None


def _writes(pid: str, number: str) -> bool:
    with open(f"/proc/{pid}/fdinfo/{number}", encoding="ascii") as info:
        flags = next(line.split()[1] for line in info if line.startswith("flags:"))
    return int(flags, 8) & _ACCESS != os.O_RDONLY


def _name(pid: str) -> str:
    with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
        return file.read().strip()


def _from_lsof(fd: int) -> str | None:
    import subprocess

    path = os.path.realpath(f"/dev/fd/{fd}")
    if hasattr(os, "O_SYMLINK"):  # macOS
        import fcntl

        get_path = 50  # F_GETPATH
        path = os.fsdecode(fcntl.fcntl(fd, get_path, bytes(1024)).rstrip(b"\0"))
    try:
        told = subprocess.run(
            ["lsof", "-F", "pca", "--", path],
            capture_output=True,
            text=True,
            check=False,
            timeout=10,
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    return writer_told_by_lsof(told)


def writer_told_by_lsof(told: str) -> str | None:
    """The first process in lsof's answer that writes: lines `p7`, `ccodex`, `f3`, `aw`."""
    pid = name = ""
    for line in told.splitlines():
        if line.startswith("p"):
            pid = line[1:]
        elif line.startswith("c"):
            name = line[1:]
        elif line in ("aw", "au") and pid != str(os.getpid()):
            return f"{name} (pid {pid})"
    return None
