"""The agents whose transcripts are read: one package each, listed here."""

from __future__ import annotations

from sessiond.config import Config
from sessiond.sourcekit.base import Source
from sessiond.sources.claude import ClaudeSource
from sessiond.sources.cursor import CursorSource


def all_sources(config: Config) -> list[Source]:
    """In the order in which they are asked whether a file is theirs: the pickiest first."""
    return [
        CursorSource(config.roots.get("cursor", ())),
        ClaudeSource(config.roots.get("claude", ())),
    ]
