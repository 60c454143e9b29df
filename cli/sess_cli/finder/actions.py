"""What the keys do with a hit: read it, copy it, export it, resume it."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import re
import shlex
import shutil
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import BinaryIO, Literal, TypeVar

import apsw
from textual.app import App, SuspendNotSupported

from sess_cli.finder import looks
from sess_cli.finder.results import Item
from sess_cli.render import amounts
from sess_cli.resuming import Resume, resume
from sess_cli.terminal import chosen_pager, pager
from sess_common.errors import SessError, explained
from sess_schema import calls, kinds
from sess_schema.citations import Citations
from sess_schema.connection import open_reader
from sess_schema.ids import EventId, SessionId
from sess_schema.queries import sessions
from sess_schema.queries.sessions import SessionRow

Made = TypeVar("Made")
Choosing = Literal["session", "command"] | None
COMMANDS_HERE = "kind:shell project:. "  # what agents ran where the shell is
_SHORTLY, _LONGER = 4, 12  # seconds to show a message
_FILE_NAME = re.compile(r"[^0-9A-Za-z_-]+")
_LONGEST_NAME = 80
_SPECIAL = re.compile(r"[\\.\[\](){}*+?^$|]")  # in any library of expressions
MARK = "▶"  # before the event, in `render/transcript.py`


class Acting(App[Resume | str]):
    """An app whose current item can be read, copied, exported and resumed."""

    def __init__(self, index: Path, *, utc: bool, choosing: Choosing) -> None:
        super().__init__(ansi_color=True)
        self.choosing = choosing  # what enter ends it with
        self._index = index
        self._utc = utc

    @property
    @abstractmethod
    def item(self) -> Item | None:
        """The current line."""

    def read(self, item: Item, words: Sequence[str]) -> None:
        try:
            with self.suspend(), closing(open_reader(self._index)) as db:
                read_in_pager(db, item.session, item.event, words, utc=self._utc)
        except SuspendNotSupported:
            self.say("no terminal to show it on", wrong=True)
        except Exception as error:
            self.say_error(error)

    def action_copy_name(self) -> None:
        def copy(name: str) -> None:
            self.copy_to_clipboard(name)
            self.say(f"copied {name}")

        self._do(lambda db, item: name_of(db, item.session, item.event), copy)

    def action_copy_markdown(self) -> None:
        def copy(text: str) -> None:
            self.copy_to_clipboard(text)
            self.say(f"copied {amounts.plural(len(text.splitlines()), 'line')} of Markdown")

        self._do(lambda db, item: as_markdown(db, item.session, item.event, utc=self._utc), copy)

    def action_export(self) -> None:
        self._do(
            lambda db, item: export_session(db, item.session, Path.cwd(), utc=self._utc),
            lambda path: self.say(f"wrote {path}"),
        )

    def choose(self) -> None:
        if self.choosing == "command":
            self._do(lambda db, item: command_of(db, item.session, item.event), self.exit)
        else:
            self._do(lambda db, item: id_of(db, item.session), self.exit)

    def action_resume(self) -> None:
        if self.choosing:
            return

        def leave(resume: Resume) -> None:
            if resume.program() is None:
                name = resume.arguments[0]
                self.say(f"{name} is not on PATH; run: {resume.as_typed()}", wrong=True)
            elif resume.vanished is not None:
                gone = f'the directory of this session no longer exists: "{resume.vanished}"'
                self.say(f"{gone}; create it, or try: {resume.as_typed()}", wrong=True)
            else:
                self.exit(resume)

        self._do(lambda db, item: resume(db, item.session), leave)

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
        reason = explained(error, str(self._index))
        hint = f"; {reason.hint}" if reason and reason.hint else ""
        self.say(f"{reason.message if reason else error}{hint}", wrong=True)


def export_session(db: apsw.Connection, session: SessionId, folder: Path, *, utc: bool) -> Path:
    """Write a session to a new Markdown file."""
    row = sessions.by_key(db, session)
    name = _FILE_NAME.sub("-", sessions.ShortIds(db).of(row)).strip("-")[:_LONGEST_NAME]
    number = 1
    while True:
        path = folder / f"{name or 'session'}{f'-{number}' if number > 1 else ''}.md"
        try:
            file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        except FileExistsError:
            number += 1
            continue
        with open(file, "wb") as out:
            _write_markdown(db, row, out, utc=utc)
        return path


def as_markdown(
    db: apsw.Connection, session: SessionId, event: EventId | None, *, utc: bool
) -> str:
    row = sessions.by_key(db, session)
    if event is None:
        whole = io.BytesIO()
        _write_markdown(db, row, whole, utc=utc)
        return whole.getvalue().decode()
    from sess_cli.render import markdown  # must not delay the first screen

    return markdown.event_text(db, row, event, utc=utc)


def _write_markdown(db: apsw.Connection, row: SessionRow, out: BinaryIO, *, utc: bool) -> None:
    """Like `sess export md`, with secrets masked."""
    from sess_cli.export import markdown  # slow to import
    from sess_cli.export.story import Story, usual_redactor

    markdown.write(Story(db, row, usual_redactor()), out, utc=utc)


def command_of(db: apsw.Connection, session: SessionId, event: EventId | None) -> str:
    """The command that a call ran, as it can be put on a line to be edited."""
    from sess_schema.session import Reader

    entries = [] if event is None else [*Reader(db, session).some([event])]
    given = Reader(db, session).input(entries[0]) if entries else None
    command = calls.text_in(calls.named(given), *calls.COMMANDS)
    if command is None or entries[0].kind != kinds.SHELL:
        raise SessError("not a command; choose the call of a shell")
    # What a terminal would obey, or reorder, is no part of what a person has read.
    return "".join(c for c in command.strip() if c.isprintable() or c in "\n\t")


def id_of(db: apsw.Connection, session: SessionId) -> str:
    """The whole ID, which stays unique whatever is indexed later."""
    return sessions.by_key(db, session).session


def name_of(db: apsw.Connection, session: SessionId, event: EventId | None) -> str:
    """The citation, as `sess show` takes it."""
    short = sessions.ShortIds(db).of(sessions.by_key(db, session))
    return short if event is None else f"{short}#{Citations(db).short(event, session)}"


def read_in_pager(
    db: apsw.Connection,
    session: SessionId,
    event: EventId | None,
    words: Sequence[str],
    *,
    utc: bool,
) -> None:
    """Like `sess show`, at the first of the words; returns when the pager is closed."""
    from sess_cli.render.transcript import TranscriptView  # must not delay the first keystroke
    from sess_schema.session import Reader

    row = sessions.by_key(db, session)
    with _pager_that_stays(_expression(words) if event is not None else None) as stays:
        with pager(wanted=True) as terminal:
            view = TranscriptView(db, terminal, row, full=False, utc=utc)
            for line in view.lines(Reader(db, session), at=event):
                terminal.write(line)
        if not stays:
            with contextlib.suppress(EOFError, KeyboardInterrupt):
                input("\n-- press enter to go back --")


def _expression(words: Sequence[str]) -> str:
    """What `n` and `N` go to in `less`; the line above the event is always there to be found."""
    return "|".join([f"{MARK} event #", *(_SPECIAL.sub(r"\\\g<0>", word) for word in words)])


@contextlib.contextmanager
def _pager_that_stays(expression: str | None = None) -> Iterator[bool]:
    """Keep `less` from exiting by itself, and let it search; yields whether there is a pager that
    waits for a key."""
    before = os.environ.get("SESS_PAGER")
    try:
        words = shlex.split(chosen_pager())
    except ValueError:
        words = []
    if words and os.path.basename(words[0]) == "less":
        search = ["-I", f"-p{expression}"] if expression else []
        os.environ["SESS_PAGER"] = shlex.join([*words, "-R", "-+F", "-+X", *search])
    try:
        yield bool(words) and words != ["cat"] and shutil.which(words[0]) is not None
    finally:
        if before is None:
            os.environ.pop("SESS_PAGER", None)
        else:
            os.environ["SESS_PAGER"] = before
