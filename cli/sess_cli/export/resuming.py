"""The command that resumes a session, as text to copy from an export."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from sess_cli.resuming import arguments

if TYPE_CHECKING:
    from sess_cli.export.story import Story


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
