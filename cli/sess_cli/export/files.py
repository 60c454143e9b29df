"""Where exports go: to private files, whole or not at all; to terminals, escaped; to a gist."""

from __future__ import annotations

import atexit
import codecs
import errno
import io
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from secrets import token_hex
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from sess_cli.terminal import inert
from sess_common import paths
from sess_common.errors import Exit, SessError
from sess_common.escape import safe
from sess_common.program import counted, say

if TYPE_CHECKING:
    from sess_cli.export.story import Story

_PRIVATE, _PRIVATE_FOLDER = 0o600, 0o700
_HEAD = 4096  # bytes within which an export says who made it
_MARKS = (
    b'<meta name="generator" content="sessiond',
    b'<meta name="generator" content="sess export html',
    b'{"format":"sessiond-session',
)
NOTE = b"---\nsource: sessiond\n"  # how a note of a tree begins
DATABASE = 0x73657373  # the application_id of exported databases: "sess"
OPENED = "opened.html"  # the page that `sess show --open` leaves beside the index
_STATE = ("index.db", "status.json", "sessiond.", "config.toml")
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_IN_MEMORY = 8 << 20  # bytes of one session
_PREVIEW = "https://gistpreview.github.io/?"
# A signal may arrive before the `try` begins or after its `finally` has run.
_unfinished: set[str] = set()


def check_target(path: str) -> None:
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise SessError(f'no such directory: "{folder}"', hint=f'`mkdir -p "{folder}"`')
    if os.path.isdir(path):
        raise SessError(f'"{path}" is a directory', hint="name a file in it")
    if os.path.exists(path) and not os.path.isfile(path):  # it would be replaced
        raise SessError(f'"{path}" is not a regular file', hint="`-o -` writes to stdout")


def check_replacing(path: str, *, force: bool) -> None:
    """Refuse to replace what is no earlier export, unless told to."""
    if os.path.isdir(path):
        return  # each style knows its own directories
    check_target(path)
    if os.path.lexists(path) and not force and not is_export(path):
        raise SessError(f'"{path}" exists already', hint="`--force` replaces it")


def is_export(path: str) -> bool:
    """Whether the file says that it was made by us."""
    try:
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        with open(fd, "rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return False
    if head.startswith(b"SQLite format 3"):
        return head[68:72] == DATABASE.to_bytes(4, "big")
    return head.startswith(NOTE) or any(mark in head for mark in _MARKS)


def _check_state(path: str) -> None:
    """Nothing replaces the index, its settings or its logs, whatever is asked for."""
    home = paths.home()
    folder, name = os.path.split(os.path.realpath(path))
    own = {os.path.realpath(place) for place in (home.data, home.config, home.logs)}
    inside = any(folder == place or folder.startswith(place + os.sep) for place in own)
    taken = name.startswith(_STATE) or os.path.lexists(path)
    if inside and taken and name != OPENED and not is_export(path):
        raise SessError(
            f'"{path}" belongs to sessiond itself', hint="write somewhere else with `-o`"
        )


def make_folder(path: str) -> None:
    os.makedirs(path, mode=_PRIVATE_FOLDER, exist_ok=True)


@contextmanager
def new_file(path: str) -> Iterator[BinaryIO]:
    with new_path(path) as partial, open(partial, "wb") as file:
        yield file


@contextmanager
def new_path(path: str) -> Iterator[str]:
    """The name of a temporary file next to `path`, which replaces it at the end."""
    check_target(path)
    _check_state(path)
    folder = os.path.dirname(os.path.abspath(path))
    partial = os.path.join(folder, f".sess-{token_hex(6)}")
    _unfinished.add(partial)
    try:
        try:
            os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _PRIVATE))
        except OSError as error:  # the error should name the file that was asked for
            raise OSError(error.errno, error.strerror, path) from None
        yield partial
        os.chmod(partial, _PRIVATE)
        os.replace(partial, path)
    except OSError as error:
        if error.errno in _NO_SPACE:
            raise SessError(
                f'no space left for "{path}"', hint="free some, or write elsewhere with `-o`"
            ) from error
        raise
    finally:
        _remove(partial)


def _remove(partial: str) -> None:
    with suppress(OSError):
        os.unlink(partial)
    _unfinished.discard(partial)


@atexit.register
def _remove_unfinished() -> None:
    for partial in [*_unfinished]:
        _remove(partial)


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
