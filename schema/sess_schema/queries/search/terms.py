"""One word or phrase of a query: how the index narrows it, and how it looks in a text.

The full-text index knows whole words without case, accents and punctuation. What it cannot tell
(`foo.bar()`, a part of a word, the case) is narrowed as far as it goes and then compared.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol

Mode = Literal["words", "substring", "regex", "tools"]
Span = tuple[int, int]

_PLAIN = re.compile(r"[^\W_]+(?:\s+[^\W_]+)*")
# Scripts written without spaces: a word inside a sentence is no token of its own.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]"
)
# A few letters outside ASCII become these when they are lowered, so LIKE may not compare them.
_AMBIGUOUS = "ik"
_LONGEST_LIKE = 500


@dataclass(frozen=True, slots=True)
class Matching:
    """How the terms of a query are compared with texts."""

    mode: Mode = "words"
    case: bool = False  # A is not a
    whole: bool = False  # as grep -w: no letter, digit or underscore beside it


class Leaf(Protocol):
    """What a plan needs to know of a term."""

    @property
    def match(self) -> str | None:
        """A query for FTS5 that every matching event satisfies."""

    @property
    def like(self) -> str | None:
        """A LIKE pattern that every matching event satisfies, where the index does not narrow."""

    @property
    def exact(self) -> bool:
        """Whether the index alone decides."""

    def places(self, text: str) -> Iterator[Span]:
        """Where it stands in a text."""

    def explained(self) -> str:
        """In words, for `--explain`."""


@dataclass(frozen=True)
class Term:
    """A word or a phrase."""

    text: str
    tokens: tuple[str, ...] = ()
    prefix: bool = False
    implied: bool = False  # nobody typed the star: the beginning of a hash
    matching: Matching = Matching()
    quoted: bool = False

    @property
    def match(self) -> str | None:
        if self.matching.mode != "words" or not self.tokens or _UNSPACED.search(self.text):
            return None
        quoted = self.text.replace('"', '""')
        return f'"{quoted}"{"*" if self.prefix else ""}'

    @property
    def exact(self) -> bool:
        m = self.matching
        return self.match is not None and self.plain and not (m.case or m.whole)

    @property
    def plain(self) -> bool:
        """Nothing but words of the index's alphabet."""
        return _PLAIN.fullmatch(_composed(self.text)) is not None

    @property
    def like(self) -> str | None:
        if self.match is not None:
            return None
        parts = [self.text] if self.matching.mode != "words" else self.text.split()
        return like_anywhere("%".join(map(like_literal, parts)))

    def places(self, text: str) -> Iterator[Span]:
        return self._needle.places(text)

    @cached_property
    def _needle(self) -> _Needle:
        return _made(self)

    def explained(self) -> str:
        m = self.matching
        what = (
            "part of a word or more"
            if m.mode in ("substring", "tools")
            else "beginning of a hash"
            if self.implied
            else "words that begin with"
            if self.prefix and self.plain
            else "word"
            if self.plain and len(self.tokens) == 1
            else "phrase"
            if self.plain
            else "as typed"
        )
        how = [name for name, on in (("same case", m.case), ("whole word", m.whole)) if on]
        return f"{what}: {self.text}" + (f" ({', '.join(how)})" if how else "")


def _composed(text: str) -> str:
    """With letters and their accents as one character, where there is such a character."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def like_literal(text: str, ambiguous: str = _AMBIGUOUS) -> str:
    """A LIKE pattern that matches a text in any case, perhaps others too."""
    pattern = ""
    for c in text[:_LONGEST_LIKE]:
        if c in "%_\\":
            pattern += "\\" + c
        elif c.lower() in ambiguous:
            pattern += "_"
        elif c.isascii() or (c.lower() == c.upper() and c != "\u0307"):
            pattern += c
        else:  # SQLite folds ASCII only
            pattern += "%"
    return pattern


def like_anywhere(pattern: str) -> str:
    """A pattern with anything around it; of a long one the beginning, for SQLite has a limit."""
    cut = pattern[:_LONGEST_LIKE]
    if cut.endswith("\\") and (len(cut) - len(cut.rstrip("\\"))) % 2:
        cut = cut[:-1]
    return f"%{cut}%"


@dataclass(frozen=True, slots=True)
class _Needle:
    """A pattern whose matches begin with a literal: finding that first is ten times as fast."""

    start: str
    pattern: re.Pattern[str]
    case: bool

    def places(self, text: str) -> Iterator[Span]:
        low = text if self.case else text.lower()
        grown = _grown(text) if len(low) != len(text) else ()
        at = low.find(self.start)
        while at >= 0:
            found = self.pattern.match(low, at)
            if found and found.end() > at:
                begin, end = found.span()
                yield _back(begin, grown), _back(end, grown)
                at = low.find(self.start, end)
            else:
                at = low.find(self.start, at + 1)


def _grown(text: str) -> Sequence[int]:
    """Where a lowered text has a character more: a dotted capital I becomes two."""
    places = [found.start() for found in re.finditer("\u0130", text)]
    return [at + number + 1 for number, at in enumerate(places)]


def _back(at: int, grown: Sequence[int]) -> int:
    """The place in a text of a place in the lowered text."""
    return at - bisect_left(grown, at)


def _made(term: Term) -> _Needle:
    m = term.matching
    literal = m.mode != "words"
    text = term.text if m.case else term.text.lower()
    words = [text] if literal else text.split()
    # Between the words of a plain phrase the index sees no underscore either.
    body = (r"[\W_]+" if term.plain and not literal else r"\s+").join(map(re.escape, words))
    before, after = _edges(term, literal=literal)
    rest = r"[^\W_]*" if term.prefix and not m.whole else ""
    return _Needle(words[0], re.compile(before + body + rest + after), m.case)


def _edges(term: Term, *, literal: bool) -> tuple[str, str]:
    """What may not stand before and after."""
    if term.matching.whole:
        return r"(?<!\w)", r"(?!\w)"
    if literal or _UNSPACED.search(term.text):
        return "", ""
    text = _composed(term.text)
    before = r"(?<![^\W_])" if text[0].isalnum() else ""
    after = r"(?![^\W_])" if text[-1].isalnum() and not term.prefix else ""
    return before, after


def occurs(leaf: Leaf, texts: Sequence[str]) -> bool:
    return any(next(leaf.places(text), None) for text in texts if text)
