"""The sessions of a database, in either generation.

The first generation has the tables `session`, `message` and `part`, the second one `session_v2` and
`session_message`. An upgrade copies sessions into the second and leaves the first behind, so each
session is read from one of them: the second, once it has a message of it there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sessiond.engines.tables import Layout, Listed, Table
from sessiond.families.opencode.entries import read_entry
from sessiond.families.opencode.forks import copies_by_number, copies_by_time
from sessiond.families.opencode.messages import read_message
from sessiond.sourcekit.base import Conversation, Record, SessionSpec
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
        found = {name for (name,) in db.rows(f"SELECT DISTINCT session_id FROM {_ENTRY}")}
        if not db.has_table(SECOND) and db.has_table(_MESSAGE):
            # Some versions of the first generation prepare for the second.
            found -= {name for (name,) in db.rows(f"SELECT DISTINCT session_id FROM {_MESSAGE}")}
        return frozenset(found)

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
