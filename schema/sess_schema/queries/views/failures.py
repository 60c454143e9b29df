"""Failed calls by class, tool, project and day; API errors separately."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from sess_schema.ids import EventId
from sess_schema.labels import API_ERROR
from sess_schema.queries.quarters import Reader
from sess_schema.queries.stats import Stats, period
from sess_schema.queries.views import error_rules, parts, scope
from sess_schema.sums import CALLED, QUARTER, UNDATED

# Characters read: programs report the error first; the rest of a long output is mostly noise.
HEAD = 2000
PART, COUNTS = "failures", "classes"
FAILED = f"(e.type = 'tool_use' AND e.status = 'error' AND {CALLED})"


class Failure(NamedTuple):
    """One failed call, or one API error."""

    event: EventId
    session: str
    project: str
    ts: int | None
    tool: str
    name: str  # of its class
    text: str = ""  # if asked for


@dataclass(slots=True)
class Failures:
    rules: str  # version of the table, and how many user rules come first
    calls: list[Failure] = field(default_factory=list)  # newest first
    service: list[Failure] = field(default_factory=list)

    def of_class(self, name: str) -> list[Failure]:
        """Failed calls, or API errors with the prefix `api `: both have an `other`."""
        wanted = name.casefold()
        if not wanted.startswith("api "):
            calls = [call for call in self.calls if call.name.casefold() == wanted]
            if calls:
                return calls
        wanted = wanted.removeprefix("api ")
        return [error for error in self.service if error.name.casefold() == wanted]


def read(db: apsw.Connection, asked: Stats, config: Path, *, texts: bool = False) -> Failures:
    """`config`: the directory that may contain `errors.toml`."""
    own = error_rules.own_rules(config)
    found = Failures(f"{error_rules.VERSION}" + (f"+{len(own)}" if own else ""))
    reader = Reader(db, asked)
    projects = {key: session.project for key, session in reader.sessions.items()}
    names = dict(iter(db.execute("SELECT id, native_id FROM sessions")))
    for key, failed, event, ts, tool, name, *text in _rows(db, asked, own, texts=texts):
        failure = Failure(event, names[key], projects[key], ts, tool, name, *text)
        (found.calls if failed else found.service).append(failure)
    for failures in (found.calls, found.service):
        failures.sort(key=_when, reverse=True)
    return found


def _when(failure: Failure) -> tuple[bool, int, int]:
    return failure.ts is not None, failure.ts or 0, failure.event


def counts(db: apsw.Connection, asked: Stats, config: Path) -> tuple[dict[str, int], int]:
    """Failed calls by class, the most frequent first, and the number of API errors."""
    classes: Counter[str] = Counter()
    refused = 0
    own = error_rules.own_rules(config)
    each = parts.of(db, asked, COUNTS, by_session)
    if own:
        each = ((session, _counts(rows)) for session, rows in _by_session(db, asked, own))
    for _, (ours, theirs) in each:
        classes.update(ours)
        refused += theirs
    return dict(sorted(classes.items(), key=lambda named: (-named[1], named[0]))), refused


Row = tuple[Any, ...]  # session, is a call, event, time, tool, class, and the text if asked for


def _rows(
    db: apsw.Connection, asked: Stats, own: Sequence[error_rules.Rule], *, texts: bool = False
) -> Iterator[Row]:
    if own or texts:  # digests have neither
        yield from _classified(db, asked, own)
        return
    for session, rows in parts.of(db, asked, PART, by_session):
        for row in rows:
            yield session, *row


def by_session(db: apsw.Connection, asked: Stats) -> parts.Counted:
    """Of each failure: whether it is a call, its event, time, tool and class."""
    for session, rows in _by_session(db, asked, ()):
        yield session, {PART: rows, COUNTS: _counts(rows)}


def _by_session(
    db: apsw.Connection, asked: Stats, own: Sequence[error_rules.Rule]
) -> Iterator[tuple[int, list[Row]]]:
    failures: dict[int, list[Row]] = {}
    for session, *row, _ in _classified(db, asked, own):
        failures.setdefault(session, []).append(tuple(row))
    for session, rows in failures.items():
        yield session, sorted(rows, key=lambda row: row[1])


def _counts(rows: list[Row]) -> tuple[dict[str, int], int]:
    """Failed calls by class, and the number of API errors."""
    classes = Counter(name for failed, *_, name in rows if failed)
    return dict(sorted(classes.items())), len(rows) - classes.total()


def _classified(
    db: apsw.Connection, asked: Stats, own: Sequence[error_rules.Rule]
) -> Iterator[Row]:
    classes = error_rules.Classifier([*own, *error_rules.RULES])
    service = error_rules.Classifier(error_rules.API_RULES)
    wanted = scope.events(db, asked, joins="JOIN event_texts x ON x.id = e.id")
    for session, event, ts, tool, kind, failed, text in db.execute(
        f"SELECT s.id, e.id, e.ts, coalesce(e.tool, 'unknown'), e.kind,"
        f" e.label IS NOT '{API_ERROR}',"
        f" substr(iif(e.label IS '{API_ERROR}', x.text, x.output), 1, {HEAD}) {wanted.sql}"
        f" AND ({FAILED} OR e.label = '{API_ERROR}')",
        wanted.values,
    ):
        name = (classes if failed else service).of(tool, kind, text)
        yield session, failed, event, ts, tool, name, text


def grouped(failures: Iterable[Failure], key: Callable[[Failure], str]) -> dict[str, list[Failure]]:
    """The most frequent first."""
    groups: dict[str, list[Failure]] = {}
    for failure in failures:
        groups.setdefault(key(failure), []).append(failure)
    return dict(sorted(groups.items(), key=lambda group: (-len(group[1]), group[0])))


def day(zone: tzinfo | None) -> Callable[[Failure], str]:
    def day_of(failure: Failure) -> str:
        return period("day", UNDATED if failure.ts is None else failure.ts // QUARTER, zone)

    return day_of
