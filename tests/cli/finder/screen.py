"""The finder as somebody at it sees it: driven by textual's pilot, or on a terminal of its own."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
import time
from contextlib import closing

from tests.waiting import LIMIT
from textual import events
from textual.keys import _character_to_key, key_to_character

from sess_cli.finder import looks
from sess_cli.finder.app import Finder, Help
from sess_schema.citations import Citations
from sess_schema.connection import open_reader

PATIENCE = LIMIT


class Screen:
    """What somebody at the finder does and sees."""

    def __init__(self, app, pilot):
        self.app = app
        self.pilot = pilot

    async def until(self, seen):
        end = time.monotonic() + PATIENCE
        while not seen():
            assert time.monotonic() < end, f"never seen; the screen:\n{self.text()}"
            await self.pilot.pause(0.005)

    async def type(self, text):
        """Letters, and then the answer to all of them."""
        self.app._line.value = text[:-1]
        self.app._line.cursor_position = len(text)
        await self.send(events.Key(_character_to_key(text[-1]), text[-1]))
        assert self.app._line.value == text

    async def press(self, *keys):
        for key in keys:
            await self.send(events.Key(key, key_to_character(key)))

    async def send(self, key):
        """As the pilot does it, but without its wait for an idle processor."""
        self.app.post_message(key)
        await self.settle()

    async def settle(self):
        """Every message is handled, the last question is answered, a menu has the focus."""
        for _ in range(3):
            await self.pilot.pause(0)
        await self.until(lambda: self.app._answer and self.app._answer.request == self.app._asked)
        await self.until(lambda: self.app.screen.focused or isinstance(self.app.screen, Help))
        await self.pilot.pause(0)

    def lines(self, widget):
        return [widget.render_line(y).text.rstrip() for y in range(widget.size.height)]

    def list(self):
        return [line for line in self.lines(self.app._results) if line]

    def preview(self):
        return self.lines(self.app._preview)

    def summary(self):
        return self.app._results._border_title.plain

    def heading(self):
        title = self.app._preview._border_title
        return title.plain if title else ""

    def text(self):
        return "\n".join([self.summary(), *self.list(), "--", *self.preview()])

    def chosen(self, facet):
        return self.app._facets.chip(facet).choice.label

    def cite(self):
        """How the chosen event is named behind a `#`."""
        with closing(open_reader(self.app._index)) as db:
            return Citations(db).short(self.app.item.event)

    def said(self):
        return [one.message for one in self.app._notifications]

    def marked(self, widget):
        """What is highlighted as a match."""
        return [
            segment.text
            for y in range(widget.size.height)
            for segment in widget.render_line(y)
            if segment.style and segment.style.bgcolor == looks.MATCH.bgcolor
        ]


def drive(world, script, size=(160, 40)):
    async def main():
        app = Finder(world.state / "index.db", utc=True)
        async with app.run_test(size=size) as pilot:
            screen = Screen(app, pilot)
            await screen.until(lambda: app._answer is not None)
            await screen.settle()
            await script(screen)

    asyncio.run(main())


class Terminal:
    """The finder in a process of its own, on a terminal that records what it receives."""

    def __init__(self, world, *command, **env):
        """Runs a command on it, or the finder alone."""
        self.received = b""
        self._outer, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        code = "import sys, pathlib; from sess_cli.finder import run; "
        code += "sys.exit(run(pathlib.Path(sys.argv[1]), utc=True))"
        controlled = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
        controlled += "os.execvp(sys.argv[1], sys.argv[1:])"
        command = command or (sys.executable, "-c", code, str(world.state / "index.db"))
        self.process = subprocess.Popen(
            [sys.executable, "-c", controlled, *command],
            stdin=inner, stdout=inner, stderr=inner, cwd=world.root, start_new_session=True,
            env={**world.env, "TERM": "xterm-256color", **env},
        )  # fmt: skip
        os.close(inner)
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self._reader.join()
        os.close(self._outer)

    def _read(self):
        try:
            while piece := os.read(self._outer, 65536):
                self.received += piece
        except OSError:  # Linux says so when the other side is closed
            pass

    def text(self):
        return re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", self.received.decode(errors="replace"))

    def until(self, seen):
        end = time.monotonic() + PATIENCE
        while not seen():
            assert time.monotonic() < end, self.text()[-3000:]
            time.sleep(0.02)

    def send(self, keys):
        os.write(self._outer, keys.encode())

    def ended(self):
        code = self.process.wait(PATIENCE)
        self._reader.join()
        return code


def program(path, text):
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(0o755)
