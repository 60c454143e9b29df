"""Cuts records out of a transcript: plans from the index, checks the file, and rewrites it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sess_cli.edit import elements, live, log, pieces, sidecar
from sess_cli.edit.live import LiveFile
from sess_cli.edit.log import Change, Content, Edit
from sess_cli.edit.plan import PARENTLESS, Plan, new_parents, plan
from sess_cli.edit.target import DATABASE, DOCUMENT, Target
from sess_common import decode
from sess_common.errors import Exit, SessError
from sess_schema import archive, masks
from sess_schema.queries.transcripts import Record, Transcript
from sess_schema.records import RecordReader

if TYPE_CHECKING:
    import apsw

    from sess_schema.ids import SessionId, SourceId

_COPIES = (
    "SELECT DISTINCT s.native_id FROM json_each(?1) j"
    " JOIN records t ON t.id = j.value OR t.copy_of = j.value"
    " JOIN sessions s ON s.id = t.session_id"
    " WHERE t.source_id <> ?2 AND t.retired = 0 ORDER BY 1"
)
_NEAR = 4  # records between one and another that only repeats it
_SHORTEST_REPEATED = 2


@dataclass(frozen=True, slots=True)
class Cut:
    """A planned cut of a transcript."""

    target: Target
    plan: Plan
    relink: bool
    also_in: tuple[str, ...] = ()  # other sessions that have some of the records, such as forks
    command: str = "cut"

    @property
    def warnings(self) -> list[str]:
        """What stands against it."""
        return [
            warning.text
            for warning in self.plan.warnings
            if not (self.relink and warning.kind == PARENTLESS)
        ]


def planned(
    db: apsw.Connection,
    target: Target,
    transcript: Transcript,
    chosen: Iterable[int],
    *,
    relink: bool,
) -> Cut:
    seeds = set(chosen)
    if not seeds:
        raise SessError("nothing to cut", hint="name records: `5-7,9`, --match or --event")
    _check_editable(target)
    whole = plan_of(db, target, transcript, seeds)
    if len(whole.gone) == len(transcript.records):
        raise SessError("this would cut every record", hint="`sess rm` deletes a whole session")
    return Cut(target, whole, relink, _also_in(db, target, whole))


def _also_in(db: apsw.Connection, target: Target, cut: Plan) -> tuple[str, ...]:
    keys = json.dumps([record.key for record in cut.removed()])
    return tuple(name for (name,) in db.execute(_COPIES, (keys, target.source)))


def plan_of(
    db: apsw.Connection, target: Target, transcript: Transcript, chosen: Iterable[int]
) -> Plan:
    """What goes with the chosen records, those that only repeat one of them included."""
    first = plan(transcript, chosen)
    repeats = _repeats(db, target, transcript, first)
    return plan(transcript, first.chosen, repeats) if repeats else first


def perform(db: apsw.Connection, cut: Cut, *, force: bool) -> tuple[Edit, int]:
    """Cut; also return how many bytes were appended since the plan was made."""
    target = cut.target
    gone = cut.plan.removed()
    change = Change(
        cut.command,
        session=target.session.session,
        agent=target.session.agent,
        cut=[cut.plan.transcript.at(number).id for number in sorted(cut.plan.chosen)],
        pulled=[cut.plan.transcript.at(number).id for number in sorted(cut.plan.pulled)],
        lines=target.kind != DOCUMENT,
    )
    if target.kind == DATABASE:
        return sidecar.write(db, target, cut.plan.transcript, gone, change), 0
    with live.opened(target.path, force=force) as file:
        content = archived(db, target.whole, file, whole=target.kind == DOCUMENT)
        parents = new_parents(cut.plan) if cut.relink else {}
        if target.kind == DOCUMENT:
            swaps = _document_swaps(db, target, cut.plan, parents, file)
        else:
            swaps = pieces.without_lines(file.fd, cut.plan.transcript, cut.plan.gone)
            swaps += pieces.relinked(file.fd, cut.plan.transcript, parents)
        edit = file.rewrite(pieces.around(swaps, content.size), change, content)
        return edit, file.size - content.size


def archived(
    db: apsw.Connection,
    source: SourceId,
    file: LiveFile,
    *,
    whole: bool = False,
    exact: bool = False,
) -> Content:
    """What the file had when it was indexed.

    Raises `Changed` if it does not begin with that; with `whole`, also if there is more. Unless it
    is `exact`, secrets that were masked in the archive are not compared.
    """
    at, masked = 0, not exact and masks.are_used(db)
    for chunk in archive.current(db, source):
        raw = archive.chunk_bytes(db, chunk)
        there = os.pread(file.fd, len(raw), at)
        if chunk.offset != at or not masks.same(there, raw, masked=masked):
            raise live.Changed
        at += len(raw)
    if whole and at != file.size:
        raise live.Changed
    return Content(at, log.digest_of(file.fd, at))


def matching(
    db: apsw.Connection, transcript: Transcript, session: SessionId, pattern: str
) -> set[int]:
    """The records of a session with a text that a regular expression matches."""
    try:
        found = re.compile(pattern)
    except re.error as error:
        raise SessError(f'not a regular expression: "{pattern}": {error}') from None
    return {
        record.number
        for record in transcript.of(session)
        if any(found.search(text) for text in texts_of(db, record))
    }


def texts_of(db: apsw.Connection, record: Record) -> list[str]:
    """What a record says in full: its words, inputs of its calls, outputs of its results."""
    results = {result.event for result in record.results}
    calls = {call.event for call in record.calls}
    texts = []
    for event in record.events:
        row = db.execute("SELECT text, input, output FROM event_texts WHERE id = ?", (event,))
        text, given, output = row.fetchone() or ("", "", "")
        if event in results:
            texts.append(output)
        if event in calls:
            texts.append(given)
        if event not in results | calls:
            texts.append(text)
    return [text for text in texts if text]


def _check_editable(target: Target) -> None:
    if target.state == "gone":
        raise SessError(
            f'"{target.path}" no longer exists',
            hint="`sess restore --in-place` writes it back from the archive",
            code=Exit.NOTHING_FOUND,
        )
    if not os.path.exists(target.path) and os.path.exists(f"{target.path}.zst"):
        raise SessError(f'"{target.path}.zst" is compressed', hint="decompress it first")
    if target.kind == DATABASE and target.session.agent != sidecar.AGENT:
        raise SessError(
            f'"{target.path}" is a database of {target.session.agent}, which is never written to',
            hint="`sess records` and `sess suggest` work, cutting does not",
        )


def _document_swaps(
    db: apsw.Connection,
    target: Target,
    cut: Plan,
    parents: Mapping[int, str | None],
    file: LiveFile,
) -> list[pieces.Swap]:
    stored = RecordReader(db)
    values = [_value(stored, target.source, record) for record in cut.transcript.records]
    try:
        text = b"".join(log.pieces(file.fd, 0, file.size)).decode()
        moved = {n - 1: (cut.transcript.at(n).parent_id, parent) for n, parent in parents.items()}
        swaps = elements.without(text, values, {number - 1 for number in cut.gone}, moved)
    except (ValueError, IndexError, RecursionError):
        swaps = None
    if swaps is None:
        raise SessError(
            f'cannot cut single records of "{target.path}"',
            hint=f"{target.session.agent} does not keep them as elements of a list",
        )
    return swaps


def _value(stored: RecordReader, source: SourceId, record: Record) -> Any:
    try:
        return decode.decode(stored.bytes_of((source, 0, record.offset, record.length)).strip())[0]
    except ValueError:
        return None


def _repeats(
    db: apsw.Connection, target: Target, transcript: Transcript, cut: Plan
) -> dict[int, set[int]]:
    """Records near one that goes that say nothing but what it says, as in Codex's rollouts."""
    if target.kind != "log":
        return {}
    stored = RecordReader(db)
    found: dict[int, set[int]] = {}
    for record in cut.removed():
        near = transcript.records[max(0, record.number - 1 - _NEAR) : record.number + _NEAR]
        silent = [one for one in near if not one.events and one.number not in cut.gone]
        if not silent:
            continue
        said = {text for text in texts_of(db, record) if len(text) >= _SHORTEST_REPEATED}
        for one in silent:
            if said & _strings(_value(stored, target.source, one)):
                found.setdefault(record.number, set()).add(one.number)
    return found


def _strings(value: Any) -> set[str]:
    found: set[str] = set()
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            found.add(one)
        elif isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
    return found
