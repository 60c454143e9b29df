"""`sessiond sync FILE`: read what is named, and follow it from then on."""

from __future__ import annotations

from collections.abc import Sequence

from sess_schema import lock, paths
from sessiond import config
from sessiond.service import importing, one_pass
from sessiond.sources import all_sources


def sync(targets: Sequence[str], *, agent: str | None, as_json: bool, quiet: bool) -> int:
    """One pass over the targets, or over all places; a running daemon gets the files."""
    if not targets:
        return one_pass.run([], as_json=as_json, quiet=quiet)
    home = paths.home()
    running = (lock.holder(home.lock) or {}).get("mode") == "daemon"
    if running or agent is not None or importing.STDIN in targets:
        return importing.run(targets, agent=agent, as_json=as_json, quiet=quiet)
    importing.follow(home, all_sources(config.load(home.config_file)), targets)
    return one_pass.run(targets, as_json=as_json, quiet=quiet)
