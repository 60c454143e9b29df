"""`sessiond sync FILE` and `sessiond sync DIR`: read what is named, and follow the files."""

from __future__ import annotations

import os
from collections.abc import Sequence

from sess_common import lock, paths, requests, status_file
from sess_common.progress_bar import Bar
from sessiond import config
from sessiond.service import importing, one_pass, pass_report
from sessiond.sources import all_sources


def sync(targets: Sequence[str], *, agent: str | None, as_json: bool, quiet: bool) -> int:
    """One pass over the targets; a running daemon gets what is named."""
    if not any(map(importing.is_there, targets)):
        raise importing.no_such_file(targets[0])
    home = paths.home()
    running = (lock.holder(home.lock) or {}).get("mode") == "daemon"
    if running and agent is None:
        folders = [one for one in targets if os.path.isdir(os.path.expanduser(one))]
        files = [one for one in targets if one not in folders]
        code = importing.run(files, as_json=as_json, quiet=quiet)
        if folders:
            absolute = [os.path.abspath(os.path.expanduser(one)) for one in folders]
            facts = _read_by_daemon(home, absolute, show=not as_json and not quiet)
            code = max(code, pass_report.tell(facts, as_json=as_json, quiet=quiet, named=True))
        return code
    if agent is not None or importing.STDIN in targets:
        return importing.run(targets, agent=agent, as_json=as_json, quiet=quiet)
    importing.follow(home, all_sources(config.load(home.config_file)), targets)
    return one_pass.run(targets, as_json=as_json, quiet=quiet)


def _read_by_daemon(home: paths.Home, folders: Sequence[str], *, show: bool) -> pass_report.Facts:
    """What it read, with its progress while it does."""
    with Bar(show=show) as bar:

        def draw() -> None:
            told = status_file.read(home.status)
            bar.update(told.get(status_file.DONE) or 0, told.get(status_file.TOTAL) or 0)

        return requests.ask(home, "read", meanwhile=draw, paths=folders)
