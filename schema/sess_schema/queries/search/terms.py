"""One word or phrase of a query: how the index narrows it, and how to find it in a text.

The full-text index knows whole words without case, accents and punctuation. What it cannot decide
(`foo.bar()`, substrings, case) is narrowed as far as possible and then compared.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import zip_longest

from sess_common.classes import TYPE_CHECKING, dataclass, later
from sess_schema.search_index import FAILED, glue_in

if TYPE_CHECKING:
    from typing import Literal, Protocol

    from sess_schema.queries.search.screen import Screen

    Mode = Literal["words", "substring", "regex", "tools"]

    class Leaf(Protocol):
        """What a plan needs to know about a term."""

        @property
        def match(self) -> str | None:
            """An FTS5 query that every matching event satisfies."""

        @property
        def like(self) -> str | None:
            """A LIKE pattern that every matching event satisfies, where the index cannot narrow."""

        @property
        def enough(self) -> str | None:
            """A LIKE pattern that only matching events satisfy."""

        @property
        def screen(self) -> Screen | None:
            """For RE2: a test that every matching text passes, where LIKE cannot narrow."""

        @property
        def exact(self) -> bool:
            """Whether the index alone decides."""

        def places(self, text: str) -> Iterator[Span]:
            """Where it occurs in a text."""

        def explained(self) -> str:
            """In words, for `--explain`."""


Span = tuple[int, int]

_PLAIN = later(r"[^\W_]+(?:\s+[^\W_]+)*")
# Letters of scripts without capitals: the index takes them for separators.
_UNCASED = ("Lo", "Lm")
_BETWEEN = r"[\W_\u05d0-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff\uac00-\ud7af]+"
_DOT = "\u0307"  # combining dot; a dotted capital I lowers to i and this
# Two letters outside ASCII lower to these, so LIKE must not compare them.
_AMBIGUOUS = "ik"
_LONGEST_LIKE = 500
_LITERAL_ENOUGH = 3  # characters in a row, for LIKE to narrow anything


@dataclass(frozen=True, slots=True)
class Matching:
    """How the terms of a query are compared with texts."""

    mode: Mode = "words"
    case: bool = False  # match case exactly
    whole: bool = False  # as grep -w: no letter, digit or underscore beside it


@dataclass(frozen=True)
class Term:
    """A word or a phrase."""

    text: str
    tokens: tuple[str, ...] = ()
    prefix: bool = False
    implied: bool = False  # the star was not typed: a prefix of a hash
    matching: Matching = Matching()
    quoted: bool = False

    @property
    def match(self) -> str | None:
        if self.matching.mode != "words" or not self.tokens or not _indexed(self.text):
            return None
        quoted = self.text.replace('"', '""')
        words = f'"{quoted}"{"*" if self.prefix else ""}'
        return f'({words} OR "{FAILED}")' if self.marked else words

    @property
    def marked(self) -> bool:
        """Whether it searches for the mark of failed calls."""
        typed = self.text if self.matching.case else self.text.lower()
        return typed == "is_error" and self.matching.mode in ("words", "substring")

    @property
    def exact(self) -> bool:
        m = self.matching
        return self.match is not None and self.plain and not (m.case or m.whole)

    @property
    def plain(self) -> bool:
        """Only words in the index's alphabet."""
        text = _composed(self.text)
        return _PLAIN.fullmatch(text) is not None and not _uncased(text)

    @property
    def like(self) -> str | None:
        if self.match is not None:
            return None
        if _cased_beyond_ascii(self.text) and _longest_ascii(self.text) < _LITERAL_ENOUGH:
            return None
        words = [self.text] if self.matching.mode != "words" else self.text.split()
        return like_anywhere("%".join(map(_like_lowered, words)))

    @property
    def enough(self) -> str | None:
        m = self.matching
        if m.mode not in ("substring", "tools") or m.case or m.whole:
            return None
        if _cased_beyond_ascii(self.text) or _DOT in self.text:
            return None
        pattern = like_literal(self.text, "")
        return like_anywhere(pattern) if len(pattern) <= _LONGEST_LIKE else None

    @property
    def screen(self) -> Screen | None:
        if self.matching.mode != "substring" or self.text.isascii():
            return None
        from sess_schema.queries.search.screen import literal_screen

        return literal_screen(self.text)

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
            else "words starting with"
            if self.prefix and self.plain
            else "word"
            if self.plain and len(self.tokens) == 1
            else "phrase"
            if self.plain
            else "as typed"
        )
        how = [name for name, on in (("same case", m.case), ("whole word", m.whole)) if on]
        return f"{what}: {self.text}" + (f" ({', '.join(how)})" if how else "")


def _uncased(text: str) -> bool:
    return not text.isascii() and any(unicodedata.category(c) in _UNCASED for c in text)


def _indexed(text: str) -> bool:
    """Whether the index has it as words: letters, and nothing it would glue to them."""
    return text.isascii() or (not glue_in(text) and any(map(_letter, text)) and not _uncased(text))


def _letter(c: str) -> bool:
    """Whether the index takes a character for a letter of a word."""
    return c.isalnum() and (c.isascii() or unicodedata.category(c) not in _UNCASED)


def _lowered(text: str) -> str:
    """In lower case; a final Greek sigma becomes a plain sigma."""
    low = text.lower()
    return low if low.isascii() else low.replace("\u03c2", "\u03c3")


def _composed(text: str) -> str:
    """With each letter and its accents as one character, where one exists."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def _cased_beyond_ascii(text: str) -> bool:
    return any(c.lower() != c.upper() for c in text if not c.isascii())


def _longest_ascii(text: str) -> int:
    return max(map(len, re.split(r"[^\x00-\x7f]+|\s+", text)))


def _like_lowered(text: str) -> str:
    """A LIKE pattern that matches whatever contains a text, ignoring case."""
    cut = text[:_LONGEST_LIKE]
    # Before another ASCII letter an i is not a dotted capital, whose dot would be between the two.
    return "".join(
        like_literal(c, "k" if after and after.isascii() else _AMBIGUOUS)
        for c, after in zip_longest(cut, cut[1:], fillvalue="")
    )


def like_literal(text: str, ambiguous: str) -> str:
    """A LIKE pattern that matches a text in any case, and possibly others."""
    pattern = ""
    for c in text:
        if c in "%_\\":
            pattern += "\\" + c
        elif c.lower() in ambiguous:
            pattern += "_"
        elif c.isascii() or (c.lower() == c.upper() and c != _DOT):
            pattern += c
        else:  # SQLite folds ASCII only
            pattern += "%"
    return pattern


def like_anywhere(pattern: str) -> str:
    """A pattern with anything around it; a long one is cut, because SQLite has a limit."""
    cut = pattern[:_LONGEST_LIKE]
    if cut.endswith("\\") and (len(cut) - len(cut.rstrip("\\"))) % 2:
        cut = cut[:-1]
    return f"%{cut}%"


@dataclass(frozen=True, slots=True)
class _Needle:
    """A pattern whose matches start with a literal: finding that first is ten times as fast."""

    start: str
    pattern: re.Pattern[str]
    case: bool
    # No letter may come before or after it; `reaches` includes those after it.
    bounded: tuple[bool, bool]
    reaches: bool

    def places(self, text: str) -> Iterator[Span]:
        low = text if self.case else _lowered(text)
        grown = _grown(text) if len(low) != len(text) else ()
        at = low.find(self.start)
        while at >= 0:
            end = self._end(low, at)
            if end > at:
                yield _back(at, grown), _back(end, grown)
            at = low.find(self.start, max(end, at + 1))

    def _end(self, low: str, at: int) -> int:
        """Where a match starting here ends; before its start if there is none."""
        if self.bounded[0] and at and _letter(low[at - 1]):
            return -1
        found = self.pattern.match(low, at)
        if found is None:
            return -1
        end = found.end()
        if self.reaches:
            while end < len(low) and _letter(low[end]):
                end += 1
        elif self.bounded[1] and end < len(low) and _letter(low[end]):
            return -1
        return end


def _grown(text: str) -> Sequence[int]:
    """Where a lowered text has an extra character: a dotted capital I becomes two."""
    places = [found.start() for found in re.finditer("\u0130", text)]
    return [at + number + 1 for number, at in enumerate(places)]


def _back(at: int, grown: Sequence[int]) -> int:
    """The position in a text of a position in the lowered text."""
    return at - bisect_left(grown, at)


def _made(term: Term) -> _Needle:
    m = term.matching
    text = term.text if m.case else _lowered(term.text)
    if m.mode != "words":
        words, between = [text], ""
    else:
        words, between = text.split(), _BETWEEN if term.plain else r"\s+"
    body = between.join(map(re.escape, words))
    if m.whole:
        body = rf"(?<!\w){body}(?!\w)"
    typed = m.mode == "words" and not m.whole and not _uncased(term.text)
    edges = _composed(text)
    bounded = (typed and edges[0].isalnum(), typed and edges[-1].isalnum() and not term.prefix)
    return _Needle(words[0], re.compile(body), m.case, bounded, typed and term.prefix)


def occurs(leaf: Leaf, texts: Sequence[str]) -> bool:
    return any(next(leaf.places(text), None) for text in texts if text)
