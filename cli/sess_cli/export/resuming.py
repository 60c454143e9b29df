"""The command that goes on with a session, as text to copy."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sess_cli.export.story import Story

_COMMANDS = {"claude": "claude --resume", "cursor": "cursor-agent --resume"}
_HARMLESS_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z_.-]*")


def command(story: Story) -> str:
    """Empty where no command is known: subagents, editors, ids that could be options.

    A page outlives the transcript, and looks the same whether it was made before or after.
    """
    row = story.row
    known = _COMMANDS.get(row.agent)
    in_editor = row.agent == "cursor" and not (row.file or "").endswith("store.db")
    if known is None or in_editor or row.parent_key is not None:
        return ""
    if not _HARMLESS_ID.fullmatch(row.session):
        return ""
    resumed = f"{known} {row.session}"
    project = story.project
    if not project or any(not c.isprintable() for c in project):
        return resumed
    # `~` is what a redacted home directory begins with, and works only unquoted.
    home, rest = ("~/", project[2:]) if project.startswith("~/") else ("", project)
    return f"cd {home}{shlex.quote(rest)} && {resumed}"
