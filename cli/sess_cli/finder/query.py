"""What the list shows for a query: conversations with their best hits, or the newest ones.

Ranking a word that is everywhere is too slow for a keystroke. Its newest matches are found much
sooner, and are shown until typing pauses.
"""

from __future__ import annotations

import re
import time
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from sess_cli.finder.worker import Latest
from sess_common import times
from sess_common.escape import safe
from sess_schema.marks import Marks
from sess_schema.queries import fields, sessions
from sess_schema.queries.fields import FIELDS, Condition, Setting
from sess_schema.queries.search import ENOUGH, Filter, Hit, Results, Search
from sess_schema.queries.search.groups import Families
from sess_schema.queries.search.language import And
from sess_schema.queries.search.newest import newest
from sess_schema.queries.search.plan import Plan
from sess_schema.queries.search.ranking import Ranked
from sess_schema.queries.search.terms import Term
from sess_schema.queries.sessions import Listing, SessionRow, ShortIds

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
# What was typed so far: the last word may be incomplete.
_SHORTEST_BEGINNING = 3
_LAST = re.compile(r'[^\s"()]+$')
_WORD = re.compile(r"[^\W_]+$")  # as the index sees it: `src/ro` ends in a two-letter word
_FIELD = re.compile(r"-?([a-z]+):(.*)", re.DOTALL)
_GLOBS = ("tool", "branch")
_UNCASED = ("Lo", "Lm")  # letters of Chinese, Japanese, Korean and others


@dataclass(frozen=True, slots=True)
class Request:
    number: int
    text: str
    filters: tuple[Filter, ...]
    rows: int  # lines that fill the screen
    width: int  # of an excerpt
    whole: frozenset[int] = frozenset()  # conversations shown with every hit


@dataclass(frozen=True, slots=True)
class Card:
    """What the finder shows about a session."""

    row: SessionRow
    name: str  # the short id
    title: str


class Cards:
    """Cached until the index changes."""

    def __init__(self) -> None:
        self._version: int | None = None
        self._made: dict[SessionId, Card] = {}
        self._ids: ShortIds | None = None
        self._marks: Marks | None = None

    def refresh(self, db: apsw.Connection) -> None:
        version = db.pragma("data_version")
        if version != self._version:
            self._version = version
            self._made.clear()
            self._ids = None

    def of(self, db: apsw.Connection, key: SessionId) -> Card:
        return self._made.get(key) or self.made(db, sessions.by_key(db, key))

    def made(self, db: apsw.Connection, row: SessionRow) -> Card:
        if self._ids is None:
            self._ids, self._marks = ShortIds(db), Marks(db)
        title = sessions.title_of(db, row)
        if self._marks is not None:
            title = self._marks.around(title, row.key)
        title = " ".join(safe(title).split())
        card = self._made[row.key] = Card(row, self._ids.of(row), title)
        return card


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
    loosely: bool = False  # by relevance: events need not have all words

    @property
    def begun(self) -> str:
        """With the last word as it may go on."""
        return open_ended(self.text) if self.mode == "words" and not self.loosely else self.text


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
        few = False  # whether what was typed finds something
        for wanted in self._attempts(db, request):
            if few and not wanted.loosely:
                continue
            of_sessions = all(one.field in _OF_SESSIONS for one in request.filters)
            if not wanted.text.strip() and of_sessions:
                found = self._newest_sessions(db, request, wanted)
            else:
                events = self._events(db, request, wanted)
                first = wanted.text == request.text and not wanted.loosely
                few = few or (first and 0 < events < ENOUGH)
                found = (events > 0 and not (first and few)) or (few and wanted.loosely)
            if found:
                return

    def _attempts(self, db: apsw.Connection, request: Request) -> Iterator[_Wanted]:
        """What was typed, and what to search for if that finds nothing."""
        setting = Setting(times.now_ms(), utc=self._utc)
        unfinished = unfinished_filter(db, request.text, setting)
        text = request.text[: len(request.text) - len(unfinished)]
        yield _Wanted(
            text if says_something(text) else "",
            f'without the unfinished filter "{unfinished}"' if unfinished else None,
        )
        if short := short_word(text):
            kept = text[: len(text) - len(short)]
            deviation = f'without "{short}", which finds nothing'
            yield _Wanted(kept if says_something(kept) else "", deviation)
        if says_something(text):
            yield _Wanted(text, "by relevance: not all words", loosely=True)
        nothing = Answer(request)
        self._show(nothing)
        if not says_something(text):
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
        def values(field: str) -> list[str]:
            return [chosen.value for chosen in request.filters if chosen.field == field]

        since = [times.since(value, utc=self._utc) for value in values("since")]
        listing = Listing(
            values("agent"), values("project"), max(since, default=None), limit=MOST_SESSIONS
        )
        newest = tuple(Conversation(self._cards.made(db, row)) for row in listing.rows(db))
        if newest:
            left = replace(listing, alone=True).count(db) - listing.count(db)
            notes = (f"{left:,} unlisted: `sess list --all`",) if left else ()
            self._show(Answer(request, newest, notes=notes, deviation=wanted.deviation))
        return bool(newest)

    def _events(self, db: apsw.Connection, request: Request, wanted: _Wanted) -> int:
        """Show the events that match, and say how many they are."""
        for step in self._steps(db, request, wanted):
            if not step.ranked:
                return 0
            first = next(self._answers(db, request, step))
            self._show(replace(first, deviation=wanted.deviation))
            self._latest.pause(step.pause)
        *_, answer = self._answers(db, request, step)
        answer = replace(answer, deviation=wanted.deviation)
        self._show(answer)
        if not answer.complete:
            self._show(replace(answer, hits=step.results.count(), counted=True))
        return len(step.ranked)

    def _steps(self, db: apsw.Connection, request: Request, wanted: _Wanted) -> Iterator[_Step]:
        results = self._search(db, request, wanted.begun, wanted.mode)
        if wanted.loosely:
            self._latest.pause(PAUSE)
            from sess_schema.queries.recall.loose import loosely  # only if few are found

            results = replace(results.search, further=loosely).results(db)
            ranked = [*results.ranked()]
            yield _Step(results, ranked if results.further else ())
            return
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
        query, matches = step.results.query, len(step.ranked)
        loose = step.results.further
        leaves = tuple(query.wanted() if loose is None else loose.leaves)
        all_of_them = matches < MOST_HITS
        answer = Answer(request, (), leaves, query.notes, matches, all_of_them, all_of_them)
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


def open_ended(text: str) -> str:
    """The query with the last word as a prefix: `retry time` means `retry time*`."""
    if text.count('"') % 2:
        phrase = text.rpartition('"')[2]
        return f'{text}"*' if _extends(_last(phrase)) else text
    word = _last(text)
    if field := _FIELD.fullmatch(word):
        return f"{text}*" if field[1] in _GLOBS and field[2] else text
    return f"{text}*" if _extends(word) else text


def says_something(text: str) -> bool:
    """Whether there is more than the start of a phrase, an exclusion or a group."""
    return bool(text.strip(' "-('))


def unfinished_filter(db: apsw.Connection, text: str, setting: Setting) -> str:
    """A filter at the end without a valid value: `is:er` is not two words to search for."""
    word = _last(text)
    field = _FIELD.fullmatch(word)
    if field is None or field[1] not in FIELDS:
        return ""
    return "" if fields.fault(db, field[1], field[2], setting) is None else word


def short_word(text: str) -> str:
    """A last word too short to be a prefix: it should not empty the screen."""
    word = _WORD.search(text)
    if word is None or len(word[0]) >= _SHORTEST_BEGINNING or _whole_when_short(word[0]):
        return ""
    return word[0]


def _whole_when_short(word: str) -> bool:
    """Scripts without capitals write most words in one or two characters."""
    return any(unicodedata.category(letter) in _UNCASED for letter in word)


def _last(text: str) -> str:
    word = _LAST.search(text)
    return word[0] if word else ""


def _extends(last: str) -> bool:
    if last.startswith("-") or last in ("AND", "OR"):
        return False
    word = _WORD.search(last)
    return word is not None and len(word[0]) >= _SHORTEST_BEGINNING
