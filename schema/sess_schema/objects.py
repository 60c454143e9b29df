"""What JSON output consists of: one shape for each kind of object. docs/json.md describes them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from sess_schema import times

if TYPE_CHECKING:
    from sess_schema.numbers import Numbers
    from sess_schema.queries.neighbours import Neighbour
    from sess_schema.queries.search import Hit
    from sess_schema.queries.sessions import SessionRow
    from sess_schema.queries.tally import Tally


class Said(Protocol):
    """An event as the index has it, or without its secrets."""

    @property
    def ts(self) -> int | None: ...
    @property
    def type(self) -> str: ...
    @property
    def label(self) -> str | None: ...
    @property
    def tool(self) -> str | None: ...
    @property
    def summary(self) -> str | None: ...
    @property
    def output(self) -> str: ...
    @property
    def status(self) -> str | None: ...
    @property
    def unjoined(self) -> str | None: ...
    @property
    def call_kind(self) -> str | None: ...
    @property
    def duration_ms(self) -> int | None: ...
    @property
    def text(self) -> str: ...


def event(
    said: Said,
    given: Any,
    *,
    key: str,
    images: int,
    files: Sequence[Mapping[str, str]] = (),
    subagent: str | None = None,
    copied_from: str | None = None,
) -> dict[str, Any]:
    """One event; `given` is the input of a call as the agent wrote it."""
    called = said.type == "tool_use"
    return {
        "event": key,
        "ts": times.iso(said.ts),
        "type": said.type,
        "label": said.label,
        "tool": said.tool,
        "kind": said.call_kind,
        "summary": said.summary or None,
        "input": given if called else None,
        "output": said.output if called else None,
        "status": said.status,
        "unjoined": said.unjoined,
        "duration_ms": said.duration_ms,
        "text": said.text,
        "files": [*files],
        "images": images,
        "subagent": subagent,
        "copied_from": copied_from,
    }


def session(row: SessionRow, title: str, numbers: Numbers) -> dict[str, Any]:
    """One session with its numbers."""
    return {
        "session": row.session,
        "agent": row.agent,
        "kind": row.kind,
        "agent_type": row.agent_type,
        "parent": row.parent,
        "project": row.project,
        "title": title,
        "git_branch": row.git_branch,
        "models": json.loads(row.models),
        "agent_version": row.version,
        "mode": row.mode,
        "source": row.source,
        "source_gone": bool(row.source_gone),
        "started": times.iso(row.started),
        "ended": times.iso(row.ended),
        "duration_ms": numbers.duration_ms,
        **times_of(numbers.active_ms, numbers.user_ms),
        "events": numbers.events,
        **sums(numbers.total),
    }


def times_of(active: int, user: int) -> dict[str, int]:
    """Whose time it was."""
    return {"active_ms": active, "agent_ms": active - user, "user_ms": user}


def group(name: str, tally: Tally) -> dict[str, Any]:
    """One group of statistics."""
    return {"group": name, **sums(tally), "sessions": len(tally.sessions)}


def sums(tally: Tally) -> dict[str, Any]:
    """What was used, paid and done."""
    return {
        "input_tokens": tally.input_tokens,
        "output_tokens": tally.output_tokens,
        "cache_write_tokens": tally.cache_write_tokens,
        "cache_write_1h_tokens": tally.cache_write_1h_tokens,
        "cache_read_tokens": tally.cache_read_tokens,
        "cost_usd": tally.cost_nano / 1e9,
        "cost_nano_usd": tally.cost_nano,
        "unpriced_requests": tally.unpriced,
        "requests": tally.requests,
        "prompts": tally.prompts,
        "tool_calls": tally.tool_calls,
        "tool_errors": tally.tool_errors,
        "tool_denied": tally.tool_denied,
    }


def hit(found: Hit, key: str, path: str | None, line: int | None) -> dict[str, Any]:
    """One hit of a search: the event, and where its best match is."""
    return {
        "session": found.session,
        "agent": found.agent,
        "project": found.project,
        "title": found.title,
        "parent": found.parent,
        "event": key,
        "ts": times.iso(found.ts),
        "type": found.type,
        "label": found.label,
        "tool": found.tool,
        "status": found.status,
        "snippet": found.snippet.text,
        "matches": [list(span) for span in found.snippet.spans],
        "field": found.field,
        "offsets": [list(span) for span in found.snippet.offsets],
        "path": path,
        "line": line,
        "score": float(f"{found.score:.10g}"),
        "superseded": bool(found.retired),
    }


def neighbour(beside: Neighbour, key: str) -> dict[str, Any]:
    """An event beside a hit, in short."""
    return {
        "event": key,
        "ts": times.iso(beside.ts),
        "type": beside.type,
        "tool": beside.tool,
        "status": beside.status,
        "text": beside.text,
    }
