"""How full context windows were, and when conversations were compacted."""

from __future__ import annotations

import apsw

from sess_schema import labels
from sess_schema.classes import dataclass, field
from sess_schema.patterns import later
from sess_schema.queries.sessions import title_for
from sess_schema.queries.stats import Stats, percentile
from sess_schema.queries.views import scope
from sess_schema.queries.views.capacity import window_of
from sess_schema.sums import MODEL

_TOKENS = later(r"(\d+)(?: to \d+)? tokens\)")


@dataclass(slots=True)
class Filled:
    """The prompts of one session or subagent."""

    session: str
    title: str | None
    model: str = "unknown"  # of the largest prompt
    recorded_window: int | None = None  # by the agent, for that prompt
    sizes: list[int] = field(default_factory=list)  # sorted
    compactions: list[int | None] = field(default_factory=list)  # tokens before each, where known

    @property
    def peak(self) -> int:
        return self.sizes[-1] if self.sizes else 0

    @property
    def window(self) -> int:
        return self.recorded_window or window_of(self.model, self.peak)

    def mark(self, percent: int) -> int:
        return percentile(self.sizes, percent) or 0


def read(db: apsw.Connection, asked: Stats) -> list[Filled]:
    """Every session and subagent that sent a prompt or was compacted, the fullest first."""
    found: dict[int, Filled] = {}
    wanted = scope.responses(db, asked)
    size = "u.input_tokens + u.cache_write_tokens + u.cache_read_tokens"
    for session, name, title, model, window, tokens in db.execute(
        f"SELECT u.session_id, s.native_id, s.title, {MODEL},"
        f" u.context_window, {size} AS size {wanted.sql} ORDER BY u.session_id, size",
        wanted.values,
    ):
        one = found.get(session)
        if one is None:
            one = found[session] = Filled(name, title)
        one.model, one.recorded_window = model, window
        one.sizes.append(tokens)
    compacted = scope.events(db, asked, joins="JOIN event_texts x ON x.id = e.id")
    for session, name, title, ts, text in db.execute(
        "SELECT s.id, s.native_id, s.title, e.ts,"
        f" substr(x.text, 1, 500) {compacted.sql}"
        f" AND e.label = '{labels.COMPACT}' AND e.type = 'system'"
        " ORDER BY e.ts, e.id",
        compacted.values,
    ):
        tokens = _TOKENS.search(text)
        before = int(tokens[1]) if tokens else _last_prompt(db, session, ts) or None
        found.setdefault(session, Filled(name, title)).compactions.append(before)
    for session, one in found.items():
        one.title = title_for(db, session, one.title)
    return sorted(found.values(), key=lambda one: (-one.peak, one.session))


def _last_prompt(db: apsw.Connection, session: int, ts: int | None) -> int | None:
    """The size of the last prompt before a compaction that does not record it."""
    found: int | None = db.execute(
        "SELECT u.input_tokens + u.cache_write_tokens + u.cache_read_tokens FROM usage u"
        " WHERE u.session_id = ? AND u.counted AND u.ts <= ? ORDER BY u.ts DESC LIMIT 1",
        (session, ts),
    ).get
    return found
