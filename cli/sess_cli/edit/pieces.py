"""Which bytes of a file stay, and which are replaced."""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sess_cli.edit.live import Piece
from sess_common.errors import SessError
from sess_schema.queries.transcripts import Record, Transcript

_LOOK = 4096


class Swap(NamedTuple):
    """Bytes of a file, and what stands there instead."""

    start: int
    end: int
    new: bytes = b""


def around(swaps: Iterable[Swap], size: int) -> list[Piece]:
    """The pieces of a file of this size with some of them swapped."""
    pieces: list[Piece] = []
    at = 0
    for start, end, new in sorted(swaps):
        if start > at:
            pieces.append((at, start))
        if new:
            pieces.append(new)
        at = max(at, end)
    if size > at:
        pieces.append((at, size))
    return pieces


def without_lines(fd: int, transcript: Transcript, gone: Iterable[int]) -> list[Swap]:
    """Records of a log taken out with their newlines. Several may be glued into one line."""
    cut = set(gone)
    by_line: dict[int, list[Record]] = defaultdict(list)
    for number in cut:
        by_line[transcript.at(number).line].append(transcript.at(number))
    together: dict[int, int] = defaultdict(int)
    for record in transcript.records:
        if record.line in by_line:
            together[record.line] += 1
    swaps = []
    for line, records in by_line.items():
        if len(records) == together[line]:
            first = min(record.offset for record in records)
            last = max(record.offset + record.length for record in records)
            swaps.append(Swap(_line_start(fd, first), _line_end(fd, last)))
        else:
            swaps += [Swap(record.offset, record.offset + record.length) for record in records]
    return swaps


def relinked(fd: int, transcript: Transcript, parents: Mapping[int, str | None]) -> list[Swap]:
    """New values for the field that names a record's parent, and for nothing else."""
    found = []
    for number, parent in parents.items():
        record = transcript.at(number)
        raw = os.pread(fd, record.length, record.offset)
        start, end, new = other_parent(raw, record.parent_id, parent)
        found.append(Swap(record.offset + start, record.offset + end, new))
    return found


def other_parent(raw: bytes, old: str | None, parent: str | None) -> Swap:
    """Where a record names its parent, and what must stand there instead."""
    new = json.dumps(parent, ensure_ascii=False).encode()
    value = re.escape(json.dumps(old, ensure_ascii=False).encode())
    for found in re.finditer(rb'"(\w*parent\w*)"\s*:\s*(' + value + rb")", raw, re.IGNORECASE):
        start, end = found.span(2)
        changed = raw[:start] + new + raw[end:]
        if _differ_only_in(raw, changed, found[1].decode(), parent):
            return Swap(start, end, new)
    raise SessError(
        f'cannot relink the record that follows "{old}": it does not say so in a field of its own',
        hint="`--force` without `--relink` leaves it as it is",
    )


def _differ_only_in(raw: bytes, changed: bytes, name: str, value: str | None) -> bool:
    try:
        before, after = json.loads(raw), json.loads(changed)
    except ValueError:
        return False
    return isinstance(before, dict) and name in before and after == {**before, name: value}


def _line_start(fd: int, at: int) -> int:
    while at > 0:
        start = max(0, at - _LOOK)
        before = os.pread(fd, at - start, start)
        if (newline := before.rfind(b"\n")) >= 0:
            return start + newline + 1
        at = start
    return 0


def _line_end(fd: int, at: int) -> int:
    """Behind the newline, or the end of the file."""
    while piece := os.pread(fd, _LOOK, at):
        if (newline := piece.find(b"\n")) >= 0:
            return at + newline + 1
        at += len(piece)
    return at
