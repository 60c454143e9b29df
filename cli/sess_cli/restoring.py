"""The contents that a transcript had over time, for `sess restore`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import apsw

from sess_cli.output import json_line
from sess_cli.render import amounts, layout
from sess_cli.terminal import Terminal
from sess_common.errors import Exit, SessError
from sess_schema import archive
from sess_schema.archive import Chunk, Damaged
from sess_schema.queries.sources import SourceRow


class Content(NamedTuple):
    """What a file contained in one generation, before it was rewritten."""

    generation: int
    latest: int  # generation of the file
    chunks: list[Chunk]
    older: bool = False  # chosen because the latest one is empty

    @property
    def size(self) -> int:
        return archive.size(self.chunks)

    def pieces(self, db: apsw.Connection, *, skip_damaged: bool = False) -> Iterator[bytes]:
        for chunk in self.chunks:
            try:
                yield archive.chunk_bytes(db, chunk)
            except Damaged as error:
                if skip_damaged:
                    continue
                what = f"the archive from byte {chunk.offset:,} on"
                hint = "`--skip-damaged` leaves such pieces out; `sess check` lists them"
                raise SessError(
                    f"{what} is damaged", hint=hint, code=Exit.INDEX_UNUSABLE
                ) from error


def contents(db: apsw.Connection, source: SourceRow) -> list[Content]:
    """The latest first."""
    latest = source.generation
    found = [Content(latest, latest, archive.current(db, source.id))]
    if not source.is_part:  # records of conversations are replaced one by one
        earlier = archive.earlier(db, source.id)
        found += [Content(number, latest, chunks) for number, chunks in earlier.items()]
    return found


def content(db: apsw.Connection, source: SourceRow, generation: int | None) -> Content:
    """The generation asked for, or the last one that is not empty."""
    found = contents(db, source)
    if generation is not None:
        for one in found:
            if one.generation == generation:
                return one
        known = ", ".join(str(one.generation) for one in reversed(found))
        raise SessError(
            f'"{source.path}" has no generation {generation}',
            hint=f"there is {known}" if len(found) == 1 else f"there are {known}",
            code=Exit.NOTHING_FOUND,
        )
    for one in found:
        if one.size:
            return one._replace(older=one.generation < one.latest)
    return found[0]


def show_list(db: apsw.Connection, sources: Sequence[SourceRow], *, as_json: bool) -> None:
    terminal = Terminal()
    for number, source in enumerate(sources, 1):
        if not as_json:
            path = layout.home_short(source.path)
            terminal.write(terminal.line(f"{number}  {path}  ({source.state})"))
        for one in contents(db, source):
            if as_json:
                json_line(
                    {
                        "source": source.path,
                        "state": source.state,
                        "generation": one.generation,
                        "latest": one.generation == one.latest,
                        "bytes": one.size,
                    }
                )
            else:
                mark = " (latest)" if one.generation == one.latest else ""
                terminal.write(f"   generation {one.generation}: {amounts.size(one.size)}{mark}")
