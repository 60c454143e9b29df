"""What each model response used, counted once even if several lines and files repeat it.

A row is the best line of one request; without a request id every line has its own row. Of the rows
for one response, one is counted. Which one, and which session owns it, depends only on the rows and
records, so it is the same in whatever order files are read.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import apsw

from sess_schema import labels, sums
from sess_schema.ids import RecordId, SessionId, short_key
from sessiond.engines.steps import content_digest, hash64
from sessiond.prices import PRICED, Pricer
from sessiond.sourcekit.base import Record, Usage
from sessiond.writing.record_rows import same_moment
from sessiond.writing.sessions import Session, Sessions

COLUMNS = (
    "session_id", "record_id", "response_uid", "message_id", "request_id", "model", "ts",
    "stop_reason", "input_tokens", "output_tokens", "cache_write_tokens", "cache_write_1h_tokens",
    "cache_read_tokens", "web_searches", "service_tier", "speed", "geo", "cost_usd",
    "context_window", "reasoning_tokens", "fallback", "sum_of",
)  # fmt: skip
_WRITTEN = (*COLUMNS, "sidechain", "cost_nano", "cost_source", "saved_nano", "chars")
_SAVE = (
    f"INSERT INTO usage ({', '.join(_WRITTEN)}) VALUES ({', '.join('?' * len(_WRITTEN))})"
    " ON CONFLICT (response_uid) DO UPDATE SET"
    f" {', '.join(f'{c} = excluded.{c}' for c in _WRITTEN if c not in ('response_uid', 'chars'))},"
    " chars = iif(excluded.stop_reason IS NULL, chars + excluded.chars, 0)"
)
# All places of a line: a fork keeps its time and text, and usually its id.
_NOTHING_SAID = hash64(b"assistant", b"")  # too common to identify a line
_TWINS = (
    "SELECT u.id, t.session_id, t.forked, t.id"
    " FROM usage u JOIN records o ON o.id = u.record_id"
    " JOIN records t ON t.native_key = o.native_key AND t.native_id = o.native_id"
    " WHERE u.{column} IN (SELECT value FROM json_each(?1))"
    " UNION ALL "
    "SELECT u.id, t.session_id, t.forked, t.id"
    " FROM usage u JOIN records o ON o.id = u.record_id"
    f" JOIN records t ON {same_moment('t', 'o')}"
    " WHERE u.{column} IN (SELECT value FROM json_each(?1))"
    " AND o.digest NOT IN (SELECT value FROM json_each(?2))"
)

# Of a response among those with one message id: some gateways give all of them the same.
_BITS = 43
_NO_TIME = 1 << 62
# Rows of the messages with these keys, where there are several of one.
_REPEATED = (
    "SELECT json_group_array(u.id) FROM json_each(?) k CROSS JOIN usage u"
    f" ON u.response_uid BETWEEN k.value << {_BITS} AND k.value << {_BITS} | {(1 << _BITS) - 1}"
    " WHERE u.message_id IS NOT NULL GROUP BY u.message_id HAVING count(*) > 1"
)

# When a session was given prompts and other input: what came before and after belongs to two
# responses. A prompt that is typed into the work may arrive in the middle of one.
_GIVEN = (
    "SELECT t.session_id, t.ts, coalesce(max(e.type = 'user' AND e.label IS NOT ?3), 0)"
    " FROM records t LEFT JOIN events e ON e.record_id = coalesce(t.copy_of, t.id)"
    " WHERE t.session_id IN (SELECT value FROM json_each(?1)) AND t.ts >= ?2"
    " AND t.role = 'user' GROUP BY t.id ORDER BY t.ts"
)

# By session: whether its line is marked as a copy, and its record.
Held = dict[SessionId, tuple[int, RecordId]]


class Given(NamedTuple):
    """When a session was given prompts, and anything at all; sorted."""

    prompts: list[int]
    all: list[int]


class Line(NamedTuple):
    """A line's counts; the fields are `COLUMNS`."""

    session_id: SessionId
    record_id: RecordId
    response_uid: int
    message_id: str | None
    request_id: str | None
    model: str | None
    ts: int | None
    stop_reason: str | None
    input_tokens: int
    output_tokens: int
    cache_write_tokens: int
    cache_write_1h_tokens: int
    cache_read_tokens: int
    web_searches: int
    service_tier: str | None
    speed: str | None
    geo: str | None
    cost_usd: float | None
    context_window: int | None
    reasoning_tokens: int
    fallback: int
    sum_of: int

    def finality(self) -> tuple[Any, ...]:
        """Of two lines of a request, the greater one counts.

        The counts decide between lines with the same time in two files.
        """
        return (
            self.stop_reason is not None,
            self.output_tokens,
            -1 if self.ts is None else self.ts,
            self.read(),
            self.input_tokens,
            self.cache_write_tokens,
            self.cache_read_tokens,
            self.cache_write_1h_tokens,
            self.web_searches,
            self.reasoning_tokens,
            -1.0 if self.cost_usd is None else self.cost_usd,
            *(text or "" for text in (self.model, self.service_tier, self.speed, self.geo)),
        )

    def replaces(self, old: Line) -> bool:
        """Also if it counts less, where a record changed in place."""
        return self.record_id == old.record_id or self.finality() >= old.finality()

    def read(self) -> int:
        """How many tokens the model read, from the cache or not."""
        return self.input_tokens + self.cache_write_tokens + self.cache_read_tokens

    def priced(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in PRICED)


class UsageWriter:
    """Collects the best line of each request and writes it at the end of the transaction."""

    def __init__(
        self, db: apsw.Connection, sessions: Sessions, *, pricer: Pricer | None = None
    ) -> None:
        self._db = db
        self._sessions = sessions
        self._pricer = pricer or Pricer()
        self._best: dict[int, Line] = {}  # by response_uid, not written yet
        self._repeated: dict[int, Line] = {}  # the best of the copied lines
        self._logged: dict[int, int] = {}  # characters of lines without a stop reason
        self._holders: dict[int, set[SessionId]] = {}  # by response: sessions in this transaction
        self._moved: set[int] = set()  # responses with a copied line
        self._messages: set[str] = set()  # of this transaction
        self._silent = {_NOTHING_SAID}  # digests of lines that say nothing: many have each
        self._written = True  # the records of all lines are in the index
        self._chosen = True  # and owners were chosen since the last one

    def add(self, session: Session, record_id: RecordId, record: Record, usage: Usage) -> None:
        line = self._note(session, record_id, record, usage)
        if line.stop_reason is None and record.native_id != line.message_id:
            self._logged.setdefault(line.response_uid, 0)
            self._logged[line.response_uid] += sum(event.chars() for event in record.events)
        best = self._best.get(line.response_uid)
        if best is None or line.replaces(best):
            self._best[line.response_uid] = line

    def note_copy(
        self, session: Session, record_id: RecordId, record: Record, usage: Usage
    ) -> None:
        """The line is known; another session has it too, or its file was rewritten.

        The session may own the response. The copy may have been written later, with final counts.
        """
        line = self._note(session, record_id, record, usage)
        self._moved.add(line.response_uid)
        best = self._repeated.get(line.response_uid)
        if best is None or line.finality() > best.finality():
            self._repeated[line.response_uid] = line

    def _note(self, session: Session, record_id: RecordId, record: Record, usage: Usage) -> Line:
        line = Line(
            session.id, record_id, _response(session, record, usage), usage.message_id,
            usage.request_id, usage.model, record.ts, usage.stop_reason, usage.input_tokens,
            usage.output_tokens, usage.cache_write_tokens, usage.cache_write_1h_tokens,
            usage.cache_read_tokens, usage.web_searches, usage.service_tier, usage.speed,
            usage.geo, usage.cost_usd, usage.context_window, usage.reasoning_tokens,
            usage.fallback, usage.sum_of,
        )  # fmt: skip
        self._holders.setdefault(line.response_uid, set()).add(session.id)
        self._written = self._chosen = False
        if line.message_id:
            self._messages.add(line.message_id)
        self._note_silence(record)
        return line

    def _note_silence(self, record: Record) -> None:
        if not record.events and not record.results:
            self._silent.add(content_digest(record))

    def records_written(self) -> None:
        """The records of all lines so far are in the index; owners depend on them."""
        self._written, self._chosen = True, False

    def save(self) -> None:
        """Write the best lines unless the index has better ones."""
        self._write()
        if self._written and not self._chosen:
            self._chosen = True
            self._choose_owners()
            self._choose_counted()
            self._choose_fallbacks()

    def _write(self) -> None:
        if not self._best and not self._repeated:
            return
        stored = [
            Line(*row)
            for row in self._db.execute(
                f"SELECT {', '.join(COLUMNS)} FROM usage"
                " WHERE response_uid IN (SELECT value FROM json_each(?))",
                (json.dumps(list(self._best.keys() | self._repeated.keys())),),
            )
        ]
        self._compare_copies({line.response_uid: line for line in stored})
        for old in stored:
            new = self._best.get(old.response_uid)
            if new is None:
                continue
            self._holders.setdefault(old.response_uid, {new.session_id}).add(old.session_id)
            if not new.replaces(old):
                del self._best[old.response_uid]
            else:
                # `_choose_owners` may change the owner; until then it stays.
                self._best[old.response_uid] = new._replace(session_id=old.session_id)
        self._db.executemany(_SAVE, [self._row(line) for line in self._best.values()])
        sums.note_usage(self._db, ((line.session_id, line.ts) for line in self._best.values()))
        self._best = {}
        # What is left is of lines that did not replace the stored ones.
        self._db.executemany(
            "UPDATE usage SET chars = chars + ? WHERE response_uid = ? AND stop_reason IS NULL",
            [(chars, uid) for uid, chars in self._logged.items() if chars],
        )
        self._logged = {}

    def _compare_copies(self, stored: dict[int, Line]) -> None:
        """Take the counts of a copied line where they are more final than all others.

        A copy alone is no response: where its original has no counts, there are none to replace.
        """
        for uid, line in self._repeated.items():
            others = [known[uid].finality() for known in (stored, self._best) if uid in known]
            if others and line.finality() > max(others):
                self._best[uid] = line
        self._repeated = {}

    def _choose_fallbacks(self) -> None:
        """Count the sum of a session only if its single responses are not known.

        Rows that are no fallback need no look: most sessions have no others.
        """
        touched = json.dumps([*set().union(*self._holders.values())])
        self._db.execute(
            "UPDATE usage SET counted = 1 - counted WHERE fallback > 0"
            " AND session_id IN (SELECT value FROM json_each(?))"
            " AND counted <> (fallback ="
            " (SELECT min(o.fallback) FROM usage o WHERE o.session_id = usage.session_id))",
            (touched,),
        )

    def _row(self, line: Line) -> tuple[Any, ...]:
        # Most responses end with a stop reason, and then need no estimate.
        logged = self._logged.pop(line.response_uid, 0) if self._logged else 0
        chars = logged if line.stop_reason is None else 0
        sidechain = self._is_sidechain(line.session_id)
        return (*line, sidechain, *self._pricer.price(line.priced()), chars)

    def _is_sidechain(self, session_id: SessionId) -> bool:
        return self._sessions.by_id(session_id).kind == "subagent"

    # -- which session owns a response

    def _choose_owners(self) -> None:
        """Choose the earliest session with a line of it; of equals, one with the best line."""
        shared = {
            uid: held for uid, held in self._holders.items() if len(held) > 1 or uid in self._moved
        }
        if not shared:
            return
        twins = self._twins("response_uid", list(shared))
        for row_id, uid, owner, record_id in list(
            self._db.execute(
                "SELECT id, response_uid, session_id, record_id FROM usage"
                " WHERE response_uid IN (SELECT value FROM json_each(?))",
                (json.dumps(list(shared)),),
            )
        ):
            certain = shared[uid] | {owner}
            held = self._alike(certain, twins.get(row_id, {}))
            first = min(certain | set(held), key=lambda s: self._rank(s, held))
            # The owner's own line, so that the row moves with it if an even earlier one is read.
            _, holding = held.get(first, (0, record_id))
            self._db.execute(
                "UPDATE usage SET session_id = ?, record_id = ?, sidechain = ? WHERE id = ?",
                (first, holding, self._is_sidechain(first), row_id),
            )
            self._date(row_id)

    def redate(self, record_id: RecordId) -> None:
        """The line got another time, because it borrows that of its session."""
        rows: list[Any] = self._db.execute(
            "SELECT id FROM usage WHERE record_id = ?", (record_id,)
        ).fetchall()
        for (row_id,) in rows:
            self._date(row_id)

    def _date(self, row_id: int) -> None:
        """Take the time of the owner's line, and the price of that day."""
        for ts, *values in self._db.execute(
            f"SELECT t.ts, {', '.join(f'u.{name}' for name in PRICED)} FROM usage u"
            " JOIN records t ON t.id = u.record_id WHERE u.id = ? AND t.ts IS NOT u.ts",
            (row_id,),
        ):
            values[PRICED.index("ts")] = ts
            self._db.execute(
                "UPDATE usage SET ts = ?, cost_nano = ?, cost_source = ?, saved_nano = ?"
                " WHERE id = ?",
                (ts, *self._pricer.price(values), row_id),
            )

    def _rank(self, session_id: SessionId, held: Held) -> tuple[Any, ...]:
        started, *name = self._sessions.by_id(session_id).age()
        forked, _ = held.get(session_id, (0, 0))
        return started, session_id not in held, forked, *name

    def _twins(self, column: str, values: list[Any]) -> dict[int, Held]:
        """By row, the sessions that have its line."""
        holders: dict[int, Held] = {}
        for row_id, session_id, forked, record_id in self._db.execute(
            _TWINS.format(column=column), (json.dumps(values), json.dumps([*self._silent]))
        ):
            sessions = holders.setdefault(row_id, {})
            twin = forked, record_id
            sessions[session_id] = min(twin, sessions.get(session_id, twin))
        return holders

    def _alike(self, sessions: set[SessionId], held: Held) -> Held:
        """Keep sessions of the same kind: a subagent's replay of its parent's lines is no copy."""
        kinds = {self._is_sidechain(session_id) for session_id in sessions}
        return {key: twin for key, twin in held.items() if self._is_sidechain(key) in kinds}

    # -- which rows belong to one response

    def _choose_counted(self) -> None:
        """Choose the counted rows; gateways reuse message ids and retries keep them."""
        keys = json.dumps([*map(_message_key, self._messages)])
        repeated = [
            row_id
            for (rows,) in self._db.execute(_REPEATED, (keys,))
            for row_id in json.loads(rows)
        ]
        if not repeated:
            return
        twins = self._twins("id", repeated)
        rows: dict[str, dict[int, Line]] = {}
        before: dict[int, tuple[int, int]] = {}
        query = (
            f"SELECT id, sidechain, counted, {', '.join(COLUMNS)} FROM usage"
            " WHERE id IN (SELECT value FROM json_each(?))"
        )
        for row_id, sidechain, counted, *values in self._db.execute(query, (json.dumps(repeated),)):
            line = Line(*values)
            twins[row_id] = self._alike({line.session_id}, twins.get(row_id, {}))
            rows.setdefault(line.message_id or "", {})[row_id] = line
            before[row_id] = sidechain, counted
        after: dict[int, tuple[int, int]] = {}
        given = self._given(rows.values(), twins)
        for lines in rows.values():
            chains = {row for row, line in lines.items() if self._is_sidechain(line.session_id)}
            counted_rows = _counted(lines, twins, chains, given)
            after |= {row: (int(row in chains), int(row in counted_rows)) for row in lines}
        self._db.executemany(
            "UPDATE usage SET sidechain = ?, counted = ? WHERE id = ?",
            [(*flags, row) for row, flags in after.items() if flags != before[row]],
        )

    def _given(
        self, rows: Iterable[dict[int, Line]], twins: dict[int, Held]
    ) -> dict[SessionId, Given]:
        """Of the sessions that have these rows, what they were given since the first one."""
        sessions: set[SessionId] = set()
        first = _NO_TIME
        for lines in rows:
            for row, line in lines.items():
                sessions |= {line.session_id, *twins[row]}
                first = min(first, _time(line))
        given: dict[SessionId, Given] = defaultdict(lambda: Given([], []))
        for session_id, ts, prompts in self._db.execute(
            _GIVEN, (json.dumps([*sessions]), first, labels.QUEUED)
        ):
            given[session_id].all.append(ts)
            if prompts:
                given[session_id].prompts.append(ts)
        return given


def _response(session: Session, record: Record, usage: Usage) -> int:
    """Lines with one request id share a row; without one, rows are grouped later.

    Those of one message begin with its key, so that they are found together.
    """
    line = usage.request_id or _line(session, record, usage)
    if not usage.message_id:
        return hash64(line.encode("utf-8", "replace"))
    unique = hash64(f"{usage.message_id} {line}".encode("utf-8", "replace"))
    return _message_key(usage.message_id) << _BITS | unique & (1 << _BITS) - 1


def _message_key(message_id: str) -> int:
    """20 bits."""
    return short_key(message_id) >> 11


def _line(session: Session, record: Record, usage: Usage) -> str:
    """A copy keeps the time and text, but not always the id of the line."""
    if record.native_id and record.native_id == usage.message_id:
        return record.native_id  # a record that changes in place
    if record.events and record.ts is not None and record.ts_from is None:
        return f"{record.ts} {content_digest(record)}"
    return record.native_id or f"{session.native_id} {record.ts} {usage}"


def _counted(
    lines: dict[int, Line],
    twins: dict[int, Held],
    chains: set[int],
    given: dict[SessionId, Given],
) -> set[int]:
    """Of the rows with one message id, those that count as a response.

    A subagent's row repeats another one; other rows are one response if a session has both and was
    given nothing between them.
    """
    main = lines.keys() - chains
    if not main:
        return {_chosen(lines)}
    held: dict[SessionId, list[int]] = {}
    for row in main:
        for session in {lines[row].session_id, *twins.get(row, ())}:
            held.setdefault(session, []).append(row)
    groups: dict[int, dict[int, Line]] = {row: {row: lines[row]} for row in main}
    for session, rows in held.items():
        for one, other in _joined(session, rows, lines, given):
            small, large = sorted((groups[one], groups[other]), key=len)
            if small is not large:
                large |= small
                groups |= dict.fromkeys(small, large)
    apart = {id(members): members for members in groups.values()}
    return {_chosen(members) for members in apart.values()}


def _joined(
    session: SessionId,
    rows: list[int],
    lines: dict[int, Line],
    given: dict[SessionId, Given],
) -> Iterator[tuple[int, int]]:
    """Neighbours in a session that are one response.

    Results of calls may come in the middle of a response, but then its requests read the same.
    """
    rows = sorted(rows, key=lambda row: (_time(lines[row]), lines[row].finality()))
    for one, other in pairwise(rows):
        start, end = _time(lines[one]), _time(lines[other])
        if session in given and start < end:
            prompts, anything = given[session]
            if _any_between(prompts, start, end):
                continue
            if _any_between(anything, start, end) and _read_apart(lines[one], lines[other]):
                continue
        yield one, other


def _read_apart(line: Line, other: Line) -> bool:
    """Whether two rows are of different requests, by their ids or by what they read."""
    if line.request_id and other.request_id:
        return True
    read = line.read(), other.read()
    return all(read) and read[0] != read[1]


def _any_between(times: list[int], start: int, end: int) -> bool:
    at = bisect_right(times, start)
    return at < len(times) and times[at] <= end


def _chosen(lines: dict[int, Line]) -> int:
    """The best line of the earliest request; lines without a request id may belong to any."""
    nameless = [row for row, line in lines.items() if line.request_id is None]
    named = [row for row, line in lines.items() if line.request_id is not None]
    if named:
        nameless.append(min(named, key=lambda row: _moment(lines[row])))
    return max(nameless, key=lambda row: (*lines[row].finality(), lines[row].record_id))


def _moment(line: Line) -> tuple[int, str]:
    return _time(line), line.request_id or ""


def _time(line: Line) -> int:
    return _NO_TIME if line.ts is None else line.ts


# A cost without a response: no tokens are known for any of its model.
_ALONE = (
    "message_id IS NULL AND request_id IS NULL AND input_tokens + output_tokens = 0"
    " AND cost_usd IS NOT NULL"
)
_ROWS = (
    f"SELECT id, {', '.join(PRICED)} FROM usage"
    " WHERE session_id = ? AND counted AND model IS ? ORDER BY ts, record_id"
)
_PRICE = (
    "UPDATE usage SET model = ?, cost_usd = ?, cost_nano = ?, cost_source = ?, saved_nano = ?"
    " WHERE id = ?"
)
_ADD = (
    "INSERT INTO usage (session_id, record_id, response_uid, model, ts, input_tokens,"
    " output_tokens, cache_write_tokens, cache_write_1h_tokens, cache_read_tokens, web_searches,"
    " sidechain) SELECT session_id, id, ?, ?, ts, 0, 0, 0, 0, 0, 0, ? FROM records"
    " WHERE session_id = ? AND retired = 0 AND superseded = 0"
    " ORDER BY role IS 'assistant' DESC, offset DESC LIMIT 1"
)


class Bills:
    """What agents recorded of whole conversations: their model and their cost.

    Which response a cost was for is unknown, so the last one of its model has it. The result
    depends only on the rows and on what is recorded, whatever was read first.
    """

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
