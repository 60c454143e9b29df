"""`sess stats --watch`: redraws the screen whenever the index changes."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from io import StringIO

import apsw

from sess_cli import fresh
from sess_cli.render import amounts, layout
from sess_cli.terminal import Terminal
from sess_common import times
from sess_common.errors import SessError

_POLL = 0.25  # seconds between checks of the index, which are cheap
_SYNC = 10.0  # seconds between syncs when no daemon runs
_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
_HOME, _END_OF_LINE, _BELOW = "\x1b[H", "\x1b[K", "\x1b[J"

Draw = Callable[[apsw.Connection, Terminal, int], None]


def watch(draw: Draw, *, sync: bool) -> None:
    """Run until interrupted. `draw` writes at most the given number of lines."""
    if not sys.stdout.isatty():
        raise SessError("--watch needs a terminal", hint="leave it out to print once")
    sys.stdout.write(_ENTER)
    try:
        while True:
            with fresh.open_with_sessions(sync=sync) as db:
                _follow(db, draw)
    finally:
        sys.stdout.write(_LEAVE)
        sys.stdout.flush()


def _follow(db: apsw.Connection, draw: Draw) -> None:
    """Draw whenever something changes, until the next sync is due."""
    until = time.monotonic() + _SYNC
    seen: tuple[object, ...] | None = None
    while time.monotonic() < until:
        size = shutil.get_terminal_size((80, 24))
        now = (db.pragma("data_version"), size)
        if now != seen:
            seen = now
            _show(db, draw, size.columns, size.lines)
        time.sleep(_POLL)


def _show(db: apsw.Connection, draw: Draw, columns: int, lines: int) -> None:
    """Overwrite the screen line by line, so that it does not flicker."""
    page = StringIO()
    terminal = Terminal(page, paged=True)
    with db:
        draw(db, terminal, lines - 2)
    drawn = page.getvalue().splitlines()[: lines - 2]
    drawn += [""] * (lines - 1 - len(drawn))
    foot = layout.cut(f"{amounts.clock(times.now_ms(), seconds=True)}  Ctrl-C to quit", columns)
    drawn.append(terminal.style(foot, "dim"))
    sys.stdout.write(_HOME + f"{_END_OF_LINE}\r\n".join(drawn) + _END_OF_LINE + _BELOW)
    sys.stdout.flush()
