"""What the list shows for a query: conversations with their best hits, or the newest ones.

Ranking a word that is everywhere is too slow for a keystroke. Its newest matches are found much
sooner, and are shown until typing pauses.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from sess_cli.finder import wording
from sess_cli.finder.cards import Card, Cards
from sess_cli.finder.worker import Latest
from sess_common import times
from sess_schema.queries.fields import Condition, Setting
from sess_schema.queries.search import Filter, Hit, Results, Search
from sess_schema.queries.search.groups import Families
from sess_schema.queries.search.language import And
from sess_schema.queries.search.newest import newest
from sess_schema.queries.search.plan import Plan
from sess_schema.queries.search.ranking import Ranked
from sess_schema.queries.search.terms import Term
from sess_schema.queries.sessions import Listing

if TYPE_CHECKING:
    from sess_schema.ids import SessionId
    from sess_schema.queries.search.terms import Leaf, Mode

MOST_HITS = 300
MOST_SESSIONS = 200
PER_CONVERSATION = 3
PAUSE = 0.15  # seconds without typing before any slow work
# Matches are ranked before anything is shown if they are found soon and the words are rare.
_FOUND_SOON = 0.004  # seconds
_RARE = 60_000  # matching events
_RANKED_SOON = 0.012
_STEPS = 2000  # of SQLite's virtual machine between checks of the clock
_OF_SESSIONS = ("agent", "project", "since")


@dataclass(frozen=True, slots=True)
class Request:
    number: int
    text: str
    filters: tuple[Filter, ...]
    rows: int  # lines that fill the screen
    width: int  # of an excerpt
    whole: frozenset[int] = frozenset()  # conversations shown with every hit


@dataclass(frozen=True, slots=True)
class Conversation:
    """A session with its subagents, and their best hits."""

    card: Card
    hits: tuple[Hit, ...] = ()  # none without a query
    more: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    request: Request
    conversations: tuple[Conversation, ...] = ()
    leaves: tuple[Leaf, ...] = ()
    notes: tuple[str, ...] = ()
    hits: int = 0  # how many match
    counted: bool = True  # whether that is exact
    complete: bool = True  # whether all can be shown
    error: str | None = None
    deviation: str | None = None  # how what was searched for differs from what was typed


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is searched for."""

    text: str
    deviation: str | None = None
    mode: Mode = "words"

    @property
    def begun(self) -> str:
        return wording.begun(self.text) if self.mode == "words" else self.text


@dataclass(frozen=True, slots=True)
class _Step:
    """Matches to show while better ones are searched for."""

    results: Results
    ranked: Sequence[Ranked]
    pause: float = PAUSE  # before the next step


class Finding:
    """Answers the latest request in several steps; each answer replaces the previous one."""

    def __init__(self, index: Path, show: Callable[[Answer], None], *, utc: bool) -> None:
        self._show = show
        self._utc = utc
        self._cards = Cards()
        self._latest: Latest[Request] = Latest(index, self._answer, self._failed)
        self.ask, self.close = self._latest.ask, self._latest.close

    def _failed(self, request: Request, error: Exception) -> None:
        self._show(Answer(request, error=str(error)))

    def _answer(self, db: apsw.Connection, request: Request) -> None:
        self._cards.refresh(db)
        for wanted in self._attempts(db, request):
            of_sessions = all(one.field in _OF_SESSIONS for one in request.filters)
            if not wanted.text.strip() and of_sessions:
                found = self._newest_sessions(db, request, wanted)
            else:
                found = self._events(db, request, wanted)
            if found:
                return

    def _attempts(self, db: apsw.Connection, request: Request) -> Iterator[_Wanted]:
        """What was typed, and what to search for if that finds nothing."""
        setting = Setting(times.now_ms(), utc=self._utc)
        unfinished = wording.unfinished_filter(db, request.text, setting)
        text = request.text[: len(request.text) - len(unfinished)]
        yield _Wanted(
            text if wording.says_something(text) else "",
            f'without the unfinished filter "{unfinished}"' if unfinished else None,
        )
        if short := wording.short_word(text):
            kept = text[: len(text) - len(short)]
            deviation = f'without "{short}", which finds nothing'
            yield _Wanted(kept if wording.says_something(kept) else "", deviation)
        nothing = Answer(request)
        self._show(nothing)
        if not wording.says_something(text):
            return
        self._latest.pause(PAUSE)
        from sess_schema.queries.search.relax import wider  # only if nothing is found

        for way in wider(db, Search(text, request.filters, utc=self._utc)):
            if way.drops:
                more = "" if way.counted else " or more"
                self._show(replace(nothing, notes=(f"{way.count:,}{more} {way.why}",)))
            else:
                mode: Mode = "substring" if way.adds else "words"
                yield _Wanted(way.words, way.why, mode)

    def _newest_sessions(self, db: apsw.Connection, request: Request, wanted: _Wanted) -> bool:
        def given(name: str) -> list[str]:
            return [one.value for one in request.filters if one.field == name]

        since = [times.since(value, utc=self._utc) for value in given("since")]
        listing = Listing(
            given("agent"), given("project"), max(since, default=None), limit=MOST_SESSIONS
        )
        found = tuple(Conversation(self._cards.made(db, row)) for row in listing.rows(db))
        if found:
            self._show(Answer(request, found, deviation=wanted.deviation))
        return bool(found)

    def _events(self, db: apsw.Connection, request: Request, wanted: _Wanted) -> bool:
        for step in self._steps(db, request, wanted):
            if not step.ranked:
                return False
            first = next(self._answers(db, request, step))
            self._show(replace(first, deviation=wanted.deviation))
            self._latest.pause(step.pause)
        *_, answer = self._answers(db, request, step)
        answer = replace(answer, deviation=wanted.deviation)
        self._show(answer)
        if not answer.complete:
            self._show(replace(answer, hits=step.results.count(), counted=True))
        return True

    def _steps(self, db: apsw.Connection, request: Request, wanted: _Wanted) -> Iterator[_Step]:
        results = self._search(db, request, wanted.begun, wanted.mode)
        if not results.ranks or results.plan.residual is not None:
            yield from _compared(results)
            return
        began = time.perf_counter()
        newest = self._newest(db, request, wanted, results)
        took = time.perf_counter() - began
        words = [leaf for leaf in results.query.wanted() if not _begins(leaf)]
        if took < _FOUND_SOON and sum(_frequency(db, word) for word in words) < _RARE:
            try:
                with _deadline(db, _RANKED_SOON):
                    best = _best(results)
            except apsw.InterruptError:
                self._latest.check()
            else:
                yield _Step(results, best)
                return
        yield newest
        if newest.ranked:
            yield _Step(results, _best(results))

    def _newest(
        self, db: apsw.Connection, request: Request, wanted: _Wanted, results: Results
    ) -> _Step:
        """The newest matches. A prefix is slow, and the word alone may find enough."""
        *_, last = (None, *results.query.wanted())
        if isinstance(last, Term) and wanted.begun != wanted.text and _enough(db, last):
            word = self._search(db, request, wanted.text)
            if len(ranked := _newest(db, word)) == MOST_HITS:
                return _Step(word, ranked)
        return _Step(results, _newest(db, results))

    def _search(
        self, db: apsw.Connection, request: Request, text: str, mode: Mode = "words"
    ) -> Results:
        return Search(text, request.filters, limit=0, mode=mode, utc=self._utc).results(db)

    def _answers(self, db: apsw.Connection, request: Request, step: _Step) -> Iterator[Answer]:
        """First a screenful, then everything."""
        query, found = step.results.query, len(step.ranked)
        leaves, all_of_them = tuple(query.wanted()), found < MOST_HITS
        answer = Answer(request, (), leaves, query.notes, found, all_of_them, all_of_them)
        shown: list[Conversation] = []
        lines = 0
        for root, members in _grouped(db, step.ranked).items():
            self._latest.check()
            kept = members if root in request.whole else members[:PER_CONVERSATION]
            hits = tuple(step.results.hit(one, request.width) for one in kept)
            shown.append(Conversation(self._cards.of(db, root), hits, len(members) - len(kept)))
            before, lines = lines, lines + 1 + len(hits)
            if before < request.rows <= lines:
                yield replace(answer, conversations=tuple(shown))
        yield replace(answer, conversations=tuple(shown))


def _best(results: Results) -> list[Ranked]:
    return list(islice(results.ranked(), MOST_HITS))


def _compared(results: Results) -> Iterator[_Step]:
    """If texts must be compared, matches found in time are shown before the rest."""
    began, shown = time.perf_counter(), False
    ranked: list[Ranked] = []
    for one in islice(results.ranked(), MOST_HITS):
        ranked.append(one)
        if not shown and time.perf_counter() - began > _RANKED_SOON:
            shown = True
            yield _Step(results, ranked, pause=0)
    yield _Step(results, ranked)


def _newest(db: apsw.Connection, results: Results) -> list[Ranked]:
    """The matches, newest first, without ranking."""
    plan, current = _unordered(results), Condition("e.retired = 0")
    return [Ranked(*match) for match in newest(db, plan, current, MOST_HITS)]


def _unordered(results: Results) -> Plan:
    """Without the phrase of all words: it is slow and only matters for ranking."""
    tree = results.query.tree
    nodes = tree.nodes if isinstance(tree, And) else (tree,)
    if not all(isinstance(node, Term | Filter) for node in nodes):
        return results.plan
    words = [node.match for node in nodes if isinstance(node, Term) and node.match]
    return replace(results.plan, match=" AND ".join(words))


def _enough(db: apsw.Connection, beginning: Term) -> bool:
    """Whether the word typed so far fills the list."""
    return _frequency(db, replace(beginning, prefix=False)) >= MOST_HITS


def _begins(leaf: Leaf) -> bool:
    return isinstance(leaf, Term) and leaf.prefix


def _frequency(db: apsw.Connection, leaf: Leaf) -> float:
    """How many events contain a word, estimated from recent ones."""
    sql = "SELECT rowid FROM event_index WHERE event_index MATCH ? ORDER BY rowid DESC LIMIT ?"
    newest: list[int] = [event for (event,) in db.execute(sql, (leaf.match, MOST_HITS))]
    if len(newest) < MOST_HITS:
        return len(newest)
    return len(newest) * newest[0] / (1 + newest[0] - newest[-1])


@contextmanager
def _deadline(db: apsw.Connection, seconds: float) -> Iterator[None]:
    end = time.perf_counter() + seconds
    db.set_progress_handler(lambda: time.perf_counter() > end, _STEPS, id=_deadline)
    try:
        yield
    finally:
        db.set_progress_handler(None, id=_deadline)


def _grouped(db: apsw.Connection, ranked: Sequence[Ranked]) -> dict[SessionId, list[Ranked]]:
    """By conversation, the one with the best hit first."""
    families = Families(db)
    groups: dict[SessionId, list[Ranked]] = {}
    for one in ranked:
        groups.setdefault(families.root(one.session), []).append(one)
    return groups
