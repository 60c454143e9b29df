"""Writes and shows the daemon's log, which never contains transcript text.

The log contains ids, paths, counts and reasons. The formatter blocks two leaks: the message of an
unexpected exception, and control characters in file names.
"""

from __future__ import annotations

import json
import logging
import logging.handlers
import os
import re
import sys
import time
import traceback
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import apsw

from sess_common.errors import Exit, SessError
from sess_common.paths import make_private
from sessiond.service import notify

MAX_BYTES = 2_000_000
OLD_FILES = 2

# Their messages name files and tables; other exceptions may quote the data.
_DISCREET = (OSError, apsw.Error, SessError)
_ENTRY = re.compile(r"(\d{4}-\d\d-\d\dT[\d:.]+Z) ([A-Z]+) (.*)", re.DOTALL)
_SYSLOG_LEVELS = {"CRITICAL": 2, "ERROR": 3, "WARNING": 4, "INFO": 6, "DEBUG": 7}


def set_up(log: Path, *, foreground: bool) -> None:
    """Log to a size-capped file, in the foreground also to stderr; under systemd to the journal."""
    stderr = logging.StreamHandler(sys.stderr)
    stderr.setFormatter(_Formatter())
    handlers: list[logging.Handler] = []
    trouble: OSError | None = None
    if _stderr_is_journal():
        stderr.setFormatter(_JournalFormatter())
        handlers.append(stderr)
    else:
        make_private(log.parent)
        try:
            file = _PrivateFile(
                log, maxBytes=MAX_BYTES, backupCount=OLD_FILES, encoding="utf-8", errors="replace"
            )
            file.setFormatter(_Formatter())
            handlers.append(file)
        except OSError as error:
            trouble = error
        # launchd collects stderr in a file without a cap, so only crashes go there.
        if trouble or (foreground and not notify.under_launchd()):
            handlers.append(stderr)
    # A full disk loses log lines; it must not stop the daemon or print a traceback for each line.
    logging.raiseExceptions = False
    logging.basicConfig(handlers=handlers, level=logging.WARNING, force=True)
    logging.getLogger("sessiond").setLevel(logging.INFO)
    if trouble:
        reason = trouble.strerror or type(trouble).__name__
        logging.getLogger(__name__).warning('cannot write log "%s": %s', log, reason)


def tail_log(path: Path, lines: int, *, follow: bool = False) -> Iterator[str]:
    """The last lines of the log, including rotated files; with `follow`, then each new line."""
    try:
        current = path.open("rb")
    except OSError as error:
        raise SessError(
            f'cannot read log "{path}": {(error.strerror or str(error)).lower()}',
            hint="the daemon creates it at startup; under systemd see"
            " `journalctl --user -u sessiond`",
            code=Exit.NOTHING_FOUND,
        ) from error
    try:
        last: deque[bytes] = deque(maxlen=lines)
        for number in range(OLD_FILES, 0, -1):
            try:
                last.extend(Path(f"{path}.{number}").read_bytes().splitlines())
            except OSError:
                continue
        *whole, rest = current.read().split(b"\n")
        last.extend(whole)
        if rest and not follow:
            last.append(rest)
        yield from map(_text, last)
        while follow:
            *whole, rest = (rest + current.read()).split(b"\n")
            yield from map(_text, whole)
            if whole:
                continue
            if _replaced(path, current):
                current.close()
                current, rest = path.open("rb"), b""
            else:
                time.sleep(0.2)
    finally:
        current.close()


def as_json(lines: Iterable[str]) -> Iterator[str]:
    """Each line as an object; those of a traceback have the time of the entry they belong to."""
    ts = level = None
    for line in lines:
        entry = _ENTRY.fullmatch(line)
        if entry is not None:
            ts, level, line = entry.groups()  # noqa: PLW2901 - what is left of it
        entry_fields = {"ts": ts, "level": level, "message": line}
        yield json.dumps(entry_fields, ensure_ascii=False, separators=(",", ":"))


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace")


def _replaced(path: Path, current: IO[bytes]) -> bool:
    try:
        found = os.stat(path)
    except OSError:
        return False  # between the two steps of a rotation
    known = os.fstat(current.fileno())
    return (found.st_dev, found.st_ino) != (known.st_dev, known.st_ino)


def _stderr_is_journal() -> bool:
    # Children inherit the variable even if their stderr goes elsewhere, so compare the files.
    try:
        device, inode = os.environ["JOURNAL_STREAM"].split(":")
        found = os.fstat(sys.stderr.fileno())
        return (found.st_dev, found.st_ino) == (int(device), int(inode))
    except (KeyError, ValueError, OSError):
        return False


class _PrivateFile(logging.handlers.RotatingFileHandler):
    def _open(self) -> Any:
        return open(
            self.baseFilename,
            self.mode,
            encoding=self.encoding,
            errors=self.errors,
            opener=lambda name, flags: os.open(name, flags | getattr(os, "O_NOFOLLOW", 0), 0o600),
        )


class _Formatter(logging.Formatter):
    def __init__(self) -> None:
        super().__init__(
            "%(asctime)s.%(msecs)03dZ %(levelname)s %(message)s", datefmt="%Y-%m-%dT%H:%M:%S"
        )
        self.converter = time.gmtime

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        return printable(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:  # noqa: N802 - logging's name
        blocks: list[str] = []
        error: BaseException | None = ei[1]
        while error is not None and len(blocks) < 10:
            kind = type(error).__name__
            message = f": {printable(str(error))}" if isinstance(error, _DISCREET) else ""
            blocks.append("".join(traceback.format_tb(error.__traceback__)) + kind + message)
            error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        return "\ncaused by\n".join(blocks)


class _JournalFormatter(_Formatter):
    """The journal adds its own time and takes the level from a prefix on each line."""

    def __init__(self) -> None:
        super().__init__()
        self._style = logging.PercentStyle("%(message)s")

    def format(self, record: logging.LogRecord) -> str:
        level = f"<{_SYSLOG_LEVELS.get(record.levelname, 6)}>"
        return "\n".join(level + line for line in super().format(record).splitlines())


def printable(text: str) -> str:
    """Escape control characters: file names must not control the terminal."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )
