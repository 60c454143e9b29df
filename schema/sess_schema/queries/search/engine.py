"""Search: which events match, in which order, with excerpts that show why.

Ranking reads only the index and `events`; texts are read for the hits shown, and for candidates
with a term that the index alone cannot decide.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from itertools import chain, islice
from operator import itemgetter

import apsw

from sess_common import times
from sess_common.classes import TYPE_CHECKING, dataclass, field, replace
from sess_schema import marks
from sess_schema.queries import fields
from sess_schema.queries.fields import ANY, Condition, Setting
from sess_schema.queries.search import excerpt, language, newest, ranking
from sess_schema.queries.search.language import Filter, Query
from sess_schema.queries.search.newest import Cursor, Newest, Position
from sess_schema.queries.search.plan import Comparison, Plan, matching, plan
from sess_schema.queries.search.ranking import Ranked
from sess_schema.queries.search.terms import Matching
from sess_schema.queries.sessions import title_for

if TYPE_CHECKING:
    from collections.abc import Container
    from typing import Any, Literal, Protocol

    from sess_schema.ids import EventId, SessionId
    from sess_schema.queries.search.terms import Leaf, Mode

    Sort = Literal["relevance", "newest", "oldest"]

    class Further(Protocol):
        """What a search goes on with where few events have all words."""

        @property
        def leaves(self) -> Sequence[Leaf]:
            """What its hits may highlight."""

        def ranked(self, known: Container[EventId]) -> Iterator[Ranked]:
            """Its matches in order, without those that are known."""


SORTS = ("relevance", "newest", "oldest")
TOKENIZER = ("unicode61", ["remove_diacritics", "2"])  # as event_index was created
EXCERPT_WIDTH = 160
ENOUGH = 3  # events with all words: with fewer, a search goes on by relevance
_ALL_TEXT = "CAST(concat_ws(char(10), x.text, x.input, x.output) AS BLOB)"
_ABOUT = (
    "e.session_id, e.type, e.label, e.tool, e.status, e.ts, e.summary, e.retired,"
    " x.text, x.input, x.output, x.marks"
)
_EVENT = f"SELECT {_ABOUT} FROM events e JOIN event_texts x ON x.id = e.id WHERE e.id = ?"
_TIME_FROM = "SELECT t.ts_from FROM events e JOIN records t ON t.id = e.record_id WHERE e.id = ?"
_WITHOUT_INPUT = 120
_FIRST_NEWEST = 200  # matches; later ones are read in larger parts
_FIELDS = ("text", "input", "output")

Match = tuple["EventId", int | None, "SessionId"]  # event, time, session


@dataclass(frozen=True, slots=True)
class Hit:
    """One matching event."""

    event: EventId
    score: float  # higher is better
    snippet: excerpt.Excerpt
    session: str  # the agent's id
    session_key: SessionId
    agent: str
    project: str | None
    title: str
    parent: str | None
    type: str
    label: str | None
    tool: str | None
    status: str | None
    ts: int | None
    summary: str | None
    retired: int
    ts_from: str | None  # whose time it has, if its record has none
    tier: str = "exact"  # or relevance: it need not have all words

    @property
    def field(self) -> str | None:
        """Where the match is: text, input or output."""
        return None if self.snippet.field is None else _FIELDS[self.snippet.field]


@dataclass(slots=True)
class Search:
    """A query, where to look, and how many hits to return."""

    text: str
    filters: Sequence[Filter] = ()
    limit: int = 20  # 0 for all
    mode: Mode = "words"
    case: bool = False
    whole: bool = False
    sort: Sort = "relevance"
    width: int = EXCERPT_WIDTH
    superseded: bool = False
    utc: bool = False
    now: int = field(default_factory=times.now_ms)
    cursor: str | None = None
    # Goes on where few events have all words.
    further: Callable[[apsw.Connection, Search], Further | None] | None = None

    def check(self) -> None:
        """Raise on a request that is invalid whatever the index, before one is opened."""
        for filter_ in self.filters:
            fields.check(filter_.field, filter_.value, self._setting())
        self._query(None, str.split)

    def hits(self, db: apsw.Connection) -> Iterator[Hit]:
        """The hits in order, each as soon as it is known."""
        return self.results(db).hits()

    def results(self, db: apsw.Connection) -> Results:
        return Results(db, self)

    def without_filters(self, db: apsw.Connection) -> str:
        """The words, without the filters that are written among them."""
        return language.without_filters(self.text, lambda one: self._fault(db, one))

    def _fault(self, db: apsw.Connection | None, filter_: Filter) -> str | None:
        return fields.fault(db, filter_.field, filter_.value, self._setting())

    def _query(self, db: apsw.Connection | None, tokenize: language.Tokenize) -> Query:
        matching = Matching(self.mode, case=self.case, whole=self.whole)
        filters = list(self.filters)

        if filters and not self.text.strip() and self.mode == "words":
            return Query(language.together(filters))
        query = language.parse(
            self.text, tokenize, matching, partial(self._fault, db), alone=not filters
        )
        if filters:
            query = query.narrowed(language.together(filters))
        # Next to it, any other type is a contradiction, not an alternative.
        return query.narrowed(Filter("type", "tool_use")) if self.mode == "tools" else query

    def _setting(self) -> Setting:
        return Setting(self.now, utc=self.utc, superseded=self.superseded)

    def fingerprint(self) -> int:
        asked = (self.text, tuple(self.filters), self.mode, self.case, self.whole, self.sort)
        return zlib.crc32(repr((*asked, self.superseded, self.utc)).encode("utf-8", "replace"))


class Results:
    """A search over one index."""

    def __init__(self, db: apsw.Connection, search: Search) -> None:
        self._db = db
        self.search = search
        self._start = self._cursor()
        search.now = self._start.now
        self.query = search._query(db, tokenizer(db))  # noqa: SLF001
        self._made: dict[Filter, Condition] = {}
        self.plan: Plan = plan(self.query, self._condition)
        self._comparison = Comparison(db, self._condition)
        self._leaves = self.query.wanted()
        # How far hits were read, for the cursor.
        self._page: tuple[Position | None, Position | None, list[int]] | None = None
        self._last: tuple[int | None, int] | None = None
        self._read: tuple[int, tuple[list[Any], list[str]]] = (0, ([], []))
        self._sessions: dict[int, Any] = {}
        self.further: Further | None = None  # once any hit is from there
        self.partly = False  # whether only the newest of very many matches were ranked first

    @property
    def ranks(self) -> bool:
        return self.plan.match is not None and self.search.sort == "relevance"

    def hits(self) -> Iterator[Hit]:
        for number, ranked in enumerate(self.ranked(), 1):
            yield self.hit(ranked)
            if number == self.search.limit:
                return

    def ranked(self) -> Iterator[Ranked]:
        """The matches in order, without texts."""
        exact = self._by_pools() if self.ranks else self._by_time()
        return exact if self.search.further is None else self._and_further(exact)

    def _and_further(self, exact: Iterator[Ranked]) -> Iterator[Ranked]:
        """The matches; if they are few, what has most of the words."""
        known: set[EventId] = set()
        for one in exact:
            known.add(one.event)
            yield one
        several = len(language.plain_words(self.query)) > 1  # one word alone is what it is
        if len(known) < ENOUGH and several and self.search.further is not None:
            further = self.search.further(self._db, replace(self.search, further=None))
            for one in further.ranked(known) if further else ():
                self.further = further
                yield one

    def count(self, within: Condition | None = None, most: int = 0) -> int:
        """How many events match, optionally within a condition, optionally counting to `most`."""
        base, plan = self._base(within), self._within(within)
        if plan.residual is None:
            sql, values = matching(plan, base, plan.match, "")
            if most and plan.scans:
                sql += f" LIMIT {most}"
            return int(self._db.execute(f"SELECT count(*) FROM ({sql})", values).get)
        matches = self._matches(base, plan=plan)
        return sum(1 for _ in islice(matches, most or None))

    def count_by_session(self, within: Condition) -> dict[SessionId, int]:
        """How many events match in each session, for a plan without a residual."""
        plan = self._within(within)
        sql, values = matching(plan, self._base(within), plan.match, "e.session_id")
        return dict(
            self._db.execute(f"SELECT session_id, count(*) FROM ({sql}) GROUP BY 1", values)
        )

    def _within(self, condition: Condition | None) -> Plan:
        if condition is None or condition.range is None:
            return self.plan
        return replace(self.plan, ranges=(*self.plan.ranges, condition.range))

    def filtered(self) -> Condition:
        """What the filters of the query demand, without its words."""
        tree = self.query.tree
        nodes = tree.nodes if isinstance(tree, language.And) else (tree,)
        kept = [node for node in nodes if language.only_filters(node)]
        return plan(Query(language.And((*kept,))), self._condition).where if kept else ANY

    def sessions(self) -> Iterator[SessionId]:
        """The sessions with a match, the newest match first, including forks that share it."""
        seen: set[SessionId] = set()
        for event, _, session, sure in self._candidates(self._base(), newest.BY_TIME["newest"]):
            if session in seen and not self._any_copies:
                continue
            if sure or self._holds(event):
                for key in (session, *self._copies(event)):
                    if key not in seen:
                        seen.add(key)
                        yield key

    @cached_property
    def _any_copies(self) -> bool:
        return bool(
            self._db.execute("SELECT EXISTS (SELECT 1 FROM records WHERE copy_of IS NOT NULL)").get
        )

    def _copies(self, event: EventId) -> Iterator[SessionId]:
        for (session,) in self._db.execute(
            "SELECT t.session_id FROM events e JOIN records t ON t.copy_of = e.record_id"
            " WHERE e.id = ? AND t.retired = 0",
            (event,),
        ):
            yield session

    def hit(self, ranked: Ranked, width: int | None = None) -> Hit:
        about, texts = self._event(ranked.event)
        session, *event = about
        leaves = self._leaves if ranked.exact or self.further is None else self.further.leaves
        snippet = excerpt.best(texts[:3], leaves, width or self.search.width)
        if session not in self._sessions:
            self._sessions[session] = self._about(session)
        if self.search.mode == "tools":
            snippet = self._asked(snippet, event[-2], texts[2])
        event.append(self._db.execute(_TIME_FROM, (ranked.event,)).get)
        event.append("exact" if ranked.exact else "relevance")
        return Hit(ranked.event, ranked.score, snippet, *self._sessions[session], *event)

    def _about(self, session: SessionId) -> tuple[Any, ...]:
        ((name, agent, project, title, parent),) = self._db.execute(
            f"SELECT s.native_id, s.agent, s.project, {marks.title()}, p.native_id"
            " FROM sessions s LEFT JOIN sessions p ON p.id = s.parent_id WHERE s.id = ?",
            (session,),
        )
        return name, session, agent, project, title_for(self._db, session, title), parent

    def _asked(self, snippet: excerpt.Excerpt, summary: str | None, output: str) -> excerpt.Excerpt:
        """Adds what a tool was asked where the match is in its output."""
        line = " ".join((summary or output[:_WITHOUT_INPUT]).split())
        spans = tuple(span for leaf in self._leaves for span in leaf.places(line))
        return replace(snippet, text=line, spans=spans)

    def cursor(self) -> str:
        """Where the next page starts."""
        at = self._start
        if self._page is not None:
            below, edge, given = self._page
            at = replace(at, below=below, edge=edge, given=tuple(given))
        elif self._last is not None:
            at = replace(at, last=self._last)
        return at.encoded()

    def texts(self, event: EventId) -> list[str]:
        """text, input, output and marks."""
        return self._event(event)[1]

    def _event(self, event: EventId) -> tuple[list[Any], list[str]]:
        """An event's columns and its texts; the last one compared is cached."""
        if self._read[0] != event:
            (row,) = self._db.execute(_EVENT, (event,))
            self._read = event, (list(row[:8]), list(row[8:]))
        return self._read[1]

    def _by_pools(self) -> Iterator[Ranked]:
        start = self._start
        ranker = ranking.Ranker(self._db, self.plan, self._base(), self.search.now, start.top)
        early: set[EventId] = set()
        below, edge = start.below, start.edge
        given = list(start.given)
        if below is not None and edge is not None:
            early = {row[0] for row in (*ranker.said(edge).rows, *ranker.best(edge))}
        while True:
            first = below is None
            pool = ranker.pool(ranking.POOL if first else ranking.LATER_POOL, below)
            rows = pool.rows
            # With filters the pool already reaches further back.
            if first and pool.bottom and self.plan.where.sql == ANY.sql:
                edge = pool.bottom
                older = {row[0]: row for row in (*ranker.said(edge).rows, *ranker.best(edge))}
                early = {*older}
                rows = sorted([*rows, *older.values()], key=itemgetter(2), reverse=True)
                self.partly = ranker.common
            skip = set(given) if first else {*given, *early}
            for event, ts, score, session in rows:
                if event in skip or not self._holds(event):
                    continue
                given.append(event)
                self._page = (below, edge, given)
                yield Ranked(event, ts, session, score)
            if pool.bottom is None:
                return
            below, given = pool.bottom, []

    def _by_time(self) -> Iterator[Ranked]:
        sort = "oldest" if self.search.sort == "oldest" else "newest"
        if sort == "newest" and self.plan.match is not None:
            yield from self._newest()
            return
        start = newest.after_row(self._start.last, sort)
        ranges = None
        if self.plan.scans and self.plan.match is None:
            ranges = newest.split_by_time(self._db, self._start.top, sort)
        if ranges is None:
            matches = self._matches(self._base(start), newest.BY_TIME[sort])
        else:
            first, rest = ranges
            matches = chain(
                self._matches(self._base(start, first), newest.BY_TIME[sort]),
                self._sorted(self._base(start, rest), newest.SORTED[sort]),
            )
        for event, ts, session in matches:
            self._last = (ts, event)
            yield Ranked(event, ts, session)

    def _newest(self) -> Iterator[Ranked]:
        """The matches of words, without sorting all of them."""
        matches = Newest(self._db, self.plan, self._base(), "e.session_id")
        below, most = self._start.last, _FIRST_NEWEST
        while True:
            rows, below = matches.rows(most, before=below)
            for event, ts, session in rows:
                if self._holds(event):
                    self._last = (ts, event)
                    yield Ranked(event, ts, session)
            if below is None:
                return
            most = min(4 * most, ranking.LATER_POOL)

    def _sorted(self, base: Condition, by: str) -> Iterator[Match]:
        """The matches, read in file order and then sorted."""
        if self.plan.residual is None:
            yield from self._matches(base, by)
            return
        from array import array  # only for what the index cannot decide

        events = array("q", [match[0] for match in self._matches(base)])
        yield from self._db.execute(
            "SELECT e.id, e.ts, e.session_id FROM json_each(?) CROSS JOIN events e ON e.id = value"
            f" ORDER BY {by}",
            (f"[{','.join(map(str, events))}]",),
        )

    def _matches(self, base: Condition, by: str = "", plan: Plan | None = None) -> Iterator[Match]:
        """(event, time, session) of each match."""
        for event, ts, session, sure in self._candidates(base, by, plan):
            if sure or self._holds(event):
                yield event, ts, session

    def _candidates(
        self, base: Condition, by: str = "", plan: Plan | None = None
    ) -> Iterator[tuple[EventId, int | None, SessionId, bool]]:
        """(event, time, session) of each candidate, and whether it is certain to match."""
        plan = plan or self.plan
        by = f" ORDER BY {by}" if by else ""
        if plan.screen is not None:
            wanted = f"{_ALL_TEXT}, e.session_id"
            sql, values = matching(plan, base, plan.match, wanted, texts=True)
            rows = self._db.execute(sql + by, values)
            for (event, ts, _, session), sure in plan.screen.passed(rows):
                yield event, ts, session, sure
        elif plan.enough is not None:
            wanted = f"e.session_id, {plan.enough.sql}"
            sql, values = matching(plan, base, None, wanted, texts=True)
            yield from self._db.execute(sql + by, [*plan.enough.values, *values])
        elif plan.match is None and plan.residual is not None:
            # Each text is read anyway: reading it again would cost more than the comparison.
            sql, values = matching(plan, base, None, _ABOUT, texts=True)
            for event, ts, *row in self._db.execute(sql + by, values):
                self._read = event, (row[:8], row[8:])
                yield event, ts, row[0], False
        else:
            wanted = f"e.session_id, {plan.residual is None}"
            sql, values = matching(plan, base, plan.match, wanted)
            yield from self._db.execute(sql + by, values)

    def _holds(self, event: EventId) -> bool:
        node = self.plan.residual
        return node is None or self._comparison.holds(node, event, self.texts(event))

    def _base(self, *within: Condition | None) -> Condition:
        """What every result satisfies: it is current, and no newer than the first page."""
        sql, values = "1" if self.search.superseded else "e.retired = 0", list[object]()
        if self.search.cursor is not None:
            sql += " AND e.id <= ?"
            values.append(self._start.top)
        for condition in within:
            if condition is not None:
                sql += f" AND ({condition.sql})"
                values += condition.values
        return Condition(sql, tuple(values))

    def _condition(self, filter_: Filter) -> Condition:
        if filter_ not in self._made:
            setting = self.search._setting()  # noqa: SLF001
            self._made[filter_] = fields.condition(self._db, filter_.field, filter_.value, setting)
        return self._made[filter_]

    def _cursor(self) -> Cursor:
        search = self.search
        if search.cursor is not None:
            return newest.decoded_cursor(search.cursor, search.fingerprint())
        top = self._db.execute("SELECT coalesce(max(id), 0) FROM events").get
        return Cursor(search.fingerprint(), search.now, top)


def tokenizer(db: apsw.Connection) -> Callable[[str], list[str]]:
    name, arguments = TOKENIZER
    tokenize = db.fts5_tokenizer(name, arguments)
    return lambda text: [
        str(token[-1]) for token in tokenize(text.encode("utf-8"), apsw.FTS5_TOKENIZE_QUERY, None)
    ]
