"""Where sessions are kept: tables of a database, in either generation, or a tree of older files.

The first generation has the tables `session`, `message` and `part`, the second one `session_v2` and
`session_message`. An upgrade copies sessions into the second and leaves the first behind, so each
session is read from one of them: the second, once it has a message of it there.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sessiond.families.opencode.messages import read_entry, read_message
from sessiond.sourcekit import disk
from sessiond.sourcekit.base import (
    Conversation,
    Item,
    Layout,
    Listed,
    NotReady,
    Record,
    SessionSpec,
    Table,
    whole_json,
    whole_object,
)
from sessiond.sourcekit.disk import small_file, small_json
from sessiond.sourcekit.foreign import Foreign
from sessiond.sourcekit.values import as_dict, as_text, as_time, decoded

FIRST, SECOND = "session", "session_v2"
_MESSAGE, _PART, _ENTRY = "message", "part", "session_message"
_FACTS = (
    *("id", "parent_id", "workspace_id", "directory", "title", "version", "agent", "model"),
    *("revert", "fork_session_id", "time_created", "time_updated"),
)
_UNNAMED = re.compile(r"(?:New|Child) session - \d{4}-\d\d-\d\dT[\d:.]+Z")
_BY_SESSION = 5


class SessionTables(Layout):
    """One database at one moment."""

    def __init__(self, db: Foreign, program: str) -> None:
        self._program = program
        self._second = self._in_second(db)
        # Of the session that is read:
        self._copies: dict[str, str] = {}  # originals by message
        self._version: str | None = None
        # The message and part from which on a person took everything back, until they go on.
        self._reverted: tuple[str | None, str | None] = None, None

    @staticmethod
    def _in_second(db: Foreign) -> frozenset[str]:
        if not db.has_table(_ENTRY):
            return frozenset()
        sessions = {name for (name,) in db.rows(f"SELECT DISTINCT session_id FROM {_ENTRY}")}
        if not db.has_table(SECOND) and db.has_table(_MESSAGE):
            # Some versions of the first generation prepare for the second.
            sessions -= {name for (name,) in db.rows(f"SELECT DISTINCT session_id FROM {_MESSAGE}")}
        return frozenset(sessions)

    def tables(self, db: Foreign) -> Sequence[Table]:
        names = (_MESSAGE, _PART, _ENTRY)
        return [Table(name, "session_id") for name in names if db.has_table(name)]

    def heads(self, db: Foreign) -> Iterable[tuple[str, Any]]:
        heads: dict[str, Any] = {}
        for table in (FIRST, SECOND):
            if not db.has_table(table):
                continue
            columns = [name for name in ("time_updated", "title", "revert") if db.has(table, name)]
            marks = ", ".join(f"s.{name}" for name in columns)
            events, joined = "0", ""
            if db.has_table("event_sequence"):  # counts every change of a session, where it is kept
                events, joined = "e.seq", "LEFT JOIN event_sequence e ON e.aggregate_id = s.id"
            for name, *mark in db.rows(f"SELECT s.id, {events}, {marks} FROM {table} s {joined}"):
                heads[name] = (table, name in self._second, mark)
        return heads.items()

    def whole(self, db: Foreign, conversation: str) -> Conversation | None:
        facts = self._facts(db, conversation)
        if facts is None:
            return None
        origin = as_text(facts.get("fork_session_id"))
        if conversation not in self._second:
            self._copies = copies_by_time(db, conversation, _MESSAGE, FIRST)
        elif origin:
            self._copies = copies_by_number(db, conversation, origin)
        else:
            heads = SECOND if db.has_table(SECOND) else FIRST
            self._copies = copies_by_time(db, conversation, _ENTRY, heads)
        self._version = as_text(facts.get("version"))
        revert = as_dict(decoded(facts.get("revert")))
        self._reverted = as_text(revert.get("messageID")), as_text(revert.get("partID"))
        parent = as_text(facts.get("parent_id"))
        title = as_text(facts.get("title"))
        model = as_dict(decoded(facts.get("model")))
        return Conversation(
            SessionSpec(
                conversation,
                kind="subagent" if parent else "main",
                parent=parent,
                agent_type=as_text(facts.get("agent")) if parent else None,
                title=None if title and _UNNAMED.match(title) else title,
                resume=() if parent else (self._program, "--session", conversation),
            ),
            project=as_text(facts.get("directory")),
            project_rank=_BY_SESSION,
            git_branch=self._branch(db, facts.get("workspace_id")),
            mode=as_text(facts.get("agent")),
            model=None if not model else as_text(model.get("id")),
            created_at=as_time(facts.get("time_created")),
            updated_at=as_time(facts.get("time_updated")),
        )

    @staticmethod
    def _facts(db: Foreign, conversation: str) -> dict[str, Any] | None:
        for table in (SECOND, FIRST):
            if db.has_table(table):
                columns = [name for name in _FACTS if db.has(table, name)]
                for row in db.rows(
                    f"SELECT {', '.join(columns)} FROM {table} WHERE id = ?", (conversation,)
                ):
                    return dict(zip(columns, row, strict=True))
        return None

    @staticmethod
    def _branch(db: Foreign, workspace: Any) -> str | None:
        if workspace is None or not db.has("workspace", "branch"):
            return None
        rows = db.rows("SELECT branch FROM workspace WHERE id = ?", (workspace,))
        return as_text(rows[0][0]) if rows else None

    def listing(self, db: Foreign, conversation: str) -> list[Listed]:
        message, part = self._reverted
        if conversation in self._second:
            rows = db.rows(
                f"SELECT id, seq, time_updated FROM {_ENTRY}"
                " WHERE session_id = ? AND typeof(id) = 'text' ORDER BY seq",
                (conversation,),
            )
        elif not db.has_table(_MESSAGE):
            return []
        else:
            rows = db.rows(
                f"SELECT m.id, count(p.id), max(m.time_updated, coalesce(max(p.time_updated), 0)),"
                f" m.time_updated FROM {_MESSAGE} m LEFT JOIN {_PART} p ON p.message_id = m.id"
                " WHERE m.session_id = ? AND typeof(m.id) = 'text' GROUP BY m.id"
                " ORDER BY m.time_created, m.id",
                (conversation,),
            )
        listed = []
        for name, *mark in rows:
            if name == message:
                if part is None:
                    break
                listed.append(Listed(name, (*mark, part), mark[1]))
                break
            listed.append(Listed(name, tuple(mark), mark[1]))
        return listed

    def fetch(
        self, db: Foreign, conversation: str, keys: Sequence[str]
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        if conversation in self._second:
            for name, kind, data in db.many(
                f"SELECT id, type, data FROM {_ENTRY} WHERE id = ?", keys
            ):
                yield name, {**_object(data), "id": name, "type": kind}
            return
        message, part = self._reverted
        parts: dict[str, list[dict[str, Any]]] = {}
        for owner, name, data in db.many(
            f"SELECT message_id, id, data FROM {_PART} WHERE message_id = ? ORDER BY id", keys
        ):
            if owner != message or part is None or name < part:
                parts.setdefault(owner, []).append({**_object(data), "id": name})
        for name, data in db.many(f"SELECT id, data FROM {_MESSAGE} WHERE id = ?", keys):
            info = {**_object(data), "id": name, "sessionID": conversation}
            yield name, {"info": info, "parts": parts.get(name, [])}

    def record(self, value: dict[str, Any]) -> Record:
        record = read_message(value) if "info" in value else read_entry(value)
        original = self._copies.get(record.native_id or "")
        if original:
            record.native_id, record.forked = original, True
            if record.usage is not None:
                record.usage.message_id = original
        record.version = self._version
        return record


def _object(text: Any) -> dict[str, Any]:
    """A row's JSON; what is none is kept as text."""
    value = decoded(text)
    return value if isinstance(value, dict) else {"unreadable": str(text)}


# -- originals of messages that a fork copied under new ids

_ID = re.compile(r"msg_([0-9a-f]{12})")
_CLOCK_BITS = 36  # an id starts with this much of the millisecond it was made in
_TOLERANCE = 60_000  # milliseconds between a message and its id


def copies_by_time(db: Foreign, session: str, table: str, heads: str) -> dict[str, str]:
    """Originals by message. The copy of a message keeps its time, but not its id.

    Nothing names the session that was forked: it is an older one with a message of that time.
    """
    if not db.has_table(table):
        return {}
    of_session = (
        f"SELECT id, time_created FROM {table} WHERE session_id = ? AND typeof(id) = 'text'"
    )
    rows = db.rows(f"{of_session} ORDER BY time_created, id", (session,))
    copied = [(name, made) for name, made in rows if _is_copy(name, made)]
    if not copied:
        return {}
    originals: dict[int, str] = {}
    missing = {made for _, made in copied}
    for (older,) in db.rows(
        f"SELECT s.id FROM {heads} s JOIN {heads} f ON f.id = ?1"
        " WHERE s.id <> f.id AND s.time_created < f.time_created AND EXISTS"
        f" (SELECT 1 FROM {table} o WHERE o.session_id = s.id AND o.time_created = ?2)"
        " ORDER BY s.time_created, s.id",
        (session, copied[0][1]),
    ):
        for name, made in db.rows(of_session, (older,)):
            originals.setdefault(made, name)
        missing -= originals.keys()
        if not missing:
            break
    return {name: originals[made] for name, made in copied if made in originals}


def copies_by_number(db: Foreign, session: str, origin: str | None) -> dict[str, str]:
    """Originals by message, in the session that was forked: a copied row keeps its number."""
    copies: dict[str, str] = {}
    seen = {session}
    while origin and origin not in seen and db.has("session_v2", "fork_session_id"):
        seen.add(origin)
        copies |= dict(
            db.rows(
                "SELECT c.id, o.id FROM session_message c JOIN session_message o"
                " ON o.session_id = ?2 AND o.seq = c.seq AND o.type = c.type"
                " AND o.time_created = c.time_created WHERE c.session_id = ?1"
                " AND typeof(c.id) = 'text' AND typeof(o.id) = 'text'",
                (session, origin),
            )
        )
        rows = db.rows("SELECT fork_session_id FROM session_v2 WHERE id = ?", (origin,))
        origin = rows[0][0] if rows else None  # a fork of a fork copied copies
    return copies


def _is_copy(name: str, made: Any) -> bool:
    match = _ID.match(name)
    if match is None or not isinstance(made, int):
        return False
    apart = abs((int(match[1], 16) >> 12) - made % (1 << _CLOCK_BITS))
    return min(apart, (1 << _CLOCK_BITS) - apart) > _TOLERANCE


# -- versions without a database: a file per session, message and part

_LARGEST = 64 << 20
_RECENT = 24 * 3600  # seconds in which a session may still be written
_INFO, _JSON = "info", ".json"
_TREE_RANK = 1  # databases come first: they were made from the tree
_NAME = re.compile(r"[\w-]{1,200}")  # an id that is safe in a path


def tree_session(path: str, data: bytes, program: str) -> Conversation:
    """A session with all its messages and their parts."""
    facts = whole_json(data)
    name = as_text(as_dict(facts).get("id"))
    if name is None or not _NAME.fullmatch(name):
        raise NotReady("is not a session")
    return _session(name, facts, _Tree(path).messages(name), program)


def exported_session(path: str, data: bytes, program: str) -> Conversation:
    """`{info, messages: [{info, parts}]}`, as `export` writes it."""
    whole = whole_object(data, "messages", "is not an exported session")
    facts = as_dict(whole.get("info"))
    name = as_text(facts.get("id"))
    if name is None:
        raise NotReady("is not an exported session")
    told = ({"info": {}, **as_dict(one)} for one in whole["messages"])
    messages = ({**one, "info": as_dict(one["info"])} for one in told)
    return _session(name, facts, messages, program)


def _session(
    name: str, facts: dict[str, Any], messages: Iterable[dict[str, Any]], program: str
) -> Conversation:
    parent, times = as_text(facts.get("parentID")), as_dict(facts.get("time"))
    revert = as_text(as_dict(facts.get("revert")).get("messageID"))
    items = []
    for message in messages:
        if revert and message["info"].get("id") == revert:
            break
        record = read_message(message)
        items.append(Item(record.native_id or "", value=message, record=record))
    items.sort(key=lambda item: ((item.record.ts if item.record else None) or 0, item.key))
    return Conversation(
        SessionSpec(
            name,
            kind="subagent" if parent else "main",
            parent=parent,
            title=as_text(facts.get("title")),
            fallback=_TREE_RANK,
            resume=() if parent else (program, "--session", name),
        ),
        items=items,
        project=as_text(facts.get("directory")),
        project_rank=_BY_SESSION,
        created_at=as_time(times.get("created")),
        updated_at=as_time(times.get("updated")),
    )


def written_later(path: str) -> list[str]:
    """Files and folders that may change after a session's file."""
    tree = _Tree(path)
    name = _stem(path)
    folder = tree.message_folder(name)
    try:
        fresh = (
            time.time() - max(disk.lstat_of(path).st_mtime, disk.lstat_of(folder).st_mtime)
            < _RECENT
        )
    except OSError:
        return [folder]
    if not fresh:
        return [folder]
    messages = _files(folder)
    parts = [tree.part_folder(name, _stem(message)) for message in messages]
    return [folder, *parts, *messages[-1:], *(_files(parts[-1]) if parts else ())]


class _Tree:
    """Where the messages and parts of a session are.

    `storage/session/PROJECT/SESSION.json` has them in `storage/message/SESSION/` and
    `storage/part/MESSAGE/`; the older `storage/session/info/SESSION.json` in
    `storage/session/message/SESSION/` and `storage/session/part/SESSION/MESSAGE/`.
    """

    def __init__(self, path: str) -> None:
        folder = os.path.dirname(path)
        self._nested = os.path.basename(folder) == _INFO
        self._base = os.path.dirname(folder if self._nested else os.path.dirname(folder))
        self._loose: dict[str, list[dict[str, Any]]] | None = None

    def message_folder(self, name: str) -> str:
        return os.path.join(self._base, "message", name)

    def part_folder(self, name: str, message: str) -> str:
        inner = (name, message) if self._nested else (message,)
        return os.path.join(self._base, "part", *inner)

    def messages(self, name: str) -> Iterator[dict[str, Any]]:
        for file in _files(self.message_folder(name)):
            info = {"id": _stem(file), **_object_in(file)}
            message = str(info["id"])
            folder = self.part_folder(name, message if _NAME.fullmatch(message) else _stem(file))
            parts = [_object_in(one) for one in _files(folder)]
            yield {"info": info, "parts": parts or self._loose_parts(message)}

    def _loose_parts(self, message: str) -> list[dict[str, Any]]:
        """Parts that are not in a folder of their message."""
        if self._loose is None:
            self._loose = {}
            for file in _files(os.path.join(self._base, "part")):
                part = _object_in(file)
                self._loose.setdefault(str(part.get("messageID")), []).append(part)
        return self._loose.get(message, [])


def _object_in(file: str) -> dict[str, Any]:
    """What is not JSON, or not yet, is kept as text."""
    value = small_json(file, _LARGEST)
    return value or {"unreadable": small_file(file, _LARGEST).decode("utf-8", "replace")}


def _stem(path: str) -> str:
    return os.path.basename(path).removesuffix(_JSON)


def _files(folder: str) -> list[str]:
    try:
        names = sorted(name for name in disk.names(folder) if name.endswith(_JSON))
    except OSError:
        return []
    return [os.path.join(folder, name) for name in names]
