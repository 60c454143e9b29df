"""Lines to turns: reads one file from its checkpoint on, in slices that each fit a transaction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import orjson

from sess_schema import archive, decode
from sessiond.reading import tail
from sessiond.sourcekit.base import Event, Parser, Record, SessionSpec
from sessiond.sourcekit.values import strings

PREVIEW = 100
PACK_AHEAD = 64 << 10  # smaller slices are packed by the store, together with the last chunk


@dataclass(slots=True)
class Turn:
    """A record with its place in the file and the hash that recognises a copy of it."""

    offset: int
    length: int
    line: int
    record: Record
    digest: int
    id: int = 0  # once it is stored


@dataclass(slots=True)
class Problem:
    line: int
    offset: int
    reason: str
    preview: str


@dataclass(slots=True)
class Progress:
    """Everything that must commit with the rows of a slice."""

    checkpoint: tail.Checkpoint = field(default_factory=tail.Checkpoint)
    lines: int = 0
    blank_lines: int = 0
    parser_state: dict[str, Any] | None = field(default_factory=dict)  # None: not loaded


@dataclass(slots=True)
class Slice:
    start: int
    raw: bytes
    packed: bytes | None
    turns: list[Turn]
    problems: list[Problem]
    progress: Progress
    unfinished: bytes = b""  # the last line, if the writer left it without a newline


def hash64(*parts: bytes) -> int:
    """A signed 64-bit hash, as SQLite stores integers."""
    return int.from_bytes(blake2b(b"\0".join(parts), digest_size=8).digest(), "little", signed=True)


def content(record: Record) -> bytes:
    """What the record says."""
    parts: list[str] = []
    for event in record.events:
        parts += (event.type, event.tool or "", event.call_id or "", event.text, event.input)
    for result in record.results:
        parts += (result.call_id, result.status, result.output)
    return "\0".join(parts).encode("utf-8", "replace")


def said(record: Record) -> int:
    """Recognises a copy of a record that has an id."""
    return hash64(record.kind.encode("utf-8", "replace"), content(record))


class SliceReader:
    """Reads one open file; keeps the parser and the counters between slices."""

    def __init__(self, fd: int, spec: SessionSpec, parser: Parser, progress: Progress) -> None:
        self._fd = fd
        self._spec = spec
        self._parser = parser
        self._checkpoint = progress.checkpoint
        self._lines = progress.lines
        self._blank = progress.blank_lines
        self._turns: list[Turn] = []
        self._problems: list[Problem] = []

    def slices(self) -> Iterator[Slice]:
        for block in tail.blocks(self._fd, self._checkpoint):
            self._turns, self._problems = [], []
            oversize_from = None
            if block.kind == "lines":
                self._read_lines(block.start, block.data)
            elif block.kind == "rest":
                if not self._read_rest(block.start, block.data):
                    yield self._slice(block.start, b"", None, unfinished=block.data)
                    return
            else:
                oversize_from = self._oversize(block)
            yield self._slice(block.start, block.data, oversize_from)

    def _slice(
        self, start: int, raw: bytes, oversize_from: int | None, unfinished: bytes = b""
    ) -> Slice:
        if raw:
            self._checkpoint = tail.advance(
                self._checkpoint, self._fd, start + len(raw), oversize_from
            )
        packed = archive.pack(raw) if len(raw) >= PACK_AHEAD else None
        progress = Progress(self._checkpoint, self._lines, self._blank, self._parser.state())
        return Slice(start, raw, packed, self._turns, self._problems, progress, unfinished)

    def _read_lines(self, start: int, data: bytes) -> None:
        offset = start
        lines = data.split(b"\n")
        lines.pop()  # after the last newline
        if self._inside_a_line(start):
            rest = lines.pop(0)
            if rest.strip():
                self._read_line(offset, rest)
            offset += len(rest) + 1
        for line in lines:
            self._lines += 1
            if line:
                self._read_line(offset, line)
            else:
                self._blank += 1
            offset += len(line) + 1

    def _inside_a_line(self, start: int) -> bool:
        """A whole record without its newline was read before; the newline came later."""
        return start > 0 and tail.read_at(self._fd, 1, start - 1) != b"\n"

    def _read_rest(self, start: int, data: bytes) -> bool:
        """A last line without newline is taken once it is a whole object: none can grow longer."""
        try:
            value = orjson.loads(data)
        except orjson.JSONDecodeError:
            return False
        if not isinstance(value, dict):
            return False
        if not self._inside_a_line(start):
            self._lines += 1
        self._add(start, data, value)
        return True

    def _read_line(self, offset: int, line: bytes) -> None:
        if len(line) > tail.LONGEST_LINE:
            self._add_oversize(offset, len(line), line[: PREVIEW * 4])
            return
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            self._read_odd_line(offset, line)
            return
        if isinstance(value, dict):
            self._add(offset, line, value)
        else:
            self._add_unparsed(offset, line, "other", value, "record is not an object")

    def _read_odd_line(self, offset: int, line: bytes) -> None:
        if not line.strip():
            self._blank += 1
            return
        for piece in decode.split_line(line):
            raw = line[piece.start : piece.end]
            at = offset + piece.start
            if piece.broken:
                text = raw.decode("utf-8", "replace")
                self._add_unparsed(at, raw, "broken", text, piece.problem or "not JSON")
            elif isinstance(piece.value, dict):
                self._add(at, raw, piece.value, piece.problem)
            else:
                self._add_unparsed(at, raw, "other", piece.value, "record is not an object")

    def _add(
        self, offset: int, raw: bytes, value: dict[str, Any], problem: str | None = None
    ) -> None:
        try:
            record = self._parser.parse(value)
        except Exception as error:
            reason = f"parser failed: {type(error).__name__}"
            self._add_unparsed(offset, raw, "broken", value, reason)
            return
        if problem:
            self._problem(offset, raw, problem)
        for warning in record.warnings:
            self._problem(offset, raw, warning)
        self._append(offset, raw, record)

    def _add_unparsed(self, offset: int, raw: bytes, kind: str, value: Any, reason: str) -> None:
        text = "\n".join(strings(value)).strip()
        record = Record(kind, events=[Event("system", text, label=kind)] if text else [])
        self._problem(offset, raw, reason)
        self._append(offset, raw, record)

    def _append(self, offset: int, raw: bytes, record: Record) -> None:
        digest = said(record) if record.native_id else self._digest_of_place(offset, raw)
        self._turns.append(Turn(offset, len(raw), self._lines, record, digest))

    def _digest_of_place(self, offset: int, raw: bytes) -> int:
        """A record without an id is only the same in a copy of its whole file."""
        owner = f"{self._spec.home}\0{self._spec.native_id}".encode("utf-8", "replace")
        return hash64(owner, b"%d" % offset, raw)

    def _problem(self, offset: int, raw: bytes, reason: str) -> None:
        preview = raw[: PREVIEW * 4].decode("utf-8", "replace")[:PREVIEW]
        self._problems.append(Problem(self._lines, offset, reason, preview))

    def _oversize(self, block: tail.Block) -> int | None:
        begun = self._checkpoint.oversize_from
        if begun is None:
            begun = block.start
            self._lines += 1
        if block.kind == "oversize":
            return begun
        length = block.start + len(block.data) - 1 - begun
        self._add_oversize(begun, length, tail.read_at(self._fd, PREVIEW * 4, begun))
        return None

    def _add_oversize(self, offset: int, length: int, head: bytes) -> None:
        reason = f"line of {length >> 20} MiB is archived but not searchable"
        self._problem(offset, head, reason)
        digest = self._digest_of_place(offset, b"%d %s" % (length, head))
        self._turns.append(Turn(offset, length, self._lines, Record("oversize"), digest))
