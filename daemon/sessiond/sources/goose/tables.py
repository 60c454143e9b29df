"""The tables of Goose: sessions, messages, and a ledger of what requests used.

A compaction marks what only the model or only a person sees. Older versions delete all messages of
a session for it and write them again: they get new rowids, but keep their ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sessiond.engines.tables import Layout, Listed, Table
from sessiond.sourcekit.base import Conversation, Record, SessionSpec, Usage
from sessiond.sourcekit.foreign import Foreign
from sessiond.sourcekit.values import as_count, as_dict, as_text, as_time, decoded
from sessiond.sources.goose.delegates import starting_call
from sessiond.sources.goose.messages import AGAIN, SUMMARY, read_message

_MESSAGES, _LEDGER = "messages", "usage_ledger"
_USAGE, _TOTAL = "usage:", "usage:total"
_TOKENS = ("input", "output", "cache_read", "cache_write")
_FACTS = (
    *("id", "name", "description", "session_type", "working_dir", "created_at", "updated_at"),
    *("provider_name", "model_config_json", "goose_mode", "parent_session_id", "accumulated_cost"),
    *(f"accumulated_{name}_tokens" for name in _TOKENS),
)
_UNNAMED = frozenset({"", "CLI Session", "New session", "New Chat", "ACP Session", "Session"})
_COMPACTED = "Your context was compacted"
_CARRIED = "carried_forward"  # what was used before there was a ledger
_BY_SESSION = 5


class GooseTables(Layout):
    def __init__(self) -> None:
        # Of the session that is read:
        self._rows: dict[str, int] = {}  # by key
        self._facts: dict[str, Any] = {}
        self._model: str | None = None

    def tables(self, db: Foreign) -> Sequence[Table]:
        names = (_MESSAGES, _LEDGER)
        return [Table(name, "session_id") for name in names if db.has_table(name)]

    def heads(self, db: Foreign) -> Iterable[tuple[str, Any]]:
        if not db.has_table("sessions"):
            return
        columns = [
            name for name in ("updated_at", "name", *_FACTS[-5:]) if db.has("sessions", name)
        ]
        for name, *mark in db.rows(f"SELECT id, {', '.join(columns)} FROM sessions"):
            yield name, mark

    def whole(self, db: Foreign, conversation: str) -> Conversation | None:
        columns = [name for name in _FACTS if db.has("sessions", name)]
        rows = db.rows(f"SELECT {', '.join(columns)} FROM sessions WHERE id = ?", (conversation,))
        if not rows:
            return None
        facts = self._facts = dict(zip(columns, rows[0], strict=True))
        self._model = as_text(as_dict(decoded(facts.get("model_config_json"))).get("model_name"))
        parent = as_text(facts.get("parent_session_id"))
        is_subagent = bool(parent) or facts.get("session_type") == "sub_agent"
        title = as_text(facts.get("name")) or as_text(facts.get("description")) or ""
        return Conversation(
            SessionSpec(
                conversation,
                kind="subagent" if is_subagent else "main",
                parent=parent,
                call_id=starting_call(db, parent, conversation) if parent else None,
                title=None if title in _UNNAMED else title,
                resume=() if is_subagent else _resume(conversation),
            ),
            project=as_text(facts.get("working_dir")),
            project_rank=_BY_SESSION,
            mode=as_text(facts.get("goose_mode")),
            model=self._model,
            created_at=as_time(facts.get("created_at")),
            updated_at=as_time(facts.get("updated_at")),
        )

    def listing(self, db: Foreign, conversation: str) -> list[Listed]:
        self._rows = {}
        found = []
        metadata = "metadata_json" if db.has(_MESSAGES, "metadata_json") else "NULL"
        name = "message_id" if db.has(_MESSAGES, "message_id") else "NULL"
        for row, given, made, *mark in db.rows(
            f"SELECT id, {name}, created_timestamp, octet_length(content_json), {metadata}"
            f" FROM {_MESSAGES} WHERE session_id = ? ORDER BY created_timestamp, id",
            (conversation,),
        ):
            key = as_text(given) or f"message {made}"
            while key in self._rows:  # pieces of one answer share an id
                key += "'"
            self._rows[key] = row
            found.append((as_time(made) or 0, 0, row, Listed(key, (made, *mark), as_time(made))))
        ledger = self._ledger(db, conversation)
        for row, made in ledger:
            self._rows[f"{_USAGE}{row}"] = row
            listed = Listed(f"{_USAGE}{row}", (made,), as_time(made))
            found.append((as_time(made) or 0, 1, row, listed))
        if not ledger and any(self._facts.get(f"accumulated_{name}_tokens") for name in _TOKENS):
            sums = tuple(self._facts.get(name) for name in _FACTS[-5:])
            found.append((1 << 62, 1, 0, Listed(_TOTAL, sums)))
        return [listed for *_, listed in sorted(found, key=lambda one: one[:3])]

    @staticmethod
    def _ledger(db: Foreign, conversation: str) -> list[tuple[int, Any]]:
        if not db.has_table(_LEDGER):
            return []
        query = f"SELECT id, created_timestamp FROM {_LEDGER} WHERE session_id = ? ORDER BY id"
        return [(row, made) for row, made in db.rows(query, (conversation,))]

    def fetch(
        self, db: Foreign, conversation: str, keys: Sequence[str]
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        for key in keys:
            if key == _TOTAL:
                yield key, self._total(conversation)
            elif key.startswith(_USAGE):
                yield from ((key, value) for value in self._used(db, conversation, key))
            else:
                yield from ((key, value) for value in self._message(db, conversation, key))

    def _message(self, db: Foreign, conversation: str, key: str) -> Iterator[dict[str, Any]]:
        names = [
            name
            for name in ("message_id", "role", "content_json", "created_timestamp", "metadata_json")
            if db.has(_MESSAGES, name)
        ]
        for row in db.rows(
            f"SELECT {', '.join(names)} FROM {_MESSAGES} WHERE id = ?", (self._rows[key],)
        ):
            stored = dict(zip(names, row, strict=True))
            value = {
                "id": key if as_text(stored.get("message_id")) else f"{conversation} {key}",
                "role": stored.get("role"),
                "created": stored.get("created_timestamp"),
                "content": _content(stored.get("content_json")),
                "metadata": decoded(stored.get("metadata_json")),
            }
            if place := self._place(db, conversation, self._rows[key], value):
                value["compaction"] = place
            yield value

    @staticmethod
    def _place(db: Foreign, conversation: str, row: int, value: dict[str, Any]) -> str | None:
        """What a text of the user's role is in a compaction, if it belongs to one."""
        if value["role"] != "user" or "toolResponse" in repr(value["content"])[:200]:
            return None
        near = f"SELECT content_json FROM {_MESSAGES} WHERE session_id = ?1 AND id {{}} LIMIT 1"
        after = db.rows(near.format("> ?2 ORDER BY id"), (conversation, row))
        if after and _COMPACTED in str(after[0][0]):
            return SUMMARY
        before = db.rows(near.format("< ?2 ORDER BY id DESC"), (conversation, row))
        if not before or _COMPACTED not in str(before[0][0]):
            return None
        earlier = db.rows(
            f"SELECT 1 FROM {_MESSAGES} o JOIN {_MESSAGES} m ON m.id = ?2 WHERE o.session_id = ?1"
            " AND o.id < m.id AND o.role = 'user' AND o.content_json = m.content_json"
            " AND coalesce(json_extract(iif(json_valid(o.metadata_json), o.metadata_json, '{}'),"
            " '$.userVisible'), 1) LIMIT 1",
            (conversation, row),
        )
        return AGAIN if earlier else None

    def _used(self, db: Foreign, conversation: str, key: str) -> Iterator[dict[str, Any]]:
        columns = [
            name
            for name in ("created_timestamp", "model", "cost", "cost_source", "is_compaction")
            if db.has(_LEDGER, name)
        ]
        columns += [f"{name}_tokens" for name in _TOKENS if db.has(_LEDGER, f"{name}_tokens")]
        row = self._rows[key]
        for found in db.rows(f"SELECT {', '.join(columns)} FROM {_LEDGER} WHERE id = ?", (row,)):
            value = dict(zip(columns, found, strict=True))
            first = db.rows(f"SELECT min(id) FROM {_LEDGER} WHERE session_id = ?", (conversation,))[
                0
            ][0]
            # It replaces the sum of the time before the ledger.
            is_total = value.get("cost_source") == _CARRIED and first == row
            yield {"id": f"{conversation} {_TOTAL if is_total else key}", "usage": value}

    def _total(self, conversation: str) -> dict[str, Any]:
        facts = {
            f"{name}_tokens": self._facts.get(f"accumulated_{name}_tokens") for name in _TOKENS
        }
        facts["cost"] = self._facts.get("accumulated_cost")
        facts["created_timestamp"] = self._facts.get("updated_at")
        return {"id": f"{conversation} {_TOTAL}", "usage": facts}

    def record(self, value: dict[str, Any]) -> Record:
        if "usage" not in value:
            return read_message(value)
        record = Record("usage", native_id=value["id"])
        spent = as_dict(value["usage"])
        record.ts = as_time(spent.get("created_timestamp"))
        record.model = as_text(spent.get("model")) or self._model
        record.usage = _usage(spent, record)
        return record


def _usage(spent: dict[str, Any], record: Record) -> Usage | None:
    given, said, read, written = (as_count(spent.get(f"{name}_tokens")) for name in _TOKENS)
    if not any((given, said, read, written)):
        return None
    cost = spent.get("cost")
    counted = isinstance(cost, (int, float)) and not isinstance(cost, bool) and 0 < cost < 1e6
    return Usage(
        message_id=record.native_id,
        request_id=None,
        model=record.model,
        stop_reason=None,
        # Input includes what came from the cache, except for some providers.
        input_tokens=given - read - written if given >= read + written else given,
        output_tokens=said,
        cache_write_tokens=written,
        cache_write_1h_tokens=0,
        cache_read_tokens=read,
        cost_usd=float(cost) if counted and cost is not None else None,
    )


def _resume(session: str) -> tuple[str, ...]:
    return ("goose", "session", "--resume", "--session-id", session)


def _content(text: Any) -> Any:
    """What is not JSON is kept as text."""
    found = decoded(text)
    return str(text) if found is None and text is not None else found
