"""JSON lines on stdout, and long text through a pager."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from io import TextIOWrapper

from sess_cli.terminal import Terminal
from sess_schema.classes import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import IO, Any

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def json_line(value: Any) -> None:
    """Write one object and flush, so that the reader of a pipe need not wait for the rest."""
    import json  # noqa: PLC0415 - loads in half the time of orjson

    line = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    if sys.stdout.isatty():  # a pipe gets the text as it is
        line = _inert(line.decode()).encode()
    out = sys.stdout.buffer
    out.write(line + b"\n")
    out.flush()


def csv_text(text: str) -> str:
    """Foreign text for CSV: spreadsheets run formulas, terminals interpret escape sequences.

    A leading apostrophe makes it text in a spreadsheet.
    """
    return Terminal().text(f"'{text}" if text.startswith(_FORMULA) else text)


def _inert(line: str) -> str:
    """The same JSON with all control characters escaped: encoders escape only some."""
    if line.isprintable():
        return line
    import json  # noqa: PLC0415

    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in line)


@contextlib.contextmanager
def pager(*, wanted: bool) -> Iterator[Terminal]:
    """A terminal to write to: the pager's input if there is a pager and stdout is a terminal."""
    command = _pager_command() if wanted and sys.stdout.isatty() else None
    if command is None:
        yield Terminal()
        sys.stdout.flush()
        return
    import subprocess  # noqa: PLC0415
    from typing import cast  # noqa: PLC0415

    # Without -R, `less` would print colour codes.
    environment = {"LESS": "FRX", **os.environ}
    process = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)
    pipe = TextIOWrapper(cast("IO[bytes]", process.stdin), "utf-8", errors="backslashreplace")
    try:
        yield Terminal(pipe, paged=True)
    except BrokenPipeError:  # the pager was closed before the end
        pass
    finally:
        with contextlib.suppress(OSError):
            pipe.close()
        while True:
            # Ctrl-C goes to the pager while it is open.
            with contextlib.suppress(KeyboardInterrupt):
                process.wait()
                break


def _pager_command() -> list[str] | None:
    import shlex  # noqa: PLC0415
    from shutil import which  # noqa: PLC0415

    chosen = os.environ.get("PAGER")
    if chosen is None:
        return ["less", "-FRX"] if which("less") else None
    try:
        words = shlex.split(chosen)
    except ValueError:
        return None
    if not words or words == ["cat"] or which(words[0]) is None:
        return None
    return words
