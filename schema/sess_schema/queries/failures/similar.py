"""The same error elsewhere: found by its words, compared by its lines, shown with what followed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import log

import apsw

from sess_common.classes import TYPE_CHECKING, dataclass, field
from sess_schema.queries.failures import signature
from sess_schema.queries.failures.aftermath import BUDGET, SOLVED, UNSOLVED, Sessions
from sess_schema.queries.fields import ANY, Condition
from sess_schema.search_index import FAILED

if TYPE_CHECKING:
    from sess_schema.ids import EventId, SessionId

_WORDS = 8  # asked of the full text
_MOST_EVENTS = 15_000  # that have any of them: a bound by rarity
_LOOKED_UP = 40  # words; each costs a look into the index
_FAILED, _OTHERS = 60, 40  # candidates compared
_READ = 40_000  # characters of one
QUOTE = 260  # characters
_SAME = 0.5  # of the information of an error, for another to be the same
_NEAR = 0.5  # of the share of the best place, for another to be shown
_CALL, _OUTPUT, _PROMPT, _ANSWER = 1.0, 0.9, 0.9, 0.8  # who says it
_PER_SESSION = 2
_PREFERENCE = 1.25
_LEAST_PRINTED = 4  # words of a line, for it to be no coincidence
_CANDIDATES = (
    "SELECT event_index.rowid FROM event_index CROSS JOIN events e ON e.id = event_index.rowid"
    " WHERE event_index MATCH ? AND e.retired = 0 AND ({}) ORDER BY bm25(event_index, 1, 0.3, 1, 0)"
    " LIMIT ?"
)
_TEXTS = (
    "SELECT e.session_id, e.ts, e.type, e.status, "
    " substr(iif(e.type = 'tool_use', x.output, x.text), 1, ?2)"
    " FROM events e JOIN event_texts x ON x.id = e.id WHERE e.id = ?1"
)


@dataclass(frozen=True, slots=True)
class Occurrence:
    """An event that has the same error."""

    event: EventId
    session: SessionId
    ts: int | None
    type: str
    status: str | None
    share: float  # of the information of the error that it has, 0 to 1
    score: float
    quote: str


@dataclass(frozen=True, slots=True)
class Place:
    """An occurrence with what followed it."""

    found: Occurrence
    answer: str
    outcome: str
    ended_by: EventId | None


@dataclass(slots=True)
class Similar:
    """What is known of an error."""

    places: list[Place] = field(default_factory=list)  # best first
    times: int = 0  # it occurred, among those compared
    more: bool = False  # whether it may have occurred more often
    sessions: int = 0
    last: Occurrence | None = None

    @property
    def confidence(self) -> float:
        """How much of the information of the error the best place has, 0 to 1."""
        return max((place.found.share for place in self.places), default=0.0)

    @property
    def found(self) -> bool:
        return self.confidence >= _SAME

    @property
    def never_solved(self) -> bool:
        outcomes = {place.outcome for place in self.places}
        return SOLVED not in outcomes and UNSOLVED in outcomes


class _Error:
    """A pasted error, weighted by how rare its words are."""

    def __init__(self, db: apsw.Connection, text: str) -> None:
        self.lines = signature.lines(text)
        events = db.execute("SELECT max(id) FROM events").get or 1
        self._rarity: dict[str, float] = {}
        self.known: dict[str, int] = {}
        weights: dict[str, float] = {}
        for line in sorted(self.lines, key=lambda line: -line.weight):
            for word in line.words:
                if word not in self._rarity:
                    if len(self._rarity) == _LOOKED_UP:
                        continue
                    count = db.execute("SELECT doc FROM event_words WHERE term = ?", (word,)).get
                    self._rarity[word] = log(1 + events / ((count or 0) + 0.5))
                    if count:
                        self.known[word] = count
                worth = line.weight * self._rarity[word]
                weights[word] = max(weights.get(word, 0.0), worth)
        self.asked = self._choose(weights)
        self._information: dict[signature.Pair, float] = {}
        for line in self.lines:
            for pair in signature.pairs([word for word in line.words if word in self.known]):
                worth = line.weight * self._worth(pair)
                self._information[pair] = max(self._information.get(pair, 0.0), worth)
        unknown = [word for word in self._rarity if word not in self.known]
        self._all = sum(self._information.values()) + sum(self._worth((w, "")) for w in unknown)

    def _choose(self, weights: dict[str, float]) -> list[str]:
        asked: list[str] = []
        events = 0
        for word in sorted(self.known, key=lambda word: -weights[word]):
            events += self.known[word]
            if len(asked) == _WORDS or (asked and events > _MOST_EVENTS):
                break
            asked.append(word)
        return asked

    def _worth(self, pair: signature.Pair) -> float:
        first, second = pair
        if not second:
            return 0.3 * self._rarity[first]
        return 0.5 * (self._rarity[first] + self._rarity[second])

    def share(self, text: str) -> tuple[float, str]:
        """How much of the error a text has, and its best line."""
        has: set[signature.Pair] = set()
        best, quote = 0.0, ""
        for raw in text.split("\n"):
            line = raw.lower()
            if not any(word in line for word in self.asked):
                continue
            said = [word for word in signature.all_words(line) if word in self.known]
            pairs = {*signature.pairs(said)} & self._information.keys()
            has |= pairs
            worth = sum(self._information[pair] for pair in pairs)
            if worth > best:
                best, quote = worth, raw
        return sum(self._information[pair] for pair in has) / (self._all or 1.0), quote.strip()


def similar(
    db: apsw.Connection,
    error: str,
    *,
    most: int = 5,
    budget: int = BUDGET,
    within: Condition = ANY,
    leave_out: Iterable[SessionId] = (),
    prefer: Condition | None = None,
) -> Similar:
    """Where the same error occurred, each place with at most `budget` characters of what followed.

    `within` and `prefer` are conditions on `events e`, as filters make them. Of places that have
    about as much of the error, preferred ones come first.
    """
    wanted = _Error(db, error)
    out = frozenset(leave_out)
    occurrences = [one for one in _compared(db, wanted, within) if one.session not in out]
    same = [one for one in occurrences if one.share >= _SAME]
    calls = [one for one in same if one.status == "error"] or same
    if prefer is not None:
        occurrences = _preferred(db, occurrences, prefer)
    result = Similar(
        times=len(calls),
        more=len(calls) >= _FAILED,
        sessions=len({one.session for one in calls}),
        last=max(calls, key=lambda one: (one.ts or 0, one.event), default=None),
    )
    sessions = Sessions(db)
    taken: dict[SessionId, int] = {}
    told: set[tuple[str, str]] = set()
    least = _NEAR * max((one.share for one in occurrences), default=0.0)
    for one in occurrences:
        if one.share < least:
            continue
        if taken.get(one.session, 0) >= _PER_SESSION:
            continue
        after = sessions.after(one.session, one.event, budget)
        if (one.quote, after.told) in told:  # a session that was replayed
            continue
        told.add((one.quote, after.told))
        taken[one.session] = taken.get(one.session, 0) + 1
        result.places.append(Place(one, after.told, after.outcome, after.ended_by))
        if len(result.places) == most:
            break
    return result


def _preferred(
    db: apsw.Connection, occurrences: Sequence[Occurrence], prefer: Condition
) -> list[Occurrence]:
    sql = f"SELECT EXISTS (SELECT 1 FROM events e WHERE e.id = ? AND ({prefer.sql}))"

    def score(one: Occurrence) -> float:
        here = db.execute(sql, (one.event, *prefer.values)).get
        return one.score * (_PREFERENCE if here else 1.0)

    return sorted(occurrences, key=score, reverse=True)


def is_error(db: apsw.Connection, text: str) -> bool:
    """Whether a text is an error that was pasted: it looks so, or a failed call printed it."""
    if signature.is_pasted(text):
        return True
    first = signature.all_words(text.strip().split("\n")[0].lower())
    if len(first) < _LEAST_PRINTED or text.rstrip().endswith("?"):
        return False
    match = f'marks : "{FAILED}" AND output : "{" ".join(first)}"'
    sql = "SELECT EXISTS (SELECT 1 FROM event_index WHERE event_index MATCH ?)"
    return bool(db.execute(sql, (match,)).get)


def _compared(db: apsw.Connection, wanted: _Error, within: Condition) -> list[Occurrence]:
    """The events that may have the error, those that have most of it first."""
    if not wanted.asked:
        return []
    either = " OR ".join(f'"{word}"' for word in wanted.asked)
    sql = _CANDIDATES.format(within.sql)
    events: dict[EventId, None] = {}
    for match, most in (
        (f'marks : "{FAILED}" AND {{output}} : ({either})', _FAILED),
        (f"{{text output}} : ({either})", _OTHERS),
    ):
        rows = db.execute(sql, (match, *within.values, most))
        events.update((event, None) for (event,) in rows)
    found = []
    for event in events:
        ((session, ts, type_, status, text),) = db.execute(_TEXTS, (event, _READ))
        share, quote = wanted.share(text)
        weight = _weight(type_, status)
        found.append(
            Occurrence(event, session, ts, type_, status, share, share * weight, quote[:QUOTE])
        )
    return sorted(found, key=lambda one: (-one.score, -(one.ts or 0), -one.event))


def _weight(type_: str, status: str | None) -> float:
    if type_ == "tool_use":
        return _CALL if status == "error" else _OUTPUT
    return _PROMPT if type_ == "user" else _ANSWER
