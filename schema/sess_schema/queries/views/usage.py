"""The prompt cache and what it saved; how full context windows were, and when compacted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import apsw

from sess_common import times
from sess_common.classes import dataclass, field, later
from sess_schema import labels, marks
from sess_schema.ids import SessionId
from sess_schema.queries.sessions import title_for
from sess_schema.queries.stats import Stats, percentile
from sess_schema.queries.views import parts, scope
from sess_schema.queries.views.windows import context_window
from sess_schema.sums import MODEL, Tally

EXPIRED_PART = "expired"
_SHORT, _LONG = 5 * times.MINUTE, times.HOUR
CONTEXT_PART = "context"
_TOKENS = later(r"(\d+)(?: to \d+)? tokens\)")


@dataclass(slots=True)
class Cached(Tally):
    """The prompts of one model."""

    expired: int = 0  # prompts rewritten because their cache entry had expired
    expired_tokens: int = 0

    @property
    def prompt_tokens(self) -> int:
        return self.input_tokens + self.cache_write_tokens + self.cache_read_tokens

    @property
    def hit_ratio(self) -> float | None:
        return self.cache_read_tokens / self.prompt_tokens if self.prompt_tokens else None


@dataclass(slots=True)
class Caching:
    models: dict[str, Cached] = field(default_factory=dict)  # those that saved most first
    total: Cached = field(default_factory=Cached)


def read_cache(db: apsw.Connection, asked: Stats) -> Caching:
    caching = Caching()
    groups = asked.groups(db, "model")
    for model in sorted(groups, key=lambda name: (-groups[name].saved_nano, name)):
        if groups[model].requests:
            caching.models[model] = Cached()
            for cached in (caching.models[model], caching.total):
                cached.add(groups[model])
    for _, expired in parts.of(db, asked, EXPIRED_PART, expired_by_session):
        for model, count, tokens in expired:
            for cached in (caching.models[model], caching.total):
                cached.expired += count
                cached.expired_tokens += tokens
    return caching


def expired_by_session(db: apsw.Connection, asked: Stats) -> parts.Counted:
    """Of each model: prompts whose cache entry had expired, and their tokens."""
    expired: dict[int, dict[str, list[int]]] = {}
    for session, model, tokens in _expired(db, scope.responses(db, asked)):
        sums = expired.setdefault(session, {}).setdefault(model, [0, 0])
        sums[0] += 1
        sums[1] += tokens
    for session, models in expired.items():
        yield session, {EXPIRED_PART: [[model, *models[model]] for model in sorted(models)]}


def _expired(db: apsw.Connection, wanted: scope.Scope) -> Iterator[tuple[int, str, int]]:
    """Prompts that were mostly written, after a pause longer than the cache lifetime.

    The lifetime is what the last write before the pause requested: five minutes or an hour.
    """
    for session, ts, model, written in db.execute(
        f"SELECT u.session_id, u.ts, {MODEL}, u.cache_write_tokens {wanted.sql}"
        " AND u.ts IS NOT NULL AND 2 * u.cache_write_tokens >"
        " u.input_tokens + u.cache_write_tokens + u.cache_read_tokens",
        wanted.values,
    ):
        before = db.execute(
            "SELECT max(ts), (SELECT w.cache_write_1h_tokens FROM usage w WHERE w.session_id = ?1"
            " AND w.counted AND w.ts < ?2 AND w.cache_write_tokens > 0 ORDER BY w.ts DESC LIMIT 1)"
            " FROM usage WHERE session_id = ?1 AND counted AND ts < ?2",
            (session, ts),
        ).fetchone()
        if before is None or before[0] is None or before[1] is None:
            continue  # the first prompt of a session, or nothing was cached before
        if ts - before[0] > (_LONG if before[1] else _SHORT):
            yield session, model, written


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
        return self.recorded_window or context_window(self.model, self.peak)


def read_context(db: apsw.Connection, asked: Stats) -> list[Filled]:
    """Every session and subagent that sent a prompt or was compacted, the fullest first."""
    names = {
        key: (name, title)
        for key, name, title in db.execute(
            f"SELECT s.id, s.native_id, {marks.title()} FROM sessions s"
        )
    }
    contexts = [
        Filled(names[session][0], title_for(db, SessionId(session), names[session][1]), *filled)
        for session, filled in parts.of(db, asked, CONTEXT_PART, context_by_session)
    ]
    return sorted(contexts, key=lambda filled: (-filled.peak, filled.session))


def context_by_session(db: apsw.Connection, asked: Stats) -> parts.Counted:
    """The columns of `Filled` that follow the title."""
    sizes: dict[SessionId, list[int]] = {}
    largest: dict[SessionId, list[Any]] = {}  # model and window of the largest prompt
    wanted = scope.responses(db, asked)
    size = "u.input_tokens + u.cache_write_tokens + u.cache_read_tokens"
    for session, model, window, tokens in db.execute(
        f"SELECT s.id, {MODEL}, u.context_window, {size} AS size {wanted.sql} AND u.sum_of = 1"
        " ORDER BY s.id, size",
        wanted.values,
    ):
        largest[session] = [model, window]
        sizes.setdefault(session, []).append(tokens)
    compactions: dict[SessionId, list[int | None]] = {}
    compacted = scope.events(db, asked, joins="JOIN event_texts x ON x.id = e.id")
    for session, ts, text in db.execute(
        f"SELECT s.id, e.ts, substr(x.text, 1, 500) {compacted.sql}"
        f" AND e.label = '{labels.COMPACT}' AND e.type = 'system' ORDER BY e.ts, e.id",
        compacted.values,
    ):
        recorded = _TOKENS.search(text)
        before = int(recorded[1]) if recorded else _last_prompt(db, session, ts) or None
        compactions.setdefault(session, []).append(before)
    for session in sorted(sizes.keys() | compactions.keys()):
        sent = sizes.get(session, [])
        counts = [len(sent), sent[-1] if sent else 0, percentile(sent, 90) or 0]
        used = largest.get(session, ["unknown", None])
        yield session, {CONTEXT_PART: [*used, *counts, compactions.get(session, [])]}


def _last_prompt(db: apsw.Connection, session: SessionId, ts: int | None) -> int | None:
    """The size of the last prompt before a compaction that does not record it."""
    size: int | None = db.execute(
        "SELECT u.input_tokens + u.cache_write_tokens + u.cache_read_tokens FROM usage u"
        " WHERE u.session_id = ? AND u.counted AND u.sum_of = 1 AND u.ts <= ?"
        " ORDER BY u.ts DESC LIMIT 1",
        (session, ts),
    ).get
    return size
