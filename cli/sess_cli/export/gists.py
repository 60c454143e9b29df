"""Upload files as a secret gist with `gh`, which knows who the user is."""

from __future__ import annotations

import shutil
import subprocess

from sess_common.errors import Exit, SessError
from sess_common.program import counted, say

_PREVIEW = "https://gistpreview.github.io/?"


def upload(files: list[str]) -> None:
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
