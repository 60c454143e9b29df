"""What is done with a written export: open it in the browser, or upload it as a secret gist."""

from __future__ import annotations

import shutil
import subprocess

import apsw

from sess_cli.export import files
from sess_cli.export.html import page
from sess_cli.export.story import Story, usual_redactor
from sess_common import paths
from sess_common.errors import Exit, SessError
from sess_common.program import counted, say
from sess_schema.citations import Citations
from sess_schema.ids import EventId, SessionId
from sess_schema.queries import sessions

_PREVIEW = "https://gistpreview.github.io/?"


def open_at(db: apsw.Connection, session: SessionId, event: EventId, *, utc: bool) -> None:
    path = paths.home().data / files.OPENED  # overwritten each time: to keep a page, export it
    story = Story(db, sessions.by_key(db, session), usual_redactor())
    with files.new_file(str(path)) as out:
        page.write(story, out, page.Look(level="everything", utc=utc))
    address = f"{path.as_uri()}#{Citations(db).key(event, session)}"
    say(address)
    open_address(address, hint="open the address above")


def open_address(address: str, *, hint: str) -> None:
    import webbrowser  # nothing else needs it

    if not webbrowser.open(address):
        raise SessError("cannot open a browser", hint=hint, code=Exit.PROGRAM_FAILED)


def upload_gist(files: list[str]) -> None:
    """Upload, and print the address; errors of `gh` are passed on."""
    program = shutil.which("gh")
    if program is None:
        raise SessError(
            "gh is not on PATH, so nothing was uploaded",
            hint="https://cli.github.com, then `gh auth login`; the files were written",
            code=Exit.PROGRAM_FAILED,
        )
    say(f"uploading {counted(len(files), 'file')} to gist.github.com as a secret gist")
    done = subprocess.run(
        [program, "gist", "create", "--", *files], capture_output=True, text=True, check=False
    )
    if done.returncode:
        why = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]
        raise SessError(
            f"gh cannot upload: {why}", hint="`gh auth status`", code=Exit.PROGRAM_FAILED
        )
    address = done.stdout.strip().splitlines()[-1] if done.stdout.strip() else ""
    say(f"gist: {address}")
    if files[0].endswith(".html"):
        name = files[0].replace("\\", "/").rpartition("/")[2]
        shown = "" if name == "index.html" else f"/{name}"
        say(f"preview: {_PREVIEW}{address.rpartition('/')[2]}{shown}")
