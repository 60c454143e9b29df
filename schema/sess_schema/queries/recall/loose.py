"""The words of a search taken loosely: what goes on where few events have all of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

import apsw

from sess_common.classes import TYPE_CHECKING, dataclass
from sess_schema.queries.recall.ordering import Ordering
from sess_schema.queries.recall.question import Question, Word
from sess_schema.queries.recall.ranking import Ranking
from sess_schema.queries.search.language import plain_words
from sess_schema.queries.search.ranking import Ranked

if TYPE_CHECKING:
    from collections.abc import Container

    from sess_schema.ids import EventId
    from sess_schema.queries.search.engine import Search
    from sess_schema.queries.search.terms import Span

PER_SESSION = 3
FEWEST = 2  # words of a query, with content: one alone is what it is


@dataclass(frozen=True)
class AnyForm:
    """A word of a question, in any form that the index has of it."""

    forms: tuple[str, ...]
    match: str | None = None
    like: str | None = None
    enough: str | None = None
    screen: None = None
    exact: bool = True

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        longest = sorted(self.forms, key=len, reverse=True)
        return re.compile(
            rf"(?<![^\W_])(?:{'|'.join(map(re.escape, longest))})(?![^\W_])", re.IGNORECASE
        )

    def places(self, text: str) -> Iterator[Span]:
        for place in self._pattern.finditer(text):
            yield place.span()

    def explained(self) -> str:
        return f"any of: {', '.join(self.forms)}"


class Loose:
    """Events that have some of the words, by relevance."""

    def __init__(self, db: apsw.Connection, ranking: Ranking) -> None:
        self._db = db
        self._ranking = ranking

    @property
    def words(self) -> list[Word]:
        return self._ranking.words

    @property
    def left_out(self) -> list[Word]:
        """Words that are in too many events to tell anything."""
        return self._ranking.left_out

    @cached_property
    def matched(self) -> int:
        """How many events have any of the words."""
        return len(self._ranking.scores)

    @cached_property
    def leaves(self) -> list[AnyForm]:
        return [
            AnyForm(tuple(term.text for term in (*word.terms, *word.near)))
            for word in self.words
            if word.terms or word.near
        ]

    def ranked(self, known: Container[EventId]) -> Iterator[Ranked]:
        """The best places, without those that are known."""
        ordering = Ordering(self._db, self._ranking)
        for place in ordering.places(self._ranking.best(), PER_SESSION):
            one = place.candidate
            if one.event not in known:
                yield Ranked(one.event, one.ts, one.session, place.score, exact=False)


def loosely(db: apsw.Connection, search: Search) -> Loose | None:
    """The words of a search without operators; None if it has any, or no event has the words."""
    results = search.results(db)
    if search.mode != "words" or len(plain_words(results.query)) < FEWEST:
        return None
    question = Question(db, search.without_filters(db))
    if len(question.words) < FEWEST or not question.known:
        return None
    return Loose(db, Ranking(db, question, results.filtered()))
