"""Append-only JSON Lines logs: reads everything new since the checkpoint, in slices."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import apsw
import orjson

from sess_common import decode
from sess_schema import archive, labels
from sess_schema.archive import hidden_bytes
from sessiond.engines import steps
from sessiond.reading import tail
from sessiond.reading.survey import Candidate
from sessiond.reading.tail import Stat
from sessiond.reading.territory import HEAD_BYTES
from sessiond.reading.tracked import PARKED, UNREADABLE, Progress, Tracked
from sessiond.sourcekit.base import Event, Parser, Record, SessionSpec, Source
from sessiond.sourcekit.bounds import LONGEST_UNPARSED, bound
from sessiond.sourcekit.values import strings

if TYPE_CHECKING:
    from sessiond.sourcekit.masking import Masker

SETTLE_SECONDS = 2.0  # an unfinished last line is taken as it is after this time
PREVIEW = 100
MOST_RECORDS = 4096  # of a slice
PACK_AHEAD = 64 << 10  # the writer packs smaller slices, together with the last chunk


def read_log(
    file: Candidate,
    source: Tracked,
    index: apsw.Connection,
    *,
    settle_all: bool,
    mask: Masker | None = None,
) -> Iterator[steps.Step]:
    """Read what is new in a log or attachment; the last step has the stat from before."""
    try:
        fd, stat = tail.open_log(file.path)
    except FileNotFoundError:
        if source.id is not None:
            yield steps.Vanish(file, source)
        return
    except tail.Unreadable as error:
        yield steps.Fail(file, source, str(error))
        return
    try:
        if source.stat == stat and source.state not in (UNREADABLE, PARKED):
            if file.kind == "transcript":
                yield steps.RefreshSession(file, source, _identify(file, fd, mask))
            yield steps.Finish(file, source, stat)
        elif stat.size == 0 and source.progress.checkpoint.offset:
            yield steps.Finish(file, source, stat)  # emptied: like a deleted file, its records stay
        elif file.kind == "attachment":
            yield steps.ReplaceAttachment(file, source)
            yield steps.Finish(file, source, stat, empty=True)
        elif _may_be_rewritten(source, stat):
            yield steps.CompareLog(file, source)
        else:
            yield from read_new(file, source, fd, stat, index, settle_all=settle_all, mask=mask)
    finally:
        os.close(fd)


def _may_be_rewritten(source: Tracked, stat: Stat) -> bool:
    """An append makes a file larger in place; any other change may be a rewrite."""
    old = source.stat
    return old is not None and (stat.inode != old.inode or stat.size <= old.size)


def _identify(file: Candidate, fd: int, mask: Masker | None) -> SessionSpec:
    head = tail.read_at(fd, HEAD_BYTES, 0)
    if mask is None:
        return file.agent.identify(file.path, head)
    mask = mask.remembering()
    return mask.spec(file.agent.identify(file.path, mask.lines(head)))


def read_new(
    file: Candidate,
    source: Tracked,
    fd: int,
    stat: Stat,
    index: apsw.Connection,
    *,
    settle_all: bool,
    mask: Masker | None = None,
) -> Iterator[steps.Step]:
    """Read an open log from its checkpoint to its end."""
    try:
        edges = tail.verify(source.progress.checkpoint, fd)
        if stat.size == 0:
            yield steps.Finish(file, source, stat, empty=True)
            return
        spec = _identify(file, fd, mask)
        parser = file.agent.parser(spec, source.parser_state(index))
        if mask is not None:
            mask = mask.of_log(file.path, fd, source.progress.checkpoint.offset)
        unsettled, empty = False, True
        for slice_ in LogReader(fd, spec, parser, source.progress, edges, mask=mask).slices():
            if slice_.unfinished and not (settle_all or _rests(stat)):
                slice_.unfinished = b""
                unsettled = True
            empty = False
            yield steps.AddSlice(file, source, spec, slice_)
        if empty:
            yield steps.RefreshSession(file, source, spec)
        yield steps.Finish(file, source, stat, unsettled=unsettled, empty=empty)
    except tail.Rewritten:
        yield steps.CompareLog(file, source)
    except OSError as error:
        yield steps.Fail(file, source, (error.strerror or str(error)).lower())
    except apsw.Error:  # of the index
        raise
    except Exception as error:
        yield steps.Fail(file, source, f"{type(error).__name__}: {error}", crashed=True)


def read_archived(
    agent: Source, path: str, fd: int, mask: Masker | None
) -> tuple[SessionSpec, Iterator[steps.Slice]]:
    """The session of a log and all its slices, from bytes of the archive."""
    spec = agent.identify(path, tail.read_at(fd, HEAD_BYTES, 0))
    if mask is not None:
        mask = mask.remembering()
        spec = mask.spec(spec)
    return spec, LogReader(fd, spec, agent.parser(spec, {}), Progress(), mask=mask).slices()


def _rests(stat: Stat) -> bool:
    """Whether the file was not written to for a while."""
    return time.time() - stat.mtime_ns / 1e9 > SETTLE_SECONDS


def _joined(value: Any) -> str:
    """The strings of a record that is not understood, up to a limit."""
    pieces, size = [], 0
    for piece in strings(value):
        pieces.append(piece)
        size += len(piece) + 1
        if size > LONGEST_UNPARSED:
            break
    return "\n".join(pieces)[:LONGEST_UNPARSED].strip()


def _masked(block: tail.Block, mask: Masker) -> tail.Block:
    """A line that is too long to be searched is hidden as a whole."""
    if block.kind == "lines":
        return replace(block, data=mask.lines(block.data))
    return replace(
        block, data=mask.raw(block.data) if block.kind == "rest" else hidden_bytes(block.data)
    )


class LogReader:
    """Reads one open file; keeps the parser and counters from slice to slice."""

    def __init__(
        self,
        fd: int,
        spec: SessionSpec,
        parser: Parser,
        progress: Progress,
        edges: tail.Edges | None = None,  # of what was read before
        *,
        mask: Masker | None = None,
    ) -> None:
        self._fd = fd
        self._mask = mask
        self._unmasked = tail.Block(0, b"", "lines")
        self._edges = edges or tail.Edges()
        self._spec = spec
        self._parser = parser
        self._checkpoint = progress.checkpoint
        self._lines = progress.lines
        self._blank = progress.blank_lines
        self._nameless = (0, 0)  # the line of the last record without an id; others in that line
        self._records: list[steps.PlacedRecord] = []
        self._problems: list[steps.Problem] = []

    def slices(self) -> Iterator[steps.Slice]:
        for block in self._blocks():
            if block.kind == "lines":
                yield from self._line_slices(block.start, block.data)
            elif block.kind == "rest":
                if not self._read_rest(block.start, block.data):
                    unfinished = hidden_bytes(block.data) if self._mask else block.data
                    yield self._slice(block.start, b"", unfinished=unfinished)
                    return
                yield self._slice(block.start, block.data)
            else:
                oversize_from = self._oversize(block)
                yield self._slice(block.start, block.data, oversize_from)

    def _blocks(self) -> Iterator[tail.Block]:
        for block in tail.blocks(self._fd, self._checkpoint):
            self._unmasked = block
            yield block if self._mask is None else _masked(block, self._mask)

    def _line_slices(self, start: int, data: bytes) -> Iterator[steps.Slice]:
        """Lines of a few bytes become rows of hundreds, so a slice has a limited number of them."""
        at = self._end_line(start, data) if self._inside_a_line() else 0
        began = 0
        while at < len(data):
            end = data.find(b"\n", at)
            self._lines += 1
            if end > at:
                self._read_line(start + at, data[at:end])
            else:
                self._blank += 1
            at = end + 1
            if len(self._records) >= MOST_RECORDS and at < len(data):
                yield self._slice(start + began, data[began:at])
                began = at
        yield self._slice(start + began, data[began:] if began else data)

    def _end_line(self, start: int, data: bytes) -> int:
        """Read the rest of a line whose first record was read before; return where it ends."""
        end = data.find(b"\n")
        rest = data[:end]
        if rest.strip():
            self._read_line(start, rest)
        return end + 1

    def _slice(
        self, start: int, raw: bytes, oversize_from: int | None = None, unfinished: bytes = b""
    ) -> steps.Slice:
        """Everything read since the last slice."""
        if raw:
            self._edges.add(raw if self._mask is None else self._as_read(start, len(raw)))
            self._checkpoint = tail.advance(
                self._checkpoint, self._edges, start + len(raw), oversize_from
            )
        packed = None
        if raw and len(raw) <= 2 * tail.BLOCK and (len(raw) >= PACK_AHEAD or start == 0):
            packed = archive.pack(raw)
        progress = Progress(self._checkpoint, self._lines, self._blank, self._parser.state())
        records, problems = self._records, self._problems
        self._records, self._problems = [], []
        return steps.Slice(start, raw, packed, records, problems, progress, unfinished, len(raw))

    def _as_read(self, start: int, length: int) -> bytes:
        """What the file has at a place: its marks are compared with the file, not the archive."""
        at = start - self._unmasked.start
        return self._unmasked.data[at : at + length]

    def _inside_a_line(self) -> bool:
        """Whether the last slice ended with a whole record whose newline came later."""
        return self._edges.last[-1:] not in (b"", b"\n")

    def _read_rest(self, start: int, data: bytes) -> bool:
        """Take a last line without a newline if it is a whole object, which cannot grow."""
        try:
            value = None if decode.is_crowded(data) else orjson.loads(data)
        except orjson.JSONDecodeError:
            return False
        if not isinstance(value, dict):
            return False
        if not self._inside_a_line():
            self._lines += 1
        self._add(start, data, value)
        return True

    def _read_line(self, offset: int, line: bytes) -> None:
        if len(line) > tail.LONGEST_LINE:
            self._add_oversize(offset, len(line), line[: PREVIEW * 4])
            return
        try:
            value = orjson.loads(line) if not decode.is_crowded(line) else None
        except orjson.JSONDecodeError:
            value = None
        if value is None:
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
                text = raw[:LONGEST_UNPARSED].decode("utf-8", "replace")
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
        if self._mask is not None:
            self._mask.record(record)
        bound(record)
        if problem:
            self._problem(offset, raw, problem)
        for warning in record.warnings:
            self._problem(offset, raw, warning)
        self._append(offset, raw, record)

    def _add_unparsed(self, offset: int, raw: bytes, kind: str, value: Any, reason: str) -> None:
        text = _joined(value)
        record = Record(kind, events=[Event("system", text, label=kind)] if text else [])
        self._problem(offset, raw, reason)
        self._append(offset, raw, record)

    def _append(self, offset: int, raw: bytes, record: Record) -> None:
        digest = steps.content_digest(record)
        if not record.native_id:
            digest = self._digest_of_place(digest)
        self._records.append(steps.PlacedRecord(offset, len(raw), self._lines, record, digest))

    def _digest_of_place(self, digest: int) -> int:
        """A record without an id is a copy only in a copy of its whole file."""
        owner = f"{self._spec.home}\0{self._spec.native_id}".encode("utf-8", "replace")
        line, glued = self._nameless
        self._nameless = self._lines, (glued + 1 if line == self._lines else 0)
        return steps.hash64(owner, b"%d %d %d" % (*self._nameless, digest))

    def _problem(self, offset: int, raw: bytes, reason: str) -> None:
        preview = raw[: PREVIEW * 4].decode("utf-8", "replace")[:PREVIEW]
        self._problems.append(steps.Problem(self._lines, offset, reason, preview))

    def _oversize(self, block: tail.Block) -> int | None:
        began = self._checkpoint.oversize_from
        if began is None:
            began = block.start
            self._lines += 1
        if block.kind == "oversize":
            return began
        length = block.start + len(block.data) - 1 - began
        head = tail.read_at(self._fd, PREVIEW * 4, began)
        self._add_oversize(began, length, hidden_bytes(head) if self._mask else head)
        return None

    def _add_oversize(self, offset: int, length: int, head: bytes) -> None:
        reason = f"line of {length >> 20} MiB is archived but not searchable"
        self._problem(offset, head, reason)
        digest = self._digest_of_place(steps.hash64(b"%d" % length, head))
        record = Record("oversize", events=[Event("system", reason, label=labels.OVERSIZE)])
        self._records.append(steps.PlacedRecord(offset, length, self._lines, record, digest))
