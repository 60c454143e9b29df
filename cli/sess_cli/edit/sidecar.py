"""Cursor's databases are never written to: what a cut leaves goes into a file beside them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from sess_cli.edit import live, log
from sess_cli.edit.log import Change, Edit
from sess_cli.edit.target import Target
from sess_common import decode
from sess_schema.queries.transcripts import Record, Transcript
from sess_schema.records import RecordReader

if TYPE_CHECKING:
    import apsw

AGENT = "cursor"
_SUFFIX = ".excised.jsonl"


def path_of(database: str) -> str:
    return os.path.realpath(database) + _SUFFIX


def write(
    db: apsw.Connection,
    target: Target,
    transcript: Transcript,
    gone: Iterable[Record],
    change: Change,
) -> Edit:
    """Write the records that stay, after those of other conversations that are there already."""
    path = path_of(target.path)
    cut = {record.id for record in gone}
    for edit in log.entries():  # what earlier cuts took out stays out
        if (edit.path, edit.session, edit.state) == (path, change.session, log.DONE):
            cut |= {*edit.cut, *edit.pulled}
    kept = [record for record in transcript.records if record.id not in cut]
    lines = _lines(db, target, kept)
    if not os.path.exists(path):
        return live.create(path, lines, change)
    with live.opened(path, force=True) as file:  # nobody but us writes it
        raw = b"".join(log.pieces(file.fd, 0, file.size))
        others = [
            line for line in raw.splitlines(keepends=True) if _composer(line) != change.session
        ]
        return file.rewrite([*others, *lines], change)


def _lines(db: apsw.Connection, target: Target, records: Iterable[Record]) -> Iterator[bytes]:
    stored = RecordReader(db)
    for record in records:
        yield stored.bytes_of((target.source, 0, record.offset, record.length)).strip() + b"\n"


def _composer(line: bytes) -> object:
    try:
        value = decode.decode(line)[0]
    except ValueError:
        return None
    return value.get("composerId") if isinstance(value, dict) else None
