"""Ranks the events of an index by how much of a question they have.

BM25F over the stems of all its words: the occurrences of the terms that a word stands for are
added up, with a weight for where they are and who says it, before they are scored. SQLite counts
them: its bm25 of a single term, divided by the term's rarity, tells how often the term occurs for
the length of the event.

Rare words decide which events are looked at, common ones only add to their scores: so what is read
is bounded by how often words occur, never by time.
"""

from __future__ import annotations

import heapq
from functools import cached_property
from math import exp, log

import apsw

from sess_common.classes import TYPE_CHECKING, dataclass
from sess_schema.queries.fields import ANY, Condition

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from sess_schema.ids import EventId, SessionId
    from sess_schema.queries.recall.question import Question, Term, Word

# text, input, output, marks: what was said tells more than what a tool was given, or printed.
FIELD_WEIGHTS = (1.0, 0.2, 0.1, 0.1)
TYPE_WEIGHTS = {"thinking": 0.6, "system": 0.35}  # of all others 1
SATURATION = 0.8  # k1: how soon more occurrences stop to count
NEAR_WEIGHT = 0.3
LEADING = 40_000  # events with the rare words that decide what is looked at
NEARBY = 10_000  # events with terms used alike
TOO_COMMON = 4  # a word in a quarter of all events tells nothing,
ENOUGH_WORDS = 3  # if there are so many others
CANDIDATES = 200
_SQLITE_K1 = 1.2
_LEAST = 1e-6  # rarity of a term in more than half of all rows, as SQLite has it
_SCORED = "bm25(event_index, {}) FROM event_index WHERE event_index MATCH ?"
_SCORE = f"SELECT rowid, {_SCORED.format(', '.join(map(str, FIELD_WEIGHTS)))}"
# With occurrences without end, which tells the rarity.
_MOST = f"SELECT {_SCORED.format(', '.join(['1e15'] * len(FIELD_WEIGHTS)))}"
_BATCH = 256

Occurrences = dict["EventId", float]


@dataclass(frozen=True, slots=True)
class Candidate:
    """An event and its score."""

    event: EventId
    session: SessionId
    score: float
    ts: int | None
    type: str
    label: str | None


@dataclass(slots=True)
class Heard:
    """A word, and the events it occurs in: how often for their length."""

    word: Word
    rarity: float
    times: Occurrences
    prominence: float  # of the word itself, where it is most prominent: 0 to 1

    def score(self, event: EventId, weight: float = 1.0) -> float:
        times = self.times.get(event)
        if times is None:
            return 0.0
        times *= weight
        return self.rarity * times / (1 + times)


class Ranking:
    """The events that fit a question."""

    def __init__(self, db: apsw.Connection, question: Question, where: Condition = ANY) -> None:
        self._db = db
        self._where = where
        self._question = question
        self.words, self.left_out = _chosen(question)
        self.heard: list[Heard] = []
        self._rows: int | None = None
        self._gather()

    @property
    def information(self) -> float:
        """Of the whole question."""
        return sum(word.rarity for word in self.words)

    def _gather(self) -> None:
        looked_at = 0
        among: set[EventId] | None = None
        for word in sorted(self.words, key=lambda word: (word.events, word.text)):
            leads = not looked_at or looked_at + word.events <= LEADING
            if not leads and among is None:
                among = {event for heard in self.heard for event in heard.times}
            looked_at += word.events
            times: Occurrences = {}
            for term in word.terms:
                self._count(term, term.weight, times, None if leads else among)
            most = max(times.values(), default=0.0)
            self.heard.append(Heard(word, word.rarity, times, most / (1 + most)))
        self._gather_near()

    def _gather_near(self) -> None:
        """Terms that are used like a word count for it, the rarest first, up to a bound.

        A word that no event has is found by them; for the others they only add to scores.
        """
        known = [heard for heard in self.heard if heard.word.terms]
        unknown = [heard for heard in self.heard if not heard.word.terms]
        left = NEARBY
        for words, leads in ((unknown, True), (known, False)):
            among = None if leads else {event for heard in self.heard for event in heard.times}
            near = [(term, heard) for heard in words for term in heard.word.near]
            for term, heard in sorted(near, key=lambda pair: (pair[0].events, pair[0].text)):
                left -= term.events
                if left < 0:
                    return
                # A term that is everywhere tells less than the word that was asked for.
                share = min(1.0, self._question.rarity(term.events) / heard.rarity)
                self._count(term, NEAR_WEIGHT * term.weight * share, heard.times, among)

    def _rarity(self, term: Term, quoted: str) -> float:
        """Of a term, as SQLite has it, below zero."""
        if self._rows is None:  # only SQLite knows of how many rows it is
            most = self._db.execute(f"{_MOST} LIMIT 1", (quoted,)).get or 0.0
            rarity = -most / (_SQLITE_K1 + 1)
            if rarity <= _LEAST:  # too frequent to tell
                return -_LEAST
            self._rows = round(exp(rarity) * (term.events + 0.5) + term.events - 0.5)
        rarity = log((self._rows - term.events + 0.5) / (term.events + 0.5))
        return -rarity if rarity > 0 else -_LEAST

    def _count(
        self, term: Term, weight: float, times: Occurrences, among: set[EventId] | None
    ) -> None:
        """Add how often a term occurs."""
        quoted = '"' + term.text.replace('"', '""') + '"'
        scale = weight * _SQLITE_K1 / SATURATION
        most = (_SQLITE_K1 + 1) * self._rarity(term, quoted)
        rows: Iterable[tuple[EventId, float]] = self._db.execute(_SCORE, (quoted,))
        for event, score in rows:
            if among is None or event in among:
                # score = most * times / (times + 1)
                times[event] = times.get(event, 0.0) + scale * score / (most - score)

    # -- in order

    @cached_property
    def scores(self) -> dict[EventId, float]:
        """What each event would score if it were a prompt or an answer."""
        scores: dict[EventId, float] = {}
        for heard in self.heard:
            rarity = heard.rarity
            for event, times in heard.times.items():
                scores[event] = scores.get(event, 0.0) + rarity * times / (1 + times)
        return scores

    def best(self, most: int = CANDIDATES) -> list[Candidate]:
        """The best events, the best first."""
        scores = self.scores
        heap: list[tuple[float, int, Candidate]] = []
        for events in self._by_score(scores):
            if len(heap) == most and scores[events[0]] < heap[0][0]:
                break
            for candidate in self._weighed(events):
                entry = (candidate.score, -candidate.event, candidate)
                if len(heap) < most:
                    heapq.heappush(heap, entry)
                elif entry > heap[0]:
                    heapq.heapreplace(heap, entry)
        return [entry[2] for entry in sorted(heap, key=lambda e: (-e[0], -e[1]))]

    @staticmethod
    def _by_score(scores: Mapping[EventId, float]) -> Iterator[Sequence[EventId]]:
        """Events in groups, the best first."""
        most = 2 * _BATCH
        first = heapq.nlargest(most, scores, key=scores.__getitem__)
        yield from (first[at : at + _BATCH] for at in range(0, len(first), _BATCH))
        if len(scores) > most:
            rest = sorted(scores, key=scores.__getitem__, reverse=True)[most:]
            yield from (rest[at : at + _BATCH] for at in range(0, len(rest), _BATCH))

    def _weighed(self, events: Sequence[EventId]) -> Iterator[Candidate]:
        """Those that count, with their scores."""
        listed = f"[{','.join(map(str, events))}]"
        rows = self._db.execute(
            "SELECT e.id, e.session_id, e.ts, e.type, e.label FROM json_each(?) j"
            f" CROSS JOIN events e ON e.id = j.value WHERE e.retired = 0 AND ({self._where.sql})",
            (listed, *self._where.values),
        )
        for event, session, ts, type_, label in rows:
            weight = TYPE_WEIGHTS.get(type_, 1.0)
            score = sum(heard.score(event, weight) for heard in self.heard)
            yield Candidate(event, session, score, ts, type_, label)


def _chosen(question: Question) -> tuple[list[Word], list[Word]]:
    """The words that are ranked by, and those that are in too many events."""
    common = question.vocabulary.events / TOO_COMMON
    words = sorted(question.words, key=lambda word: (word.events, word.text))
    known = [word for word in words if word.terms or word.near]
    left_out = [word for word in known[ENOUGH_WORDS:] if word.events > common]
    return [word for word in words if word not in left_out], left_out
