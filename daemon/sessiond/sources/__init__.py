"""The agents whose transcripts are read: one module each, listed here."""

from __future__ import annotations

from sessiond.config import Config
from sessiond.sources.base import Source
from sessiond.sources.claude import ClaudeSource


def all_sources(config: Config) -> list[Source]:
    return [ClaudeSource(config.roots.get("claude", ()))]
