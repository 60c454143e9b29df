"""`sess statusline`: today, the five-hour window, the limits and the session, on one line.

Shell prompts and agents wait for it, so it reads only the rows it needs and loads no parser.
"""

from __future__ import annotations

import os
import select
import sys

from sess_cli import limits
from sess_cli.render import amounts
from sess_cli.render.tallies import money, short
from sess_common import times
from sess_common.classes import TYPE_CHECKING, dataclass, field
from sess_schema import shown
from sess_schema.queries.views import windows
from sess_schema.queries.views.windows import context_window

if TYPE_CHECKING:
    from typing import Any

    import apsw

_PATIENCE = 0.2  # seconds to wait for input on stdin
_LONGEST = 1 << 20
_LARGEST_CONTEXT = 1 << 40


@dataclass(slots=True)
class Spent:
    cost_nano: int = 0
    tokens: int = 0
    unpriced: int = 0

    @property
    def money(self) -> str:
        return money(self.cost_nano) + ("+" if self.unpriced else "")


@dataclass(slots=True)
class Status:
    now: int
    today: Spent
    window: windows.Window | None
    session: Spent | None = None
    context: int = 0  # tokens of its last prompt
    context_window: int = 0
    limits: list[limits.Limit] = field(default_factory=list)
    budget: windows.Budget | None = None
    spent: Spent = field(default_factory=Spent)  # of the budget

    def line(self) -> str:
        parts = [f"today {self.today.money}", f"{short(self.today.tokens)} tok"]
        if self.budget is not None:
            parts.insert(0 if self.exceeded else 2, self._budget_text(self.budget))
        if self.window is not None:
            left = amounts.duration(self.window.end - self.now)
            burn = self.window.per_minute(self.window.cost_nano)
            rate = f", {money(round(burn * 60))}/h" if burn else ""
            parts.append(f"5h window {money(self.window.cost_nano)}{rate}, {left} left")
        parts += [f"{limits.SHORT[limit.name]} {limit.text(self.now)}" for limit in self.limits]
        if self.session is not None:
            parts.append(f"session {self.session.money}")
            if self.context and self.context_window:
                share = 100 * self.context // self.context_window
                parts.append(f"context {short(self.context)} ({share}%)")
        return " · ".join(parts)

    @property
    def exceeded(self) -> bool:
        return self.budget is not None and self._used(self.budget) > self.budget.limit

    def _used(self, budget: windows.Budget) -> int:
        return self.spent.cost_nano if budget.money else self.spent.tokens

    def _budget_text(self, budget: windows.Budget) -> str:
        amount = money if budget.money else short
        used = f"{amount(self._used(budget))} of {amount(budget.limit)}/{budget.period}"
        return f"over budget: {used}" if self.exceeded else f"budget {used}"

    def _budget_facts(self, budget: windows.Budget) -> dict[str, Any]:
        scale = 1e9 if budget.money else 1
        return {
            "period": budget.period,
            "unit": "usd" if budget.money else "tokens",
            "limit": budget.limit / scale,
            "used": self._used(budget) / scale,
            "exceeded": self.exceeded,
        }

    def facts(self) -> dict[str, Any]:
        """One object; its keys are a public contract."""
        window = self.window
        return {
            "today": _facts(self.today),
            "window": None
            if window is None
            else {
                "start": times.iso(window.start),
                "end": times.iso(window.end),
                "cost_usd": window.cost_nano / 1e9,
                "tokens": window.tokens,
            },
            "session": None
            if self.session is None
            else {
                **_facts(self.session),
                "context_tokens": self.context,
                "context_window_tokens": self.context_window,
            },
            "limits": {limit.name: limit.facts() for limit in self.limits},
            "budget": None if self.budget is None else self._budget_facts(self.budget),
        }


def show(*, as_json: bool = False, budget: str | None = None) -> None:
    """Shows the index as it is, without a sync."""
    from contextlib import closing

    from sess_common import paths
    from sess_schema.connection import open_reader

    limit = windows.parse_budget(budget) if budget is not None else None
    payload = _payload_on_stdin()
    with closing(open_reader(paths.home().index_file)) as db, db:
        status = read(db, payload, limit)
    if as_json:
        from sess_cli.terminal import json_line

        json_line(status.facts())
    else:
        sys.stdout.write(status.line() + "\n")


def read(
    db: apsw.Connection,
    payload: dict[str, Any],
    budget: windows.Budget | None = None,
    now: int | None = None,
) -> Status:
    now = times.now_ms() if now is None else now
    midnight, _ = windows.period_bounds("day", now, None)
    status = Status(now, _spent(db, "u.ts >= ?", midnight), windows.current_window(db, now))
    status.limits = limits.current(limits.handed(payload, now), now)
    if budget is not None:
        start, _ = windows.period_bounds(budget.period, now, None)
        status.budget, status.spent = budget, _spent(db, "u.ts >= ?", start)
    session = payload.get("session_id")
    key = _key(db, session) if isinstance(session, str) else None
    if key is not None:
        status.session = _spent(db, f"u.session_id IN ({shown.FAMILY})", key)
        for model, window, size in db.execute(
            "SELECT coalesce(u.model, ''), u.context_window, u.input_tokens + u.cache_write_tokens"
            " + u.cache_read_tokens FROM usage u WHERE u.session_id = ? AND u.counted"
            " AND u.sum_of = 1 ORDER BY u.ts DESC LIMIT 1",
            (key,),
        ):
            status.context = size
            told = _context_window(payload)
            status.context_window = told or window or context_window(model, size)
    return status


def _context_window(payload: dict[str, Any]) -> int:
    """The size of the context according to the agent; 0 if it does not tell."""
    told = payload.get("context_window")
    size = told.get("context_window_size") if isinstance(told, dict) else None
    return size if isinstance(size, int) and 0 < size < _LARGEST_CONTEXT else 0


def _spent(db: apsw.Connection, where: str, value: int) -> Spent:
    for row in db.execute(
        "SELECT coalesce(sum(u.cost_nano), 0), coalesce(sum(u.input_tokens + u.output_tokens"
        " + u.cache_write_tokens + u.cache_read_tokens), 0), coalesce(sum(u.cost_nano IS NULL), 0)"
        f" FROM usage u WHERE {where} AND u.counted",
        (value,),
    ):
        return Spent(*row)
    return Spent()


def _key(db: apsw.Connection, session: str) -> int | None:
    key: int | None = db.execute(
        "SELECT id FROM sessions WHERE native_id = ? AND records > 0 ORDER BY home <> '' LIMIT 1",
        (session,),
    ).get
    return key


def _payload_on_stdin() -> dict[str, Any]:
    """Claude Code passes its status line JSON: the session, its context, and the limits."""
    if sys.stdin is None or sys.stdin.isatty():
        return {}
    try:
        if not select.select([sys.stdin], [], [], _PATIENCE)[0]:
            return {}
        raw = b""
        while len(raw) < _LONGEST and (more := os.read(sys.stdin.fileno(), 1 << 16)):
            raw += more
    except (OSError, ValueError):
        return {}
    import json

    try:
        payload = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return payload if isinstance(payload, dict) else {}


def _facts(spent: Spent) -> dict[str, Any]:
    return {
        "cost_usd": spent.cost_nano / 1e9,
        "tokens": spent.tokens,
        "unpriced_requests": spent.unpriced,
    }
