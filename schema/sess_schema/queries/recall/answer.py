"""`recall`: the places of an index that may answer a question, or show what ended an error."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import apsw

from sess_common import times
from sess_common.classes import TYPE_CHECKING, dataclass, field, replace
from sess_common.errors import SessError
from sess_schema.citations import Citations
from sess_schema.queries import fields, sessions
from sess_schema.queries.fields import ANY, Condition, Setting
from sess_schema.queries.recall.confidence import FOUND, Confidence
from sess_schema.queries.recall.ordering import Ordering
from sess_schema.queries.recall.places import ANSWERED, QUOTED, Passages, Stories
from sess_schema.queries.recall.question import Question
from sess_schema.queries.recall.ranking import Candidate, Ranking
from sess_schema.queries.search.engine import Search

if TYPE_CHECKING:
    from sess_schema.ids import EventId, SessionId
    from sess_schema.queries.failures.similar import Similar
    from sess_schema.queries.search.language import Filter

PREFERENCE = 1.25  # by how much the score of a preferred project grows
RECENT = 600_000  # milliseconds: what an agent has just said is no memory
IN_FULL = 8  # places; those after them are told in brief
BRIEF = 300  # characters of a quote, and of what followed
_SAME = 300  # characters of quote and answer, by which copies of a place are known
_MOST_ERRORS = 5  # occurrences of an error


@dataclass(slots=True)
class Options:
    """Where to look, and how much to tell."""

    filters: Sequence[Filter] = ()
    prefer: str | None = None  # a project whose sessions come first among equals
    not_session: str | None = None  # the running session: neither it nor what is just written
    error: bool | None = None  # whether the text is a pasted error; None: if it looks like one
    leave_out: Collection[SessionId] = ()  # with them, what is just written, too
    limit: int = 20
    quoted: int = QUOTED  # characters
    answered: int = ANSWERED
    utc: bool = False
    now: int = field(default_factory=times.now_ms)


@dataclass(frozen=True, slots=True)
class Place:
    """An event that may hold the answer, with what followed."""

    event: EventId
    key: str  # after the `#` of its citation
    session: str
    session_key: SessionId
    agent: str
    project: str | None
    title: str
    parent: str | None
    ts: int | None
    type: str
    quote: str
    answer: str
    outcome: str  # done, failed, interrupted, unknown
    score: float
    confidence: float


@dataclass(frozen=True, slots=True)
class Recalled:
    """The answer to a question."""

    places: list[Place]
    found: bool  # whether any of them seems to fit
    confidence: float
    error: bool = False  # whether the question was a pasted error
    words: Sequence[str] = ()  # that were looked for
    left_out: Sequence[str] = ()  # in too many events to tell anything
    unknown: Sequence[str] = ()  # in no event
    matched: int = 0  # events with any of them; occurrences of an error
    known: Similar | None = None  # of an error


def recall(db: apsw.Connection, text: str, options: Options | None = None) -> Recalled:
    """The places that may answer a question in plain words, the best first."""
    options = options or Options()
    if options.error is not False:
        from sess_schema.queries.failures import similar

        if options.error or similar.is_error(db, text):
            return _of_error(db, text, options)
    return _of_question(db, text, options)


def _of_question(db: apsw.Connection, text: str, options: Options) -> Recalled:
    search = Search(text, options.filters, utc=options.utc, now=options.now)
    question = Question(db, search.without_filters(db))
    where = _where(db, search.results(db).filtered(), options)
    ranking = Ranking(db, question, where)
    best = ranking.best()
    confidence = Confidence(question, ranking)
    places: list[Place] = []
    told: set[str] = set()
    for place in _told(db, ranking, confidence, _preferred(db, best, options), options):
        copy = " ".join(f"{place.quote[:_SAME]} {place.answer[:_SAME]}".split())
        if copy not in told:  # forks, replays, prompts that were repeated
            told.add(copy)
            places.append(place)
        if len(places) == options.limit:
            break
    surest = confidence.of(best[0].score) if best else 0.0
    return Recalled(
        places,
        bool(places) and surest >= FOUND,
        surest,
        words=[word.text for word in ranking.words],
        left_out=[word.text for word in ranking.left_out],
        unknown=[word.text for word in question.words if not word.terms],
        matched=len(ranking.scores),
    )


def _told(
    db: apsw.Connection,
    ranking: Ranking,
    confidence: Confidence,
    candidates: Sequence[Candidate],
    options: Options,
) -> Iterator[Place]:
    terms = {
        term.text: heard.rarity * term.weight
        for heard in ranking.heard
        for term in (*heard.word.near, *heard.word.terms)
    }
    stories = Stories(db, Passages(terms))
    makes = _Places(db)
    for number, ordered in enumerate(Ordering(db, ranking).places(candidates)):
        candidate = ordered.candidate
        quoted, answered = options.quoted, options.answered
        if number >= IN_FULL:
            quoted, answered = min(quoted, BRIEF), min(answered, BRIEF)
        story = stories.of(candidate.event, candidate.session, quoted, answered)
        yield makes.of(
            candidate,
            (story.quote, story.answer, story.outcome),
            ordered.score,
            confidence.of(candidate.score),
        )


class _Places:
    """Adds what is known of the session of a place."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self._cites = Citations(db)

    def of(
        self,
        candidate: Candidate,
        story: tuple[str, str, str],
        score: float,
        confidence: float,
    ) -> Place:
        row = sessions.by_key(self._db, candidate.session)
        return Place(
            candidate.event,
            self._cites.key(candidate.event, candidate.session),
            row.session,
            row.key,
            row.agent,
            row.project,
            sessions.title_of(self._db, row),
            row.parent,
            candidate.ts,
            candidate.type,
            *story,
            score,
            confidence,
        )


def _of_error(db: apsw.Connection, text: str, options: Options) -> Recalled:
    """Where the same error occurred, and what ended it."""
    from sess_schema.queries.failures import similar

    filtered = ANY
    if options.filters:
        search = Search("", options.filters, utc=options.utc, now=options.now)
        filtered = search.results(db).filtered()
    known = similar.similar(
        db,
        text,
        most=min(options.limit, _MOST_ERRORS),
        budget=options.quoted + options.answered - similar.QUOTE,
        within=_where(db, filtered, options),
        prefer=None if options.prefer is None else _of_project(db, options),
    )
    makes = _Places(db)
    places = []
    for place in known.places:
        one = place.found
        candidate = Candidate(one.event, one.session, one.score, one.ts, one.type, None)
        story = (one.quote, place.answer, place.outcome)
        places.append(makes.of(candidate, story, one.score, one.share))
    return Recalled(
        places, known.found, known.confidence, error=True, matched=known.times, known=known
    )


def _of_project(db: apsw.Connection, options: Options) -> Condition:
    setting = Setting(options.now, utc=options.utc)
    return fields.condition(db, "project", str(options.prefer), setting)


def _preferred(
    db: apsw.Connection, candidates: Sequence[Candidate], options: Options
) -> Sequence[Candidate]:
    """With those of a project before their equals."""
    if options.prefer is None:
        return candidates
    here = _of_project(db, options)
    listed = f"[{','.join(str(candidate.event) for candidate in candidates)}]"
    rows = db.execute(
        f"SELECT e.id FROM json_each(?) j JOIN events e ON e.id = j.value WHERE {here.sql}",
        (listed, *here.values),
    )
    preferred = {event for (event,) in rows}
    scored = [
        replace(one, score=one.score * PREFERENCE) if one.event in preferred else one
        for one in candidates
    ]
    return sorted(scored, key=lambda one: (-one.score, one.event))


def _where(db: apsw.Connection, filtered: Condition, options: Options) -> Condition:
    """What every place satisfies."""
    conditions = [filtered]
    left_out = {*options.leave_out}
    if options.not_session is not None:
        left_out.update(_running(db, options.not_session))
    if left_out or options.not_session is not None:
        listed = f"[{','.join(map(str, left_out))}]"
        conditions += [
            Condition("e.session_id NOT IN (SELECT value FROM json_each(?))", (listed,)),
            Condition("e.ts IS NULL OR e.ts < ?", (options.now - RECENT,)),
        ]
    sql = " AND ".join(f"({condition.sql})" for condition in conditions)
    return Condition(sql, tuple(value for one in conditions for value in one.values))


def _running(db: apsw.Connection, name: str) -> list[SessionId]:
    """A session with its subagents; none if it is not indexed yet."""
    try:
        return sessions.family(db, sessions.resolve(db, name).key)
    except SessError:
        return []
