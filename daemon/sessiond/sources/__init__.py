"""The agents whose transcripts are read: each module or package here is one agent."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from sessiond.config import Config
from sessiond.sourcekit.base import Source


@cache
def source_classes() -> tuple[type[Source], ...]:
    """Every agent's `SOURCE`, by name."""
    names = sorted(module.name for module in iter_modules(__path__))
    return tuple(import_module(f"{__name__}.{name}").SOURCE for name in names)


def all_sources(config: Config, environ: Mapping[str, str] = os.environ) -> list[Source]:
    """The agents to read."""
    return [
        made(config.roots.get(made.agent, ()), environ)
        for made in source_classes()
        if made.agent not in config.exclude.agents
    ]
