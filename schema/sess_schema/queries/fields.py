"""The filters that queries, options and lists share, each as one SQL condition."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import apsw

from sess_common import times
from sess_common.classes import dataclass, replace
from sess_common.errors import SessError, no_such
from sess_schema import marks
from sess_schema.queries import sessions

FAILED = ("error", "denied")
_ALSO = {"tool": "tool_use", "tools": "tool_use"}
_SUBAGENT = "s.kind = 'subagent'"
TYPES = ("user", "assistant", "thinking", "tool_use", "system", "summary")
STATES = ("error", "denied", "pending", "ok", "failed", "subagent", "pinned")
THINGS = ("image", "commit")
ROLES = {
    "user": ("user",),
    "assistant": ("assistant", "thinking", "tool_use"),
    "tool": ("tool_use",),
    "system": ("system", "summary"),
}


@dataclass(frozen=True, slots=True)
class Field:
    """`name:value` among the words of a search, and the option `--name VALUE`."""

    metavar: str
    help: str
    values: Sequence[str] = ()  # all there are; others are looked up
    several: bool = True  # given more than once, either will do


def _or(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


FIELDS = {
    "agent": Field("NAME", "Only this agent's sessions."),
    "project": Field("PATH", "Only projects below PATH, such as `.`, or with PATH in their path."),
    "tool": Field("NAME", "Only calls of this tool; mcp__* works."),
    "kind": Field("KIND", "Only calls of this kind: shell, read, edit, ..."),
    "type": Field("TYPE", f"Only this type: {_or([*TYPES, 'error'])}.", (*TYPES, "error")),
    "role": Field("ROLE", f"Only this role: {_or([*ROLES])}.", (*ROLES,)),
    "is": Field(
        "STATE",
        "Only this state: error, denied, failed (either), pending, ok, subagent or pinned.",
        STATES,
    ),
    "has": Field("THING", f"Only events with this: {_or(THINGS)}.", THINGS),
    "file": Field("GLOB", "Only calls that touched this path."),
    "model": Field("NAME", "Only sessions that used this model."),
    "branch": Field("NAME", "Only sessions on this git branch."),
    "title": Field("TEXT", "Only sessions with this in the title."),
    "label": Field("NAME", "Only sessions with this label."),
    "session": Field("ID", "Only this session."),
    "since": Field(
        "TIME",
        "From this time on: 7d, yesterday, monday, 'last week', 12:00, 2026-02-20.",
        several=False,
    ),
    "until": Field("TIME", "Up to this time; a date includes the whole day.", several=False),
}


# -- as SQL


@dataclass(frozen=True, slots=True)
class Condition:
    """SQL over `events e`, and its values."""

    sql: str
    values: tuple[object, ...] = ()
    texts: bool = False  # also needs `event_texts x`
    # The numbers of the events that may satisfy it, where that avoids reading most events.
    range: Range | None = None


@dataclass(frozen=True, slots=True)
class Range:
    """The first and the last number of events, as SQL without columns."""

    first: str
    last: str
    values: tuple[object, ...] = ()  # of either
    since: int | None = None  # no event in it that counts is older


def range_of(where: str, values: tuple[object, ...]) -> Range:
    """Of the events that satisfy a condition; empty if there are none: full text takes NULL for
    no limit. The plus keeps SQLite from walking all events in row id order."""
    least, most = (f"(SELECT {end}(+id) FROM events WHERE {where})" for end in ("min", "max"))
    return Range(f"coalesce({least}, 0)", f"coalesce({most}, -1)", values)


ANY = Condition("1")


@dataclass(frozen=True, slots=True)
class Setting:
    """What the meaning of a filter depends on."""

    now: int  # `7d` and `today` count from it
    utc: bool = False
    superseded: bool = False  # include events since rewritten in a transcript


def condition(db: apsw.Connection, field: str, value: str, setting: Setting) -> Condition:
    """The condition for a filter; raises on an invalid value."""
    if field in _LOOKED_UP:
        return _LOOKED_UP[field](db, value, setting)
    return _MADE[field](value, setting)


def check(field: str, value: str, setting: Setting) -> None:
    """Raise on an invalid filter, as far as that needs no index."""
    if field in _MADE:
        _MADE[field](value, setting)


def fault(db: apsw.Connection | None, field: str, value: str, setting: Setting) -> str | None:
    """Why `field:value` is not a filter; empty if there is no such field."""
    if field not in FIELDS or not value or value.startswith("//"):  # file:///etc/hosts
        return ""
    try:
        if db is None:
            check(field, value, setting)
        else:
            condition(db, field, value, setting)
    except SessError as error:
        return error.message.partition("\n")[0]
    return None


def _agent(value: str, _setting: Setting) -> Condition:
    return _of_sessions(*sessions.condition([value], ()))


def _project(value: str, _setting: Setting) -> Condition:
    return _of_sessions(*sessions.condition((), [value]))


def _tool(value: str, _setting: Setting) -> Condition:
    return Condition("lower(e.tool) GLOB ?", (sessions.lower(value),))


def _kind(value: str, _setting: Setting) -> Condition:
    """The kind of a call, whatever the agent calls the tool."""
    from sess_schema import kinds  # rarely used

    value = value.lower()
    if value not in kinds.ALL:
        raise no_such("kind", value, kinds.ALL)
    return Condition("e.kind = ?", (value,))


def _type(value: str, setting: Setting) -> Condition:
    value = value.lower()
    if value == "error":
        return _is("failed", setting)
    if value == "prompt":
        return _role("user", setting)
    known = _ALSO.get(value, value)
    if known not in TYPES:
        raise no_such("type", value, (*TYPES, "error"))
    return Condition("e.type = ?", (known,))


def _model(value: str, _setting: Setting) -> Condition:
    """The models of a session: not every record names its model."""
    inside = "SELECT 1 FROM json_each(s.models) WHERE instr(lower(value), ?)"
    return _of_sessions(f"EXISTS ({inside})", [sessions.lower(value)])


def _branch(value: str, _setting: Setting) -> Condition:
    return _of_sessions("lower(s.git_branch) GLOB ?", [sessions.lower(value)])


def _label(value: str, _setting: Setting) -> Condition:
    return _of_sessions(*marks.labelled([value]))


def _session(db: apsw.Connection, value: str, setting: Setting) -> Condition:
    """Includes what it shares with the session it was forked from."""
    key = sessions.resolve(db, value).key
    records = "SELECT coalesce(copy_of, id) FROM records WHERE session_id = ?"
    if not setting.superseded:
        records += " AND retired = 0"
    where = f"record_id IN ({records})"
    return Condition(f"e.{where}", (key,), range=range_of(where, (key,)))


def _file(value: str, _setting: Setting) -> Condition:
    """A path that a tool call touched: file name, end of the path, or glob."""
    name = sessions.lower(value).removeprefix("./")
    if name.endswith("/"):
        name += "*"
    end = "/" + name.lstrip("/")
    same = "lower(path) IN (?, ?) OR substr(lower(path), -?) = ?"
    like = "lower(path) GLOB ? OR lower(path) GLOB ?"
    return Condition(
        f"e.id IN (SELECT event_id FROM files WHERE {same} OR {like})",
        (name, sessions.lower(value), len(end), end, name, f"*{end}"),
    )


def _is(value: str, _setting: Setting) -> Condition:
    value = value.lower()
    if value not in STATES:
        raise no_such("state", value, STATES)
    if value == "subagent":
        return _of_sessions(_SUBAGENT, [])
    if value == "pinned":
        return _of_sessions(marks.PINNED, [])
    states = FAILED if value == "failed" else (value,)
    return Condition(f"e.status IN ({_marks(states)})", states)


def _has(value: str, _setting: Setting) -> Condition:
    value = value.lower()
    if value not in THINGS:
        raise no_such("value for has", value, THINGS)
    if value == "image":
        return Condition("e.images > 0")
    return Condition("EXISTS (SELECT 1 FROM commits c WHERE c.event_id = e.id)")


def _since(value: str, setting: Setting) -> Condition:
    moment = times.since(value, utc=setting.utc, now=setting.now)
    between = replace(range_of("ts >= ?", (moment,)), since=moment)
    return Condition("e.ts >= ?", (moment,), range=between)


def _until(value: str, setting: Setting) -> Condition:
    moment = times.until(value, utc=setting.utc, now=setting.now)
    return Condition("e.ts < ?", (moment,))


def _role(value: str, _setting: Setting) -> Condition:
    value = value.lower()
    types = ROLES.get(value)
    if types is None:
        raise no_such("role", value, [*ROLES])
    said = Condition(f"e.type IN ({_marks(types)})", types)
    if value == "user":  # no person asks a subagent
        said = Condition(f"{said.sql} AND NOT {_of_sessions(_SUBAGENT, []).sql}", types)
    return said


def _title(db: apsw.Connection, value: str, _setting: Setting) -> Condition:
    wanted = value.lower()
    keys = [
        key
        for key, title in db.execute(
            f"SELECT s.id, coalesce({marks.title()}, s.first_prompt) FROM sessions s"
        )
        if title and wanted in title.lower()
    ]
    return Condition(
        "e.session_id IN (SELECT value FROM json_each(?))", (f"[{','.join(map(str, keys))}]",)
    )


_MADE: dict[str, Callable[[str, Setting], Condition]] = {
    "agent": _agent,
    "project": _project,
    "tool": _tool,
    "kind": _kind,
    "type": _type,
    "model": _model,
    "branch": _branch,
    "label": _label,
    "file": _file,
    "is": _is,
    "has": _has,
    "since": _since,
    "until": _until,
    "role": _role,
}
_LOOKED_UP: dict[str, Callable[[apsw.Connection, str, Setting], Condition]] = {
    "session": _session,
    "title": _title,
}


def _of_sessions(where: str, values: Sequence[object]) -> Condition:
    sql = f"e.session_id IN (SELECT s.id FROM sessions s WHERE {where})"
    return Condition(sql, tuple(values))


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))
