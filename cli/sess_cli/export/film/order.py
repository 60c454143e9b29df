"""Right-to-left text in visual order, with Arabic letters joined."""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

_MIRRORED = str.maketrans("()[]{}<>«»", ")(][}{><»«")
_RIGHT_TO_LEFT = ("R", "AL")
_NUMBERS = ("EN", "AN", "L")


def has_right_to_left(text: str) -> bool:
    """Hebrew is the first right-to-left script in Unicode."""
    return not text.isascii() and any(
        character >= "\u0590" and unicodedata.bidirectional(character) in _RIGHT_TO_LEFT
        for character in text
    )


def seen(pieces: Sequence[tuple[str, T]]) -> list[tuple[str, T]]:
    """Clusters in visual order, given in reading order, for a left-to-right row.

    Simpler than Unicode's algorithm: runs from one right-to-left letter to the last are
    reversed, except numbers and words of other scripts inside them.
    """
    joined = _joined(pieces)
    kinds = [unicodedata.bidirectional(text[0]) for text, _ in joined]
    result: list[tuple[str, T]] = []
    at = 0
    while at < len(joined):
        if kinds[at] not in _RIGHT_TO_LEFT:
            result.append(joined[at])
            at += 1
            continue
        end = _end_of_run(kinds, at)
        result += _turned(joined[at:end], kinds[at:end])
        at = end
    return result


def _end_of_run(kinds: list[str], start: int) -> int:
    end = at = start
    while at < len(kinds) and kinds[at] != "L":
        at += 1
        if kinds[at - 1] in _RIGHT_TO_LEFT:
            end = at
    return end


def _turned(pieces: list[tuple[str, T]], kinds: list[str]) -> list[tuple[str, T]]:
    result: list[tuple[str, T]] = []
    at = len(pieces)
    while at:
        start = at - 1
        if kinds[start] in _NUMBERS:
            while start and (kinds[start - 1] in _NUMBERS or kinds[start - 1] in ("CS", "ES")):
                start -= 1
            result += pieces[start:at]
        else:
            text, rest = pieces[start]
            result.append((text.translate(_MIRRORED), rest))
        at = start
    return result


@functools.cache
def _forms() -> dict[str, dict[str, str]]:
    """The shapes of each Arabic letter: `isolated`, `initial`, `medial`, `final`."""
    forms: dict[str, dict[str, str]] = {}
    for code in (*range(0xFB50, 0xFC00), *range(0xFE80, 0xFEFD)):
        shape, *letters = unicodedata.decomposition(chr(code)).split() or [""]
        if len(letters) == 1:
            forms.setdefault(chr(int(letters[0], 16)), {})[shape.strip("<>")] = chr(code)
    return forms


def _joined(pieces: Sequence[tuple[str, T]]) -> list[tuple[str, T]]:
    forms = _forms()
    shapes = [forms.get(text[0], {}) for text, _ in pieces]
    result = []
    for at, (text, rest) in enumerate(pieces):
        before = at > 0 and "initial" in shapes[at - 1] and "final" in shapes[at]
        after = at + 1 < len(pieces) and "initial" in shapes[at] and "final" in shapes[at + 1]
        shape = {(1, 1): "medial", (1, 0): "final", (0, 1): "initial"}.get((before, after), "")
        result.append((shapes[at].get(shape, text[0]) + text[1:], rest))
    return result
