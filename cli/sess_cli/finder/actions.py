"""What can be done with a hit: read it, export it, resume it. Nothing here draws."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import apsw

from sess_cli.resuming import Resume, resume
from sess_schema.citations import Citations
from sess_schema.ids import EventId, SessionId
from sess_schema.queries import sessions
from sess_schema.queries.sessions import SessionRow

__all__ = ["Resume", "as_markdown", "export", "id_of", "name_of", "read_in_pager", "resume"]

_FILE_NAME = re.compile(r"[^0-9A-Za-z_-]+")
_LONGEST_NAME = 80
_SPECIAL = re.compile(r"[\\.\[\](){}*+?^$|]")  # in any library of expressions
MARK = "▶"  # before the event, in `render/transcript.py`


def export(db: apsw.Connection, session: SessionId, folder: Path, *, utc: bool) -> Path:
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
    from sess_cli.export import markdown as document  # slow to import
    from sess_cli.export import masking
    from sess_cli.export.story import Story

    document.write(Story(db, row, masking.usual()), out, utc=utc)


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
    from sess_cli.paging import pager  # must not delay the first keystroke
    from sess_cli.render.transcript import TranscriptView
    from sess_schema.session.reader import Reader

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
    from sess_cli.paging import chosen

    before = os.environ.get("SESS_PAGER")
    try:
        words = shlex.split(chosen())
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
