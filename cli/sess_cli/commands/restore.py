"""`sess restore`: restore a transcript byte for byte."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from sess_cli.options import AsJson, NoSync, TranscriptNumber

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
    from sess_cli import fresh, restoring
    from sess_cli.render import amounts
    from sess_common.errors import Exit, SessError
    from sess_common.program import say
    from sess_schema import masks
    from sess_schema.queries import sessions

    if in_place and output is not None:
        raise SessError("--in-place and --output exclude each other")
    if output is None and not in_place and sys.stdout.isatty() and not list_them:
        raise SessError(
            "refusing to write a transcript to the terminal",
            hint="name a file with `-o FILE`, or use `-o -` to write it here anyway",
        )
    with fresh.open_with_sessions(sync=not no_sync) as db:
        if list_them:
            restoring.show_list(db, _sources(db, session), as_json=as_json)
            return
        chosen = _source(db, session, source)
        content = restoring.content(db, chosen, generation)
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
        masked = masks.are_used(db)
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
    from sess_cli.edit import following, in_place, live
    from sess_cli.render import amounts, layout
    from sess_common.errors import SessError
    from sess_common.program import say

    path = layout.home_short(source.path)
    try:
        edit = in_place.put_back(source, pieces, session, force=force)
    except live.Changed:
        raise SessError(f'"{source.path}" is being changed', hint="try again in a moment") from None
    if edit is None or edit.after is None:
        say(f'"{path}" is there already, byte for byte')
        return
    following.after_edit(source.path)
    say(f'wrote {amounts.size(edit.after.size)} to "{path}"')
    say(f"undo: sess undo {edit.id}")


def _sources(db: apsw.Connection, given: str) -> list[SourceRow]:
    from sess_schema.queries import sessions, sources

    named = sources.by_path(db, given) if os.sep in given else None
    return [named] if named else sources.of_session(db, sessions.resolve(db, given).key)


def _source(db: apsw.Connection, given: str, which: str | None) -> SourceRow:
    from sess_common.errors import Exit, SessError

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
    from sess_common.errors import SessError

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
    from sess_common.errors import SessError

    try:
        os.link(beside, path)
    except FileExistsError:
        raise SessError(f'"{path}" already exists', hint="`--force` overwrites it") from None
    except OSError:  # a file system without hard links
        os.rename(beside, path)
    else:
        os.unlink(beside)
