"""The sources and archived pieces in a damaged index, recognised by their shape alone."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sess_common.progress import Progress, unseen
from sess_schema import archive, marks
from sess_schema.archive import hidden_bytes
from sess_schema.marks import Mark
from sessiond.salvage.pages import INDEX_LEAF, Pages, Row, rows_of_leaf
from sessiond.sourcekit.masking import Masker

_ZSTD = b"\x28\xb5\x2f\xfd"
_STATES = ("live", "gone", "parked", "unreadable", "forgotten", "excluded")
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,40}\Z")
_KINDS = ("transcript", "mirror", "attachment", "document", "database", "export")
_CHUNK_COLUMNS, _MARK_COLUMNS = 6, 7
_MARK_KINDS = tuple(kind.encode() for kind in marks.KINDS)
_LEAST_SOURCE_COLUMNS = 24


@dataclass(slots=True)
class FoundSource:
    """A row of `sources`, or what its chunks alone tell."""

    id: int
    agent: str | None = None
    kind: str = "transcript"
    path: str | None = None
    state: str = "gone"
    generation: int = 1
    read_to: int = 0
    part_of: int | None = None
    fallback: int = 0
    chunks: list[Piece] = field(default_factory=list)
    lost: list[Piece] = field(default_factory=list)  # damaged beyond use
    doubtful: bool = False  # its row is on a damaged page


class Piece(NamedTuple):
    """A row of `chunks`; without data if it is damaged."""

    id: int
    source: int
    retired: int
    offset: int
    length: int
    data: bytes = b""
    doubtful: bool = False  # on a damaged page: its bytes are right, its place may not be

    @property
    def end(self) -> int:
        return self.offset + self.length


def find(
    path: str, progress: Progress = unseen, *, own_marks: set[Mark] | None = None
) -> list[FoundSource]:
    """Everything that can be taken out of the file, by source; also what people noted."""
    pages = Pages(path)
    try:
        sources, pieces, damaged = _scan(pages, progress, set() if own_marks is None else own_marks)
    finally:
        pages.close()
    for piece in (*pieces.values(), *damaged.values()):
        sources.setdefault(piece.source, FoundSource(piece.source))
    for piece in pieces.values():
        sources[piece.source].chunks.append(piece)
    for piece in damaged.values():
        if piece.id not in pieces:
            sources[piece.source].lost.append(piece)
    for source in sources.values():
        fitting = [*_fitting(source)]
        source.lost += [one._replace(data=b"") for one in source.chunks if one not in fitting]
        source.chunks = [*_without_leftovers(source, fitting)]
    return [sources[key] for key in sorted(sources)]


def _scan(
    pages: Pages, progress: Progress, own_marks: set[Mark]
) -> tuple[dict[int, FoundSource], dict[int, Piece], dict[int, Piece]]:
    """Sources, intact pieces and damaged ones, by id; of two versions of a piece the longer one.

    Free pages hold old rows. If the list of free pages is damaged they may be in use all the same,
    so their pieces are kept for gaps that nothing else fills.
    """
    sources: dict[int, FoundSource] = {}
    pieces: dict[int, Piece] = {}
    damaged: dict[int, Piece] = {}
    spare = list[Piece]()
    unused = pages.unused()
    for number, page in pages.leaves():
        progress(f"looking through {pages.count:,} pages, at {number:,}")
        may_have_marks = number not in unused and any(kind in page for kind in _MARK_KINDS)
        may_have_marks = may_have_marks and pages.is_sound(number)
        if not may_have_marks and page[0] == INDEX_LEAF:
            continue
        for row in rows_of_leaf(pages, number, page):
            if may_have_marks and (mark := _mark(row)) is not None:
                own_marks.add(mark)
            if page[0] == INDEX_LEAF:
                continue
            source, piece = _source_of(row), _piece(row)
            if source is not None and (number not in unused or source.id not in sources):
                sources[source.id] = source
            if piece is None:
                continue
            if not piece.data:
                damaged.setdefault(piece.id, piece)
            elif number in unused:
                spare.append(piece)
            elif piece.id not in pieces or piece.length > pieces[piece.id].length:
                pieces[piece.id] = piece
    for piece in spare:
        if piece.id not in pieces and _fills_a_gap(piece, pieces.values(), sources):
            pieces[piece.id] = piece
    return sources, pieces, damaged


def _fills_a_gap(piece: Piece, others: Iterable[Piece], sources: dict[int, FoundSource]) -> bool:
    source = sources.get(piece.source)
    if source is None or piece.retired != archive.LIVE or piece.end > source.read_to:
        return False
    return not any(
        other.source == piece.source
        and other.retired == archive.LIVE
        and other.offset < piece.end
        and piece.offset < other.end
        for other in others
    )


def _source_of(row: Row) -> FoundSource | None:
    if row.lost or len(row.values) < _LEAST_SOURCE_COLUMNS or row.values[0] is not None:
        return None
    values: list[Any] = [*row.values, None, None]  # rows of the first versions lack the last two
    agent, kind, path, state, generation, read_to, part_of, fallback = (
        values[at] for at in (1, 2, 3, 4, 9, 16, 24, 25)
    )
    if not (isinstance(agent, str) and _NAME.match(agent) and isinstance(path, str)):
        return None
    if kind not in _KINDS or state not in _STATES or not _is_absolute(path):
        return None
    if not (isinstance(generation, int) and isinstance(read_to, int)):
        return None
    if kind == "mirror":  # what is loaded of it may be the best there is
        kind = "transcript"
    return FoundSource(
        row.id,
        agent,
        kind,
        path,
        state,
        generation,
        read_to,
        part_of,
        fallback or 0,
        doubtful=row.doubtful,
    )


def _mark(row: Row) -> Mark | None:
    """A table's row begins with its number, which is stored elsewhere; an index's ends with it."""
    values = row.values[1:] if row.id else row.values[:-1]
    if row.lost or len(row.values) != _MARK_COLUMNS or len(values) != len(marks.COLUMNS):
        return None
    *texts, at = values
    if not all(isinstance(text, str) for text in texts) or not isinstance(at, int):
        return None
    agent, native_id, home, kind, value = texts
    if kind not in marks.KINDS or not _NAME.match(agent):
        return None
    return agent, native_id, home, kind, value, at


def _is_absolute(path: str) -> bool:
    return os.path.isabs(path) or re.match(r"[A-Za-z]:[\\/]", path) is not None


def _piece(row: Row) -> Piece | None:
    values = row.values
    if len(values) != _CHUNK_COLUMNS or values[0] is not None or row.id <= 0:
        return None
    numbers: list[Any] = values[1:5]
    if not all(isinstance(number, int) for number in numbers):
        return None
    source, retired, offset, length = numbers
    if source <= 0 or retired < -1 or offset < 0 or length <= 0:
        return None
    data = values[5]
    if not row.lost and not (isinstance(data, bytes) and data.startswith(_ZSTD)):
        return None
    try:
        intact = not row.lost and len(archive.unpack(data)) == length
    except archive.Damaged:
        intact = False
    return Piece(
        row.id, source, retired, offset, length, data if intact else b"", doubtful=row.doubtful
    )


def _fitting(source: FoundSource) -> Iterator[Piece]:
    """All but pieces from damaged pages that another piece contradicts."""
    sure = [one for one in source.chunks if not one.doubtful]
    for piece in source.chunks:
        if not piece.doubtful or not any(
            one.retired == piece.retired and one.offset < piece.end and piece.offset < one.end
            for one in sure
        ):
            yield piece


def _without_leftovers(source: FoundSource, pieces: list[Piece]) -> Iterator[Piece]:
    """Leave out old versions: unfinished lines that were finished, pieces inside later ones."""
    ends: dict[int, int] = {}  # by retired
    for piece in sorted(pieces, key=_in_order):
        unfinished = piece.retired == archive.PENDING
        group = archive.LIVE if unfinished else piece.retired
        end = ends.get(group, 0)
        if piece.offset < end or (unfinished and piece.offset != max(end, source.read_to)):
            continue
        ends[group] = piece.end
        yield piece


def _in_order(piece: Piece) -> tuple[bool, int, int, int]:
    return piece.retired == archive.PENDING, piece.retired, piece.offset, -piece.length


def mask_all(found: Iterable[FoundSource], mask: Masker) -> None:
    for source in found:
        masker = mask.remembering()
        source.chunks = [
            piece for run in _runs(source.chunks) for piece in _masked_pieces(source, run, masker)
        ]


def _runs(pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
    """Pieces that follow each other in a file: a secret may lie on the border of two."""
    run: list[Piece] = []
    for piece in pieces:
        if run and (piece.retired, piece.offset) != (run[-1].retired, run[-1].end):
            yield run
            run = []
        run.append(piece)
    if run:
        yield run


def _masked_pieces(source: FoundSource, run: list[Piece], mask: Masker) -> Iterator[Piece]:
    text = b"".join(archive.unpack(piece.data) for piece in run)
    if run[0].retired == archive.PENDING:
        safe = hidden_bytes(text)
    elif source.kind == "transcript":
        safe = mask.lines(text)
    else:
        safe = mask.raw(text) if source.kind == "attachment" else mask.document(text)
    at = run[0].offset
    for piece in run:
        part = slice(piece.offset - at, piece.end - at)
        same = safe[part] == text[part]
        yield piece if same else piece._replace(data=archive.pack(safe[part]))
