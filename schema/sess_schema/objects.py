"""The objects of JSON output, one definition each. docs/json.md describes them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sess_common import times

if TYPE_CHECKING:
    from sess_schema.marks import Marks
    from sess_schema.numbers import Numbers
    from sess_schema.queries.failures.similar import Similar
    from sess_schema.queries.recall import Place
    from sess_schema.queries.search import Hit
    from sess_schema.queries.sessions import SessionRow
    from sess_schema.queries.transcripts import Record, Transcript
    from sess_schema.session import Entry
    from sess_schema.sums import Tally


_PREVIEW = 120  # characters of a record


# What `event` copies as it is, and what that is in an exported table.
EVENT_COLUMNS: dict[str, type] = {
    "ts_from": str,
    "type": str,
    "label": str,
    "tool": str,
    "kind": str,
    "status": str,
    "unjoined": str,
    "duration_ms": int,
}


def event(
    entry: Entry,
    given: Any,
    *,
    key: str,
    images: int,
    files: Sequence[Mapping[str, str]] = (),
    subagent: str | None = None,
    copied_from: str | None = None,
) -> dict[str, Any]:
    """One event; `given` is the input of a call as the agent wrote it."""
    called = entry.type == "tool_use"
    return {
        "event": key,
        "ts": times.iso(entry.ts),
        **{name: getattr(entry, name) for name in EVENT_COLUMNS},
        "summary": entry.summary or None,
        "text": entry.text,
        "input": given if called else None,
        "output": entry.output if called else None,
        "files": [*files],
        "images": images,
        "subagent": subagent,
        "copied_from": copied_from,
    }


def record(row: Record, transcript: Transcript) -> dict[str, Any]:
    """One record of a transcript, with its calls and results."""
    return {
        **record_fields(row),
        "calls": [{"id": call.id or None, "tool": call.tool} for call in row.calls],
        "results": [{"id": call.id or None, "tool": call.tool} for call in row.results],
        "answered_by": sorted(transcript.answers[row.number]),
        "answers": sorted(transcript.callers[row.number]),
    }


def record_fields(row: Record) -> dict[str, Any]:
    return {
        "number": row.number,
        "record": row.id,
        "parent": row.parent_id,
        "role": row.role,
        "kind": row.kind,
        "ts": times.iso(row.ts),
        "tokens": row.tokens,
        "preview": _shortened(row.preview),
    }


def _shortened(text: str) -> str:
    return text if len(text) <= _PREVIEW else text[: _PREVIEW - 3] + "..."


def session(row: SessionRow, title: str, numbers: Numbers, marks: Marks) -> dict[str, Any]:
    """One session with its numbers."""
    return {
        "session": row.session,
        "agent": row.agent,
        "kind": row.kind,
        "agent_type": row.agent_type,
        "parent": row.parent,
        "project": row.project,
        "project_from": row.project_from,
        "title": title,
        "labels": marks.labels(row.key),
        "pinned": marks.is_pinned(row.key),
        "git_branch": row.git_branch,
        "models": json.loads(row.models),
        "agent_version": row.version,
        "mode": row.mode,
        "source": row.source,
        "source_gone": bool(row.source_gone),
        "started": times.iso(row.started),
        "ended": times.iso(row.ended),
        "time_from": row.time_from,
        "duration_ms": numbers.duration_ms,
        **times_of(numbers.active_ms, numbers.user_ms),
        "events": numbers.events,
        **sums(numbers.total),
    }


def times_of(active: int, user: int) -> dict[str, int]:
    """The active time and how it divides."""
    return {"active_ms": active, "agent_ms": active - user, "user_ms": user}


def group(name: str, tally: Tally) -> dict[str, Any]:
    """One group of statistics."""
    return {"group": name, **sums(tally), **sessions_of(tally)}


def sessions_of(tally: Tally) -> dict[str, int]:
    """How many sessions that are listed, and how many others."""
    return {"sessions": len(tally.sessions), "other_sessions": len(tally.others)}


def sums(tally: Tally) -> dict[str, Any]:
    """Tokens, cost and counts."""
    return {
        "input_tokens": tally.input_tokens,
        "output_tokens": tally.output_tokens,
        "cache_write_tokens": tally.cache_write_tokens,
        "cache_write_1h_tokens": tally.cache_write_1h_tokens,
        "cache_read_tokens": tally.cache_read_tokens,
        "reasoning_tokens": tally.reasoning_tokens,
        "cost_usd": tally.cost_nano / 1e9,
        "cost_nano_usd": tally.cost_nano,
        "unpriced_requests": tally.unpriced,
        "requests": tally.requests,
        "prompts": tally.prompts,
        "tool_calls": tally.tool_calls,
        "tool_errors": tally.tool_errors,
        "tool_denied": tally.tool_denied,
    }


def hit(match: Hit, key: str, path: str | None, line: int | None) -> dict[str, Any]:
    """One search hit: the event, and where its best match is."""
    return {
        "session": match.session,
        "agent": match.agent,
        "project": match.project,
        "title": match.title,
        "parent": match.parent,
        "event": key,
        "ts": times.iso(match.ts),
        "ts_from": match.ts_from,
        "type": match.type,
        "label": match.label,
        "tool": match.tool,
        "status": match.status,
        "snippet": match.snippet.text,
        "matches": [list(span) for span in match.snippet.spans],
        "field": match.field,
        "offsets": [list(span) for span in match.snippet.offsets],
        "path": path,
        "line": line,
        "score": float(f"{match.score:.10g}"),
        "superseded": bool(match.retired),
        "tier": match.tier,
    }


def place(one: Place, *, found: bool, known: Similar | None = None) -> dict[str, Any]:
    """A place that may answer a question; `found` and `known` are of the whole answer."""
    error = known and {
        "times": known.times,
        "sessions": known.sessions,
        "last": times.iso(known.last.ts) if known.last else None,
        "never_solved": known.never_solved,
    }
    return {
        "session": one.session,
        "agent": one.agent,
        "project": one.project,
        "title": one.title,
        "parent": one.parent,
        "event": one.key,
        "ts": times.iso(one.ts),
        "type": one.type,
        "quote": one.quote,
        "answer": one.answer,
        "outcome": one.outcome,
        "score": float(f"{one.score:.10g}"),
        "confidence": round(one.confidence, 4),
        "found": found,
        "error": error,
    }


def neighbour(beside: Entry, key: str, words: str) -> dict[str, Any]:
    """An event next to a hit, abridged."""
    return {
        "event": key,
        "ts": times.iso(beside.ts),
        "ts_from": beside.ts_from,
        "type": beside.type,
        "tool": beside.tool,
        "status": beside.status,
        "text": words,
    }
