"""Open a file or a session's page in the browser, at one event."""

from __future__ import annotations

import apsw

from sess_cli.export import files, masking
from sess_cli.export.html import page
from sess_cli.export.story import Story
from sess_common import paths
from sess_common.errors import Exit, SessError
from sess_common.program import say
from sess_schema.citations import Citations
from sess_schema.ids import EventId, SessionId
from sess_schema.queries import sessions


def open_at(db: apsw.Connection, session: SessionId, event: EventId, *, utc: bool) -> None:
    path = paths.home().data / files.OPENED  # overwritten each time: to keep a page, export it
    story = Story(db, sessions.by_key(db, session), masking.usual())
    with files.new_file(str(path)) as out:
        page.write(story, out, page.Look(level="everything", utc=utc))
    address = f"{path.as_uri()}#{Citations(db).key(event, session)}"
    say(address)
    open_address(address, hint="open the address above")


def open_address(address: str, *, hint: str) -> None:
    import webbrowser  # nothing else needs it

    if not webbrowser.open(address):
        raise SessError("cannot open a browser", hint=hint, code=Exit.PROGRAM_FAILED)
