"""Lists sessions, and finds the one an id means."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

import apsw

from sess_common import times
from sess_common.classes import TYPE_CHECKING, dataclass
from sess_common.errors import Exit, SessError
from sess_schema import marks, shown

if TYPE_CHECKING:
    from typing import Any

    from sess_schema.ids import SessionId

SHORT = 8
SHORTEST_PREFIX = 4
_AGENT = "agent-"
_NEAR = 0.8  # how alike a mistyped ID is to one that exists
_WORDS = 200  # characters of a prompt that takes the place of a title
_MOST = (1 << 63) - 1  # the largest integer in SQLite

# A session without a dated record borrows the modification time of its file. A database is modified
# for other reasons too, and a file may be dated 1970.
_CHANGED = "coalesce(nullif(r.mtime_ns, 0), w.mtime_ns)"
_MTIME = (
    f"(SELECT max({_CHANGED}) / 1000000 FROM session_sources m JOIN sources r ON r.id = m.source_id"
    " LEFT JOIN sources w ON w.id = r.part_of AND w.kind = 'document'"
    " WHERE m.session_id = s.id AND r.kind = 'transcript'"
    f" AND {_CHANGED} >= {times.EARLIEST} * 1000000)"
)
_SOURCE = (
    "(SELECT r.path FROM session_sources m JOIN sources r ON r.id = m.source_id"
    " WHERE m.session_id = s.id AND r.kind = 'transcript' ORDER BY r.state = 'gone', r.id LIMIT 1)"
)
_GONE = (
    "(SELECT coalesce(min(r.state = 'gone'), 0) FROM session_sources m"
    " JOIN sources r ON r.id = m.source_id WHERE m.session_id = s.id AND r.kind = 'transcript')"
)
# Agents start sessions by themselves with this one prompt.
_WARMUP = (
    "(lower(coalesce(s.title, 'warmup')) = 'warmup' AND s.prompts <= 1 AND EXISTS (SELECT 1"
    " FROM events e JOIN event_texts x ON x.id = e.id WHERE e.session_id = s.id"
    " AND e.type = 'user' AND lower(trim(x.text)) = 'warmup'))"
)
# Titles, notices and broken records alone are not a conversation.
_TALKS = (
    f"(s.prompts > 0 OR s.tool_calls > 0 OR EXISTS (SELECT 1 FROM {shown.EVENTS}"
    f" WHERE t.session_id = s.id AND {shown.CURRENT} AND e.type NOT IN ('system', 'summary')))"
)
# Who is listed: in `sess list`, the finder, the totals of `sess stats`, and on a site.
_LISTED = f"(s.kind = 'main' AND {_TALKS} AND NOT {_WARMUP})"
# What is shown in no other session.
_ALONE = "(s.kind = 'main' OR coalesce(p.records, 0) = 0)"
_COLUMNS = (
    "s.id, s.agent, s.native_id, s.home, s.alias, s.kind, s.parent_id, p.native_id, s.call_id,"
    f" s.agent_type, s.project, {marks.title()}, s.git_branch, s.models, s.version,"
    f" coalesce(s.started_at, s.ended_at, {_MTIME}), coalesce(s.ended_at, {_MTIME}),"
    f" s.events, s.prompts, s.tool_calls, {_SOURCE}, {_GONE}, s.mode, s.resume,"
    " s.started_at IS NULL AND s.ended_at IS NULL, s.project_from"
)
_ENDED = f"coalesce(s.ended_at, {_MTIME})"
_FROM = "FROM sessions s LEFT JOIN sessions p ON p.id = s.parent_id"


@dataclass(frozen=True, slots=True)
class SessionRow:
    """One session as lists and headers show it."""

    key: SessionId
    agent: str
    session: str
    home: str
    alias: str | None
    kind: str
    parent_key: SessionId | None
    parent: str | None
    call_id: str | None
    agent_type: str | None
    project: str | None
    title: str | None
    git_branch: str | None
    models: str  # a JSON array
    version: str | None
    started: int | None
    ended: int | None
    events: int
    prompts: int
    tool_calls: int
    source: str | None
    source_gone: int
    mode: str | None
    resume: str | None  # the command that resumes it: a JSON array
    undated: int  # no record has a time
    project_from: str | None  # of a project that the agent did not record: folder, name, files

    @property
    def time_from(self) -> str | None:
        """Where its times come from if not from its records: `file`."""
        return "file" if self.undated and self.started is not None else None

    @property
    def duration_ms(self) -> int:
        """From the earliest to the latest dated record."""
        return 0 if self.started is None or self.ended is None else self.ended - self.started

    @property
    def directory(self) -> str | None:
        """The project as a path; None if only a name is known."""
        return None if self.project_from == "name" else self.project

    @property
    def file(self) -> str | None:
        """The file that is the source or contains it: a database holds many conversations."""
        return self.source.removesuffix(f"#{self.session}") if self.source else None


@dataclass(slots=True)
class Listing:
    """Which sessions to list."""

    agents: Sequence[str] = ()
    projects: Sequence[str] = ()
    since: int | None = None
    until: int | None = None
    ended_before: int | None = None
    every: bool = False  # include subagents, logs, warm-ups and what says nothing
    alone: bool = False  # include those of them that no other session shows
    models: Sequence[str] = ()  # each is part of a model's name
    branches: Sequence[str] = ()  # each may have wildcards
    labels: Sequence[str] = ()  # each may have wildcards
    pinned: bool = False
    limit: int = 30  # 0 for all

    def rows(self, db: apsw.Connection) -> Iterator[SessionRow]:
        """The most recently active first."""
        where, values = self._where()
        limit = min(self.limit, _MOST) or -1
        # The dated ones come in the order of their index, so that no others are looked at.
        newest = (
            f"SELECT * FROM (SELECT s.id, s.ended_at AS ended {_FROM}"
            f" WHERE s.ended_at IS NOT NULL AND {where}"
            f" ORDER BY s.ended_at DESC, s.id DESC LIMIT {limit})"
            f" UNION ALL SELECT s.id, {_MTIME} {_FROM} WHERE s.ended_at IS NULL AND {where}"
            f" ORDER BY ended DESC, id DESC LIMIT {limit}"
        )
        chosen = f"s.id IN (SELECT id FROM ({newest})) ORDER BY {_ENDED} DESC, s.id DESC"
        yield from _rows(db, chosen, [*values, *values])

    def count(self, db: apsw.Connection) -> int:
        """How many there are without the limit."""
        where, values = self._where()
        return int(db.execute(f"SELECT count(*) {_FROM} WHERE {where}", tuple(values)).get)

    def _where(self) -> tuple[str, list[object]]:
        where, values = condition(self.agents, self.projects)
        where += " AND s.records > 0"
        if not self.every:
            where += f" AND {_ALONE if self.alone else _LISTED}"
        if self.since is not None:
            where += f" AND {_ENDED} >= ?"
            values.append(self.since)
        if self.until is not None:
            where += f" AND coalesce(s.started_at, {_MTIME}) < ?"
            values.append(self.until)
        if self.ended_before is not None:
            where += f" AND {_ENDED} < ?"
            values.append(self.ended_before)
        for given, one in (
            (
                self.models,
                "EXISTS (SELECT 1 FROM json_each(s.models) WHERE instr(lower(value), ?))",
            ),
            (self.branches, "lower(s.git_branch) GLOB ?"),
        ):
            if given:
                where += f" AND ({' OR '.join([one] * len(given))})"
                values += [bindable(text.lower()) for text in given]
        marked, names = marks.condition(self.labels, pinned=self.pinned)
        return f"{where} AND {marked}", [*values, *map(bindable, names)]


def listed(db: apsw.Connection) -> set[SessionId]:
    """The sessions that are listed unless all are asked for."""
    return {key for (key,) in db.execute(f"SELECT s.id FROM sessions s WHERE {_LISTED}")}


def any_session(db: apsw.Connection) -> bool:
    return bool(db.execute("SELECT EXISTS (SELECT 1 FROM sessions WHERE records > 0)").get)


def agents(db: apsw.Connection) -> list[str]:
    return [
        agent
        for (agent,) in db.execute(
            "SELECT DISTINCT agent FROM sessions WHERE records > 0 ORDER BY 1"
        )
    ]


def by_key(db: apsw.Connection, key: SessionId) -> SessionRow:
    (row,) = _rows(db, "s.id = ?", (key,))
    return row


def is_read(db: apsw.Connection, key: SessionId) -> bool:
    """False for the parent of a subagent whose own transcript was never found."""
    return bool(db.execute("SELECT records > 0 FROM sessions WHERE id = ?", (key,)).get)


def children(db: apsw.Connection, key: SessionId) -> list[SessionRow]:
    """Subagents of a session, in the order they started."""
    return [*_rows(db, "s.parent_id = ? AND s.records > 0 ORDER BY s.started_at, s.id", (key,))]


def family(db: apsw.Connection, key: SessionId) -> list[SessionId]:
    """A session with its subagents and theirs."""
    return [one for (one,) in db.execute(shown.FAMILY, (key,))]


def resolve(db: apsw.Connection, typed: str) -> SessionRow:
    """The session that an id, a prefix of one, or `last` means."""
    typed = typed.strip().encode("utf-8", "replace").decode()
    if typed == "last":
        for row in Listing(limit=1).rows(db):
            return row
        raise SessError("no sessions yet", hint="`sess list --all`", code=Exit.NOTHING_FOUND)
    for candidates in _guesses(db, typed):
        matching = {row.key: row for row in candidates}
        if len(matching) == 1:
            return next(iter(matching.values()))
        if matching:
            raise _ambiguous(db, typed, [*matching.values()])
    if len(typed) < SHORTEST_PREFIX:
        raise SessError(
            f'session ID too short: "{typed}"',
            hint=f"give at least {SHORTEST_PREFIX} characters, or `last`",
        )
    named, mark, event = typed.rpartition("#")
    if mark and named and (owner := _resolved(db, named)) is not None:
        raise SessError(
            f"session {owner.session} has no event #{event}",
            hint=f"`sess show {owner.session}` shows all events",
            code=Exit.NOTHING_FOUND,
        )
    near = _nearest_id(db, typed)
    hint = f"did you mean {near}? " if near else ""
    raise SessError(
        f'no such session: "{typed}"', hint=f"{hint}`sess list` lists them", code=Exit.NOTHING_FOUND
    )


def _resolved(db: apsw.Connection, typed: str) -> SessionRow | None:
    try:
        return resolve(db, typed)
    except SessError:
        return None


def _nearest_id(db: apsw.Connection, typed: str) -> str | None:
    """The session that one wrong character separates from what was typed."""
    import difflib  # only after a slip

    ids = (str(native) for (native,) in db.execute("SELECT native_id FROM sessions"))
    begun = {native[: len(typed)]: native for native in ids}
    close = difflib.get_close_matches(typed, begun, 1, _NEAR)
    return begun[close[0]] if close else None


def _guesses(db: apsw.Connection, typed: str) -> Iterator[Iterable[SessionRow]]:
    """What an id may mean, the most certain first. It is only compared, never used as a path."""
    # An id shared by subagents of several sessions means the session without a parent.
    alone = "(s.home = '' OR s.parent_id IS NULL)"
    yield _rows(db, f"s.native_id = ? AND {alone} AND s.records > 0", (typed,))
    yield _rows(db, "s.native_id = ? AND s.records > 0", (typed,))
    yield _rows(db, "s.alias = ? AND s.records > 0", (typed,))
    parent, slash, child = typed.rpartition("/")
    begins = "substr({}, 1, length(?)) = ?"
    if slash and parent and child:
        home = "(s.home = ? OR (s.home = '' AND s.agent = ?))"
        yield _rows(db, f"{home} AND s.native_id = ? AND s.records > 0", (parent, parent, child))
        inside = f"({begins.format('s.home')} OR {begins.format('p.native_id')})"
        named = f"({begins.format('s.native_id')} OR {begins.format('s.native_id')})"
        bare = _AGENT + child
        yield _rows(
            db,
            f"s.records > 0 AND {inside} AND {named}",
            (parent, parent, parent, parent, child, child, bare, bare),
        )
        return
    if len(typed) < SHORTEST_PREFIX:
        return
    bare = _AGENT + typed
    yield _rows(
        db,
        f"s.records > 0 AND ({begins.format('s.native_id')} OR {begins.format('s.native_id')})"
        " ORDER BY s.ended_at DESC",
        (typed, typed, bare, bare),
    )
    yield _rows(db, f"s.records > 0 AND {begins.format('s.alias')}", (typed, typed))
    if typed != (lower := typed.lower()):  # an ID as some programs print it
        yield from _guesses(db, lower)


def _ambiguous(db: apsw.Connection, typed: str, matching: list[SessionRow]) -> SessError:
    names = ShortIds(db)
    # Ids are not shortened: they are there to be copied.
    lines = [f"\n  {names.of(row)}  {cut(title_of(db, row), 60)}" for row in matching[:5]]
    if len(matching) > 5:
        lines.append(f"\n  and {len(matching) - 5} more")
    return SessError(
        f'"{typed}" matches {len(matching)} sessions:' + "".join(lines),
        hint="give one of these IDs, or more characters",
    )


class ShortIds:
    """The shortest id that `resolve` accepts for each session, eight characters or more."""

    def __init__(self, db: apsw.Connection) -> None:
        self._taken: dict[str, list[tuple[str, str, bool]]] = {}
        for native_id, *own in db.execute(
            "SELECT native_id, home, parent_id IS NULL FROM sessions WHERE records > 0"
        ):
            self._taken.setdefault(native_id[: _base(native_id)], []).append((native_id, *own))

    def of(self, row: SessionRow) -> str:
        near = self._taken.get(row.session[: _base(row.session)], [])
        same = [(home, alone) for native_id, home, alone in near if native_id == row.session]
        homes = [home for home, _ in same]
        if len(homes) > 1:  # the same id under several parents, or of several agents
            if not row.home:
                rivals = [home for home, alone in same if alone or not home]
                return row.session if len(rivals) == 1 else f"{row.agent}/{row.session}"
            length = len(row.home) if os.sep in row.home else SHORT
            return f"{_distinct(row.home, length, homes)}/{row.session}"
        return _distinct(row.session, _base(row.session), [native_id for native_id, *_ in near])


def title_of(db: apsw.Connection, row: SessionRow) -> str:
    """The title on one line; without one, the first words of a person, else of the agent."""
    return title_for(db, row.key, row.title)


def title_for(db: apsw.Connection, key: SessionId, title: str | None) -> str:
    """The same for a session whose title column has been read already."""
    if not title:
        words = db.execute(
            "SELECT iif(e.type = 'tool_use', concat_ws(' ', e.tool, e.summary),"
            f" substr(x.text, 1, 300)) FROM {shown.EVENTS} JOIN event_texts x ON x.id = e.id"
            f" WHERE t.session_id = ? AND {shown.CURRENT}"
            " AND e.type IN ('user', 'assistant', 'tool_use') AND e.unjoined IS NULL"
            " ORDER BY e.type <> 'user', e.type <> 'assistant',"
            f" {shown.IN_ORDER.removeprefix('ORDER BY')} LIMIT 1",
            (key,),
        ).get
        return cut(one_line(words), _WORDS)
    return one_line(title)


def cut(text: str, most: int) -> str:
    """The start of a text, with an ellipsis if that is not all."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def _distinct(text: str, length: int, others: Sequence[str]) -> str:
    """The shortest unique prefix of a text, at least `length` characters."""
    while length < len(text) and sum(other.startswith(text[:length]) for other in others) > 1:
        length += 1
    return text[:length]


def one_line(text: str | None) -> str:
    return " ".join((text or "").split()) or "(no title)"


def _base(native_id: str) -> int:
    return SHORT + (len(_AGENT) if native_id.startswith(_AGENT) else 0)


def _rows(db: apsw.Connection, where: str, values: Sequence[object]) -> Iterator[SessionRow]:
    columns: tuple[Any, ...]
    for columns in db.execute(f"SELECT {_COLUMNS} {_FROM} WHERE {where}", tuple(values)):
        yield SessionRow(*columns)


def condition(agents: Sequence[str], projects: Sequence[str]) -> tuple[str, list[object]]:
    """SQL over `sessions s` for agent names and project directories."""
    parts, values = ["1"], list[object]()
    if agents:
        parts.append(f"({' OR '.join(['s.agent GLOB ?'] * len(agents))})")
        values += [f"{agent.lower()}*" for agent in agents]
    if projects:
        options = []
        for project in projects:
            places = _places(project)
            for place in places:
                options.append("s.project = ? OR substr(s.project, 1, ?) = ?")
                below = place.rstrip(os.sep) + os.sep
                values += [place, len(below), below]
            if not places:
                options.append("instr(lower(s.project), ?)")
                values.append(lower(project))
        parts.append(f"({' OR '.join(options)})")
    return " AND ".join(parts), [bindable(value) for value in values]


def bindable(value: object) -> object:
    """Command-line bytes that are not UTF-8 match nothing; SQLite would reject them."""
    if not isinstance(value, str):
        return value
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def lower(text: str) -> str:
    """Like SQLite's lower(): only ASCII changes."""
    return "".join(c.lower() if c.isascii() else c for c in text)


def _places(project: str) -> list[str]:
    """The directories that a path names, or none if it is a substring to find.

    Agents record the directory they were started in, with or without links resolved.
    """
    named = project in (".", "..") or project.startswith((os.sep, "~", "./", "../"))
    if not named or "\0" in project:
        return []
    path = os.path.abspath(os.path.expanduser(project))
    directories = [path, os.path.realpath(path)]
    if here := _logical_directory():
        directories.append(os.path.normpath(os.path.join(here, os.path.expanduser(project))))
    return list(dict.fromkeys(directories))


def _logical_directory() -> str | None:
    """The current directory with the shell's symbolic links, from PWD if PWD is correct:

    a program that starts us in another directory may not have updated it.
    """
    logical = os.environ.get("PWD", "")
    try:
        return logical if os.path.isabs(logical) and os.path.samefile(logical, ".") else None
    except OSError:
        return None
