"""The tables of a conversation's database: steps, and what each generation used."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sessiond.engines.tables import Layout, Listed, Table
from sessiond.sourcekit.base import Conversation, Record, SessionSpec
from sessiond.sourcekit.folders import of_uri
from sessiond.sourcekit.foreign import Foreign, fingerprint
from sessiond.sources.antigravity.steps import counts, decode_step, read_step, usage_of
from sessiond.sources.antigravity.wire import Message

_STEPS, _GENERATIONS, _ABOUT = "steps", "gen_metadata", "trajectory_metadata_blob"
_GENERATION = "gen-"
_COLUMNS = ("step_type", "status", "step_payload", "error_details")


class AntigravityTables(Layout):
    """A database has one conversation and is named after it."""

    def __init__(self, resume: tuple[str, ...]) -> None:
        self._resume = resume
        self._name = ""

    def tables(self, db: Foreign) -> Sequence[Table]:  # noqa: ARG002 - no column names it
        return ()

    def heads(self, db: Foreign) -> Iterable[tuple[str, Any]]:
        if db.has_table(_STEPS):
            self._name = os.path.splitext(os.path.basename(db.path))[0]
            yield self._name, fingerprint(db.path)

    def whole(self, db: Foreign, conversation: str) -> Conversation | None:
        about = Message(_first(db, f"SELECT data FROM {_ABOUT}") if db.has_table(_ABOUT) else b"")
        folder = about.message(1)
        project = of_uri(folder.text(1)) or of_uri(about.text(7))
        model = None
        for (data,) in self._generations(db, "data", "ORDER BY idx DESC LIMIT 1"):
            model = _model(Message(data).message(1))
        return Conversation(
            SessionSpec(
                conversation,
                resume=(*self._resume, conversation) if self._resume else (),
            ),
            project=project,
            project_rank=1 if project else 0,
            git_branch=folder.text(4) or None,
            model=model,
            created_at=about.time(2),
        )

    @staticmethod
    def _generations(db: Foreign, columns: str, more: str) -> list[tuple[Any, ...]]:
        there = db.has_table(_GENERATIONS)
        return db.rows(f"SELECT {columns} FROM {_GENERATIONS} {more}") if there else []

    def listing(self, db: Foreign, conversation: str) -> list[Listed]:  # noqa: ARG002
        """What changes in a step also changes the times in its metadata."""
        mark = "idx, step_type, status, length(step_payload), length(error_details), metadata"
        steps = db.rows(f"SELECT {mark} FROM {_STEPS} ORDER BY idx")
        made = self._generations(db, "idx, length(data)", "ORDER BY idx")
        return [Listed(str(idx), tuple(facts)) for idx, *facts in steps] + [
            Listed(f"{_GENERATION}{idx}", tuple(facts)) for idx, *facts in made
        ]

    def fetch(
        self,
        db: Foreign,
        conversation: str,  # noqa: ARG002
        keys: Sequence[str],
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        steps = [int(key) for key in keys if not key.startswith(_GENERATION)]
        query = f"SELECT idx, {', '.join(_COLUMNS)} FROM {_STEPS} WHERE idx = ?"
        for idx, kind, status, payload, errors in db.many(query, steps):
            yield str(idx), decode_step(idx, kind, status, payload, errors)
        made = [int(key.removeprefix(_GENERATION)) for key in keys if key.startswith(_GENERATION)]
        for idx, data in db.many(f"SELECT idx, data FROM {_GENERATIONS} WHERE idx = ?", made):
            yield f"{_GENERATION}{idx}", _generation(idx, Message(data).message(1))

    def record(self, value: dict[str, Any]) -> Record:
        if "type" in value:
            return read_step(self._name, value)
        name = f"{self._name}/{_GENERATION}{value['generation']}"
        record = Record("generation", native_id=name, ts=value["at"], model=value["model"])
        record.usage = usage_of(name, value["usage"], record.model, 0)
        return record


def _first(db: Foreign, query: str) -> bytes:
    rows = db.rows(f"{query} LIMIT 1")
    return rows[0][0] if rows and isinstance(rows[0][0], bytes) else b""


def _model(chat: Message) -> str | None:
    name = chat.text(19) or chat.text(22) or chat.text(21)
    number = chat.number(3)
    return name.strip() or (f"model-{number}" if number else None)


def _generation(idx: int, chat: Message) -> dict[str, Any]:
    """What a response used, with the attempts that failed before it."""
    used = chat.message(4)
    spent, seen = counts(used), {_response(used)}
    for attempt in (one.message(2) for one in chat.messages(17)):
        if any(counts(attempt)) and (not any(spent) or _response(attempt) not in seen):
            seen.add(_response(attempt))
            spent = [mine + more for mine, more in zip(spent, counts(attempt), strict=True)]
    at = chat.message(9).time(4)
    return {"generation": idx, "model": _model(chat), "usage": spent, "at": at}


def _response(used: Message) -> str:
    """What tells a response from others; its counts if it has no id."""
    return used.text(11) or used.text(12) or used.text(7) or repr(counts(used))
