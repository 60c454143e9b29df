"""`recall`: the places of an index that may answer a question."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from sess_common import times
from sess_common.classes import TYPE_CHECKING, dataclass, field, replace
from sess_common.errors import SessError
from sess_schema.citations import Citations
from sess_schema.queries import fields, sessions
from sess_schema.queries.fields import Condition, Setting
from sess_schema.queries.recall.places import ANSWERED, QUOTED, Passages, Stories
from sess_schema.queries.recall.question import Question
from sess_schema.queries.recall.ranking import Candidate, Ranking
from sess_schema.queries.search.engine import Search

if TYPE_CHECKING:
    from sess_schema.ids import EventId, SessionId
    from sess_schema.queries.search.language import Filter

PER_SESSION = 2
PREFERENCE = 1.25  # by how much the score of a preferred project grows
RECENT = 600_000  # milliseconds: what an agent has just said is no memory


@dataclass(slots=True)
class Options:
    """Where to look, and how much to tell."""

    filters: Sequence[Filter] = ()
    prefer: str | None = None  # a project whose sessions come first among equals
    not_session: str | None = None  # the running session: neither it nor what is just written
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
    words: list[str]  # that were looked for
    left_out: list[str]  # in too many events to tell anything
    unknown: list[str]  # in no event
    matched: int  # events with any of them


def recall(db: apsw.Connection, text: str, options: Options | None = None) -> Recalled:
    """The places that may answer a question in plain words, the best first."""
    options = options or Options()
    search = Search(text, options.filters, utc=options.utc, now=options.now)
    question = Question(db, search.without_filters(db))
    ranking = Ranking(db, question, _where(db, search, options))
    chosen = _few_each(_preferred(db, ranking.best(), options), options.limit)
    terms = {
        term.text: heard.rarity * term.weight
        for heard in ranking.heard
        for term in (*heard.word.near, *heard.word.terms)
    }
    stories = Stories(db, Passages(terms))
    cites = Citations(db)
    places = []
    for candidate in chosen:
        row = sessions.by_key(db, candidate.session)
        story = stories.of(candidate.event, candidate.session, options.quoted, options.answered)
        places.append(
            Place(
                candidate.event,
                cites.key(candidate.event, candidate.session),
                row.session,
                row.key,
                row.agent,
                row.project,
                sessions.title_of(db, row),
                row.parent,
                candidate.ts,
                candidate.type,
                story.quote,
                story.answer,
                story.outcome,
                candidate.score,
                candidate.score / ranking.information if ranking.information else 0.0,
            )
        )
    confidence = places[0].confidence if places else 0.0
    return Recalled(
        places,
        bool(places),
        confidence,
        [word.text for word in ranking.words],
        [word.text for word in ranking.left_out],
        [word.text for word in question.words if not word.terms],
        len(ranking.scores()),
    )


def _preferred(
    db: apsw.Connection, candidates: Sequence[Candidate], options: Options
) -> Sequence[Candidate]:
    """With those of a project before their equals."""
    if options.prefer is None:
        return candidates
    here = fields.condition(db, "project", options.prefer, Setting(options.now, utc=options.utc))
    listed = f"[{','.join(str(candidate.event) for candidate in candidates)}]"
    preferred = {
        event
        for (event,) in db.execute(
            f"SELECT e.id FROM json_each(?) j JOIN events e ON e.id = j.value WHERE {here.sql}",
            (listed, *here.values),
        )
    }
    scored = [
        replace(one, score=one.score * PREFERENCE) if one.event in preferred else one
        for one in candidates
    ]
    return sorted(scored, key=lambda one: (-one.score, one.event))


def _few_each(candidates: Sequence[Candidate], limit: int) -> list[Candidate]:
    """At most two of a session."""
    per: dict[SessionId, int] = {}
    chosen = []
    for candidate in candidates:
        per[candidate.session] = per.get(candidate.session, 0) + 1
        if per[candidate.session] <= PER_SESSION:
            chosen.append(candidate)
    return chosen[:limit] if limit else chosen


def _where(db: apsw.Connection, search: Search, options: Options) -> Condition:
    """What every place satisfies."""
    conditions = [search.results(db).filtered()]
    if options.not_session is not None:
        listed = f"[{','.join(map(str, _running(db, options.not_session)))}]"
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
