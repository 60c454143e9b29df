"""`sess restore`: restore a transcript byte for byte."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, NamedTuple

import apsw
import typer

from sess_cli import fresh
from sess_cli.options import AsJson, NoSync, TranscriptNumber
from sess_cli.render import amounts, layout
from sess_cli.terminal import Terminal, json_line
from sess_common.errors import Exit, SessError
from sess_common.program import say
from sess_schema.queries import sessions

if TYPE_CHECKING:
    from sess_schema.archive import Chunk
    from sess_schema.ids import SourceId
    from sess_schema.queries.sources import SourceRow


def restore(
    session: Annotated[
        str, typer.Argument(metavar="ID", help="Session ID, or `source` from `sess list --json`.")
    ],
    *,
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write to this file; - for stdout."),
    ] = None,
    in_place: Annotated[
        bool, typer.Option("--in-place", help="Write it to where the agent had it.")
    ] = False,
    source: TranscriptNumber = None,
    generation: Annotated[
        int | None,
        typer.Option("--generation", metavar="N", help="An earlier content; see --list."),
    ] = None,
    list_them: Annotated[
        bool, typer.Option("--list", help="List what can be restored instead.")
    ] = False,
    skip_damaged: Annotated[
        bool, typer.Option("--skip-damaged", help="Leave out damaged pieces of the archive.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    as_json: AsJson = False,
    no_sync: NoSync = False,
) -> None:
    """Restore a transcript byte for byte, even a deleted one.

    A file that was rewritten has several contents, called generations. Without --generation you get
    the last one that is not empty. What --in-place --force replaces can be brought back with
    `sess undo`.
    """
    from sess_schema import archive

    if in_place and output is not None:
        raise SessError("--in-place and --output exclude each other")
    if output is None and not in_place and sys.stdout.isatty() and not list_them:
        raise SessError(
            "refusing to write a transcript to the terminal",
            hint="name a file with `-o FILE`, or use `-o -` to write it here anyway",
        )
    with fresh.open_with_sessions(sync=not no_sync) as db:
        if list_them:
            _show_list(db, _sources(db, session), as_json=as_json)
            return
        chosen = _source(db, session, source)
        content = _content_of(db, chosen, generation)

        def pieces() -> Iterator[bytes]:
            return content.pieces(db, skip_damaged=skip_damaged)

        if in_place:
            owner = None if os.sep in session else sessions.resolve(db, session).session
            _put_back(chosen, pieces, owner, force=force)
            written = content.size
        elif output is None or output == "-":
            written = _print(pieces())
        else:
            written = write_new(output, pieces(), force=force)
            say(f'wrote {amounts.size(written)} to "{output}"')
        masked = archive.has_masks(db)
    if masked:
        say("sess: secrets that were masked when this was read (redact.at_ingest) stay masked")
    if content.older:
        say(f"sess: the file was emptied later; this is generation {content.generation}")
    expected = content.size if content.generation < content.latest else chosen.size
    if written < expected:
        say(f'sess: the index has {written:,} of the {expected:,} bytes of "{chosen.path}"')
        raise typer.Exit(Exit.SKIPPED_SOME)


def _print(pieces: Iterable[bytes]) -> int:
    written = 0
    for piece in pieces:
        rest = memoryview(piece)
        while rest:  # unbuffered, a reader that goes away cuts a write short
            rest = rest[sys.stdout.buffer.write(rest) :]
        written += len(piece)
    sys.stdout.buffer.flush()
    return written


def _put_back(
    source: SourceRow, pieces: Callable[[], Iterator[bytes]], session: str | None, *, force: bool
) -> None:
    from sess_cli.edit import live, running, whole_files

    path = layout.home_short(source.path)
    try:
        edit = whole_files.put_back(source, pieces, session, force=force)
    except live.Changed:
        raise SessError(f'"{source.path}" is being changed', hint="try again in a moment") from None
    if edit is None or edit.after is None:
        say(f'"{path}" is there already, byte for byte')
        return
    running.wait_until_read(source.path)
    say(f'wrote {amounts.size(edit.after.size)} to "{path}"')
    say(f"undo: sess undo {edit.id}")


def _sources(db: apsw.Connection, session: str) -> list[SourceRow]:
    """The transcripts of a session, or the one with this path."""
    from sess_schema.queries import sources

    named = sources.by_path(db, session) if os.sep in session else None
    return [named] if named else sources.of_session(db, sessions.resolve(db, session).key)


def _source(db: apsw.Connection, session: str, which: str | None) -> SourceRow:
    sources = _sources(db, session)
    if which is not None:
        for number, source in enumerate(sources, 1):
            if which in (str(number), source.path):
                return source
        raise SessError(
            f'session "{session}" has no transcript "{which}"',
            hint=f"it has {len(sources)}; give a number or a path",
            code=Exit.NOTHING_FOUND,
        )
    if len(sources) == 1:
        return sources[0]
    if not sources:
        raise SessError(f'session "{session}" has no transcript', code=Exit.NOTHING_FOUND)
    listed = "".join(f"\n  {number}  {source.path}" for number, source in enumerate(sources, 1))
    raise SessError(
        f'session "{session}" has {len(sources)} transcripts:{listed}',
        hint="choose one with `--source N`",
    )


class Content(NamedTuple):
    """What a file contained in one generation, before it was rewritten."""

    generation: int
    latest: int  # generation of the file
    chunks: list[Chunk]
    older: bool = False  # chosen because the latest one is empty
    source: SourceId | None = None  # where records have a place in a file

    @property
    def size(self) -> int:
        return sum(chunk.length for chunk in self.chunks)

    def pieces(self, db: apsw.Connection, *, skip_damaged: bool) -> Iterator[bytes]:
        from sess_schema import archive

        at = 0
        for chunk in self.chunks:
            gap = chunk.offset > at and self.source is not None
            if gap and not skip_damaged and not archive.is_accepted_loss(db, self.source, at):
                raise _missing(at, "lost")
            at = chunk.end
            try:
                yield archive.chunk_bytes(db, chunk)
            except archive.Damaged as error:
                if skip_damaged:
                    continue
                raise _missing(chunk.offset, "damaged") from error


def _missing(at: int, what: str) -> SessError:
    return SessError(
        f"the archive from byte {at:,} on is {what}",
        hint="`--skip-damaged` leaves such pieces out; `sess check` lists them",
        code=Exit.INDEX_UNUSABLE,
    )


def _contents_of(db: apsw.Connection, source: SourceRow) -> list[Content]:
    """The latest first."""
    from sess_schema import archive

    latest = source.generation
    now = archive.current(db, source.id)
    contents = [Content(latest, latest, now, source=None if source.is_part else source.id)]
    if not source.is_part:  # records of conversations are replaced one by one
        earlier = archive.earlier(db, source.id)
        contents += [
            Content(number, latest, chunks, source=source.id) for number, chunks in earlier.items()
        ]
    return contents


def _content_of(db: apsw.Connection, source: SourceRow, generation: int | None) -> Content:
    """The generation asked for, or the last one that is not empty."""
    contents = _contents_of(db, source)
    if generation is None:
        latest = next((content for content in contents if content.size), contents[0])
        return latest._replace(older=latest.generation < latest.latest)
    for content in contents:
        if content.generation == generation:
            return content
    known = ", ".join(str(content.generation) for content in reversed(contents))
    raise SessError(
        f'"{source.path}" has no generation {generation}',
        hint=f"there is {known}" if len(contents) == 1 else f"there are {known}",
        code=Exit.NOTHING_FOUND,
    )


def _show_list(db: apsw.Connection, sources: list[SourceRow], *, as_json: bool) -> None:
    terminal = Terminal()
    for number, source in enumerate(sources, 1):
        if not as_json:
            path = layout.home_short(source.path)
            terminal.write(terminal.line(f"{number}  {path}  ({source.state})"))
        for content in _contents_of(db, source):
            latest = content.generation == content.latest
            if as_json:
                json_line(
                    {
                        "source": source.path,
                        "state": source.state,
                        "generation": content.generation,
                        "latest": latest,
                        "bytes": content.size,
                    }
                )
            else:
                mark = " (latest)" if latest else ""
                size = amounts.size(content.size)
                terminal.write(f"   generation {content.generation}: {size}{mark}")


def write_new(path: str, pieces: Iterator[bytes], *, force: bool) -> int:
    """Write a private file, completely or not at all, and never through a link."""
    from sess_schema import outputs

    if os.path.islink(path):
        raise SessError(f'"{path}" is a symbolic link', hint="name another file")
    outputs.check_target(path)
    if os.path.lexists(path) and not force:  # even an earlier export
        raise SessError(f'"{path}" exists already', hint="`--force` replaces it")
    written = 0
    with outputs.new_file(path, replace=force) as out:
        for piece in pieces:
            written += out.write(piece)
        out.flush()
        os.fsync(out.fileno())
    return written
