"""Record a tape with VHS, if installed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from typing import BinaryIO

from sess_schema.errors import SessError

TAPE = "session.tape"


def program() -> str:
    found = shutil.which("vhs")
    if found is None:
        raise SessError(
            "vhs is not on PATH",
            hint="`brew install vhs` or https://github.com/charmbracelet/vhs (it needs ttyd and"
            " ffmpeg); without --backend vhs the built-in renderer needs none of them",
        )
    return found


def film(tape: Iterable[str], output: str, into: BinaryIO) -> None:
    """Run VHS in a temporary directory; `output` is the name in the tape."""
    vhs = program()
    with tempfile.TemporaryDirectory(prefix="sess-vhs-") as folder:
        with open(os.path.join(folder, TAPE), "w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{line}\n" for line in tape)
        done = subprocess.run(
            [vhs, TAPE], cwd=folder, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False
        )
        if done.returncode:
            raise SessError(f"vhs {_ended(done.returncode)}", hint="its output is above")
        try:
            with open(os.path.join(folder, output), "rb") as file:
                shutil.copyfileobj(file, into)
        except FileNotFoundError:
            raise SessError("vhs succeeded but wrote no film", hint="its output is above") from None


def _ended(status: int) -> str:
    if status > 0:
        return f"failed with exit status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = str(-status)
    return f"was ended by signal {name}"
