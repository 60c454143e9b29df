"""`sess restore`: restore a transcript byte for byte."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, NamedTuple

import apsw
import typer

from sess_cli import fresh
from sess_cli.options import AsJson, NoSync, TranscriptNumber
from sess_cli.render import amounts, layout
from sess_cli.terminal import Terminal, json_line
from sess_common.errors import Exit, SessError
from sess_common.program import say
from sess_schema import archive
from sess_schema.archive import Chunk, Damaged
from sess_schema.queries import sessions
from sess_schema.queries.sources import SourceRow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import apsw

    from sess_schema.queries.sources import SourceRow


def restore(
    session: Annotated[
        str,
        typer.Argument(metavar="ID", help="Session ID, or `source` from `sess list --json`."),
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
            show_list(db, _sources(db, session), as_json=as_json)
            return
        chosen = _source(db, session, source)
        content = content_of(db, chosen, generation)
        pieces = content.pieces(db, skip_damaged=skip_damaged)
        if in_place:
            _put_back(
                chosen,
                lambda: content.pieces(db, skip_damaged=skip_damaged),
                None if os.sep in session else sessions.resolve(db, session).session,
                force=force,
            )
            written = content.size
        elif output is None or output == "-":
            written = 0
            for piece in pieces:
                rest = memoryview(piece)
                while rest:  # unbuffered, a reader that goes away cuts a write short
                    rest = rest[sys.stdout.buffer.write(rest) :]
                written += len(piece)
            sys.stdout.buffer.flush()
        else:
            written = write_new(output, pieces, force=force)
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


def _sources(db: apsw.Connection, given: str) -> list[SourceRow]:
    from sess_schema.queries import sources

    named = sources.by_path(db, given) if os.sep in given else None
    return [named] if named else sources.of_session(db, sessions.resolve(db, given).key)


def _source(db: apsw.Connection, given: str, which: str | None) -> SourceRow:
    found = _sources(db, given)
    if which is not None:
        for number, one in enumerate(found, 1):
            if which in (str(number), one.path):
                return one
        raise SessError(
            f'session "{given}" has no transcript "{which}"',
            hint=f"it has {len(found)}; give a number or a path",
            code=Exit.NOTHING_FOUND,
        )
    if len(found) == 1:
        return found[0]
    if not found:
        raise SessError(f'session "{given}" has no transcript', code=Exit.NOTHING_FOUND)
    listed = "".join(f"\n  {number}  {one.path}" for number, one in enumerate(found, 1))
    raise SessError(
        f'session "{given}" has {len(found)} transcripts:{listed}',
        hint="choose one with `--source N`",
    )


def write_new(path: str, pieces: Iterator[bytes], *, force: bool) -> int:
    """Write a private file, completely or not at all, and never through a link."""
    if os.path.islink(path):
        raise SessError(f'"{path}" is a symbolic link', hint="name another file")
    if os.path.isdir(path) or not os.path.basename(path):
        raise SessError(f'"{path}" is a directory', hint="name a file")
    if os.path.exists(path) and not os.path.isfile(path):  # such as /dev/null
        raise SessError(f'"{path}" is not a regular file', hint="`-o -` writes to stdout")
    if os.path.lexists(path) and not force:
        raise SessError(f'"{path}" already exists', hint="`--force` overwrites it")
    folder, name = os.path.split(os.path.abspath(path))
    beside = os.path.join(folder, f".{name[:100]}.{os.getpid()}.part")
    written = 0
    try:
        fd = os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise SessError(f'cannot write "{path}": {error.strerror}') from error
    try:
        with os.fdopen(fd, "wb") as out:
            for piece in pieces:
                written += out.write(piece)
            out.flush()
            os.fsync(out.fileno())
        if force:
            os.replace(beside, path)
        else:
            _move_to_free_name(beside, path)
    except BaseException:
        os.unlink(beside)
        raise
    return written


def _move_to_free_name(beside: str, path: str) -> None:
    """A link fails if the name has been taken since; a rename would overwrite it."""
    try:
        os.link(beside, path)
    except FileExistsError:
        raise SessError(f'"{path}" already exists', hint="`--force` overwrites it") from None
    except OSError:  # a file system without hard links
        os.rename(beside, path)
    else:
        os.unlink(beside)


class Content(NamedTuple):
    """What a file contained in one generation, before it was rewritten."""

    generation: int
    latest: int  # generation of the file
    chunks: list[Chunk]
    older: bool = False  # chosen because the latest one is empty

    @property
    def size(self) -> int:
        return sum(chunk.length for chunk in self.chunks)

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


def contents_of(db: apsw.Connection, source: SourceRow) -> list[Content]:
    """The latest first."""
    latest = source.generation
    found = [Content(latest, latest, archive.current(db, source.id))]
    if not source.is_part:  # records of conversations are replaced one by one
        earlier = archive.earlier(db, source.id)
        found += [Content(number, latest, chunks) for number, chunks in earlier.items()]
    return found


def content_of(db: apsw.Connection, source: SourceRow, generation: int | None) -> Content:
    """The generation asked for, or the last one that is not empty."""
    found = contents_of(db, source)
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
        for one in contents_of(db, source):
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
