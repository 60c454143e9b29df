"""One word or phrase of a query: how the index narrows it, and how it looks in a text.

The full-text index knows whole words without case, accents and punctuation. What it cannot tell
(`foo.bar()`, a part of a word, the case) is narrowed as far as it goes and then compared.
"""

from __future__ import annotations

import re
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
        return _PLAIN.fullmatch(self.text) is not None

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
        return _needle(self)

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
    return f"%{pattern}%"


@dataclass(frozen=True, slots=True)
class _Needle:
    """A pattern whose matches begin with a literal: finding that first is ten times as fast."""

    start: str
    pattern: re.Pattern[str]
    case: bool

    def places(self, text: str) -> Iterator[Span]:
        low = text if self.case else text.lower()
        if len(low) != len(text):  # a few letters grow when lowered, and the places would be wrong
            yield from (found.span() for found in self.pattern.finditer(text))
            return
        at = low.find(self.start)
        while at >= 0:
            found = self.pattern.match(text, at)
            if found and found.end() > at:
                yield found.span()
                at = low.find(self.start, found.end())
            else:
                at = low.find(self.start, at + 1)


def _needle(term: Term) -> _Needle:
    m = term.matching
    literal = m.mode != "words"
    words = [term.text] if literal else term.text.split()
    # Between the words of a plain phrase the index sees no underscore either.
    body = (r"[\W_]+" if term.plain else r"\s+").join(map(re.escape, words))
    before, after = _edges(term, literal=literal)
    rest = r"[^\W_]*" if term.prefix and not m.whole else ""
    flags = re.NOFLAG if m.case else re.IGNORECASE
    start = words[0] if m.case else words[0].lower()
    return _Needle(start, re.compile(before + body + rest + after, flags), m.case)


def _edges(term: Term, *, literal: bool) -> tuple[str, str]:
    """What may not stand before and after."""
    if term.matching.whole:
        return r"(?<!\w)", r"(?!\w)"
    if literal or _UNSPACED.search(term.text):
        return "", ""
    before = r"(?<![^\W_])" if term.text[0].isalnum() else ""
    after = r"(?![^\W_])" if term.text[-1].isalnum() and not term.prefix else ""
    return before, after


def occurs(leaf: Leaf, texts: Sequence[str]) -> bool:
    return any(next(leaf.places(text), None) for text in texts if text)
