"""How likely it is that a place answers the question, so that nothing is found where nothing fits.

Three shares of the information of the question count. Its words are weighted by how rare they are
in documentation in general, because those that are rare there name the matter:

- presence: how much of it has words that the index has at all, in ten events or more;
- prominence: the same by how much the event that is most about a word is about it;
- the score of the place, of what it could be at most.

The weights, and the curve that makes a probability of their sum, were fitted to questions about
sessions of which half are about something else: docs/recall.md shows how well.
"""

from __future__ import annotations

from math import exp, log, log10

from sess_common.classes import TYPE_CHECKING
from sess_schema.queries.recall.table import PARAGRAPHS

if TYPE_CHECKING:
    from sess_schema.queries.recall.question import Question, Word
    from sess_schema.queries.recall.ranking import Heard, Ranking

FOUND = 0.28  # from here on a place is said to fit
_PRESENCE, _PROMINENCE, _SCORE = 0.7, 0.3, 2.0
_STEEPNESS, _EVEN = 5.8, 1.257
# In more sessions more is met by chance.
_PER_DECADE, _DECADES = 0.145, 4  # of events
_PRESENT = 10  # events


class Confidence:
    """Judges the places of one question."""

    def __init__(self, question: Question, ranking: Ranking) -> None:
        self._information = ranking.information
        rarity = {heard.word.stem: _in_general(question, heard.word) for heard in ranking.heard}
        whole = sum(rarity.values()) or 1.0
        presence = prominence = 0.0
        for heard in ranking.heard:
            share = rarity[heard.word.stem] / whole
            presence += share * _presence(heard)
            prominence += share * heard.prominence
        chance = _PER_DECADE * (log10(max(1, question.vocabulary.events)) - _DECADES)
        self._known = _PRESENCE * presence + _PROMINENCE * prominence - chance

    def of(self, score: float) -> float:
        """Of a place with a score, from 0 to 1."""
        share = score / self._information if self._information else 0.0
        return 1 / (1 + exp(-_STEEPNESS * (self._known + _SCORE * share - _EVEN)))


def _in_general(question: Question, word: Word) -> float:
    """How rare a word is in documentation, in nats."""
    return log(1 + PARAGRAPHS / (question.table.count(word.stem) + 1))


def _presence(heard: Heard) -> float:
    return min(1.0, log(1 + heard.word.events) / log(1 + _PRESENT))
