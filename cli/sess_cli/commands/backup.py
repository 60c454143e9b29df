"""`sess backup`: a consistent copy of the index, also while the daemon writes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from sess_cli.options import NoSync


def backup(
    target: Annotated[
        str,
        typer.Argument(metavar="FILE|DIR", help="A new file, or a folder for several backups."),
    ],
    *,
    no_sync: NoSync = False,
) -> None:
    """Copy the index, with everything archived in it.

    A folder keeps every backup made into it, and each writes only the pages that changed.
    `sessiond restore-backup` brings one back.
    """
    from contextlib import closing

    from sess_cli import fresh
    from sess_cli.render import amounts
    from sess_common import paths, upkeep
    from sess_common.errors import SessError
    from sess_common.program import say
    from sess_common.progress_line import progress_line
    from sess_schema import backups
    from sess_schema.connection import open_reader

    home = paths.home()
    path = Path(os.path.expanduser(target))
    with fresh.open_index(sync=not no_sync):
        pass
    with closing(open_reader(home.index)) as db, progress_line() as progress:
        try:
            if target.endswith(os.sep) or path.is_dir():
                path.mkdir(mode=0o700, parents=True, exist_ok=True)
                made = backups.add_snapshot(db, path, progress)
            elif os.path.lexists(path):
                raise SessError(f'"{path}" already exists', hint="name a new file or a folder")
            else:
                made = backups.copy_to_file(db, path, progress)
        except OSError as error:
            raise SessError(f'cannot write "{path}": {error.strerror}') from error
    upkeep.note(home.data, upkeep.BACKUP, ok=True, path=str(path.absolute()))
    pages = f"{made.new_pages:,} of {made.pages:,} pages" if path.is_dir() else "verified"
    say(f'backed up to "{made.path}" ({amounts.size(made.written)}, {pages})')
