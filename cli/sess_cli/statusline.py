"""`sess statusline`: today, the five-hour window and the session, on one line.

Shell prompts and agents wait for it, so it reads only the rows it needs and loads no parser.
"""

from __future__ import annotations

import os
import select
import sys

from sess_cli.render import amounts
from sess_cli.render.tallies import money, short
from sess_common import times
from sess_common.classes import TYPE_CHECKING, dataclass
from sess_schema import shown
from sess_schema.queries.views import windows
from sess_schema.queries.views.windows import context_window

if TYPE_CHECKING:
    from typing import Any

    import apsw

_PATIENCE = 0.2  # seconds to wait for input on stdin
_LONGEST = 1 << 20


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

    def line(self) -> str:
        parts = [f"today {self.today.money}", f"{short(self.today.tokens)} tok"]
        if self.window is not None:
            left = amounts.duration(self.window.end - self.now)
            burn = self.window.per_minute(self.window.cost_nano)
            rate = f", {money(round(burn * 60))}/h" if burn else ""
            parts.append(f"5h window {money(self.window.cost_nano)}{rate}, {left} left")
        if self.session is not None:
            parts.append(f"session {self.session.money}")
            if self.context:
                share = 100 * self.context // self.context_window
                parts.append(f"context {short(self.context)} ({share}%)")
        return " · ".join(parts)

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
        }


def show(*, as_json: bool = False) -> None:
    """Shows the index as it is, without a sync."""
    from contextlib import closing

    from sess_common import paths
    from sess_schema.connection import open_reader

    session = _session_on_stdin()
    with closing(open_reader(paths.home().index_file)) as db, db:
        status = read(db, session)
    if as_json:
        from sess_cli.terminal import json_line

        json_line(status.facts())
    else:
        sys.stdout.write(status.line() + "\n")


def read(db: apsw.Connection, session: str | None, now: int | None = None) -> Status:
    now = times.now_ms() if now is None else now
    midnight, _ = windows.period_bounds("day", now, None)
    status = Status(now, _spent(db, "u.ts >= ?", midnight), windows.current_window(db, now))
    key = _key(db, session) if session else None
    if key is not None:
        status.session = _spent(db, f"u.session_id IN ({shown.FAMILY})", key)
        for model, window, size in db.execute(
            "SELECT coalesce(u.model, ''), u.context_window, u.input_tokens + u.cache_write_tokens"
            " + u.cache_read_tokens FROM usage u WHERE u.session_id = ? AND u.counted"
            " AND u.sum_of = 1 ORDER BY u.ts DESC LIMIT 1",
            (key,),
        ):
            status.context, status.context_window = size, window or context_window(model, size)
    return status


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


def _session_on_stdin() -> str | None:
    """Claude Code passes its status line JSON with the session id."""
    if sys.stdin is None or sys.stdin.isatty():
        return None
    try:
        if not select.select([sys.stdin], [], [], _PATIENCE)[0]:
            return None
        raw = b""
        while len(raw) < _LONGEST and (more := os.read(sys.stdin.fileno(), 1 << 16)):
            raw += more
    except (OSError, ValueError):
        return None
    import json

    try:
        payload = json.loads(raw)
    except ValueError:
        return None
    session = payload.get("session_id") if isinstance(payload, dict) else None
    return session if isinstance(session, str) else None


def _facts(spent: Spent) -> dict[str, Any]:
    return {
        "cost_usd": spent.cost_nano / 1e9,
        "tokens": spent.tokens,
        "unpriced_requests": spent.unpriced,
    }
