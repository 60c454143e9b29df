"""The command that resumes a session, as text to copy."""

from __future__ import annotations

import json
import re
import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sess_cli.export.story import Story
    from sess_schema.queries.sessions import SessionRow

# An id comes from a file name; it must not become an option.
_HARMLESS = re.compile(r"[0-9A-Za-z][0-9A-Za-z_.-]*")


def arguments(row: SessionRow) -> tuple[str, ...]:
    """The program and its arguments; empty if none is known or the id looks like an option."""
    if row.resume is None or not _HARMLESS.fullmatch(row.session):
        return ()
    return tuple(map(str, json.loads(row.resume)))


def command(story: Story) -> str:
    """Empty if no command is known: subagents, editors, ids that look like options.

    A page outlives the transcript, so it is the same whether or not that still exists.
    """
    row = story.row
    known = arguments(row)
    if not known or row.parent_key is not None:
        return ""
    resumed = shlex.join(known)
    project = story.project if row.directory else ""
    if not project or any(not c.isprintable() for c in project):
        return resumed
    # A redacted home directory begins with `~`, which works only unquoted.
    home, rest = ("~/", project[2:]) if project.startswith("~/") else ("", project)
    return f"cd {home}{shlex.quote(rest)} && {resumed}"
