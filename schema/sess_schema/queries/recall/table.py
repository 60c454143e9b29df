"""The word table: how common words are in general, and which words are used alike.

`words.txt` is counted from documentation by `scripts/distill_words.py`. Its lines are sorted, so
that a word is found without reading the file.
"""

from __future__ import annotations

import os

from sess_common.classes import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

PATH = os.path.join(os.path.dirname(__file__), "words.txt")
PARAGRAPHS = 100_000  # that the counts are of


class WordTable:
    """Looks words up by their stems."""

    def __init__(self, path: str = PATH) -> None:
        with open(path, "rb") as file:
            self._lines = file.read()
        self._known: dict[str, Sequence[str]] = {}

    def count(self, stem: str) -> int:
        """In how many of 100,000 paragraphs of documentation a word occurs; 0: it is too rare."""
        line = self._line(stem)
        return int(line[1]) if line else 0

    def forms(self, stem: str) -> Sequence[str]:
        """The usual forms of a word, the most common first."""
        line = self._line(stem)
        return line[2].split(" ") if line else ()

    def near(self, stem: str) -> list[tuple[str, float]]:
        """The stems of words that are used like it, the nearest first, and how near they are."""
        line = self._line(stem)
        if not line or not line[3]:
            return []
        pairs = [one.rpartition(":") for one in line[3].split(" ")]
        return [(other, int(weight) / 100) for other, _, weight in pairs]

    def _line(self, stem: str) -> Sequence[str]:
        if stem not in self._known:
            self._known[stem] = self._looked_up(stem.encode() + b"\t")
        return self._known[stem]

    def _looked_up(self, start: bytes) -> Sequence[str]:
        low, high = 0, len(self._lines)
        while low < high:
            middle = (low + high) // 2
            begin = self._lines.rfind(b"\n", low, middle) + 1 or low
            end = self._lines.find(b"\n", middle)
            line = self._lines[begin:end]
            if line.startswith(start):
                return line.decode().split("\t")
            if line < start:
                low = end + 1
            else:
                high = begin
        return ()
