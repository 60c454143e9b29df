"""An output stream: its width and colours, what must not reach a terminal, JSON lines, the pager.

Transcript text is hostile. On a terminal, escape sequences are removed, and remaining control and
direction characters are printed visibly instead of taking effect. In a pipe it is unchanged.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator

from sess_common.classes import TYPE_CHECKING
from sess_common.escape import safe

if TYPE_CHECKING:
    from typing import Any, TextIO

_CODES = {
    "bold": "1",
    "dim": "2",
    "italic": "3",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
    "match": "1;33",
}
_WITH_LINKS = ("iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper", "Tabby", "rio")
_FIRST_VTE = 5000
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # how one begins in a spreadsheet


class Terminal:
    """One output stream and what it can show."""

    def __init__(self, stream: TextIO | None = None, *, paged: bool = False) -> None:
        self.stream = stream if stream is not None else sys.stdout
        self.interactive = paged or self.stream.isatty()
        self.colour = _wants_colour(interactive=self.interactive)
        self.width = _width() if self.interactive else None

    def text(self, text: str) -> str:
        """Foreign text, made safe for this stream."""
        return safe(text) if self.interactive or self.colour else text

    def line(self, text: str) -> str:
        """Foreign text on one line."""
        return " ".join(self.text(text).split())

    def style(self, text: str, *names: str) -> str:
        if not self.colour or not text or not names:
            return text
        return f"\x1b[{';'.join(_CODES[name] for name in names)}m{text}\x1b[0m"

    def link(self, text: str, path: str | None) -> str:
        """Text that opens a file when clicked, if the terminal supports it."""
        if not path or not self.colour or not _knows_links(interactive=self.interactive):
            return text
        from urllib.parse import quote  # rarely needed

        return f"\x1b]8;;file://{quote(path.encode('utf-8', 'replace'))}\x1b\\{text}\x1b]8;;\x1b\\"

    def write(self, text: str) -> None:
        self.stream.write(text + "\n")


def _wants_colour(*, interactive: bool) -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return os.environ["FORCE_COLOR"] != "0"
    return interactive and os.environ.get("TERM") != "dumb"


def _knows_links(*, interactive: bool) -> bool:
    """Whether the terminal is known to support OSC 8; others may print garbage."""
    environment = os.environ
    if (forced := environment.get("FORCE_HYPERLINK")) is not None:
        return forced != "0"
    if not interactive:
        return False
    if environment.get("TERM_PROGRAM") in _WITH_LINKS or "kitty" in environment.get("TERM", ""):
        return True
    if environment.get("WT_SESSION") or environment.get("KONSOLE_VERSION"):
        return True
    vte = environment.get("VTE_VERSION", "")
    return vte.isdigit() and int(vte) >= _FIRST_VTE


def _width() -> int:
    import shutil  # a pipe has no width

    return max(40, shutil.get_terminal_size((80, 24)).columns)


in_every_object: dict[str, Any] = {}  # fields that are about the answer as a whole


def json_line(value: Any) -> None:
    """Write one object and flush, so that the reader of a pipe need not wait for the rest."""
    import json  # loads in half the time of orjson

    value = {**value, **in_every_object} if in_every_object else value
    line = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    if sys.stdout.isatty():  # a pipe gets the text as it is
        line = inert(line.decode()).encode()
    out = sys.stdout.buffer
    out.write(line + b"\n")
    out.flush()


def csv_text(text: str) -> str:
    """Foreign text for CSV: spreadsheets run formulas, terminals interpret escape sequences.

    A leading apostrophe makes it text in a spreadsheet.
    """
    return Terminal().text(f"'{text}" if text.startswith(_FORMULA) else text)


def inert(line: str) -> str:
    """The same JSON with all control characters escaped: encoders escape only some."""
    if line.isprintable():
        return line
    import json

    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in line)


@contextlib.contextmanager
def pager(*, wanted: bool = True) -> Iterator[Terminal]:
    """A terminal to write to: a pager, from the first line on, if stdout is a terminal."""
    command = _pager_command() if wanted and sys.stdout.isatty() else None
    if command is None:
        yield Terminal()
        sys.stdout.flush()
        return
    paged = _Paged(command)
    try:
        yield Terminal(paged, paged=True)  # type: ignore[arg-type]
    except BrokenPipeError:
        if not paged.closed_early:
            raise
    finally:
        paged.finish()


class _Paged:
    """A stream into a pager, as git does it: started by the first line, quiet when it is closed.

    What is written waits in memory for the pager, not for the person who reads: a transaction that
    is open meanwhile ends as soon as everything is rendered.
    """

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._process: Any = None
        self._thread: Any = None
        self._queue: Any = None
        self.closed_early = False

    def write(self, text: str) -> int:
        if self._process is None:
            self._start()
        if self.closed_early:
            raise BrokenPipeError
        self._queue.put(text)
        return len(text)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return True

    def _start(self) -> None:
        import queue  # only with a pager
        import subprocess
        import threading

        sys.stdout.flush()
        self._queue = queue.SimpleQueue()
        # Without R, `less` prints colour codes; without F it stays for a few lines.
        environment = {"LESS": "FRX", "LV": "-c", **os.environ}
        self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, env=environment)
        self._thread = threading.Thread(target=self._feed, daemon=True)
        self._thread.start()

    def _feed(self) -> None:
        pipe = self._process.stdin
        try:
            while (text := self._queue.get()) is not None:
                pipe.write(text.encode("utf-8", "backslashreplace"))
                if self._queue.empty():
                    pipe.flush()
        except OSError:
            self.closed_early = True
        with contextlib.suppress(OSError):
            pipe.close()

    def finish(self) -> None:
        """Wait until the person closes the pager; Ctrl-C goes to it."""
        if self._process is None:
            return
        self._queue.put(None)
        while True:
            with contextlib.suppress(KeyboardInterrupt):
                self._process.wait()
                break


def _pager_command() -> list[str] | None:
    """The pager to run; None for none."""
    if os.environ.get("TERM") == "dumb":
        return None
    import shlex
    from shutil import which

    try:
        words = shlex.split(chosen_pager())
    except ValueError:
        return None
    if not words or words == ["cat"] or which(words[0]) is None:
        return None
    return words


def chosen_pager() -> str:
    """As git chooses: our own variable, the configuration, PAGER, `less`."""
    from sess_cli import settings

    if (own := os.environ.get("SESS_PAGER")) is not None:
        return own
    if (configured := settings.read().pager) is not None:
        return configured
    return os.environ.get("PAGER", "less")
