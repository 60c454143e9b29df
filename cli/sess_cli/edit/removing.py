"""Deletes the files of a session, all or none; each has a snapshot first."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sess_cli.edit import live, log, undoing
from sess_cli.edit.log import Change, Edit
from sess_cli.recording import listing
from sess_common.errors import Exit, SessError
from sess_schema.queries import sessions
from sess_schema.queries.sessions import SessionRow

if TYPE_CHECKING:
    import apsw

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


@dataclass(frozen=True, slots=True)
class Removal:
    session: SessionRow
    transcripts: list[str]  # of the session and its subagents
    outputs: list[str]

    @property
    def files(self) -> list[str]:
        return [*self.transcripts, *self.outputs]


def planned(db: apsw.Connection, row: SessionRow) -> Removal:
    family = json.dumps(sessions.family(db, row.key))
    found = list[str]()
    for path, is_shared in db.execute(_TRANSCRIPTS, (family,)):
        if is_shared:
            raise SessError(
                f'"{row.session}" has no file of its own: "{path}" holds other sessions, too',
                hint=f"delete it in {row.agent}, or `sess forget` it in the index",
            )
        found.append(path)
    if not found:
        raise SessError(
            f'the transcript of "{row.session}" is gone already',
            hint="`sess forget` also removes what the index keeps of it",
            code=Exit.NOTHING_FOUND,
        )
    outputs = [path for (path,) in db.execute(_OUTPUTS, (family,))]
    return Removal(row, found, [path for path in outputs if os.path.lexists(path)])


def perform(removal: Removal, *, force: bool) -> list[Edit]:
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
    beside = listing.path_in(os.path.dirname(path))
    name = os.path.basename(path).rpartition(".")[0]
    if not os.path.isfile(beside):
        return []
    with live.opened(beside, force=True) as file:
        raw = b"".join(log.pieces(file.fd, 0, file.size))
        left = listing.without(raw, name)
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
