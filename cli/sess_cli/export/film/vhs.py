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

from sess_common.errors import Exit, SessError

TAPE = "session.tape"


def program() -> str:
    found = shutil.which("vhs")
    if found is None:
        raise SessError(
            "vhs is not on PATH",
            hint="`brew install vhs` or https://github.com/charmbracelet/vhs (it needs ttyd and"
            " ffmpeg); without --backend vhs the built-in renderer needs none of them",
            code=Exit.PROGRAM_FAILED,
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
            raise _failed(_ended(done.returncode))
        try:
            with open(os.path.join(folder, output), "rb") as file:
                shutil.copyfileobj(file, into)
        except FileNotFoundError:
            raise _failed("succeeded but wrote no film") from None


def _failed(how: str) -> SessError:
    return SessError(f"vhs {how}", hint="its output is above", code=Exit.PROGRAM_FAILED)


def _ended(status: int) -> str:
    if status > 0:
        return f"failed with exit status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = str(-status)
    return f"was ended by signal {name}"
