"""How full context windows were, and when conversations were compacted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import apsw

from sess_common.patterns import later
from sess_schema import labels
from sess_schema.ids import SessionId
from sess_schema.queries.sessions import title_for
from sess_schema.queries.stats import Stats, percentile
from sess_schema.queries.views import parts, scope
from sess_schema.queries.views.capacity import window_of
from sess_schema.queries.views.parts import Counted
from sess_schema.sums import MODEL

PART = "context"
_TOKENS = later(r"(\d+)(?: to \d+)? tokens\)")


@dataclass(slots=True)
class Filled:
    """The prompts of one session or subagent."""

    session: str
    title: str | None
    model: str = "unknown"  # of the largest prompt
    recorded_window: int | None = None  # by the agent, for that prompt
    requests: int = 0
    peak: int = 0  # tokens of the largest prompt
    p90: int = 0
    compactions: list[int | None] = field(default_factory=list)  # tokens before each, where known

    @property
    def window(self) -> int:
        return self.recorded_window or window_of(self.model, self.peak)


def read(db: apsw.Connection, asked: Stats) -> list[Filled]:
    """Every session and subagent that sent a prompt or was compacted, the fullest first."""
    names = {
        key: (name, title)
        for key, name, title in db.execute("SELECT id, native_id, title FROM sessions")
    }
    found = [
        Filled(names[session][0], title_for(db, SessionId(session), names[session][1]), *filled)
        for session, filled in parts.of(db, asked, PART, by_session)
    ]
    return sorted(found, key=lambda one: (-one.peak, one.session))


def by_session(db: apsw.Connection, asked: Stats) -> Counted:
    """The columns of `Filled` that follow the title."""
    sizes: dict[SessionId, list[int]] = {}
    found: dict[SessionId, list[Any]] = {}
    wanted = scope.responses(db, asked)
    size = "u.input_tokens + u.cache_write_tokens + u.cache_read_tokens"
    for session, model, window, tokens in db.execute(
        f"SELECT s.id, {MODEL}, u.context_window, {size} AS size {wanted.sql} ORDER BY s.id, size",
        wanted.values,
    ):
        found[session] = [model, window]
        sizes.setdefault(session, []).append(tokens)
    compactions: dict[SessionId, list[int | None]] = {}
    compacted = scope.events(db, asked, joins="JOIN event_texts x ON x.id = e.id")
    for session, ts, text in db.execute(
        f"SELECT s.id, e.ts, substr(x.text, 1, 500) {compacted.sql}"
        f" AND e.label = '{labels.COMPACT}' AND e.type = 'system' ORDER BY e.ts, e.id",
        compacted.values,
    ):
        known = _TOKENS.search(text)
        before = int(known[1]) if known else _last_prompt(db, session, ts) or None
        compactions.setdefault(session, []).append(before)
    for session in sorted(sizes.keys() | compactions.keys()):
        sent = sizes.get(session, [])
        counts = [len(sent), sent[-1] if sent else 0, percentile(sent, 90) or 0]
        model = found.get(session, ["unknown", None])
        yield session, {PART: [*model, *counts, compactions.get(session, [])]}


def _last_prompt(db: apsw.Connection, session: SessionId, ts: int | None) -> int | None:
    """The size of the last prompt before a compaction that does not record it."""
    found: int | None = db.execute(
        "SELECT u.input_tokens + u.cache_write_tokens + u.cache_read_tokens FROM usage u"
        " WHERE u.session_id = ? AND u.counted AND u.ts <= ? ORDER BY u.ts DESC LIMIT 1",
        (session, ts),
    ).get
    return found
