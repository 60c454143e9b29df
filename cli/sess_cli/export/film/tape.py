"""A storyboard as a tape for VHS, which types into a real shell and records it.

Nothing from a transcript may reach that shell. The first line of the tape, typed while hidden,
replaces the shell with `cat`, which reads keys and does nothing; if that fails, the shell exits.
VHS continues only after the new process has printed a message on the screen. From then on, typed
text appears because the terminal echoes it, and no shell is left that could run it.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from sess_cli.export.film.pacing import worths
from sess_cli.export.film.rows import plain
from sess_cli.export.film.scenes import Call, Scene, Storyboard
from sess_cli.render import amounts
from sess_common.errors import Exit, SessError
from sess_common.escape import safe

TYPING = 30  # milliseconds per key
OUTPUT, COMMAND, SUBJECT = 200, 600, 80  # characters
SAID = {"prompt": 6, "answer": 6}  # rows of each
_DELIMITERS = "\"'`"
_FASTEST = 4  # beyond this, drop scenes instead of playing faster
# -icanon removes the line length limit and the end-of-file key; -isig and -ixon disable the keys
# that stop programs. The typed command has the message only in two halves, so it cannot match.
READER = (
    "stty -icanon -isig -iexten -ixon echo"
    r" && printf '\033[H\033[2J%s %s\n' '# a recording:' 'nothing typed here is run'"
    " && exec cat > /dev/null; exit"
)
_READY = "/recording: nothing typed here is run/"
_THEMES = {
    "mocha": "Catppuccin Mocha", "macchiato": "Catppuccin Macchiato",
    "frappe": "Catppuccin Frappe", "latte": "Catppuccin Latte", "dracula": "Dracula",
}  # fmt: skip
_HEAD = (
    'Set Shell "bash"',
    "Set FontSize {font_size}",
    "Set Width {width}",
    "Set Height {height}",
    f"Set TypingSpeed {TYPING}ms",
    'Set Theme "{theme}"',
)
TAPE = "session.tape"


def lines(
    board: Storyboard,
    *,
    output: str,
    ident: str,
    width: int = 1920,
    height: int = 1080,
    font_size: int = 26,
    theme: str = "Catppuccin Mocha",
    speed: float = 1.0,
    duration: int | None = None,
    utc: bool = False,
) -> Iterator[str]:
    """The tape, line by line."""
    scenes = [scene for scene in board.scenes if _actions(scene)]
    if duration is not None:
        scenes = _chosen(scenes, duration)
        speed = max(0.1, (sum(map(_scene_length, scenes)) + 5000) / duration)
    yield f"Output {_quoted(_name(output))}"
    for line in _HEAD:
        yield line.format(font_size=font_size, width=width, height=height, theme=theme)
    if speed != 1:
        yield f"Set PlaybackSpeed {speed:.2f}"
    yield ""
    yield "Hide"
    yield f"Type {_quoted(READER)}"
    yield "Enter"
    yield f"Wait+Screen@15s {_READY}"
    yield "Show"
    yield ""
    yield from _typed(f"# {ident[:8]} {amounts.clock(board.started, utc=utc)} {board.title}"[:120])
    yield "Sleep 2s"
    for scene in scenes:
        yield ""
        for text, pause in _actions(scene):
            yield from _typed(text)
            if pause:
                yield f"Sleep {pause}"
    yield ""
    yield "Sleep 3s"


def theme_name(name: str) -> str:
    """The VHS name of one of our themes."""
    if name.lower() not in _THEMES:
        raise SessError(f'VHS has no theme "{name}"', hint=f"one of {', '.join(_THEMES)}")
    return _THEMES[name.lower()]


def _actions(scene: Scene) -> list[tuple[str, str]]:
    """Lines to type and the pause after each."""
    if scene.kind in SAID:
        said = [*scene.head.shown(SAID[scene.kind]), *scene.body.shown(SAID[scene.kind])]
        lines = [line for row in said for line in _lines(plain(row), 2 * COMMAND)]
        return [*((line, "") for line in lines[:-1]), *((line, "1s") for line in lines[-1:])]
    return _of_call(scene.call) if scene.call else []


def _of_call(call: Call) -> list[tuple[str, str]]:
    if call.kind == "shell":
        command = _lines(call.subject.strip(), COMMAND)
        if not command:
            return []
        lines = [(f"$ {command[0]}", ""), *((f"> {line}", "") for line in command[1:])]
        lines += [(line, "") for line in _lines(call.output, OUTPUT)]
        mark = {"ok": "# ✓ OK", "pending": "# … no result", "denied": "# ✗ DENIED"}.get(
            call.status, "# ✗ FAILED"
        )
        return [*lines, (mark, "1s")]
    name = "Agent" if call.kind == "agent" else call.tool
    subject = " ".join(safe(call.subject).split())
    shown = subject if len(subject) <= SUBJECT else subject[:SUBJECT] + "..."
    return [(f"# {name}: {shown}", "1s" if call.kind == "agent" else "500ms")]


def _lines(text: str, most: int) -> list[str]:
    clean = safe(text).rstrip().lstrip("\r\n")  # the first line may be indented, too
    if len(clean) > most:
        clean = clean[:most] + "..."
    return [line.expandtabs(4).rstrip() for line in clean.split("\n") if line.strip()]


def _typed(line: str) -> Iterator[str]:
    for piece in _pieces(" ".join(safe(line).split("\n"))):
        yield f"Type {_quoted(piece)}"
    yield "Enter"


def _pieces(text: str) -> Iterator[str]:
    """Strings in a tape have no escapes, so each piece lacks one of the three quotes."""
    start = 0
    met: set[str] = set()
    for at, character in enumerate(text):
        if character in _DELIMITERS:
            if len(met | {character}) == len(_DELIMITERS):
                yield text[start:at]
                start, met = at, set()
            met.add(character)
    if text[start:]:
        yield text[start:]


def _quoted(piece: str) -> str:
    quote = next(quote for quote in _DELIMITERS if quote not in piece)
    return f"{quote}{piece}{quote}"


def _name(path: str) -> str:
    if not path.isprintable() or all(quote in path for quote in _DELIMITERS):
        raise SessError(f'cannot use "{path}" in a tape', hint="use a name without quotes")
    return path


def _scene_length(scene: Scene) -> int:
    """Milliseconds of the tape at normal speed."""
    actions = _actions(scene)
    pauses = {"": 0, "500ms": 500, "1s": 1000}
    return sum(TYPING * (len(text) + 1) + pauses[pause] for text, pause in actions)


def _chosen(scenes: list[Scene], duration: int) -> list[Scene]:
    """The most important scenes that fit a film of this length."""
    left = duration * _FASTEST
    kept = set()
    ranked = sorted(zip(worths(scenes), range(len(scenes)), strict=True), key=lambda pair: -pair[0])
    for _, number in ranked:
        left -= (length := _scene_length(scenes[number]))
        if left < 0:
            left += length
        else:
            kept.add(number)
    return [scene for number, scene in enumerate(scenes) if number in kept]


# -- recording a tape with VHS, if installed


def vhs_program() -> str:
    program = shutil.which("vhs")
    if program is None:
        raise SessError(
            "vhs is not on PATH",
            hint="`brew install vhs` or https://github.com/charmbracelet/vhs (it needs ttyd and"
            " ffmpeg); without --backend vhs the built-in renderer needs none of them",
            code=Exit.PROGRAM_FAILED,
        )
    return program


def record_tape(tape: Iterable[str], output: str, into: BinaryIO) -> None:
    """Run VHS in a temporary directory; `output` is the name in the tape."""
    vhs = vhs_program()
    with tempfile.TemporaryDirectory(prefix="sess-vhs-") as folder:
        with open(os.path.join(folder, TAPE), "w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{line}\n" for line in tape)
        done = subprocess.run(
            [vhs, TAPE], cwd=folder, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False
        )
        if done.returncode:
            raise _vhs_failed(_exit_reason(done.returncode))
        try:
            with open(os.path.join(folder, output), "rb") as file:
                shutil.copyfileobj(file, into)
        except FileNotFoundError:
            raise _vhs_failed("succeeded but wrote no film") from None


def _vhs_failed(how: str) -> SessError:
    return SessError(f"vhs {how}", hint="its output is above", code=Exit.PROGRAM_FAILED)


def _exit_reason(status: int) -> str:
    if status > 0:
        return f"failed with exit status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = str(-status)
    return f"was ended by signal {name}"
