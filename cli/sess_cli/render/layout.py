"""Measures, cuts, pads and wraps text by terminal cells."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterator

ELLIPSIS = "…"


def cells(text: str) -> int:
    """How many columns a text takes: two per wide character, none per combining one."""
    return len(text) if text.isascii() else sum(map(_cell, text))


def cut(text: str, width: int) -> str:
    """The start of a text, as much as fits."""
    if cells(text) <= width:
        return text
    return _head(text, max(0, width - 1)) + ELLIPSIS


def cut_start(text: str, width: int) -> str:
    """The end of a text, as much as fits: the useful end of a path."""
    if cells(text) <= width:
        return text
    return ELLIPSIS + _head(text[::-1], max(0, width - 1))[::-1]


def pad(text: str, width: int) -> str:
    return text + " " * max(0, width - cells(text))


def home_short(path: str | None) -> str:
    """A path with `~` for the home directory."""
    if not path:
        return "no project"
    home = os.path.expanduser("~").rstrip(os.sep)
    if home and (path == home or path.startswith(home + os.sep)):
        return "~" + path[len(home) :]
    return path


def tail_of(path: str | None, width: int) -> str:
    """The last directories of a path, as many as fit."""
    short = home_short(path)
    if cells(short) <= width:
        return short
    parts = short.split("/")
    for start in range(1, len(parts)):
        tail = f"{ELLIPSIS}/{'/'.join(parts[start:])}"
        if cells(tail) <= width:
            return tail
    return cut_start(short, width)


def wrap(line: str, width: int, indent: str = "") -> Iterator[str]:
    """Wrap a line; `indent` goes before all lines but the first."""
    if cells(line) <= width:
        yield line
        return
    lead = line[: len(line) - len(line.lstrip())]
    indent = lead + indent if cells(lead + indent) < width // 2 else ""
    current = lead
    for word in line.split():
        piece = word
        gap = " " if current.strip() else ""
        if gap and cells(current) + 1 + cells(piece) > width:
            yield current
            current, gap = indent, ""
        while cells(current + gap + piece) > width:
            head = _head(piece, max(1, width - cells(current + gap)))
            yield current + gap + head
            current, gap, piece = indent, "", piece[len(head) :]
        current += gap + piece
    if current.strip():
        yield current


def _head(text: str, width: int) -> str:
    if text.isascii():
        return text[:width]
    used = 0
    for at, character in enumerate(text):
        used += _cell(character)
        if used > width:
            return text[:at]
    return text


def _cell(character: str) -> int:
    if character.isascii():
        return 1
    if unicodedata.combining(character) or character in "\u200d\ufe0e\ufe0f":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
