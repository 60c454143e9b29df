"""The steps of a log as flat tuples: `marshal` moves these between processes at little cost."""

from __future__ import annotations

from dataclasses import fields
from operator import attrgetter
from typing import Any

from sess_schema.edits import Edit
from sessiond.engines.slices import PlacedRecord, Problem, Slice
from sessiond.engines.steps import (
    AddSlice,
    CompareLog,
    Fail,
    Finish,
    RefreshSession,
    ReplaceAttachment,
    Step,
    Vanish,
)
from sessiond.reading.survey import Candidate
from sessiond.reading.tail import Checkpoint, Stat
from sessiond.reading.tracked import Progress, Tracked
from sessiond.sourcekit.base import (
    Event,
    Link,
    Record,
    Result,
    Retire,
    SessionSpec,
    Title,
    Usage,
)
from sessiond.sourcekit.folders import ProjectFolder

Flat = tuple[Any, ...]


def _values_of(kind: type) -> Any:
    """A function that returns the fields of an instance, in the order of its constructor."""
    return attrgetter(*(field.name for field in fields(kind)))


_record_values, _event_values, _result_values = map(_values_of, (Record, Event, Result))
_usage_values, _title_values, _link_values = map(_values_of, (Usage, Title, Link))
_retire_values, _edit_values, _problem_values = map(_values_of, (Retire, Edit, Problem))
_spec_values, _stat_values, _mark_values = map(_values_of, (SessionSpec, Stat, Checkpoint))
_NAMES = [field.name for field in fields(Record)]
_EVENTS, _USAGE = _NAMES.index("events"), _NAMES.index("usage")
_EDITS = [field.name for field in fields(Event)].index("edits")
_FOLDER = [field.name for field in fields(SessionSpec)].index("folder")
# The other lists of a record, with what they hold; most are empty.
_LISTS = [
    (_NAMES.index("results"), _result_values, Result),
    (_NAMES.index("advice"), _usage_values, Usage),
    (_NAMES.index("titles"), _title_values, Title),
    (_NAMES.index("links"), _link_values, Link),
    (_NAMES.index("retires"), _retire_values, Retire),
]


def flat(step: Step) -> Flat:
    """A step without its file and source, which both sides know."""
    match step:
        case AddSlice(spec=spec, slice_=slice_):
            return "slice", flat_spec(spec), _flat_slice(slice_)
        case RefreshSession(spec=spec):
            return "refresh", flat_spec(spec)
        case Finish():
            return "finish", _stat_values(step.stat), step.unsettled, step.partial, step.empty
        case Fail():
            return "fail", step.problem, step.crashed
        case CompareLog():
            return ("compare",)
        case ReplaceAttachment():
            return ("attachment",)
        case Vanish():
            return ("vanish",)
    raise TypeError(step)


def step_of(file: Candidate, source: Tracked, values: Flat) -> Step:
    """The step that `flat` took apart."""
    match values:
        case "slice", spec, slice_:
            return AddSlice(file, source, spec_of(spec), _slice_of(slice_))
        case "refresh", spec:
            return RefreshSession(file, source, spec_of(spec))
        case "finish", stat, unsettled, partial, empty:
            return Finish(file, source, Stat(*stat), unsettled, partial, empty)
        case "fail", problem, crashed:
            return Fail(file, source, problem, crashed)
        case ("compare",):
            return CompareLog(file, source)
        case ("attachment",):
            return ReplaceAttachment(file, source)
        case ("vanish",):
            return Vanish(file, source)
    raise TypeError(values[0])


def flat_stat(stat: Stat | None) -> Flat | None:
    return None if stat is None else _stat_values(stat)


def flat_spec(spec: SessionSpec) -> Flat:
    values = list(_spec_values(spec))
    if spec.folder is not None:
        values[_FOLDER] = tuple(spec.folder)
    return tuple(values)


def spec_of(values: Flat) -> SessionSpec:
    given = list(values)
    if given[_FOLDER] is not None:
        given[_FOLDER] = ProjectFolder(*given[_FOLDER])
    return SessionSpec(*given)


def flat_progress(progress: Progress) -> Flat:
    mark = _mark_values(progress.checkpoint)
    return mark, progress.lines, progress.blank_lines, progress.parser_state


def progress_of(values: Flat) -> Progress:
    mark, lines, blank_lines, state = values
    return Progress(Checkpoint(*mark), lines, blank_lines, state)


def _flat_slice(slice_: Slice) -> Flat:
    return (
        slice_.start,
        b"" if slice_.packed is not None else slice_.raw,
        slice_.packed,
        [(t.offset, t.length, t.line, _flat_record(t.record), t.digest) for t in slice_.records],
        list(map(_problem_values, slice_.problems)),
        flat_progress(slice_.progress),
        slice_.unfinished,
        slice_.size,
    )


def _slice_of(values: Flat) -> Slice:
    start, raw, packed, records, problems, progress, unfinished, size = values
    return Slice(
        start,
        raw,
        packed,
        [
            PlacedRecord(at, length, line, _record_of(r), digest)
            for at, length, line, r, digest in records
        ],
        [Problem(*one) for one in problems],
        progress_of(progress),
        unfinished,
        size,
    )


def _flat_record(record: Record) -> list[Any]:
    values = list(_record_values(record))
    if record.events:
        values[_EVENTS] = [_flat_event(event) for event in record.events]
    if record.usage is not None:
        values[_USAGE] = _usage_values(record.usage)
    for at, values_of, _ in _LISTS:
        if values[at]:
            values[at] = list(map(values_of, values[at]))
    return values


def _record_of(values: list[Any]) -> Record:
    if values[_EVENTS]:
        values[_EVENTS] = [_event_of(event) for event in values[_EVENTS]]
    if values[_USAGE] is not None:
        values[_USAGE] = Usage(*values[_USAGE])
    for at, _, kind in _LISTS:
        if values[at]:
            values[at] = [kind(*one) for one in values[at]]
    return Record(*values)


def _flat_event(event: Event) -> Flat:
    values: Flat = _event_values(event)
    if event.edits:
        edits = tuple(map(_edit_values, event.edits))
        return *values[:_EDITS], edits, *values[_EDITS + 1 :]
    return values


def _event_of(values: Flat) -> Event:
    event = Event(*values)
    if event.edits:
        event.edits = tuple([Edit(*one) for one in event.edits])  # type: ignore[misc]
    return event
