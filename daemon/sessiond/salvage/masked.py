"""Masks what was found in a damaged index: it may be older than `redact.at_ingest`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sess_schema import archive
from sess_schema.masks import hidden
from sessiond.salvage.finds import Piece, Source
from sessiond.sourcekit.masking import Masker


def mask_all(found: Iterable[Source], mask: Masker) -> None:
    for source in found:
        source.chunks = [
            piece for run in _runs(source.chunks) for piece in _masked(source, run, mask)
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


def _masked(source: Source, run: list[Piece], mask: Masker) -> Iterator[Piece]:
    text = b"".join(archive.unpack(piece.data) for piece in run)
    if run[0].retired == archive.PENDING:
        safe = hidden(text)
    elif source.kind == "transcript":
        safe = mask.lines(text)
    else:
        safe = mask.raw(text) if source.kind == "attachment" else mask.document(text)
    at = run[0].offset
    for piece in run:
        part = slice(piece.offset - at, piece.end - at)
        same = safe[part] == text[part]
        yield piece if same else piece._replace(data=archive.pack(safe[part]))
