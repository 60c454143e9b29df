"""What a question asks for: its content words, and the terms of the index that each may stand for.

A word stands for every term with its stem, for itself joined with the word beside it (`file
system`: filesystem), and, if the index does not know it, for terms spelt almost like it. Terms that
are used like it come from the word table.
"""

from __future__ import annotations

import difflib
from functools import cached_property
from itertools import pairwise
from math import log

import apsw

from sess_common.classes import TYPE_CHECKING, dataclass, field, later
from sess_schema.queries.recall.table import WordTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

# Words that say nothing about the matter, and those that only make a sentence a question.
FUNCTION_WORDS = frozenset(
    """
    a able about above after again against all almost also although always am among an and another
    any anybody anyone anything are aren around as ask asked at away back be became because become
    been before being below between both but by came can cannot could couldn did didn do does doesn
    doing don done down during each earlier either else ever every everything few for from further
    gave get gets getting give given go goes going gone got had hadn has hasn have haven having he
    hence her here hers him himself his how however i if in instead into is isn it its itself just
    keep keeps kept knew know known last later least less let like ll look made make makes making
    many may maybe me might mine more most much must my myself need needed needs neither never next
    no nobody none nor not nothing now of off often on once one only onto or other others ought our
    ours ourselves out over own perhaps please put quite rather re really remember said same saw say
    says see seem seems seen several shall she should shouldn show since so some somebody someone
    something sometimes somewhere soon still such take taken takes tell than that the their theirs
    them themselves then there therefore these they thing things think this those though through
    thus to together told too toward towards trying try tried under until unless up upon us use used
    uses using ve very via want wanted wants was wasn way we went were weren what whatever when
    whenever where wherever whether which while who whoever whole whom whose why will with within
    without won would wouldn yes yet you your yours yourself
    """.split()  # noqa: SIM905 - to be read
)
_HUMP = later(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_MOST_WORDS = 32  # of a question
_SHORTEST_STEM = 3
_LONG_ENOUGH = 5  # letters, to be taken for a slip of typing
_ALIKE = 0.8
_SLIP = 0.6  # what a term spelt otherwise counts
_JOINED = 1.0
_MOST_TERMS = 12  # that a word stands for
_MOST_NEAR = 10
_FORMS = 2  # of each of them


@dataclass(frozen=True, slots=True)
class Term:
    """A term of the index, in how many events it is, and how much an occurrence counts."""

    text: str
    events: int
    weight: float = 1.0


@dataclass(slots=True)
class Word:
    """A content word of a question."""

    text: str
    stem: str
    terms: list[Term] = field(default_factory=list)  # that it stands for
    near: list[Term] = field(default_factory=list)  # that are used like it
    rarity: float = 0.0  # its information, in nats

    @property
    def events(self) -> int:
        """At most so many events have it."""
        return sum(term.events for term in self.terms)


class Vocabulary:
    """The terms of an index."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db

    @cached_property
    def events(self) -> int:
        return int(self._db.execute("SELECT count(*) FROM events").get)

    @cached_property
    def words(self) -> Callable[[str], list[str]]:
        """The words of a text as the index has them."""
        return self._tokens("unicode61", ["remove_diacritics", "2"])

    @cached_property
    def stems(self) -> Callable[[str], list[str]]:
        return self._tokens("porter", ["unicode61", "remove_diacritics", "2"])

    def _tokens(self, name: str, arguments: list[str]) -> Callable[[str], list[str]]:
        tokenize = self._db.fts5_tokenizer(name, arguments)
        return lambda text: [
            str(token[-1])
            for token in tokenize(text.encode("utf-8", "replace"), apsw.FTS5_TOKENIZE_QUERY, None)
        ]

    def count(self, term: str) -> int:
        """How many events have a term."""
        return int(self._db.execute("SELECT doc FROM event_words WHERE term = ?", (term,)).get or 0)

    def with_stem(self, stem: str, word: str) -> list[Term]:
        """The terms with a stem, and the word itself, the most frequent first."""
        start = stem[:-1] if stem.endswith("i") and len(stem) > _SHORTEST_STEM else stem
        if len(start) < _SHORTEST_STEM:
            return [Term(word, count)] if (count := self.count(word)) else []
        rows = self._begun(start)
        same = self.stems(" ".join(term for term, _ in rows))
        if len(same) != len(rows):  # a term that the tokenizer splits
            same = [(self.stems(term) or [term])[0] for term, _ in rows]
        terms = [
            Term(term, count)
            for (term, count), its in zip(rows, same, strict=True)
            if its == stem or term == word
        ]
        return sorted(terms, key=lambda term: (-term.events, term.text))[:_MOST_TERMS]

    def alike(self, word: str) -> list[Term]:
        """Terms spelt almost like a word that the index does not have."""
        if len(word) < _LONG_ENOUGH or not word.isalpha():
            return []
        # Most slips keep the first two letters, and the terms are sorted.
        counts = {
            term: count for term, count in self._begun(word[:2]) if abs(len(term) - len(word)) < 2
        }
        close = difflib.get_close_matches(word, counts, 3, _ALIKE)
        return [Term(term, counts[term], _SLIP) for term in close]

    def _begun(self, start: str) -> list[tuple[str, int]]:
        rows: Iterable[tuple[str, int]] = self._db.execute(
            "SELECT term, doc FROM event_words WHERE term >= ? AND term < ?",
            (start, start[:-1] + chr(ord(start[-1]) + 1)),
        )
        return [*rows]


class Question:
    """The content words of a question, and what they may stand for in an index."""

    def __init__(self, db: apsw.Connection, text: str) -> None:
        self.vocabulary = Vocabulary(db)
        self.table = WordTable()
        self.dropped: list[str] = []  # function words
        self.words: list[Word] = []
        tokens = self._tokens(text)
        asked = [token for token in tokens if token not in FUNCTION_WORDS and len(token) > 1]
        # A question of nothing but function words means them.
        asked = asked or tokens
        self.dropped = [token for token in tokens if token not in asked]
        for token in asked[:_MOST_WORDS]:
            self._add(token)
        self._join(tokens)
        for word in self.words:
            word.near = self._near(word)
            word.rarity = self.rarity(word.events)

    def rarity(self, events: int) -> float:
        """The information of a word that so many events have, in nats."""
        total = self.vocabulary.events
        held = min(total, events)
        return log(1 + (total - held + 0.5) / (held + 0.5))

    @property
    def known(self) -> list[Word]:
        """The words that the index has, or has terms used like."""
        return [word for word in self.words if word.terms or word.near]

    def _tokens(self, text: str) -> list[str]:
        """Each word once, parts of names such as camelCase beside the whole."""
        tokens: dict[str, None] = {}
        for piece in text.split():
            parts = self.vocabulary.words(_HUMP.sub(" ", piece))
            whole = self.vocabulary.words(piece)
            tokens.update(dict.fromkeys(whole))
            if len(parts) > len(whole):
                tokens.update(dict.fromkeys(parts))
        return [*tokens]

    def _add(self, token: str) -> None:
        stem = (self.vocabulary.stems(token) or [token])[0]
        if any(word.stem == stem for word in self.words):
            return
        terms = self.vocabulary.with_stem(stem, token)
        self.words.append(Word(token, stem, terms or self.vocabulary.alike(token)))

    def _join(self, tokens: Sequence[str]) -> None:
        """`file system` may be written as one word."""
        of = {word.text: word for word in self.words}
        for one, other in pairwise(tokens):
            pair = [of[token] for token in (one, other) if token in of]
            if len(one) < 2 or len(other) < 2 or not pair:
                continue
            for text in (one + other, one + other + "s"):
                if count := self.vocabulary.count(text):
                    for word in pair:
                        word.terms.append(Term(text, count, _JOINED))

    def _near(self, word: Word) -> list[Term]:
        """Terms that are used like a word, each with its weight."""
        own = {term.text for term in word.terms}
        asked = {other.stem for other in self.words}
        near: dict[str, Term] = {}
        for stem, weight in self.table.near(word.stem)[:_MOST_NEAR]:
            if stem in asked:
                continue
            for form in self.table.forms(stem)[:_FORMS]:
                if form not in own and form not in near and (count := self.vocabulary.count(form)):
                    near[form] = Term(form, count, weight)
        return [*near.values()]
