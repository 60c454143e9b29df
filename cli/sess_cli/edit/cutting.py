"""Cuts records out of a transcript: plans from the index, checks the file, and rewrites it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sess_cli.edit import live, log, splices
from sess_cli.edit.live import LiveFile
from sess_cli.edit.log import Change, Content, Edit
from sess_cli.edit.plan import PARENTLESS, Plan, new_parents, plan
from sess_common import decode
from sess_common.errors import Exit, SessError
from sess_schema import archive, labels
from sess_schema.archive import RecordReader
from sess_schema.queries import sessions
from sess_schema.queries.sessions import SessionRow
from sess_schema.queries.transcripts import Record, Transcript

if TYPE_CHECKING:
    import apsw

    from sess_schema.ids import SessionId, SourceId


LOG, DOCUMENT, DATABASE = "log", "document", "database"
_TRANSCRIPTS = (
    "SELECT p.id, coalesce(w.path, p.path), p.state, iif(w.id IS NULL, 'log', w.kind),"
    " coalesce(w.id, p.id), p.path FROM session_sources m JOIN sources p ON p.id = m.source_id"
    " LEFT JOIN sources w ON w.id = p.part_of WHERE m.session_id = ? AND p.kind = 'transcript'"
    " AND EXISTS (SELECT 1 FROM records t WHERE t.session_id = m.session_id AND t.source_id = p.id"
    " AND t.retired = 0) ORDER BY p.state = 'gone', p.id"
)


@dataclass(frozen=True, slots=True)
class Target:
    """One transcript of a session."""

    session: SessionRow
    source: SourceId  # whose records are meant
    path: str  # of the file
    state: str
    kind: str  # log, document, database
    whole: SourceId  # the source with the bytes of the file
    name: str  # the path; of a conversation in a file, with its id


def find_target(db: apsw.Connection, given: str, which: str | None = None) -> Target:
    """The transcript of a session; the one that `--source` names if there are several."""
    row = sessions.resolve(db, given)
    found = [Target(row, *values) for values in _transcripts_of(db, row.key)]
    if which is not None:
        for number, target in enumerate(found, 1):
            if which in (str(number), target.name, target.path):
                return target
        raise SessError(
            f'session "{row.session}" has no transcript "{which}"',
            hint=f"it has {len(found)}; give a number or a path",
            code=Exit.NOTHING_FOUND,
        )
    if not found:
        raise SessError(f'session "{row.session}" has no transcript', code=Exit.NOTHING_FOUND)
    there = [target for target in found if target.state != "gone"] or found
    if len(there) == 1:
        return there[0]
    listed = "".join(f"\n  {number}  {target.name}" for number, target in enumerate(found, 1))
    raise SessError(
        f'session "{row.session}" has {len(found)} transcripts:{listed}',
        hint="choose one with `--source N`",
    )


def _transcripts_of(db: apsw.Connection, session: SessionId) -> list[tuple[Any, ...]]:
    return [*db.execute(_TRANSCRIPTS, (session,))]


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


def planned_cut(
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
        return write_sidecar(db, target, cut.plan.transcript, gone, change), 0
    with live.opened(target.path, force=force) as file:
        content = archived(db, target.whole, file, whole=target.kind == DOCUMENT)
        parents = new_parents(cut.plan) if cut.relink else {}
        if target.kind == DOCUMENT:
            swaps = _document_swaps(db, target, cut.plan, parents, file)
        else:
            swaps = splices.without_lines(file.fd, cut.plan.transcript, cut.plan.gone)
            swaps += splices.relinked(file.fd, cut.plan.transcript, parents)
        edit = file.rewrite(splices.around(swaps, content.size), change, content)
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
    at, masked = 0, not exact and archive.has_masks(db)
    for chunk in archive.current(db, source):
        raw = archive.chunk_bytes(db, chunk)
        there = os.pread(file.fd, len(raw), at)
        if chunk.offset != at or not archive.is_same(there, raw, masked=masked):
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
    if target.kind == DATABASE and target.session.agent != SIDECAR_AGENT:
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
) -> list[splices.Swap]:
    stored = RecordReader(db)
    values = [_value(stored, target.source, record) for record in cut.transcript.records]
    try:
        text = b"".join(log.pieces(file.fd, 0, file.size)).decode()
        moved = {n - 1: (cut.transcript.at(n).parent_id, parent) for n, parent in parents.items()}
        swaps = splices.without_elements(text, values, {number - 1 for number in cut.gone}, moved)
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


SIDECAR_AGENT = "cursor"
_SIDECAR_SUFFIX = ".excised.jsonl"


def sidecar_path(database: str) -> str:
    return os.path.realpath(database) + _SIDECAR_SUFFIX


def write_sidecar(
    db: apsw.Connection,
    target: Target,
    transcript: Transcript,
    gone: Iterable[Record],
    change: Change,
) -> Edit:
    """Write the records that stay, after those of other conversations that are there already."""
    path = sidecar_path(target.path)
    cut = {record.id for record in gone}
    for edit in log.entries():  # what earlier cuts took out stays out
        if (edit.path, edit.session, edit.state) == (path, change.session, log.DONE):
            cut |= {*edit.cut, *edit.pulled}
    kept = [record for record in transcript.records if record.id not in cut]
    lines = _record_lines(db, target, kept)
    if not os.path.exists(path):
        return live.create(path, lines, change)
    with live.opened(path, force=True) as file:  # nobody but us writes it
        raw = b"".join(log.pieces(file.fd, 0, file.size))
        others = [
            line for line in raw.splitlines(keepends=True) if _composer_of(line) != change.session
        ]
        return file.rewrite([*others, *lines], change)


def _record_lines(
    db: apsw.Connection, target: Target, records: Iterable[Record]
) -> Iterator[bytes]:
    stored = RecordReader(db)
    for record in records:
        yield stored.bytes_of((target.source, 0, record.offset, record.length)).strip() + b"\n"


def _composer_of(line: bytes) -> object:
    try:
        value = decode.decode(line)[0]
    except ValueError:
        return None
    return value.get("composerId") if isinstance(value, dict) else None


def planned_truncation(
    db: apsw.Connection, target: Target, transcript: Transcript, prompts: int
) -> Cut | None:
    """A cut that leaves the first `prompts` prompts; None if there are no more than these."""
    if target.session.kind == "subagent":
        raise SessError(
            "a subagent's session cannot be truncated",
            hint="truncate the session that started it, or `sess cut` single records",
        )
    broken = next((record for record in transcript.records if record.kind == labels.BROKEN), None)
    if broken is not None:
        raise SessError(
            f'line {broken.line} of "{target.path}" cannot be read; nothing was changed',
            hint="`sess cut` works on such a file, too",
        )
    gone = _from_prompt(transcript, target.session.key, prompts)
    if not gone:
        return None
    return replace(planned_cut(db, target, transcript, gone, relink=True), command="truncate")


def _from_prompt(transcript: Transcript, session: SessionId, prompts: int) -> set[int]:
    """The records to take out, by number."""
    asked = [t for t in transcript.of(session) if "user" in t.types and not t.superseded]
    if prompts >= len(asked):
        return set()
    first = asked[prompts].number
    gone = {
        record.number
        for record in transcript.records
        if record.number >= first and record.kind not in labels.LASTING
    }
    if prompts == 0:  # nothing is left that it could be the prompt of
        gone |= {
            record.number for record in transcript.records if record.kind == labels.SYSTEM_PROMPT
        }
    # The result of a call that stays may have come after the prompt.
    while answers := {
        number
        for number in gone
        if (record := transcript.at(number)).results
        and not record.types
        and any(caller not in gone for caller in transcript.callers[number])
    }:
        gone -= answers
    return gone
