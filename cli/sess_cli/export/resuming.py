"""The command that goes on with a session, as text to copy."""

from __future__ import annotations

import os
import re
import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sess_cli.export.story import Story
    from sess_schema.queries.sessions import SessionRow

# How each agent goes on with a session.
COMMANDS = {"claude": ("claude", "--resume"), "cursor": ("cursor-agent", "--resume")}
# An id is the name of somebody's file; it must not become an option.
HARMLESS_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z_.-]*")
_STORE = "store.db"  # the chats of cursor-agent; those of the editor can only be opened there


def is_in_editor(row: SessionRow) -> bool:
    return row.agent == "cursor" and os.path.basename(row.file or "") != _STORE


def command(story: Story) -> str:
    """Empty where no command is known: subagents, editors, ids that could be options.

    A page outlives the transcript, and looks the same whether it was made before or after.
    """
    row = story.row
    known = COMMANDS.get(row.agent)
    if known is None or is_in_editor(row) or row.parent_key is not None:
        return ""
    if not HARMLESS_ID.fullmatch(row.session):
        return ""
    resumed = " ".join((*known, row.session))
    project = story.project
    if not project or any(not c.isprintable() for c in project):
        return resumed
    # `~` is what a redacted home directory begins with, and works only unquoted.
    home, rest = ("~/", project[2:]) if project.startswith("~/") else ("", project)
    return f"cd {home}{shlex.quote(rest)} && {resumed}"
