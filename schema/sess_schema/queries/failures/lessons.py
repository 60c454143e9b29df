"""What goes wrong again and again: failed calls by signature, their cost, and what ended them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from operator import itemgetter

import apsw

from sess_common.classes import later
from sess_schema.ids import EventId, SessionId
from sess_schema.queries.failures import signature
from sess_schema.queries.failures.aftermath import (
    MOST,
    SOLVED,
    UNKNOWN,
    UNSOLVED,
    Sessions,
    Step,
    end_of,
)
from sess_schema.queries.stats import Stats
from sess_schema.queries.views import error_rules, scope
from sess_schema.search_index import FAILED
from sess_schema.sums import IDLE

SORTS = ("times", "cost", "recent")
_CONSEQUENCE = "cancelled"  # of another call that failed
_HEAD, _TAIL = 6000, 2000  # characters: a test run names its errors in the middle or at the end
_OUTPUT = (
    f"iif(length(x.output) <= {_HEAD}, x.output,"
    f" substr(x.output, 1, {_HEAD - _TAIL}) || char(10) || substr(x.output, -{_TAIL}))"
)
_REMEDIES = 3  # steps of what ended it that are told
_EVIDENCE = 5  # places
_COST = "SELECT sum(cost_nano) FROM usage WHERE session_id = ? AND counted AND ts > ? AND ts <= ?"
_MARKED = "SELECT rowid FROM event_index WHERE event_index MATCH ?"
# What cannot be taken back is never handed on as a remedy.
_IRREVERSIBLE = later(
    r"\brm\s|\brmdir\b|\bgit (?:reset --hard|clean|checkout (?:--|\.)|restore|stash (?:drop|clear)"
    r"|push\b.*(?:-f\b|--force)|branch -D)|\bdrop (?:table|database)|\btruncate\b|\bdd\b|\bmkfs"
    r"|\bkill(?:all)?\b|\bpkill\b|\bshutdown\b|>\s*/dev/|\bsudo\b|\bdocker (?:system )?prune"
    r"|--force\b|\bchmod -R|\bchown -R",
    re.IGNORECASE,
)


@dataclass(slots=True)
class Episode:
    """A failure until it ended, or until it was last tried in the session."""

    session: SessionId
    events: list[EventId]  # that failed
    outcome: str
    ended_by: EventId | None
    ts: int | None
    until: int | None
    active_ms: int = 0
    cost_nano: int = 0
    remedy: tuple[str, ...] = ()
    steps: int = 0  # from the last failure to the success


@dataclass(slots=True)
class Lesson:
    """An error that was met more than once."""

    key: str
    line: str  # of the newest occurrence
    name: str  # of its class, as in `sess stats errors`
    tools: Counter[str] = field(default_factory=Counter)
    episodes: list[Episode] = field(default_factory=list)  # the newest first

    @property
    def times(self) -> int:
        return sum(len(episode.events) for episode in self.episodes)

    @property
    def sessions(self) -> int:
        return len({episode.session for episode in self.episodes})

    @property
    def cost_nano(self) -> int:
        return sum(episode.cost_nano for episode in self.episodes)

    @property
    def active_ms(self) -> int:
        return sum(episode.active_ms for episode in self.episodes)

    def outcomes(self) -> Counter[str]:
        """Of its episodes: done, failed, unknown."""
        return Counter(episode.outcome for episode in self.episodes)

    @property
    def is_open(self) -> bool:
        """The last time that its command was run again, it had not been solved."""
        known = [e.outcome for e in self.episodes if e.outcome in (SOLVED, UNSOLVED)]
        return known[:1] == [UNSOLVED]

    @property
    def remedy(self) -> tuple[str, ...]:
        """What came between the failure and the success, where that took the fewest steps."""
        solved = [one for one in self.episodes if one.remedy]
        return min(solved, key=lambda one: one.steps).remedy if solved else ()

    def evidence(self) -> list[tuple[SessionId, EventId]]:
        """The newest places."""
        return [(one.session, one.events[-1]) for one in self.episodes[:_EVIDENCE]]


def read(db: apsw.Connection, asked: Stats, *, least: int = 2, sort: str = "times") -> list[Lesson]:
    """The errors that occurred at least so many times."""
    lessons: dict[str, Lesson] = {}
    failed: dict[SessionId, dict[EventId, Lesson]] = {}
    # Sorted here, because the database would sort the texts along.
    failures = sorted(_failures(db, asked), key=itemgetter(0, 1), reverse=True)
    for _, event, session, tool, name, key, line in failures:
        lesson = lessons.setdefault(key, Lesson(key, line, name))
        lesson.tools[tool] += 1
        failed.setdefault(session, {})[event] = lesson
    sessions = Sessions(db, whole=True)
    for session, events in failed.items():
        _follow(sessions, session, {e: one for e, one in events.items() if _met(one, least)})
    kept = [lesson for lesson in lessons.values() if lesson.times >= least]
    for lesson in kept:
        lesson.episodes.sort(key=lambda one: (one.ts or 0, one.events), reverse=True)
        for episode in lesson.episodes:
            span = (episode.session, episode.ts, episode.until)
            episode.cost_nano = db.execute(_COST, span).get or 0
            steps = sessions.following(episode.session, episode.events[0], MOST)
            episode.active_ms = _active(steps, episode.until)
    return sorted(kept, key=lambda lesson: _order(lesson, sort), reverse=True)


def _met(lesson: Lesson, least: int) -> bool:
    return lesson.tools.total() >= least


def _order(lesson: Lesson, sort: str) -> tuple[int, ...]:
    newest = lesson.episodes[0].ts or 0
    if sort == "cost":
        return lesson.cost_nano, lesson.times, newest
    if sort == "recent":
        return newest, lesson.times
    return lesson.times, lesson.sessions, newest


def _failures(
    db: apsw.Connection, asked: Stats
) -> Iterator[tuple[int, EventId, SessionId, str, str, str, str]]:
    """Failed calls: time, event, session, tool, class, signature and line."""
    classes = error_rules.Classifier(error_rules.RULES)
    wanted = scope.calls(db, asked, joins="JOIN event_texts x ON x.id = e.id")
    for session, event, ts, tool, kind, output in db.execute(
        f"SELECT s.id, e.id, coalesce(e.ts, 0), coalesce(e.tool, 'unknown'), e.kind, {_OUTPUT}"
        f" {wanted.sql}"
        f" AND e.status = 'error' AND e.id IN ({_MARKED})",
        (*wanted.values, f'marks : "{FAILED}"'),
    ):
        name = classes.of(tool, kind, output)
        key, line = signature.key(output)
        if key and name != _CONSEQUENCE:
            yield ts, event, session, tool, name, key, line


def _follow(sessions: Sessions, session: SessionId, failed: dict[EventId, Lesson]) -> None:
    """Add the episodes of a session to its lessons."""
    last: dict[str, Episode] = {}
    for event, lesson in reversed(failed.items()):
        steps = sessions.following(session, event, MOST)
        if not steps:
            continue
        end, outcome, _ = end_of(steps[0], steps[1:])
        between = [] if end is None else steps[1 : end + 2]
        ended_by = between[-1].event if between else None
        episode = last.get(lesson.key)
        if episode is None or episode.ended_by != ended_by:
            episode = Episode(session, [], outcome, ended_by, steps[0].ts, steps[0].ts)
            last[lesson.key] = episode
            lesson.episodes.append(episode)
        episode.events.append(event)
        if outcome != UNKNOWN:  # of the last try nothing more is known than of those before it
            episode.outcome = outcome
        if between:
            episode.until = between[-1].ts
            episode.steps = len(between)
            episode.remedy = _remedy(sessions, steps[0], between)
        elif outcome == UNSOLVED:
            tried = [step.ts for step in steps if step.event in failed]
            episode.until = max(filter(None, tried), default=steps[0].ts)


def _active(steps: Sequence[Step], until: int | None) -> int:
    """The time between steps up to a moment, each gap cut as in all sums of time."""
    moments = [s.ts for s in steps if s.ts is not None and until is not None and s.ts <= until]
    return sum(min(max(0, b - a), IDLE) for a, b in pairwise(moments))


def _remedy(sessions: Sessions, failed: Step, between: Sequence[Step]) -> tuple[str, ...]:
    """The last edits and commands before the success, and the success if it was typed otherwise."""
    last = between[-1]
    told = [*between[:-1], *([last] if last.summary != failed.summary else [])]
    return tuple(dict.fromkeys(filter(None, sessions.done(told))))[-_REMEDIES:]


def may_be_handed_on(remedy: Sequence[str]) -> bool:
    """Whether nothing in it destroys what cannot be brought back."""
    return not any(_IRREVERSIBLE.search(step) for step in remedy)
