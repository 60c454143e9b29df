"""Where exports go besides files: to folders, to terminals, escaped, and to a gist."""

from __future__ import annotations

import codecs
import io
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from sess_cli.terminal import inert
from sess_common.errors import Exit, SessError
from sess_common.escape import safe
from sess_common.program import counted, say

if TYPE_CHECKING:
    from sess_cli.export.story import Story

_PRIVATE_FOLDER = 0o700
_IN_MEMORY = 8 << 20  # bytes of one session
_PREVIEW = "https://gistpreview.github.io/?"


def make_folder(path: str) -> None:
    os.makedirs(path, mode=_PRIVATE_FOLDER, exist_ok=True)


# -- several sessions in one export


class Failures:
    """Collects the sessions that failed, each with the reason."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str]] = []
        self.why: str | None = None  # the last one failed

    @contextmanager
    def noted(self, story: Story) -> Iterator[None]:
        """Go on after an error, unless it is about the file that is being written."""
        self.why = None
        try:
            yield
        except Exception as error:
            if isinstance(error, OSError) or isinstance(error.__cause__, OSError):
                raise
            self.why = str(error) or type(error).__name__
            self.found.append((story.row.session, self.why))


@contextmanager
def all_or_nothing(out: BinaryIO) -> Iterator[BinaryIO]:
    """What is written reaches `out` only if no error ends it."""
    with SpooledTemporaryFile(_IN_MEMORY) as part:
        yield cast("BinaryIO", part)
        part.seek(0)
        shutil.copyfileobj(part, out)


# -- standard output


class EscapingTerminal(io.RawIOBase):
    """A terminal that gets no control characters but line breaks and tabs."""

    def __init__(self, out: BinaryIO, *, json: bool) -> None:
        self._out = out
        self._made = _inert_lines if json else safe
        self._rest = codecs.getincrementaldecoder("utf-8")("replace")

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._out.write(self._made(self._rest.decode(bytes(data))).encode())
        return len(data)


def _inert_lines(text: str) -> str:
    return "\n".join(map(inert, text.split("\n")))


# -- on from there: the browser, a secret gist


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
