"""`sess prune`: delete transcripts that the archive has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from sess_cli.choosing import Doomed, agreed

if TYPE_CHECKING:
    import apsw

    from sess_cli.edit.in_place import File

_MOST_SHOWN = 20


def prune(doomed: Doomed) -> None:
    """Delete transcripts that are archived, to free space.

    Each file is compared with the archive first, byte for byte. The sessions stay searchable, and
    `sess restore --in-place` writes a transcript back at any time. Databases are left alone.
    """
    from sess_cli import fresh
    from sess_cli.edit import in_place
    from sess_cli.render import amounts
    from sess_common.errors import Exit, SessError
    from sess_common.program import say

    doomed.check("prune")
    with fresh.open_with_sessions() as db:
        chosen = doomed.rows(db)
        files, shared = in_place.files_of(db, chosen)
        for path in shared:
            say(f'note: "{path}" also has other sessions, so it stays')
        if not files:
            raise SessError("no transcript to delete", code=Exit.NOTHING_FOUND)
        _show(files)
        if doomed.dry_run:
            return
        if not doomed.yes and not agreed(
            f"Delete {amounts.plural(len(files), 'file')}?", "deletes"
        ):
            raise typer.Exit
        removed = _remove(db, files)
    say(f"deleted {amounts.plural(len(removed), 'file')}, {amounts.size(sum(removed))}")
    if removed:
        say("undo: sess undo")
    if shared or len(removed) < len(files):
        raise typer.Exit(Exit.SKIPPED_SOME)


def _remove(db: apsw.Connection, files: list[File]) -> list[int]:
    """Delete what can be; the sizes of those files."""
    from sess_cli.edit import following, in_place, live
    from sess_common.errors import SessError
    from sess_common.program import say

    group = in_place.new_group()
    removed = {}
    with live.editing():
        for file in files:
            try:
                in_place.remove(db, file, group)
                removed[file.path] = file.size
            except SessError as error:
                say(f"not deleted: {error.message}")
    for path in removed:
        following.after_edit(path)
    return [*removed.values()]


def _show(files: list[File]) -> None:
    from sess_cli.render import amounts, layout
    from sess_cli.terminal import Terminal

    terminal = Terminal()
    for file in files[:_MOST_SHOWN]:
        size = amounts.size(file.size)
        terminal.write(terminal.line(f"{size:>9}  {layout.home_short(file.path)}"))
    if len(files) > _MOST_SHOWN:
        terminal.write(f"and {len(files) - _MOST_SHOWN:,} more")
    total = amounts.size(sum(file.size for file in files))
    terminal.write(f"{amounts.plural(len(files), 'file')}, {total}")
