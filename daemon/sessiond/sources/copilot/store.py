"""What each request used: Copilot keeps it in a database of all sessions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import orjson

from sessiond.families.copilot.results import usage_of
from sessiond.sourcekit.base import Conversation, Item, Record, SessionSpec
from sessiond.sourcekit.values import as_count, as_text, as_time

if TYPE_CHECKING:
    from sessiond.sourcekit.foreign import Foreign
    from sessiond.sourcekit.known_rows import KnownRows

_TABLE = "assistant_usage_events"
_COLUMNS = (
    *("id", "session_id", "model", "created_at", "input_tokens", "cache_read_tokens"),
    *("cache_write_tokens", "output_tokens", "reasoning_tokens"),
)


class Store:
    """Reads the rows that were added since the last time; they are never changed."""

    def conversations(
        self,
        foreign: Foreign,
        known: KnownRows,  # noqa: ARG002 - ids only grow
        state: dict[str, Any],
    ) -> Iterator[Conversation]:
        if not foreign.has_table(_TABLE):
            return
        present = {name for _, name, *_ in foreign.rows(f"PRAGMA table_info({_TABLE})")}
        if not {"id", "session_id"} <= present:
            return
        chosen = ", ".join(name if name in present else "NULL" for name in _COLUMNS)
        last = as_count(state.get("last"))
        added: dict[str, list[Item]] = {}
        for row in foreign.rows(
            f"SELECT {chosen} FROM {_TABLE} WHERE id > ? AND typeof(id) = 'integer' ORDER BY id",
            (last,),
        ):
            fields = dict(zip(_COLUMNS, row, strict=True))
            last = max(last, fields["id"])
            if session := as_text(fields["session_id"]):
                added.setdefault(session, []).append(_item(session, fields))
        for session, items in added.items():
            yield self._conversation(foreign, session, items)
        state["last"] = last

    def _conversation(self, foreign: Foreign, session: str, items: list[Item]) -> Conversation:
        keys = foreign.rows(f"SELECT id FROM {_TABLE} WHERE session_id = ? ORDER BY id", (session,))
        project = None
        if foreign.has_table("sessions"):
            found = foreign.rows("SELECT cwd FROM sessions WHERE id = ?", (session,))
            project = next((as_text(cwd) for (cwd,) in found), None)
        return Conversation(
            SessionSpec(session, resume=("copilot", "--resume", session)),
            order=[f"{session}/{number}" for (number,) in keys],
            items=items,
            project=project,
            project_rank=1 if project else 0,
        )


def _item(session: str, fields: dict[str, Any]) -> Item:
    number = fields["id"]
    record = Record("usage", native_id=f"{session}/usage/{number}")
    record.ts, record.model = as_time(fields["created_at"]), as_text(fields["model"])
    record.usage = usage_of(
        record.native_id or "",
        record.model,
        [fields[name] for name in ("input_tokens", "cache_read_tokens", "cache_write_tokens")],
        fields["output_tokens"],
        fields["reasoning_tokens"],
    )
    raw = orjson.dumps({name: value for name, value in fields.items() if not _is_bytes(value)})
    return Item(f"{session}/{number}", number, raw=raw, record=record)


def _is_bytes(value: Any) -> bool:
    return isinstance(value, bytes)
