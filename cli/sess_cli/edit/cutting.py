"""Cuts records out of a transcript: plans from the index, checks the file, and rewrites it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from sess_cli.edit import live, log, splices
from sess_cli.edit.links import Value, is_followed, strings
from sess_cli.edit.plan import PARENTLESS, Plan, plan
from sess_common import decode
from sess_common.errors import Exit, SessError
from sess_schema import archive, labels
from sess_schema.archive import RecordReader
from sess_schema.queries import sessions
from sess_schema.queries.transcripts import Record, Transcript

if TYPE_CHECKING:
    import apsw

    from sess_cli.edit.links import Link
    from sess_schema.ids import SessionId, SourceId


LOG, DOCUMENT, DATABASE = "log", "document", "database"
_SIDECAR_AGENT = "cursor"
_TRANSCRIPTS = (
    "SELECT p.id, coalesce(w.path, p.path), p.state, iif(w.id IS NULL, 'log', w.kind),"
    " coalesce(w.id, p.id), p.path FROM session_sources m JOIN sources p ON p.id = m.source_id"
    " LEFT JOIN sources w ON w.id = p.part_of WHERE m.session_id = ? AND p.kind = 'transcript'"
    " AND EXISTS (SELECT 1 FROM records t WHERE t.session_id = m.session_id AND t.source_id = p.id"
    " AND t.retired = 0) ORDER BY p.state = 'gone', p.id"
)
_COPIES = (
    "SELECT DISTINCT s.native_id FROM json_each(?1) j"
    " JOIN records t ON t.id = j.value OR t.copy_of = j.value"
    " JOIN sessions s ON s.id = t.session_id"
    " WHERE t.source_id <> ?2 AND t.retired = 0 ORDER BY 1"
)
_NEAR = 4  # records between one and another that only repeats it
_SHORTEST_REPEATED = 2


@dataclass(frozen=True, slots=True)
class Target:
    """One transcript of a session."""

    session: sessions.SessionRow
    source: SourceId  # whose records are meant
    path: str  # of the file
    state: str
    kind: str  # log, document, database
    whole: SourceId  # the source with the bytes of the file
    name: str  # the path; of a conversation in a file, with its id


def find_target(db: apsw.Connection, given: str, which: str | None = None) -> Target:
    """The transcript of a session; the one that `--source` names if there are several."""
    row = sessions.resolve(db, given)
    targets = [Target(row, *values) for values in db.execute(_TRANSCRIPTS, (row.key,))]
    if which is not None:
        for number, target in enumerate(targets, 1):
            if which in (str(number), target.name, target.path):
                return target
        raise SessError(
            f'session "{row.session}" has no transcript "{which}"',
            hint=f"it has {len(targets)}; give a number or a path",
            code=Exit.NOTHING_FOUND,
        )
    if not targets:
        raise SessError(f'session "{row.session}" has no transcript', code=Exit.NOTHING_FOUND)
    there = [target for target in targets if target.state != "gone"] or targets
    if len(there) == 1:
        return there[0]
    listed = "".join(f"\n  {number}  {target.name}" for number, target in enumerate(targets, 1))
    raise SessError(
        f'session "{row.session}" has {len(targets)} transcripts:{listed}',
        hint="choose one with `--source N`",
    )


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
    _check_chain(db, target, whole)
    if len(whole.gone) == len(transcript.records):
        raise SessError("this would cut every record", hint="`sess rm` deletes a whole session")
    keys = json.dumps([record.key for record in whole.removed()])
    also_in = tuple(name for (name,) in db.execute(_COPIES, (keys, target.source)))
    return Cut(target, whole, relink, also_in)


def plan_of(
    db: apsw.Connection, target: Target, transcript: Transcript, chosen: Iterable[int]
) -> Plan:
    """What goes with the chosen records, those that only repeat one of them included."""
    value = _values(db, target)
    texts = partial(texts_of, db)
    first = plan(transcript, chosen, None, value, texts)
    repeats = _repeats(db, target, transcript, first)
    return plan(transcript, first.chosen, repeats, value, texts) if repeats else first


def _values(db: apsw.Connection, target: Target) -> Value:
    """What records say; those that are asked for are few, and are asked for again."""
    stored = RecordReader(db)
    known: dict[int, Any] = {}

    def value(record: Record) -> Any:
        if record.number not in known:
            known[record.number] = _decoded(_raw(stored, target, record))
        return known[record.number]

    return value


def perform(db: apsw.Connection, cut: Cut, *, force: bool) -> tuple[log.Edit, int]:
    """Cut; also return how many bytes were appended since the plan was made."""
    target, transcript = cut.target, cut.plan.transcript
    change = log.Change(
        cut.command,
        session=target.session.session,
        agent=target.session.agent,
        cut=[transcript.at(number).id for number in sorted(cut.plan.chosen)],
        pulled=[transcript.at(number).id for number in sorted(cut.plan.pulled)],
        lines=target.kind != DOCUMENT,
    )
    if target.kind == DATABASE:
        return _write_sidecar(db, target, cut.plan, change), 0
    with live.opened(target.path, force=force) as file:
        content = archived(db, target.whole, file, whole=target.kind == DOCUMENT)
        links = cut.plan.links if cut.relink else []
        if target.kind == DOCUMENT:
            swaps = _document_swaps(db, target, cut.plan, links, file)
        else:
            swaps = splices.without_lines(file.fd, transcript, cut.plan.gone)
            swaps += splices.relinked(file.fd, transcript, links)
        edit = file.rewrite(splices.around(swaps, content.size), change, content)
        return edit, file.size - content.size


def archived(
    db: apsw.Connection,
    source: SourceId,
    file: live.LiveFile,
    *,
    whole: bool = False,
    exact: bool = False,
) -> log.Content:
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
    return log.Content(at, log.digest_of(file.fd, at))


def matching(
    db: apsw.Connection, transcript: Transcript, session: SessionId, pattern: str
) -> set[int]:
    """The records of a session with a text that a regular expression matches."""
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise SessError(f'not a regular expression: "{pattern}": {error}') from None
    return {
        record.number
        for record in transcript.of(session)
        if any(expression.search(text) for text in texts_of(db, record))
    }


def texts_of(db: apsw.Connection, record: Record) -> list[str]:
    """What a record says in full: its words, inputs of its calls, outputs of its results."""
    results = {result.event for result in record.results}
    calls = {call.event for call in record.calls}
    texts = []
    for event in record.events:
        row = db.execute("SELECT text, input, output FROM event_texts WHERE id = ?", (event,))
        text, arguments, output = row.fetchone() or ("", "", "")
        if event in results:
            texts.append(output)
        if event in calls:
            texts.append(arguments)
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
    if target.kind == DATABASE and target.session.agent != _SIDECAR_AGENT:
        raise SessError(
            f'"{target.path}" is a database of {target.session.agent}, which is never written to',
            hint="`sess records` and `sess suggest` work, cutting does not",
        )


def _check_chain(db: apsw.Connection, target: Target, cut: Plan) -> None:
    """Refuse what would leave a session that its agent cannot load, or loads in part."""
    transcript, agent = cut.transcript, target.session.agent
    chain = transcript.chain
    folder, name = os.path.split(target.path)
    if chain.beside not in (None, name) and os.path.isfile(os.path.join(folder, chain.beside)):
        raise SessError(
            f'{agent} does not continue from "{target.path}"',
            hint=f"it continues from {chain.beside} beside it, which a cut would not change",
        )
    for kind in chain.heads if target.kind == LOG else ():
        head = next((one for one in transcript.records if one.kind == kind), None)
        if head is not None and head.number in cut.gone:
            raise SessError(
                f"record {head.number} ({kind}) cannot be cut",
                hint=f"{agent} cannot load a session without it",
            )
    value = _values(db, target)
    asked = {*cut.gone, *(number + 1 for number in cut.gone)} if chain.parent else set()
    for number in sorted(asked):
        if number <= len(transcript.records):
            record = transcript.at(number)
            if not is_followed(chain, record, value(record)):
                raise SessError(
                    f'cannot tell what follows record {number} of "{target.path}"',
                    hint="its id is not where it is expected; nothing was changed",
                )


def _document_swaps(
    db: apsw.Connection,
    target: Target,
    cut: Plan,
    links: Iterable[Link],
    file: live.LiveFile,
) -> list[splices.Swap]:
    stored = RecordReader(db)
    values = [_decoded(_raw(stored, target, record)) for record in cut.transcript.records]
    try:
        text = b"".join(log.pieces(file.fd, 0, file.size)).decode()
        gone = {number - 1 for number in cut.gone}
        swaps = splices.without_elements(text, values, gone, links)
    except (ValueError, IndexError, RecursionError):
        swaps = None
    if swaps is None:
        raise SessError(
            f'cannot cut single records of "{target.path}"',
            hint=f"{target.session.agent} does not keep them as elements of a list",
        )
    return swaps


def _raw(stored: RecordReader, target: Target, record: Record) -> bytes:
    return stored.bytes_of((target.source, 0, record.offset, record.length)).strip()


def _decoded(raw: bytes) -> Any:
    try:
        return decode.decode(raw)[0]
    except ValueError:
        return None


def _repeats(
    db: apsw.Connection, target: Target, transcript: Transcript, cut: Plan
) -> dict[int, set[int]]:
    """Records near one that goes that say nothing but what it says, as in Codex's rollouts."""
    if target.kind != LOG:
        return {}
    stored = RecordReader(db)
    repeats: dict[int, set[int]] = {}
    for record in cut.removed():
        near = transcript.records[max(0, record.number - 1 - _NEAR) : record.number + _NEAR]
        silent = [
            other
            for other in near
            if not other.events
            and other.number not in cut.gone
            and other.kind not in transcript.chain.heads
        ]
        if not silent:
            continue
        texts = {text for text in texts_of(db, record) if len(text) >= _SHORTEST_REPEATED}
        for other in silent:
            if texts & strings(_decoded(_raw(stored, target, other))):
                repeats.setdefault(record.number, set()).add(other.number)
    return repeats


def sidecar_path(database: str) -> str:
    """Cursor's databases are never written to: what a cut leaves goes into a file beside them."""
    return os.path.realpath(database) + ".excised.jsonl"


def _write_sidecar(db: apsw.Connection, target: Target, plan: Plan, change: log.Change) -> log.Edit:
    """Write the records that stay, after those of other conversations that are there already."""
    path = sidecar_path(target.path)
    cut = {record.id for record in plan.removed()}
    for edit in log.entries():  # what earlier cuts took out stays out
        if (edit.path, edit.session, edit.state) == (path, change.session, log.DONE):
            cut |= {*edit.cut, *edit.pulled}
    stored = RecordReader(db)
    kept = [record for record in plan.transcript.records if record.id not in cut]
    lines = (_raw(stored, target, record) + b"\n" for record in kept)
    if not os.path.exists(path):
        return live.create(path, lines, change)
    with live.opened(path, force=True) as file:  # nobody but us writes it
        raw = b"".join(log.pieces(file.fd, 0, file.size))
        others = [
            line for line in raw.splitlines(keepends=True) if _composer_of(line) != change.session
        ]
        return file.rewrite([*others, *lines], change)


def _composer_of(line: bytes) -> object:
    value = _decoded(line)
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
    typed = [record for record in transcript.of(session) if "user" in record.types]
    typed = [record for record in typed if not record.superseded]
    if prompts >= len(typed):
        return set()
    first = typed[prompts].number
    gone = {
        record.number
        for record in transcript.records
        if (record.number >= first and record.kind not in labels.LASTING)
        # With no prompts, nothing is left that it could be the prompt of.
        or (prompts == 0 and record.kind == labels.SYSTEM_PROMPT)
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
