"""What the keys do with the current line."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Literal, TypeVar

import apsw
from textual.app import App, SuspendNotSupported

from sess_cli.finder import actions, looks
from sess_cli.finder.results import Item
from sess_cli.render import amounts
from sess_common.errors import explained
from sess_schema.connection import open_reader

Made = TypeVar("Made")
_SHORTLY, _LONGER = 4, 12  # seconds to show a message


class Acting(App[actions.Resume | str]):
    """An app whose current item can be read, copied, exported and resumed."""

    def __init__(self, index: Path, *, utc: bool, choosing: bool) -> None:
        super().__init__(ansi_color=True)
        self.choosing = choosing  # whether enter ends it with the ID of the current session
        self._index = index
        self._utc = utc

    @property
    @abstractmethod
    def item(self) -> Item | None:
        """The current line."""

    def read(self, item: Item, words: Sequence[str]) -> None:
        try:
            with self.suspend(), closing(open_reader(self._index)) as db:
                actions.read_in_pager(db, item.session, item.event, words, utc=self._utc)
        except SuspendNotSupported:
            self.say("no terminal to show it on", wrong=True)
        except Exception as error:
            self.say_error(error)

    def action_copy_name(self) -> None:
        def copy(name: str) -> None:
            self.copy_to_clipboard(name)
            self.say(f"copied {name}")

        self._do(lambda db, item: actions.name_of(db, item.session, item.event), copy)

    def action_copy_markdown(self) -> None:
        def copy(text: str) -> None:
            self.copy_to_clipboard(text)
            self.say(f"copied {amounts.plural(len(text.splitlines()), 'line')} of Markdown")

        self._do(
            lambda db, item: actions.as_markdown(db, item.session, item.event, utc=self._utc), copy
        )

    def action_export(self) -> None:
        self._do(
            lambda db, item: actions.export(db, item.session, Path.cwd(), utc=self._utc),
            lambda path: self.say(f"wrote {path}"),
        )

    def choose(self) -> None:
        self._do(lambda db, item: actions.id_of(db, item.session), self.exit)

    def action_resume(self) -> None:
        if self.choosing:
            return

        def leave(resume: actions.Resume) -> None:
            if resume.program() is None:
                name = resume.arguments[0]
                self.say(f"{name} is not on PATH; run: {resume.as_typed()}", wrong=True)
            elif resume.vanished is not None:
                gone = f'the directory of this session no longer exists: "{resume.vanished}"'
                self.say(f"{gone}; create it, or try: {resume.as_typed()}", wrong=True)
            else:
                self.exit(resume)

        self._do(lambda db, item: actions.resume(db, item.session), leave)

    def _do(
        self, work: Callable[[apsw.Connection, Item], Made], done: Callable[[Made], None]
    ) -> None:
        """Work on the current item in a thread."""
        item = self.item
        if item is None:
            return

        def beside() -> Made:
            with closing(open_reader(self._index)) as db:
                return work(db, item)

        async def task() -> None:
            try:
                made = await asyncio.to_thread(beside)
            except Exception as error:
                self.say_error(error)
            else:
                done(made)

        self.run_worker(task())

    def say(self, message: str, *, wrong: bool = False) -> None:
        severity: Literal["warning", "information"] = "warning" if wrong else "information"
        timeout = _LONGER if wrong else _SHORTLY
        self.clear_notifications()
        self.notify(looks.line(message), severity=severity, markup=False, timeout=timeout)

    def say_error(self, error: Exception) -> None:
        known = explained(error, str(self._index))
        hint = f"; {known.hint}" if known and known.hint else ""
        self.say(f"{known.message if known else error}{hint}", wrong=True)
