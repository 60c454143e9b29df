"""What an agent recorded about the responses of a whole conversation: their model and their cost.

Which response a recorded cost was for is unknown, so the last one of its model has it. The result
depends only on the rows and on what is recorded, whatever was read first.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import apsw

from sessiond.engines.slices import hash64
from sessiond.prices.pricing import PRICED, Pricer
from sessiond.writing.sessions import Session

# A cost without a response: no tokens are known for any of its model.
_ALONE = (
    "message_id IS NULL AND request_id IS NULL AND input_tokens + output_tokens = 0"
    " AND cost_usd IS NOT NULL"
)
_ROWS = (
    f"SELECT id, {', '.join(PRICED)} FROM usage"
    " WHERE session_id = ? AND counted AND model IS ? ORDER BY ts, turn_id"
)
_PRICE = (
    "UPDATE usage SET model = ?, cost_usd = ?, cost_nano = ?, cost_source = ?, saved_nano = ?"
    " WHERE id = ?"
)
_ADD = (
    "INSERT INTO usage (session_id, turn_id, response_uid, model, ts, input_tokens, output_tokens,"
    " cache_write_tokens, cache_write_1h_tokens, cache_read_tokens, web_searches, sidechain)"
    " SELECT session_id, id, ?, ?, ts, 0, 0, 0, 0, 0, 0, ? FROM turns WHERE session_id = ?"
    " AND retired = 0 AND superseded = 0 ORDER BY role IS 'assistant' DESC, offset DESC LIMIT 1"
)


class Bills:
    """Collects what is recorded of conversations, and applies it before the commit."""

    def __init__(self, db: apsw.Connection, pricer: Pricer) -> None:
        self._db = db
        self._pricer = pricer
        self._known: dict[int, tuple[Session, str | None, dict[str, float]]] = {}

    def add(self, session: Session, model: str | None, costs: dict[str, float]) -> None:
        """The conversation's model, and dollars by model; an empty name is the conversation's."""
        if model or costs:
            self._known[session.id] = session, model, costs

    def apply(self) -> None:
        """Complete the usage of the collected sessions, which must be saved already."""
        for session, model, costs in self._known.values():
            totals: dict[str | None, float] = defaultdict(float)
            for name, dollars in costs.items():
                totals[name or model] += dollars
            self._db.execute(f"DELETE FROM usage WHERE session_id = ? AND {_ALONE}", (session.id,))
            for row_id, *values in self._rows(session, None) if model else ():
                self._price(row_id, values, model)
            for billed, total in totals.items():
                self._bill(session, billed, total)
        self._known = {}

    def _rows(self, session: Session, model: str | None) -> list[tuple[Any, ...]]:
        return list(self._db.execute(_ROWS, (session.id, model)))

    def _bill(self, session: Session, model: str | None, dollars: float) -> None:
        rows = self._rows(session, model)
        if not rows:
            name = f"{session.agent} {session.native_id} {session.home} {model}"
            uid = hash64(b"bill", name.encode("utf-8", "replace"))
            subagent = session.kind == "subagent"
            self._db.execute(_ADD, (uid, model, subagent, session.id))
            rows = self._rows(session, model)
        for number, (row_id, *values) in enumerate(rows, 1):
            self._price(row_id, values, model, dollars if number == len(rows) else 0.0)

    def _price(
        self, row_id: int, values: list[Any], model: str | None, dollars: float | None = None
    ) -> None:
        named = dict(zip(PRICED, values, strict=True)) | {"model": model}
        if dollars is not None:
            named["cost_usd"] = dollars
        cost = self._pricer.price([named[name] for name in PRICED])
        self._db.execute(_PRICE, (model, named["cost_usd"], *cost, row_id))
