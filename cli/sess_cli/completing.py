"""What `sess` completes: the names in the index, and the words that options know."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import closing

import apsw

from sess_common import paths
from sess_common.completion import Candidate
from sess_common.errors import SessError
from sess_schema.connection import open_reader
from sess_schema.queries import known, sessions
from sess_schema.queries.fields import FIELDS

_RECENT = 100  # sessions to choose from
_TIMES = ("today", "yesterday", "this week", "last week", "this month", "24h", "7d", "30d")

Values = Iterable[Candidate | str]


def values(name: str, typed: str) -> Values | None:
    """The values of an option, or of the argument with this metavar."""
    field = FIELDS.get(name.removeprefix("--"))
    if field is not None and field.values:
        return field.values
    if name in _FIXED:
        return _FIXED[name]()
    if name in _LISTED:
        return _after_comma(_LISTED[name](), typed)
    if name in _INDEXED:
        return _from_index(_INDEXED[name], typed)
    if name == "WORDS":
        return _words(typed)
    return None


def _words(typed: str) -> Values:
    """Saved searches, and filters among the words of a search."""
    if typed.startswith("@"):
        return [Candidate(f"@{name}") for name in _saved()]
    minus = "-" if typed.startswith("-") else ""
    field, colon, value = typed.removeprefix("-").partition(":")
    if colon and field in FIELDS:
        offered = values(f"--{field}", value) or ()
        return [_prefixed(f"{minus}{field}:", one) for one in offered]
    return [f"{field}:" for field in FIELDS] if typed else ()


def _prefixed(prefix: str, one: Candidate | str) -> Candidate:
    value, text = (one, "") if isinstance(one, str) else one
    return Candidate(f'{prefix}"{value}"' if " " in value else prefix + value, text)


def _after_comma(names: Iterable[str], typed: str) -> Values:
    """A list such as `day,model`: the next name, and none twice."""
    before, comma, _ = typed.rpartition(",")
    listed = before.split(",")
    return [f"{before}{comma}{name}" for name in names if name not in listed]


def _from_index(read: Callable[[apsw.Connection, str], Values], typed: str) -> Values:
    """Without an index there is nothing to offer, and nothing to complain about."""
    try:
        with closing(open_reader(paths.home().index)) as db:
            return [*read(db, typed)]
    except (SessError, OSError, apsw.Error):
        return ()


def _sql(query: str) -> Callable[[apsw.Connection, str], Values]:
    return lambda db, _typed: [str(name) for (name,) in db.execute(query)]


def _projects(db: apsw.Connection, typed: str) -> Values:
    home = os.path.expanduser("~")
    for (path,) in db.execute(known.NAMES["project"]):
        if typed.startswith("~") and path.startswith(home + os.sep):
            yield "~" + path[len(home) :]
        else:
            yield path
            if typed and not typed.startswith(os.sep):  # any part of the path will do
                yield os.path.basename(path)


def _sessions(db: apsw.Connection, typed: str) -> Values:
    short = sessions.ShortIds(db)
    rows = [*sessions.Listing(limit=0 if typed else _RECENT, every=bool(typed)).rows(db)]
    for row in sorted(rows, key=lambda row: row.kind != "main"):
        if row.session.lower().startswith(typed.lower()):
            name = short.of(row)
            longer = name if name.lower().startswith(typed.lower()) else row.session
            yield Candidate(longer, sessions.title_of(db, row))
    yield Candidate("last", "the newest session")


def _views_or_sessions(db: apsw.Connection, typed: str) -> Values:
    yield from _views()
    if typed:
        yield from _sessions(db, typed)


def _views() -> Values:
    from sess_cli.render.stats import VIEWS

    return VIEWS


def _saved() -> Values:
    from sess_cli.search import saved_searches

    try:
        return [*saved_searches.names()]
    except SessError:
        return ()


def _kinds() -> Values:
    from sess_schema import kinds

    return kinds.ALL


def _orders() -> Values:
    from sess_schema.queries.search import SORTS

    return SORTS


def _list_orders() -> Values:
    from sess_cli.commands.list_ import SORTS

    return SORTS


def _json_fields() -> Iterable[str]:
    from sess_cli.search.output_json import FIELDS

    return FIELDS


def _groups() -> Iterable[str]:
    from sess_schema.queries.stats import GROUPS

    return [*GROUPS]


def _subagents() -> Values:
    from sess_schema.queries.stats import SUBAGENTS

    return SUBAGENTS


def _zones() -> Values:
    from zoneinfo import available_timezones

    return sorted(available_timezones())


def _themes() -> Values:
    from sess_cli.export.film.themes import names

    return names()


_FIXED: dict[str, Callable[[], Values]] = {
    "--kind": _kinds,
    "search --sort": _orders,
    "list --sort": _list_orders,
    "--subagents": _subagents,
    "--tz": _zones,
    "--theme": _themes,
    "--save": _saved,
    "--unsave": _saved,
    "--cursor": lambda: ["start"],
    "--budget": lambda: ["10/day", "50/week", "100/month"],
    "--since": lambda: _TIMES,
    "--until": lambda: _TIMES,
    "--older-than": lambda: ("30d", "90d", "1y"),
}
_LISTED: dict[str, Callable[[], Iterable[str]]] = {"--fields": _json_fields, "--by": _groups}
_INDEXED: dict[str, Callable[[apsw.Connection, str], Values]] = {
    "--agent": _sql(known.NAMES["agent"]),
    "--project": _projects,
    "--tool": _sql(known.NAMES["tool"]),
    "--model": _sql(known.NAMES["model"]),
    "--branch": _sql(known.NAMES["branch"]),
    "--label": _sql(known.NAMES["label"]),
    "label NAME": _sql(known.NAMES["label"]),
    "--session": _sessions,
    "ID": _sessions,
    "[ID]...": _sessions,
    "[VIEW|ID]": _views_or_sessions,
}
