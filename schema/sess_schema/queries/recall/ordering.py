"""Puts the candidates in order: the best sessions first, and few places of each.

An event beside the place may have the words that it lacks: the answer stands next to its question.
So a session is judged by its best places with the events around them, and a place by its own words
and by its session.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import apsw

from sess_common.classes import TYPE_CHECKING, dataclass
from sess_schema.queries.recall.ranking import TYPE_WEIGHTS

if TYPE_CHECKING:
    from sess_schema.ids import EventId, SessionId
    from sess_schema.queries.recall.ranking import Candidate, Ranking

AROUND = 5  # events before and after a place
BESIDE = 0.25  # what an occurrence there counts
MORE = (1.0, 0.3, 0.09, 0.027)  # what the best places of a session count for it
WHOLE = 0.6  # and what all that it says counts, taken together
NEAREST = 100  # candidates whose surroundings are looked at
PER_SESSION = 2
_BESIDE = (
    "SELECT id, type FROM events"
    " WHERE session_id = ?1 AND (ts, id) {0} (?2, ?3) AND retired = 0"
    " ORDER BY ts {1}, id {1} LIMIT " + str(AROUND)
)
_BEFORE, _AFTER = _BESIDE.format("<", "DESC"), _BESIDE.format(">", "ASC")
_PROMPT = (
    "SELECT id FROM events WHERE session_id = ? AND type = 'user' AND (ts, id) <= (?, ?)"
    " AND retired = 0 ORDER BY ts DESC, id DESC LIMIT 1"
)


@dataclass(frozen=True, slots=True)
class Ordered:
    """A candidate and its score as a place."""

    candidate: Candidate
    score: float


class Ordering:
    """The order of the candidates of a ranking."""

    def __init__(self, db: apsw.Connection, ranking: Ranking) -> None:
        self._db = db
        self._ranking = ranking

    def places(
        self, candidates: Sequence[Candidate], per_session: int = PER_SESSION
    ) -> Iterator[Ordered]:
        """The places, the best first: a few of each session, and one of each turn."""
        sessions = self._sessions(candidates)
        scored = [Ordered(one, one.score + sessions[one.session]) for one in candidates]
        scored.sort(key=lambda one: (-one.score, -(one.candidate.ts or 0), one.candidate.event))
        per: dict[SessionId, int] = {}
        turns: set[tuple[SessionId, EventId]] = set()
        for one in scored:
            session = one.candidate.session
            if per.get(session, 0) == per_session:
                continue
            turn = (session, self._turn(one.candidate))
            if turn not in turns:
                turns.add(turn)
                per[session] = per.get(session, 0) + 1
                yield one

    def _sessions(self, candidates: Sequence[Candidate]) -> dict[SessionId, float]:
        """How well each session fits: by its best places, and by all that it says together."""
        places: dict[SessionId, list[float]] = {}
        whole: dict[SessionId, list[float]] = {}
        heard = self._ranking.heard
        for number, candidate in enumerate(candidates):
            own = TYPE_WEIGHTS.get(candidate.type, 1.0)
            times = whole.setdefault(candidate.session, [0.0] * len(heard))
            for at, word in enumerate(heard):
                times[at] += own * word.times.get(candidate.event, 0.0)
            if number < NEAREST:
                score = self._with_its_surroundings(candidate)
                places.setdefault(candidate.session, []).append(score)
        scores: dict[SessionId, float] = {}
        for session, times in whole.items():
            together = sum(
                word.rarity * its / (1 + its) for word, its in zip(heard, times, strict=True)
            )
            best = sorted(places.get(session, ()), reverse=True)
            scores[session] = WHOLE * together + sum(
                share * score for share, score in zip(MORE, best, strict=False)
            )
        return scores

    def _with_its_surroundings(self, candidate: Candidate) -> float:
        own = TYPE_WEIGHTS.get(candidate.type, 1.0)
        beside = self._beside(candidate)
        score = 0.0
        for heard in self._ranking.heard:
            times = own * heard.times.get(candidate.event, 0.0)
            for event, weight in beside:
                if event in heard.times:
                    times += weight * heard.times[event]
            score += heard.rarity * times / (1 + times)
        return score

    def _beside(self, candidate: Candidate) -> list[tuple[EventId, float]]:
        place = (candidate.session, candidate.ts, candidate.event)
        return [
            (event, BESIDE * TYPE_WEIGHTS.get(type_, 1.0))
            for query in (_BEFORE, _AFTER)
            for event, type_ in self._db.execute(query, place)
        ]

    def _turn(self, candidate: Candidate) -> EventId:
        """The prompt that it answers, or itself."""
        place = (candidate.session, candidate.ts, candidate.event)
        prompt: EventId | None = self._db.execute(_PROMPT, place).get
        return candidate.event if prompt is None else prompt
