"""The tables of Crush: sessions and messages. Times are in seconds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sessiond.engines.tables import Layout, Listed, Table
from sessiond.sourcekit.base import Conversation, Record, SessionSpec, Usage
from sessiond.sourcekit.foreign import Foreign
from sessiond.sourcekit.values import as_count, as_text, as_time, decoded
from sessiond.sources.crush.messages import read_message

_MESSAGES = "messages"
_USAGE = "usage"  # key of what the session row says
_UNNAMED = frozenset({"Untitled Session", "New Session", "New Agent Session", "Generate a title"})
_STARTED_BY = "$$"  # in the id of a subagent's session, between a message and its call
_TITLES = "title-"  # sessions in which older versions had titles made
_HEAD = ("updated_at", "title", "prompt_tokens", "completion_tokens", "cost")
_BY_REGISTRY = 5


class CrushTables(Layout):
    def __init__(self, project: str | None) -> None:
        self._project = project
        # Of the session that is read:
        self._facts: dict[str, Any] = {}
        self._callers: dict[str, str] = {}  # the answer whose calls a message of results answers
        self._model: str | None = None

    def tables(self, db: Foreign) -> Sequence[Table]:
        return [Table(_MESSAGES, "session_id")] if db.has_table(_MESSAGES) else []

    def heads(self, db: Foreign) -> Iterable[tuple[str, Any]]:
        if not db.has_table("sessions"):
            return
        for name, *mark in db.rows(f"SELECT id, {', '.join(_HEAD)} FROM sessions"):
            if not str(name).startswith(_TITLES):
                yield name, mark

    def whole(self, db: Foreign, conversation: str) -> Conversation | None:
        names = ("parent_session_id", "created_at", *_HEAD)
        rows = db.rows(f"SELECT {', '.join(names)} FROM sessions WHERE id = ?", (conversation,))
        if not rows:
            return None
        facts = self._facts = dict(zip(names, rows[0], strict=True))
        self._model = self._last_model(db, conversation)
        parent = as_text(facts["parent_session_id"])
        message, started_by, call = conversation.partition(_STARTED_BY)
        title = as_text(facts["title"])
        return Conversation(
            SessionSpec(
                conversation,
                kind="subagent" if parent else "main",
                parent=parent,
                call_id=f"{message}/{call}" if parent and started_by else None,
                title=None if title in _UNNAMED else title,
                resume=() if parent else ("crush", "--session", conversation),
            ),
            project=self._project,
            project_rank=_BY_REGISTRY if self._project else 0,
            created_at=as_time(facts["created_at"]),
            updated_at=as_time(facts["updated_at"]),
        )

    @staticmethod
    def _last_model(db: Foreign, conversation: str) -> str | None:
        rows = db.rows(
            f"SELECT model FROM {_MESSAGES} WHERE session_id = ? AND role = 'assistant'"
            " AND model <> '' ORDER BY created_at DESC, rowid DESC LIMIT 1",
            (conversation,),
        )
        return as_text(rows[0][0]) if rows else None

    def listing(self, db: Foreign, conversation: str) -> list[Listed]:
        self._callers = {}
        found, answer = [], ""
        for name, role, changed in db.rows(
            f"SELECT id, role, updated_at FROM {_MESSAGES}"
            " WHERE session_id = ? AND typeof(id) = 'text' ORDER BY created_at, rowid",
            (conversation,),
        ):
            if role == "assistant":
                answer = name
            self._callers[name] = answer
            found.append(Listed(name, (changed, answer), as_time(changed)))
        if found and any(self._facts[name] for name in _HEAD[2:]):
            found.append(Listed(_USAGE, tuple(self._facts[name] for name in _HEAD[2:])))
        return found

    def fetch(
        self, db: Foreign, conversation: str, keys: Sequence[str]
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        columns = ["id", "role", "parts", "model", "created_at"]
        columns += [n for n in ("provider", "is_summary_message") if db.has(_MESSAGES, n)]
        query = f"SELECT {', '.join(columns)} FROM {_MESSAGES} WHERE id = ?"
        for row in db.many(query, [key for key in keys if key != _USAGE]):
            value = dict(zip(columns, row, strict=True))
            parts = decoded(value["parts"])
            if parts is None:
                parts = value["parts"] if isinstance(value["parts"], str) else []
            yield value["id"], {**value, "parts": parts, "caller": self._callers[value["id"]]}
        if _USAGE in keys:
            spent = {name: self._facts[name] for name in _HEAD[2:]}
            spent["cost"] = self._own_cost(db, conversation)
            yield _USAGE, {"usage": spent, "id": f"{conversation} {_USAGE}", "model": self._model}

    def _own_cost(self, db: Foreign, conversation: str) -> float:
        """Without that of subagents, which is added to their parent's."""
        rows = db.rows(
            "SELECT total(cost) FROM sessions WHERE parent_session_id = ? AND id NOT GLOB ?",
            (conversation, _TITLES + "*"),
        )
        cost = self._facts["cost"]
        return max(0.0, cost - rows[0][0]) if isinstance(cost, (int, float)) else 0.0

    def record(self, value: dict[str, Any]) -> Record:
        if "usage" not in value:
            return read_message(value)
        spent = value["usage"]
        record = Record("usage", native_id=value["id"], ts=as_time(self._facts["updated_at"]))
        record.model = as_text(value["model"])
        record.usage = Usage(
            message_id=value["id"],
            request_id=None,
            model=record.model,
            stop_reason=None,
            input_tokens=as_count(spent["prompt_tokens"]),
            output_tokens=as_count(spent["completion_tokens"]),
            cache_write_tokens=0,
            cache_write_1h_tokens=0,
            cache_read_tokens=0,
            cost_usd=round(spent["cost"], 9) if 0 < spent["cost"] < 1e6 else None,
        )
        return record
