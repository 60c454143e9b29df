"""The picker without a screen: the records in rows, and one line to answer."""

from __future__ import annotations

import sys

from sess_cli.edit import listing
from sess_cli.edit.plan import parse_range
from sess_cli.picker.marks import Marks
from sess_cli.terminal import Terminal
from sess_common.errors import SessError
from sess_common.program import say


def pick(marks: Marks, *, utc: bool) -> bool:
    """Ask for numbers until they are right; an empty line keeps the marks, its end aborts."""
    terminal = Terminal()
    for record in marks.records:
        terminal.write(listing.row(terminal, record, utc=utc, mark=marks.mark(record.number)))
        if why := marks.why(record.number):
            terminal.write(f"          {terminal.line(why)}")
    terminal.write(marks.header())
    marked = ",".join(map(str, sorted(marks.chosen)))
    while True:
        say(f"numbers to cut{f' [{marked}]' if marked else ''}: ")
        line = sys.stdin.readline()
        if not line:
            return False
        if not line.strip():
            return True
        try:
            marks.chosen.clear()
            for number in parse_range(line, len(marks.plan.transcript.records)):
                marks.toggle(number)
        except SessError as error:
            say(f"sess: {error.message}")
            continue
        return True
