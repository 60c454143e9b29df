"""What each model response used, once, however many lines and files repeat it."""

from __future__ import annotations

import json
from typing import Any

import apsw

from sessiond.sessions import Session, Sessions
from sessiond.slices import hash64
from sessiond.sources.base import Record, Usage

COLUMNS = (
    "session_id", "turn_id", "response_uid", "message_id", "request_id", "model", "ts",
    "stop_reason", "input_tokens", "output_tokens", "cache_write_tokens", "cache_write_1h_tokens",
    "cache_read_tokens", "web_searches", "service_tier", "speed", "cost_usd",
)  # fmt: skip


class UsageWriter:
    """Collects the best line of each response and writes it at the end of the transaction."""

    def __init__(self, db: apsw.Connection, sessions: Sessions) -> None:
        self._db = db
        self._sessions = sessions
        self._best: dict[int, tuple[Any, ...]] = {}  # by response

    def forget(self) -> None:
        self._best = {}

    def add(self, session: Session, turn_id: int, record: Record, usage: Usage) -> None:
        """One row per response: the line that ended it, else the one with the most output.

        Gateways reuse message ids, so one without a request id counts within its session.
        """
        if usage.message_id:
            key = f"{usage.message_id} {usage.request_id or session.native_id}"
        else:
            key = usage.request_id or record.native_id or f"{session.native_id} {turn_id}"
        response = hash64(key.encode("utf-8", "replace"))
        row = (
            session.id, turn_id, response, usage.message_id, usage.request_id, usage.model,
            record.ts, usage.stop_reason, usage.input_tokens, usage.output_tokens,
            usage.cache_write_tokens, usage.cache_write_1h_tokens, usage.cache_read_tokens,
            usage.web_searches, usage.service_tier, usage.speed, usage.cost_usd,
        )  # fmt: skip
        best = self._best.get(response)
        if best is None or _finality(row) >= _finality(best):
            self._best[response] = row

    def save(self) -> None:
        """Write the best lines unless the index has a better one, from whichever file."""
        for old in self._db.execute(
            f"SELECT {', '.join(COLUMNS)} FROM usage"
            " WHERE response_uid IN (SELECT value FROM json_each(?))",
            (json.dumps(list(self._best)),),
        ):
            new = self._best[old[2]]
            same_session = old[0] == new[0]
            older = self._sessions.by_id(old[0]).age() < self._sessions.by_id(new[0]).age()
            if (*_finality(old), not same_session and older) > (*_finality(new), False):
                del self._best[old[2]]
        self._db.executemany(
            f"INSERT INTO usage ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"
            " ON CONFLICT (response_uid) DO UPDATE SET"
            f" {', '.join(f'{c} = excluded.{c}' for c in COLUMNS if c != 'response_uid')}",
            self._best.values(),
        )
        self._best = {}


def _finality(row: tuple[Any, ...]) -> tuple[bool, int]:
    return row[COLUMNS.index("stop_reason")] is not None, row[COLUMNS.index("output_tokens")]
