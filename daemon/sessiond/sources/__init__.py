"""The agents whose transcripts are read: each module or package here is one agent."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from sess_common.errors import SessError
from sessiond.config import Config
from sessiond.sourcekit.base import Source


@cache
def source_classes() -> tuple[type[Source], ...]:
    """Every agent's `SOURCE`, by name."""
    names = sorted(module.name for module in iter_modules(__path__))
    return tuple(import_module(f"{__name__}.{name}").SOURCE for name in names)


def all_sources(config: Config, environ: Mapping[str, str] = os.environ) -> list[Source]:
    """The agents to read; a name in the configuration that none of them has is an error."""
    names = {made.agent for made in source_classes()}
    for section, given in (("roots", config.roots), ("exclude", config.exclude.agents)):
        for unknown in sorted(set(given) - names):
            raise SessError(
                f'configuration: unknown agent "{unknown}" in [{section}]',
                hint=_meant(unknown, names) + "`sessiond config --edit` opens the file",
            )
    return [
        made(config.roots.get(made.agent, ()), environ)
        for made in source_classes()
        if made.agent not in config.exclude.agents
    ]


def _meant(typed: str, names: set[str]) -> str:
    import difflib  # only when something is wrong

    close = difflib.get_close_matches(typed, names, 1)
    return f"did you mean {close[0]}? " if close else f"there are {', '.join(sorted(names))}; "
