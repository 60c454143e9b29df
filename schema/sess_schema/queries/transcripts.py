"""The records of one transcript as they stand in it, with the calls and results that tie them."""

from __future__ import annotations

import gc
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import apsw

from sess_schema import chains
from sess_schema.chains import Chain
from sess_schema.ids import EventId, RecordId, SessionId, SourceId

PER_CALL = 8  # tokens around a call
_BYTES_PER_TOKEN = 4
_PREVIEW = 400  # characters of each text that are read

_IN_SOURCE = (
    "t.source_id = ?1 AND t.retired = 0 AND t.session_id IN"
    " (SELECT session_id FROM session_sources WHERE source_id = ?1)"
)
_RECORDS = (
    "SELECT coalesce(t.copy_of, t.id), t.session_id, t.native_id, t.parent_id, t.kind,"
    " t.role, t.ts, t.offset, t.length, t.line, t.superseded FROM records t"
    f" WHERE {_IN_SOURCE} ORDER BY t.offset, t.id"
)
_COLUMNS = (
    "e.id, e.record_id, e.result_record_id, e.type, e.tool, e.call_id, e.unjoined, e.status,"
    " e.summary, octet_length(x.text), octet_length(x.input), octet_length(x.output),"
    f" substr(x.text, 1, {_PREVIEW}), substr(x.output, 1, {_PREVIEW})"
)
_OWN = (
    f"SELECT {_COLUMNS}, t.offset, e.block FROM records t"
    " JOIN events e ON e.record_id = coalesce(t.copy_of, t.id) JOIN event_texts x ON x.id = e.id"
    f" WHERE {_IN_SOURCE} AND (e.retired = 0 OR t.superseded)"
)
# Results in this file of calls in another one.
_ANSWERS = (
    f"SELECT {_COLUMNS}, t.offset, e.block FROM records t"
    " JOIN events e ON e.result_record_id = coalesce(t.copy_of, t.id)"
    f" JOIN event_texts x ON x.id = e.id WHERE {_IN_SOURCE} AND (e.retired = 0 OR t.superseded)"
)


class Call(NamedTuple):
    """A call or a result in a record."""

    id: str
    tool: str | None
    event: EventId


@dataclass(slots=True)
class Record:
    """One record of a transcript."""

    number: int  # its position in the transcript, from 1
    key: int  # row id of the record that owns its events
    session: SessionId
    native_id: str | None
    parent_id: str | None
    kind: str
    written_role: str | None  # what the record says
    ts: int | None
    offset: int
    length: int
    line: int
    superseded: int
    events: list[EventId] = field(default_factory=list)
    types: set[str] = field(default_factory=set)  # of its events, without results
    calls: list[Call] = field(default_factory=list)
    results: list[Call] = field(default_factory=list)
    failed: bool = False  # one of its results is an error
    octets: int = 0  # of text that a model reads
    pieces: list[str] = field(default_factory=list)
    own_id: str | None = None  # in the file
    own_parent: str | None = None

    @property
    def id(self) -> str:
        """The id that the agent gave it, else its line."""
        return self.native_id or f"line-{self.line}"

    @property
    def role(self) -> str:
        """user, assistant, tool (nothing but results) or system."""
        if self.results and not self.types:
            return "tool"
        known = self.written_role in ("user", "assistant", "tool")
        return self.written_role or "system" if known else "system"

    @property
    def tokens(self) -> int:
        """About how many tokens it takes in a prompt; thinking is not sent again."""
        return -(-self.octets // _BYTES_PER_TOKEN) + PER_CALL * len(self.calls)

    @property
    def preview(self) -> str:
        return " ".join(" ".join(self.pieces).split())


class Edge(NamedTuple):
    """A call and the record that has its result, by numbers."""

    caller: int
    answer: int
    call: Call


@dataclass(slots=True)
class Transcript:
    """All records of a transcript, in their order."""

    records: list[Record]
    edges: list[Edge]
    chain: Chain = field(default_factory=Chain)
    answers: dict[int, set[int]] = field(init=False)  # who answers the calls of each record
    callers: dict[int, set[int]] = field(init=False)  # whose calls each record answers

    def __post_init__(self) -> None:
        self.answers, self.callers = defaultdict(set), defaultdict(set)
        for edge in self.edges:
            self.answers[edge.caller].add(edge.answer)
            self.callers[edge.answer].add(edge.caller)

    def of(self, session: SessionId) -> list[Record]:
        return [record for record in self.records if record.session == session]

    def of_event(self, event: EventId) -> set[int]:
        """The record that an event comes from; of a call, the one that makes it."""
        holding = [record for record in self.records if event in record.events]
        made = [t for t in holding if event not in {result.event for result in t.results}]
        return {record.number for record in made or holding}

    def at(self, number: int) -> Record:
        return self.records[number - 1]


class _Event(NamedTuple):
    id: EventId
    record_id: RecordId
    result_record_id: RecordId | None
    type: str
    tool: str | None
    call_id: str | None
    unjoined: str | None
    status: str | None
    summary: str | None
    text_octets: int
    input_octets: int
    output_octets: int
    text: str
    output: str
    offset: int
    block: int


def read(db: apsw.Connection, source: SourceId) -> Transcript:
    collects = gc.isenabled()
    gc.disable()  # records have no cycles, and there may be many
    try:
        return _read(db, source)
    finally:
        if collects:
            gc.enable()


def _read(db: apsw.Connection, source: SourceId) -> Transcript:
    records: list[Record] = []
    by_key: dict[int, list[Record]] = defaultdict(list)
    agent = db.execute("SELECT agent FROM sources WHERE id = ?", (source,)).get
    chain = chains.of_agent(db, str(agent))
    row: tuple[Any, ...]
    for row in db.execute(_RECORDS, (source,)):
        record = Record(len(records) + 1, *row)
        record.own_id = chain.own_id(record.native_id)
        record.own_parent = chain.own_id(record.parent_id)
        records.append(record)
        by_key[record.key].append(record)
    events: dict[int, _Event] = {}
    for sql in (_OWN, _ANSWERS):
        for row in db.execute(sql, (source,)):
            if row[0] not in events:  # of a copy, too
                events[row[0]] = _Event(*row)
    edges: set[Edge] = set()
    for event in sorted(events.values(), key=lambda event: (event.offset, event.block)):
        if event.type == "tool_use":
            _add_call(by_key, edges, event)
        else:
            _add_words(by_key, event)
    _join_by_id(records, edges)
    ordered = sorted(edges, key=lambda edge: (edge[:2], edge.call.event))
    return Transcript(records, ordered, chain)


def _add_words(by_key: dict[int, list[Record]], event: _Event) -> None:
    thinking = event.type == "thinking"
    for record in by_key.get(event.record_id, ()):
        record.events.append(event.id)
        record.types.add(event.type)
        record.octets += 0 if thinking else event.text_octets
        record.pieces.append(f"[thinking] {event.text}" if thinking else event.text)


def _add_call(by_key: dict[int, list[Record]], edges: set[Edge], event: _Event) -> None:
    """Add a call to the record that makes it, and its result to the one that has it."""
    call = Call(event.call_id or "", event.tool, event.id)
    callers = [] if event.unjoined else by_key.get(event.record_id, [])
    answering = event.record_id if event.unjoined else event.result_record_id
    answers = by_key.get(answering, []) if answering else []
    for record in callers:
        record.events.append(event.id)
        record.types.add(event.type)
        record.calls.append(call)
        record.octets += event.input_octets
        record.pieces.append(f"[call: {event.tool or 'unknown'}] {event.summary or ''}")
    for record in answers:
        record.events.append(event.id)
        record.results.append(call)
        record.failed = record.failed or event.status in ("error", "denied")
        record.octets += event.output_octets
        record.pieces.append(f"[result] {event.output}")
    for caller in callers:
        for one in _nearest(caller, answers):
            edges.add(Edge(caller.number, one.number, call))


def _nearest(caller: Record, answers: list[Record]) -> list[Record]:
    """A record may be in a file twice: each call belongs with the result after it."""
    later = [one for one in answers if one.number > caller.number]
    return later[:1] if len(answers) > 1 and later else answers


def _join_by_id(records: Iterable[Record], edges: set[Edge]) -> None:
    """Results that the index keeps apart, as after a fork, belong to the call with their id."""
    called: dict[str, list[tuple[int, Call]]] = defaultdict(list)
    for record in records:
        for call in record.calls:
            if call.id:
                called[call.id].append((record.number, call))
    joined = {(edge.answer, edge.call.id) for edge in edges}
    for record in records:
        for result in record.results:
            if (record.number, result.id) in joined or result.id not in called:
                continue
            candidates = called[result.id]
            at = bisect_left(candidates, (record.number,)) - 1
            number, call = candidates[max(0, at)]
            edges.add(Edge(number, record.number, call))
