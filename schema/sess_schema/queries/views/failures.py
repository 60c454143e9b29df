"""Failed calls by class, tool, project and day; API errors separately."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, tzinfo
from pathlib import Path

import apsw

from sess_schema.classes import dataclass, field
from sess_schema.labels import API_ERROR
from sess_schema.queries.quarters import Reader
from sess_schema.queries.stats import Stats
from sess_schema.queries.views import scope
from sess_schema.queries.views.error_rules import API_RULES, RULES, VERSION, Classifier, own_rules
from sess_schema.sums import CALLED

# Characters read: programs report the error first; the rest of a long output is mostly noise.
HEAD = 2000
FAILED = f"(e.type = 'tool_use' AND e.status = 'error' AND {CALLED})"


@dataclass(slots=True, frozen=True)
class Failure:
    """One failed call, or one API error."""

    event: int
    session: str
    project: str
    ts: int | None
    tool: str
    name: str  # of its class
    text: str


@dataclass(slots=True)
class Failures:
    calls: list[Failure] = field(default_factory=list)  # newest first
    service: list[Failure] = field(default_factory=list)
    rules: str = f"{VERSION}"  # version of the table, and how many user rules come first

    def classes(self) -> dict[str, list[Failure]]:
        return grouped(self.calls, lambda one: one.name)

    def of_class(self, name: str) -> list[Failure]:
        """Failed calls, or API errors with the prefix `api `: both have an `other`."""
        wanted = name.casefold()
        if not wanted.startswith("api "):
            found = [one for one in self.calls if one.name.casefold() == wanted]
            if found:
                return found
        wanted = wanted.removeprefix("api ")
        return [one for one in self.service if one.name.casefold() == wanted]


def read(db: apsw.Connection, asked: Stats, config: Path) -> Failures:
    """`config`: the directory that may contain `errors.toml`."""
    wanted = scope.events(db, asked, joins="JOIN event_texts x ON x.id = e.id")
    classes, found = classifier(config)
    service = Classifier(API_RULES)
    sessions = Reader(db, asked).sessions
    for event, key, session, ts, tool, kind, failed, text in db.execute(
        "SELECT e.id, s.id, s.native_id, e.ts, coalesce(e.tool, 'unknown'), e.kind,"
        f" e.label IS NOT '{API_ERROR}',"
        f" substr(iif(e.label IS '{API_ERROR}', x.text, x.output), 1, {HEAD}) {wanted.sql}"
        f" AND ({FAILED} OR e.label = '{API_ERROR}') ORDER BY e.ts DESC, e.id DESC",
        wanted.values,
    ):
        name = (classes if failed else service).of(tool, kind, text)
        one = Failure(event, session, sessions[key].project, ts, tool, name, text)
        (found.calls if failed else found.service).append(one)
    return found


def classifier(config: Path) -> tuple[Classifier, Failures]:
    """The classifier of failed calls, and an empty collection with its version."""
    own = own_rules(config)
    version = f"{VERSION}+{len(own)}" if own else f"{VERSION}"
    return Classifier([*own, *RULES]), Failures(rules=version)


def grouped(failures: Iterable[Failure], key: Callable[[Failure], str]) -> dict[str, list[Failure]]:
    """The most frequent first."""
    groups: dict[str, list[Failure]] = {}
    for one in failures:
        groups.setdefault(key(one), []).append(one)
    return dict(sorted(groups.items(), key=lambda group: (-len(group[1]), group[0])))


def day(zone: tzinfo | None) -> Callable[[Failure], str]:
    def of(one: Failure) -> str:
        if one.ts is None:
            return "undated"
        return f"{datetime.fromtimestamp(one.ts / 1000, UTC).astimezone(zone):%Y-%m-%d}"

    return of
