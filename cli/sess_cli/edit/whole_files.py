"""Deletes whole transcripts, and writes them back: `sess rm`, `prune` and `restore --in-place`."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from sess_cli.edit import live, log, undoing
from sess_cli.edit.cutting import archived
from sess_cli.edit.log import Change, Edit
from sess_cli.recording import files
from sess_common.errors import Exit, SessError
from sess_schema import archive
from sess_schema.archive import Damaged
from sess_schema.queries import sessions
from sess_schema.queries.sessions import SessionRow
from sess_schema.queries.sources import SourceRow

if TYPE_CHECKING:
    import apsw

    from sess_schema.ids import SourceId


# A conversation in a document may be the only one there; then its file is the document.
_TRANSCRIPTS = (
    "SELECT DISTINCT coalesce(w.path, p.path), coalesce(w.kind, 'log') = 'database'"
    " OR EXISTS (SELECT 1 FROM sources q JOIN session_sources o ON o.source_id = q.id"
    " WHERE (q.id = p.id OR q.part_of = w.id)"
    " AND o.session_id NOT IN (SELECT value FROM json_each(?1)))"
    " FROM session_sources m JOIN sources p ON p.id = m.source_id"
    " LEFT JOIN sources w ON w.id = p.part_of"
    " WHERE m.session_id IN (SELECT value FROM json_each(?1)) AND p.kind = 'transcript'"
    " AND coalesce(w.state, p.state) <> 'gone' ORDER BY 1"
)
# Outputs that were too long for a line, if no other session shows them.
_OUTPUTS = (
    "SELECT DISTINCT e.overflow FROM events e JOIN sources p ON p.path = e.overflow"
    " WHERE e.session_id IN (SELECT value FROM json_each(?1)) AND p.state <> 'gone'"
    " AND NOT EXISTS (SELECT 1 FROM events o WHERE o.overflow = e.overflow"
    " AND o.session_id NOT IN (SELECT value FROM json_each(?1))) ORDER BY 1"
)
_FILES = (
    "SELECT DISTINCT w.id, w.path, w.size FROM session_sources m"
    " JOIN sources p ON p.id = m.source_id JOIN sources w ON w.id = coalesce(p.part_of, p.id)"
    " WHERE m.session_id = ? AND p.kind IN ('transcript', 'mirror') AND w.state = 'live'"
    " AND w.kind IN ('transcript', 'mirror', 'document') ORDER BY w.path"
)
_HOLDERS = (
    "SELECT DISTINCT m.session_id FROM session_sources m JOIN sources p ON p.id = m.source_id"
    " WHERE coalesce(p.part_of, p.id) = ?"
)


@dataclass(frozen=True, slots=True)
class Removal:
    session: SessionRow
    transcripts: list[str]  # of the session and its subagents
    outputs: list[str]

    @property
    def files(self) -> list[str]:
        return [*self.transcripts, *self.outputs]


def planned_removal(db: apsw.Connection, row: SessionRow) -> Removal:
    family = json.dumps(sessions.family(db, row.key))
    transcripts = list[str]()
    for path, is_shared in db.execute(_TRANSCRIPTS, (family,)):
        if is_shared:
            raise SessError(
                f'"{row.session}" has no file of its own: "{path}" holds other sessions, too',
                hint=f"delete it in {row.agent}, or `sess forget` it in the index",
            )
        transcripts.append(path)
    if not transcripts:
        raise SessError(
            f'the transcript of "{row.session}" is gone already',
            hint="`sess forget` also removes what the index keeps of it",
            code=Exit.NOTHING_FOUND,
        )
    outputs = [path for (path,) in db.execute(_OUTPUTS, (family,))]
    return Removal(row, transcripts, [path for path in outputs if os.path.lexists(path)])


def remove_session(removal: Removal, *, force: bool) -> list[Edit]:
    """Delete all files, and the session from its agent's list; or nothing, if one is in use."""
    row = removal.session
    change = Change("rm", session=row.session, agent=row.agent, group=log.new_id())
    done: list[Edit] = []
    try:
        for path in removal.files:
            with live.opened(path, force=force or path in removal.outputs) as file:
                done.append(file.remove(change))
        for path in removal.transcripts:
            done += _unlisted(path, change)
    except BaseException as error:
        if done:
            undoing.undo(done[-1], force=True)
        if isinstance(error, live.Changed):
            raise SessError(
                f'the files of "{row.session}" keep changing; nothing was deleted',
                hint="try again when the agent has finished",
            ) from None
        raise
    _remove_empty_folders(removal)
    return done


def _unlisted(path: str, change: Change) -> list[Edit]:
    """Take a session out of the list beside its file, where its agent keeps one."""
    beside = files.list_path(os.path.dirname(path))
    name = os.path.basename(path).rpartition(".")[0]
    if not os.path.isfile(beside):
        return []
    with live.opened(beside, force=True) as file:
        raw = b"".join(log.pieces(file.fd, 0, file.size))
        left = files.list_without(raw, name)
        return [] if left is None else [file.rewrite([left], replace(change, lines=False))]


def _remove_empty_folders(removal: Removal) -> None:
    """Folders that were made for this session alone."""
    home = os.path.dirname(os.path.realpath(removal.transcripts[0]))
    folders = {os.path.dirname(os.path.realpath(path)) for path in removal.files}
    above = {os.path.dirname(folder) for folder in folders}
    for folder in sorted((folders | above) - {home}, key=len, reverse=True):
        if removal.session.session in folder.split(os.sep):
            with contextlib.suppress(OSError):
                os.rmdir(folder)


def checked_id(given: str) -> str:
    """The id of a session, or of a subagent as PARENT/CHILD."""
    from sess_cli.recording.recorder import InvalidId, check_id

    parts = given.split("/")
    try:
        for part in parts if len(parts) == 2 and all(parts) else [given]:
            check_id(part)
    except InvalidId as error:
        raise SessError(str(error), hint="`sess list --all` lists the IDs of sessions") from None
    return given


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
        if _holds(file, pieces()):
            return None
        if not force:
            raise SessError(f'"{source.path}" exists and differs', hint="`--force` replaces it")
        return file.rewrite(pieces(), change)


def _holds(file: live.LiveFile, pieces: Iterable[bytes]) -> bool:
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
            holders = {holder for (holder,) in db.execute(_HOLDERS, (source,))}
            if not os.path.exists(path) or source in files:
                continue
            if holders <= rows.keys():
                files[source] = File(source, path, size, row)
            elif path not in shared:
                shared.append(path)
    return [*files.values()], shared


def prune_file(db: apsw.Connection, file: File, group: str) -> Edit:
    """Delete a transcript after comparing it with the archive, byte for byte."""
    change = Change("prune", session=file.session.session, agent=file.session.agent, group=group)
    try:
        with live.opened(file.path) as opened:
            archived(db, file.source, opened, whole=True, exact=True)
            return opened.remove(change)
    except live.Changed:
        hint = (
            "secrets are masked in this index (redact.at_ingest)" if archive.has_masks(db) else None
        )
        raise SessError(f'"{file.path}" is not as it was archived', hint=hint) from None
    except Damaged:
        raise SessError(f'"{file.path}": its archived copy is damaged') from None


def new_group() -> str:
    return log.new_id()
