"""Projects of sessions whose records name none, from the folder that holds their files.

Another session in the same folder may tell what the folder's name means, whichever is read first:
so the projects that depend on a folder are found again when one of its sessions learns its own.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict

import apsw

from sessiond.sourcekit.folders import ProjectFolder
from sessiond.writing.sessions import Sessions

FOLDER, NAME = "folder", "name"  # `project_from`: decoded from the folder's name; that name itself
# Sessions with a file in a folder or below it.
_INSIDE = (
    "FROM sessions s JOIN session_sources m ON m.session_id = s.id"
    " JOIN sources r ON r.id = m.source_id WHERE r.path > ? AND r.path < ?"
)


def settle(db: apsw.Connection, sessions: Sessions) -> None:
    """Give every saved session of this transaction a project, as far as one is known."""
    folders: dict[ProjectFolder, list[int]] = defaultdict(list)
    for session_id, (folder, had_project) in sessions.placed.items():
        session = sessions.by_id(session_id)
        if session.project is None:
            folders[folder].append(session_id)
        elif session.project_from is None and not had_project:
            folders[folder] += ()  # it may explain the name to others
    for folder, without in folders.items():
        inside = folder.path + os.sep, folder.path + chr(ord(os.sep) + 1)
        guessed = db.execute(
            f"SELECT DISTINCT s.id {_INSIDE} AND s.project_from IN (?, ?)", (*inside, FOLDER, NAME)
        )
        wanting = [*without, *(session_id for (session_id,) in guessed)]
        if not wanting:
            continue
        known = db.execute(
            f"SELECT DISTINCT s.project {_INSIDE} AND s.project_from IS NULL"
            " AND s.project IS NOT NULL",
            inside,
        )
        project = folder.project([path for (path,) in known])
        db.execute(
            "UPDATE sessions SET project = ?, project_from = ?"
            " WHERE id IN (SELECT value FROM json_each(?))",
            (project or folder.name, FOLDER if project else NAME, json.dumps(wanting)),
        )
