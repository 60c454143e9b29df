"""The files of recordings: the transcripts, the list of sessions, and long outputs."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from typing import Any

try:
    import fcntl
except ImportError:  # Windows: a single write is short, and nothing else is shared
    fcntl = None  # type: ignore[assignment, unused-ignore]

_APPEND = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
_NAME, _LOCK = "session.json", ".session.json.lock"
_LONGEST_TITLE = 80
UNTITLED = "New session"
_BY_USER = "title_user_set"
MOST_BYTES = 50 * 1024
MOST_LINES = 2000
HEAD_LINES, TAIL_LINES = 200, 500
# Where 700 lines are still too long. The end of an output usually says how it went.
_HEAD_BYTES, _TAIL_BYTES = MOST_BYTES * 2 // 7, MOST_BYTES * 5 // 7


def make_folder(path: str) -> None:
    """Create a folder, mode 0700, with those above it."""
    if not os.path.isdir(path):
        make_folder(os.path.dirname(path))
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)


def open_to_append(path: str) -> int:
    fd = os.open(path, _APPEND, 0o600)
    with contextlib.suppress(OSError):
        os.chmod(path, 0o600)  # also one that an older program made
    return fd


@contextlib.contextmanager
def locked(fd: int) -> Iterator[None]:
    if fcntl is None:
        yield
        return
    fcntl.flock(fd, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(fd, fcntl.LOCK_UN)


def is_at(fd: int, path: str) -> bool:
    """Whether an open file is still the one at its path."""
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except OSError:
        return False


def replace_file(path: str, data: bytes) -> None:
    """Write a whole file, or leave the old one."""
    beside = f"{path}.{os.getpid()}.tmp"
    fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise


def sync_folder(path: str) -> None:
    """Make the name of a new file survive a power cut."""
    with contextlib.suppress(OSError):  # not every system can
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def title_from(prompt: str) -> str:
    line = prompt.replace("\r", "\n").partition("\n")[0].strip()
    if not line:
        return UNTITLED
    return line if len(line) <= _LONGEST_TITLE else line[:_LONGEST_TITLE] + "…"


def list_session(folder: str, session: str, meta: dict[str, str]) -> None:
    """List a session, unless it is listed already."""

    def change(sessions: dict[str, Any]) -> bool:
        if any(True for _ in _metas(sessions, session)):
            return False
        listed = sessions.setdefault(meta["project"], [])
        if not isinstance(listed, list):
            return False
        listed.append(meta)
        return True

    _change_list(folder, change)


def entitle_session(folder: str, session: str, title: str) -> None:
    """Name a session after its first prompt, unless it has a name."""

    def change(sessions: dict[str, Any]) -> bool:
        unnamed = [meta for meta in _metas(sessions, session) if not meta.get("title")]
        for meta in unnamed:
            meta["title"] = title
        return bool(unnamed)

    _change_list(folder, change)


def rename_session(folder: str, session: str, title: str, by_user: bool) -> None:
    """Give a session another name; one that a person gave is not replaced by a program's."""

    def change(sessions: dict[str, Any]) -> bool:
        free = [meta for meta in _metas(sessions, session) if by_user or not meta.get(_BY_USER)]
        for meta in free:
            meta["title"] = title
            if by_user:
                meta[_BY_USER] = True
        return bool(free)

    _change_list(folder, change)


def list_path(folder: str) -> str:
    return os.path.join(folder, _NAME)


def list_without(raw: bytes, session: str) -> bytes | None:
    """A list without a session; None if it is not in there, or if this is no such list."""
    try:
        document = json.loads(raw)
    except ValueError:
        return None
    sessions = document.get("sessions") if isinstance(document, dict) else None
    if not isinstance(sessions, dict):
        return None
    gone = [*_metas(sessions, session)]
    if not gone:
        return None
    for listed in sessions.values():
        if isinstance(listed, list):
            listed[:] = [meta for meta in listed if meta not in gone]
    return json.dumps(document, indent=2, ensure_ascii=False).encode("utf-8", "replace")


def _metas(sessions: dict[str, Any], session: str) -> Iterator[dict[str, Any]]:
    for listed in sessions.values():
        for meta in listed if isinstance(listed, list) else ():
            if isinstance(meta, dict) and meta.get("uuid") == session:
                yield meta


def _change_list(folder: str, change: Callable[[dict[str, Any]], bool]) -> None:
    """Read, change and replace the list, one process at a time. A damaged list is left alone."""
    path = list_path(folder)
    fd = open_to_append(os.path.join(folder, _LOCK))
    try:
        with locked(fd):
            document: Any = {}
            with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
                document = json.loads(file.read() or b"{}")
            sessions = document.setdefault("sessions", {}) if isinstance(document, dict) else None
            if isinstance(sessions, dict) and change(sessions):
                text = json.dumps(document, indent=2, ensure_ascii=False)
                replace_file(path, text.encode("utf-8", "replace"))
    finally:
        os.close(fd)


def shortened(output: str, folder: str, call_id: str) -> str:
    """The output, or its start and end with a notice between; never fails."""
    size = len(output.encode("utf-8", "replace"))
    if size <= MOST_BYTES and lines_in(output) <= MOST_LINES:
        return output
    head, tail = _ends(output)
    lines = max(0, lines_in(output) - lines_in(head) - lines_in(tail))
    removed = size - len((head + tail).encode("utf-8", "replace"))
    notice = f"... [{lines} lines / {removed} bytes truncated] ..."
    path = _save(output, folder, call_id)
    if path is not None:
        notice += f"\nFull output saved to: {path}\nUse the read tool to view the complete output."
    return f"{head}\n\n{notice}\n{tail}"


def lines_in(text: str) -> int:
    return text.count("\n") + 1 if text else 0


def _ends(output: str) -> tuple[str, str]:
    lines = output.split("\n")
    if len(lines) > HEAD_LINES + TAIL_LINES:
        head, tail = "\n".join(lines[:HEAD_LINES]), "\n".join(lines[-TAIL_LINES:])
    else:
        half = len(lines) * 2 // 7
        head, tail = "\n".join(lines[:half]), "\n".join(lines[half:])
    return _first_bytes(head, _HEAD_BYTES), _last_bytes(tail, _TAIL_BYTES)


def _first_bytes(text: str, most: int) -> str:
    return text.encode("utf-8", "replace")[:most].decode("utf-8", "ignore")


def _last_bytes(text: str, most: int) -> str:
    return text.encode("utf-8", "replace")[-most:].decode("utf-8", "ignore")


def _save(output: str, folder: str, call_id: str) -> str | None:
    """The path of the whole output; None if it cannot be written."""
    name = call_id.replace("/", "_").replace("\\", "_").replace("..", "_").replace("\0", "_")
    try:
        make_folder(folder)
        path = _free(folder, name[:200] or "unknown")
        replace_file(path, output.encode("utf-8", "replace"))
    except OSError:
        return None
    return path


def _free(folder: str, name: str) -> str:
    """Calls without an id must not overwrite each other's output."""
    number, path = 1, os.path.join(folder, f"{name}.txt")
    while os.path.lexists(path):
        number += 1
        path = os.path.join(folder, f"{name}-{number}.txt")
    return path
