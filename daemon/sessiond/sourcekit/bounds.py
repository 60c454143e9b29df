"""Limits on what one record may contain, whatever an agent or an attacker wrote.

The archive keeps the whole record; only what no honest record has is left out of the rows.
"""

from __future__ import annotations

import re
from dataclasses import fields
from hashlib import blake2b
from operator import attrgetter
from zlib import crc32

from sessiond.sourcekit.base import Event, Record, Result, Usage
from sessiond.sourcekit.values import LATEST, LONGEST_DURATION

MOST_TOKENS = 10**9  # of one response: a million such responses can still be summed in 64 bits
MOST_DOLLARS = 10_000
MOST_PARTS = 10_000  # events or results
MOST_OTHERS = 1_000  # titles, links, touched files, ...
MOST_WARNINGS = 20
LONGEST_ID = 1_000
LONGEST_UNCOUNTED = 4 << 20  # characters of a text whose words need not be counted
MOST_WORDS = 600_000  # different ones in a text: SQLite takes 160 bytes of memory for each
LONGEST_UNPARSED = 1 << 20  # characters of a record that is not understood

_WORD = re.compile(r"\w+")
_COUNTS = tuple(field.name for field in fields(Usage) if field.type == "int")
_counts_of = attrgetter(*_COUNTS)
_LISTS = ("events", "results", "titles", "links", "retires", "advice")
_MOST = (MOST_PARTS, MOST_PARTS, MOST_OTHERS, MOST_OTHERS, MOST_OTHERS, MOST_OTHERS)
_lists_of = attrgetter(*_LISTS)
_IDS = ("native_id", "parent_id", "subagent", "session", "session_alias", "model", "usage_agent")
_ids_of = attrgetter(*_IDS)
_USAGE_IDS = ("message_id", "request_id", "model")


def bound(record: Record) -> None:
    """Cut a record to the limits; its warnings say what is missing."""
    warnings: list[str] = []
    if record.ts is not None and not 0 <= record.ts < LATEST:
        record.ts = record.ts_from = None
        warnings.append("impossible time ignored")
    if record.usage is not None:
        for usage in (record.usage, *record.advice[:MOST_OTHERS]):
            _bound_usage(usage, warnings)
    if max(map(len, _lists_of(record))) > MOST_OTHERS:  # hardly ever: this is for every record
        for name, most, parts in zip(_LISTS, _MOST, _lists_of(record), strict=True):
            if len(parts) > most:
                setattr(record, name, parts[:most])
                warnings.append(f"only the first {most:,} {name} of a record are indexed")
    for event in record.events:
        _bound_event(event)
    for result in record.results:
        _bound_result(result)
    _shorten(record, _IDS, _ids_of(record))
    if warnings or len(record.warnings) > MOST_WARNINGS:
        record.warnings = [*record.warnings[:MOST_WARNINGS], *dict.fromkeys(warnings)]


def searchable(text: str) -> str:
    """A text, or as much of it as can be indexed at once."""
    if len(text) <= LONGEST_UNCOUNTED:
        return text
    seen = bytearray(1 << 23)  # a bit per hash; a few words share one
    words = 0
    for word in _WORD.finditer(text):
        value = crc32(word.group().encode("utf-8", "replace")) & 0x3FFFFFF
        if not seen[value >> 3] & 1 << (value & 7):
            seen[value >> 3] |= 1 << (value & 7)
            words += 1
            if words > MOST_WORDS:
                cut = word.start()
                return f"{text[:cut]}\n[{len(text) - cut:,} more characters are archived only]"
    return text


def _bound_usage(usage: Usage, warnings: list[str]) -> None:
    counts = _counts_of(usage)
    if min(counts) < 0 or max(counts) > MOST_TOKENS:
        for name, count in zip(_COUNTS, counts, strict=True):
            if not 0 <= count <= MOST_TOKENS:
                setattr(usage, name, 0)
        usage.sum_of = max(1, usage.sum_of)
        warnings.append("impossible token count ignored")
    if usage.cost_usd is not None and not 0 <= usage.cost_usd <= MOST_DOLLARS:
        usage.cost_usd = None
        warnings.append("impossible cost ignored")
    if usage.context_window is not None and not 0 <= usage.context_window <= MOST_TOKENS:
        usage.context_window = None
    _shorten(usage, _USAGE_IDS, (usage.message_id, usage.request_id, usage.model))


def _bound_event(event: Event) -> None:
    if event.duration_ms is not None and not 0 <= event.duration_ms <= LONGEST_DURATION:
        event.duration_ms = None
    if not 0 <= event.images <= MOST_PARTS:
        event.images = 0
    if len(event.text) + len(event.input) + len(event.output) > LONGEST_UNCOUNTED:
        event.text = searchable(event.text)
        event.input = searchable(event.input)
        event.output = searchable(event.output)
    if len(event.files) > MOST_OTHERS:
        event.files = event.files[:MOST_OTHERS]
    if len(event.edits) > MOST_OTHERS:
        event.edits = event.edits[:MOST_OTHERS]
    _shorten(event, ("call_id", "tool"), (event.call_id, event.tool))


def _bound_result(result: Result) -> None:
    if result.duration_ms is not None and not 0 <= result.duration_ms <= LONGEST_DURATION:
        result.duration_ms = None
    if not 0 <= result.images <= MOST_PARTS:
        result.images = 0
    result.output = searchable(result.output)
    _shorten(result, ("call_id",), (result.call_id,))


def _shorten(owner: object, names: tuple[str, ...], ids: tuple[str | None, ...]) -> None:
    for at, text in enumerate(ids):
        if text is not None and len(text) > LONGEST_ID:
            digest = blake2b(text.encode("utf-8", "replace"), digest_size=16).hexdigest()
            setattr(owner, names[at], f"{text[:100]}...{digest}")
