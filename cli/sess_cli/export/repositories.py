"""The repository a session worked in: as given, or as found in its output."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sess_cli.export import forge
from sess_schema.session import shown

if TYPE_CHECKING:
    from sess_cli.export.story import Story

_COMMITTED = (
    "SELECT 1 FROM commits c JOIN events e ON e.id = c.event_id JOIN sessions s"
    " ON s.id = e.session_id WHERE s.id = ?1 OR s.parent_id = ?1 LIMIT 1"
)
# Git prints remotes with a scheme or a user; most output has neither.
_OUTPUTS = (
    f"SELECT x.output FROM {shown.EVENTS}"
    f" JOIN event_texts x ON x.id = e.id WHERE t.session_id = ? AND {shown.CURRENT}"
    " AND e.type = 'tool_use' AND (x.output LIKE '%://%' OR x.output LIKE '%git@%')"
)


def of(story: Story, given: str | None = None) -> forge.Repository | None:
    """`given`, else what the output shows; not searched if there is no commit to link."""
    if given:
        return forge.parse(given)
    if story.db.execute(_COMMITTED, (story.row.key,)).get is None:
        return None
    return forge.detect(_outputs(story), story.row.directory)


def _outputs(story: Story) -> Iterator[str]:
    for (output,) in story.db.execute(_OUTPUTS, (story.row.key,)):
        yield output
