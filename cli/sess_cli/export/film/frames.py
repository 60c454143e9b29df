"""What a film is made of: rows of coloured text at moments. Whoever draws needs only this."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

# The name of a theme's colour, the number of a terminal's, or red, green and blue.
Colour = str | int | tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Look:
    """How a run of text is drawn."""

    fg: Colour = "text"
    bg: Colour | None = None
    bold: bool = False
    italic: bool = False
    dim: bool = False
    underline: bool = False
    strike: bool = False
    inverse: bool = False


Row = tuple[tuple[str, Look], ...]


@dataclass(frozen=True, slots=True)
class Frame:
    """The whole screen from a moment on, until the next frame."""

    at: int  # milliseconds from the beginning
    rows: tuple[Row, ...]  # top to bottom, no row wider than the screen


@dataclass(frozen=True, slots=True)
class Chapter:
    at: int
    title: str


@dataclass(slots=True)
class Film:
    columns: int
    lines: int
    duration: int
    title: str
    chapters: list[Chapter]
    frames: Callable[[], Iterator[Frame]]  # can be asked for again
