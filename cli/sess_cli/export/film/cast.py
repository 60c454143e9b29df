"""A film as an asciinema recording: only changed rows are written."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from operator import eq
from typing import Any

from sess_cli.export.film.rows import Colour, Film, Frame, Look, Row, half_of
from sess_cli.export.film.themes import RGB, TINTS, Theme, theme

_BEGIN = "\x1b[?25l\x1b[?7l\x1b[0m\x1b[2J"  # hide the cursor, no wrapping, clear the screen
_END = "\x1b[0m\x1b[?7h\x1b[?25h"
# The terminal's own colours, so that a recording suits any terminal's theme.
_NUMBERS = {
    "surface": 0, "base": 0, "crust": 0, "red": 1, "green": 2, "yellow": 3, "blue": 4, "mauve": 5,
    "teal": 6, "dim": 8, "peach": 11, "accent": 12, "user": 14,
}  # fmt: skip
_LEAST_SCROLL = 3  # rows that must stay the same for scrolling to be worth it


def lines(film: Film, *, theme_name: str, timestamp: int | None) -> Iterator[str]:
    """The file, line by line."""
    yield _json(_header(film, theme(theme_name), timestamp))
    marks = [(chapter.at, chapter.title) for chapter in film.chapters]
    before: tuple[Row, ...] = ()
    for frame in film.frames():
        while marks and marks[0][0] <= frame.at:
            at, title = marks.pop(0)
            yield _json([_seconds(at), "m", title])
        data = "".join(_changes(before, frame))
        yield _json([_seconds(frame.at), "o", data if before else _BEGIN + data])
        before = frame.rows
    for at, title in marks:
        yield _json([_seconds(at), "m", title])
    yield _json([_seconds(film.duration), "o", _END])


def _header(film: Film, colours: Theme, timestamp: int | None) -> dict[str, Any]:
    header: dict[str, Any] = {"version": 2, "width": film.columns, "height": film.lines}
    if timestamp is not None:
        header["timestamp"] = timestamp // 1000
    header["duration"] = _seconds(film.duration)
    header["title"] = film.title
    header["env"] = {"TERM": "xterm-256color"}
    header["theme"] = {
        "fg": _hex(colours.colour("text")),
        "bg": _hex(colours.colour("base")),
        "palette": ":".join(map(_hex, colours.terminal)),
    }
    return header


def _changes(before: Sequence[Row], frame: Frame) -> Iterator[str]:
    shown = [*before, *[()] * (len(frame.rows) - len(before))]
    # The last two rows do not scroll: the progress bar and the space above it.
    moved, height = _scrolled(shown[:-2], frame.rows[:-2]), len(frame.rows) - 2
    if moved:
        newlines = "\n" * moved
        yield f"\x1b[1;{height}r\x1b[{height};1H{newlines}\x1b[r"
        shown = [*shown[moved:height], *[()] * moved, *shown[height:]]
    for number, (old, new) in enumerate(zip(shown, frame.rows, strict=True), 1):
        if old != new:
            yield f"\x1b[{number};1H{_drawn(new)}\x1b[K"


def _scrolled(old: Sequence[Row], new: Sequence[Row]) -> int:
    """The number of rows the screen scrolled; 0 if redrawing is simpler."""
    if not old or old[0] == new[0]:
        return 0
    for count in range(1, len(old) - _LEAST_SCROLL):
        if any(old[count:]) and old[count] == new[0]:
            same = sum(map(eq, old[count:], new))
            if same > len(old) // 2:
                return count
    return 0


@lru_cache(maxsize=4096)
def _drawn(line: Row) -> str:
    if half_of(line) == 2:
        return "\x1b[0m"  # terminals have one size of letters
    pieces = [f"{_sequence(look)}{text}" for text, look in line]
    return "".join(pieces) + "\x1b[0m"


@lru_cache(maxsize=512)
def _sequence(look: Look) -> str:
    if isinstance(look.bg, str) and look.bg in TINTS:
        # A terminal has no such ground: the text has the colour instead.
        look = replace(look, fg=TINTS[look.bg][0], bg=None)
    codes = ["0"]
    flags = (look.bold, look.dim, look.italic, look.underline, look.inverse, look.strike)
    codes += [code for code, on in zip("123479", flags, strict=True) if on]
    if look.fg != "text":
        codes.append(_colour(look.fg, 30))
    if look.bg is not None:
        codes.append(_colour(look.bg, 40))
    return f"\x1b[{';'.join(codes)}m"


def _colour(colour: Colour, ground: int) -> str:
    if isinstance(colour, tuple):
        return f"{ground + 8};2;{';'.join(map(str, colour))}"
    number = _NUMBERS.get(colour, 7) if isinstance(colour, str) else colour
    if number < 8:
        return str(ground + number)
    return str(ground + 60 + number - 8) if number < 16 else f"{ground + 8};5;{number}"


def _seconds(milliseconds: int) -> float:
    return milliseconds / 1000


def _hex(colour: RGB) -> str:
    return f"#{bytes(colour).hex()}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": ")) + "\n"
