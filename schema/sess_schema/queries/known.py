"""Whether what filters name exists, and what was probably meant where it does not.

A misspelt name selects nothing, and nothing adds up to $0. So names are looked up before an answer
is given, and an empty answer says what it would take to get one.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Protocol

import apsw

from sess_common import times
from sess_common.classes import replace
from sess_common.errors import Exit, SessError
from sess_schema import marks
from sess_schema.queries import sessions
from sess_schema.queries.sessions import Listing

_NEAR = 0.6  # how alike a name has to be
_BEGINNING, _PER_LETTER = 4, 0.1
_MOST_LISTED = 5  # names, if none is near
_SHORTEST_PART = 3
_PARTS = re.compile(r"[\s/\\:._@-]+")

# The names there are, those used most or last first.
NAMES = {
    "agent": "SELECT agent FROM sessions WHERE records > 0 GROUP BY 1 ORDER BY count(*) DESC, 1",
    "project": "SELECT project FROM sessions WHERE project <> '' AND records > 0 GROUP BY 1"
    " ORDER BY max(ended_at) DESC",
    "model": "SELECT value FROM sessions, json_each(models) GROUP BY 1 ORDER BY count(*) DESC, 1",
    "branch": "SELECT git_branch FROM sessions WHERE git_branch <> '' GROUP BY 1"
    " ORDER BY max(ended_at) DESC",
    "label": marks.LABELS,
    "tool": "SELECT tool FROM event_sums WHERE tool <> '' GROUP BY 1 ORDER BY sum(calls) DESC, 1",
}


class Chosen(Protocol):
    """What filters choose: a `Listing`, or the selection of statistics."""

    agents: Sequence[str]
    projects: Sequence[str]
    models: Sequence[str]
    branches: Sequence[str]
    labels: Sequence[str]
    pinned: bool
    since: int | None
    until: int | None


def check(db: apsw.Connection, chosen: Chosen) -> None:
    """Raise if the filters name something that the index does not have, or no time at all."""
    for field, name in _named(chosen):
        check_name(db, field, name)
    check_times(chosen.since, chosen.until)


def check_times(since: int | None, until: int | None) -> None:
    """Raise if the end is before the beginning."""
    if since is not None and until is not None and since >= until:
        raise SessError(
            "--since is after --until: there is no time between them",
            hint="swap them",
            code=Exit.NOTHING_FOUND,
        )


def check_name(db: apsw.Connection, field: str, name: str) -> None:
    """Raise if no session has such an agent, project, model, branch or tool."""
    if _occurs(db, field, name):
        return
    raise missing(field, name, [str(value) for (value,) in db.execute(NAMES[field])])


def missing(what: str, typed: str, names: Sequence[str]) -> SessError:
    """For a name that none of those there are matches."""
    if not names:
        hint = f"no session has a {what}"
    elif near := nearest(typed, names):
        hint = f"did you mean {near}?"
    else:
        more = len(names) - _MOST_LISTED
        listed = ", ".join(names[:_MOST_LISTED])
        hint = f"there are {listed}{f' and {more:,} more' if more > 0 else ''}"
    return SessError(f'no {what} matches "{typed}"', hint=hint, code=Exit.NOTHING_FOUND)


def nothing(db: apsw.Connection, chosen: Chosen) -> SessError | None:
    """Why nothing is chosen, and what would be; None if a session is."""
    listing = Listing(
        chosen.agents,
        chosen.projects,
        since=chosen.since,
        until=chosen.until,
        ended_before=getattr(chosen, "ended_before", None),
        every=getattr(chosen, "every", True),
        models=chosen.models,
        branches=chosen.branches,
        labels=chosen.labels,
        pinned=chosen.pinned,
        limit=1,
    )
    if next(listing.rows(db), None) is not None:
        return None
    return SessError("no session matches", hint=_wider(db, listing), code=Exit.NOTHING_FOUND)


def nearest(typed: str, names: Iterable[str]) -> str | None:
    """The name that was probably meant, or the part of one that comes nearest."""
    wanted = typed.lower().rstrip("/*").rpartition("/")[2]
    candidates: dict[str, str] = {}
    for name in names:
        candidates.setdefault(name.lower(), name)
        for part in _PARTS.split(name):
            if len(part) >= _SHORTEST_PART:
                candidates.setdefault(part.lower(), part)
    scores = {name: _likeness(wanted, name) for name in candidates}
    best = max(scores, key=scores.__getitem__, default="")
    return candidates[best] if scores.get(best, 0) >= _NEAR else None


def _likeness(typed: str, name: str) -> float:
    """The share of letters in common; who mistypes a word gets its first letters right."""
    same = [*takewhile(lambda pair: pair[0] == pair[1], zip(typed, name, strict=False))]
    bonus = min(len(same), _BEGINNING) * _PER_LETTER
    return difflib.SequenceMatcher(None, typed, name).ratio() + bonus


def _named(chosen: Chosen) -> Iterator[tuple[str, str]]:
    for field, names in (
        ("agent", chosen.agents),
        ("project", chosen.projects),
        ("model", chosen.models),
        ("branch", chosen.branches),
        ("label", chosen.labels),
    ):
        for name in names:
            yield field, name


def _occurs(db: apsw.Connection, field: str, name: str) -> bool:
    if field == "tool":
        sql = "SELECT 1 FROM event_sums WHERE lower(tool) GLOB ? LIMIT 1"
        return db.execute(sql, (sessions.bindable(sessions.lower(name)),)).get is not None
    listing = Listing(every=True, limit=1)
    one = {
        "agent": replace(listing, agents=[name]),
        "project": replace(listing, projects=[name]),
        "model": replace(listing, models=[name]),
        "branch": replace(listing, branches=[name]),
        "label": replace(listing, labels=[name]),
    }[field]
    return next(one.rows(db), None) is not None


def _wider(db: apsw.Connection, listing: Listing) -> str:
    """The first filter without which sessions match, else where to look."""
    ways: list[tuple[str, Listing]] = []
    if listing.since is not None or listing.until is not None or listing.ended_before is not None:
        always = replace(listing, since=None, until=None, ended_before=None)
        if not _is_narrowed(always):
            return _nearest_in_time(db, always)
        ways.append(("at other times", always))
    if listing.pinned:
        ways.append(("without --pinned", replace(listing, pinned=False)))
    if listing.labels:
        ways.append(("without --label", replace(listing, labels=())))
    if listing.branches:
        ways.append(("without --branch", replace(listing, branches=())))
    if listing.models:
        ways.append(("without --model", replace(listing, models=())))
    if listing.projects:
        ways.append(("without --project", replace(listing, projects=())))
    if listing.agents:
        ways.append(("without --agent", replace(listing, agents=())))
    for why, way in ways:
        if count := way.count(db):
            return f"{count:,} session{'' if count == 1 else 's'} {why}"
    return "`sess list --all --limit 0` lists every session"


def _is_narrowed(listing: Listing) -> bool:
    named = (listing.agents, listing.projects, listing.models, listing.branches, listing.labels)
    return any(named) or listing.pinned


def _nearest_in_time(db: apsw.Connection, listing: Listing) -> str:
    first, last = db.execute("SELECT min(started_at), max(ended_at) FROM sessions").get or (0, 0)
    if not first or not last:
        return "`sess list --all --limit 0` lists every session"
    return f"sessions are from {_day(first)} to {_day(last)}"


def _day(moment: int) -> str:
    return f"{times.local(moment):%Y-%m-%d %H:%M}".removesuffix(" 00:00")
