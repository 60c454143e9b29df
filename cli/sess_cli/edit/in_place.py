"""Writes transcripts back to where they were, and removes those that the archive has."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from sess_cli.edit import live, log
from sess_cli.edit.cutting import archived
from sess_cli.edit.log import Change, Edit
from sess_common.errors import SessError
from sess_schema import masks
from sess_schema.archive import Damaged
from sess_schema.queries import sessions
from sess_schema.queries.sources import SourceRow

if TYPE_CHECKING:
    import apsw

    from sess_schema.ids import SourceId
    from sess_schema.queries.sessions import SessionRow

_FILES = (
    "SELECT DISTINCT w.id, w.path, w.size FROM session_sources m"
    " JOIN sources p ON p.id = m.source_id JOIN sources w ON w.id = coalesce(p.part_of, p.id)"
    " WHERE m.session_id = ? AND p.kind IN ('transcript', 'mirror') AND w.state = 'live'"
    " AND w.kind IN ('transcript', 'mirror', 'document') ORDER BY w.path"
)
_SESSIONS = (
    "SELECT DISTINCT m.session_id FROM session_sources m JOIN sources p ON p.id = m.source_id"
    " WHERE coalesce(p.part_of, p.id) = ?"
)


class File(NamedTuple):
    """A transcript that the archive may stand in for."""

    source: SourceId
    path: str
    size: int
    session: SessionRow


def put_back(
    source: SourceRow, pieces: Callable[[], Iterator[bytes]], session: str | None, *, force: bool
) -> Edit | None:
    """Write a transcript to its path; None if it is there already."""
    if source.is_part or source.kind == "database":
        raise SessError(
            f'"{source.path}" is a conversation in a database, which is never written to',
            hint="`-o FILE` writes its records to a file",
        )
    change = Change("restore", session=session, agent=source.agent, lines=source.kind != "document")
    if not os.path.exists(source.path):
        if os.path.exists(f"{source.path}.zst"):
            raise SessError(f'"{source.path}.zst" exists', hint="decompress it instead")
        return live.create(source.path, pieces(), change)
    with live.opened(source.path, force=force) as file:
        if _has(file, pieces()):
            return None
        if not force:
            raise SessError(f'"{source.path}" exists and differs', hint="`--force` replaces it")
        return file.rewrite(pieces(), change)


def _has(file: live.LiveFile, pieces: Iterable[bytes]) -> bool:
    at = 0
    for piece in pieces:
        if os.pread(file.fd, len(piece), at) != piece:
            return False
        at += len(piece)
    return at == file.size


def files_of(db: apsw.Connection, chosen: Iterable[SessionRow]) -> tuple[list[File], list[str]]:
    """The transcripts of sessions and their subagents, and those that also have other sessions."""
    rows = {key: row for row in chosen for key in sessions.family(db, row.key)}
    files: dict[int, File] = {}
    shared: list[str] = []
    for key, row in rows.items():
        for source, path, size in db.execute(_FILES, (key,)):
            holders = {one for (one,) in db.execute(_SESSIONS, (source,))}
            if not os.path.exists(path) or source in files:
                continue
            if holders <= rows.keys():
                files[source] = File(source, path, size, row)
            elif path not in shared:
                shared.append(path)
    return [*files.values()], shared


def remove(db: apsw.Connection, file: File, group: str) -> Edit:
    """Delete a transcript after comparing it with the archive, byte for byte."""
    change = Change("prune", session=file.session.session, agent=file.session.agent, group=group)
    try:
        with live.opened(file.path) as opened:
            archived(db, file.source, opened, whole=True, exact=True)
            return opened.remove(change)
    except live.Changed:
        hint = "secrets are masked in this index (redact.at_ingest)" if masks.are_used(db) else None
        raise SessError(f'"{file.path}" is not as it was archived', hint=hint) from None
    except Damaged:
        raise SessError(f'"{file.path}": its archived copy is damaged') from None


def new_group() -> str:
    return log.new_id()
