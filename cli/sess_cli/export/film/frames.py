"""A film: rows of coloured text over time. Renderers need only this."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

# The name of a theme colour, a terminal colour number, or (red, green, blue).
Colour = str | int | tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Look:
    """The style of a run of text."""

    fg: Colour = "text"
    bg: Colour | None = None
    bold: bool = False
    italic: bool = False
    dim: bool = False
    underline: bool = False
    strike: bool = False
    inverse: bool = False
    half: int = 0  # of a row of letters twice as large: 1 upper, 2 lower


Row = tuple[tuple[str, Look], ...]


@dataclass(frozen=True, slots=True)
class Frame:
    """The whole screen from one moment until the next frame."""

    at: int  # milliseconds from the start
    rows: tuple[Row, ...]  # top to bottom, no row wider than the screen


@dataclass(frozen=True, slots=True)
class Chapter:
    at: int
    title: str


@dataclass(frozen=True, slots=True)
class Caption:
    at: int
    end: int
    text: str


@dataclass(slots=True)
class Film:
    columns: int
    lines: int
    duration: int
    title: str
    chapters: list[Chapter]
    frames: Callable[[], Iterator[Frame]]  # may be called repeatedly
    captions: list[Caption] = field(default_factory=list)
