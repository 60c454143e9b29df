"""`sess check` and `backup`: verify the index and every archived byte, and copy it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sess_cli import fresh
from sess_cli.options import AsJson, NoSync
from sess_cli.render import amounts
from sess_cli.terminal import Terminal, json_line
from sess_common import paths
from sess_common.errors import Exit, SessError
from sess_common.program import say

if TYPE_CHECKING:
    from sess_schema.soundness import Finding

_MOST_SHOWN = 20
_NAME_WIDTH = 10


def check(
    *,
    subset: Annotated[
        str,
        typer.Option(
            "--read-data-subset",
            metavar="SHARE",
            help="Read only this share of the archive, chosen at random, such as 10%.",
        ),
    ] = "100%",
    as_json: AsJson = False,
) -> None:
    """Verify the index and every archived byte.

    Pages, archive, full text, references and sums are checked.
    Every archived piece is compared with its checksum, and with its file if that is unchanged.
    Exits with 0 if all is well, 4 if anything is damaged.
    """
    from sess_cli.checks import check_all
    from sess_common import upkeep

    share = _share(subset)
    home = paths.home()
    terminal = Terminal()
    wrong = False
    for name, message, findings in check_all(home, share):
        wrong = wrong or bool(findings)
        if as_json:
            problems = [finding.message for finding in findings]
            json_line({"check": name, "ok": not findings, "message": message, "problems": problems})
        else:
            _write(terminal, name, message, findings)
    upkeep.note(home.data, upkeep.CHECK, ok=not wrong, share=share)
    if wrong:
        if not as_json:
            terminal.write("hint: `sessiond repair` mends what can be mended and names the rest")
        raise typer.Exit(Exit.INDEX_UNUSABLE)


def _write(terminal: Terminal, name: str, message: str, findings: list[Finding]) -> None:
    mark = terminal.style("fail", "red") if findings else terminal.style("ok  ", "green")
    terminal.write(f"{mark}  {name:<{_NAME_WIDTH}}  {terminal.line(message)}")
    indent = " " * (_NAME_WIDTH + 8)
    for finding in findings[:_MOST_SHOWN]:
        terminal.write(indent + terminal.line(finding.message))
    if len(findings) > _MOST_SHOWN:
        terminal.write(f"{indent}and {len(findings) - _MOST_SHOWN:,} more; --json lists all")


def _share(percentage: str) -> float:
    try:
        share = float(percentage.removesuffix("%")) / 100
    except ValueError:
        share = -1.0
    if not percentage.endswith("%") or not 0 < share <= 1:
        raise SessError(
            f'"{percentage}" is not a share of the archive', hint="give a percentage, such as 10%"
        )
    return share


def backup(
    target: Annotated[
        str, typer.Argument(metavar="FILE|DIR", help="A new file, or a folder for several backups.")
    ],
    *,
    as_json: AsJson = False,
    no_sync: NoSync = False,
) -> None:
    """Copy the index, with everything archived in it.

    A folder keeps every backup made into it, and each writes only the pages that changed.
    `sessiond restore-backup` brings one back.
    """
    from contextlib import closing

    from sess_common import upkeep
    from sess_common.progress import progress_line
    from sess_schema import backups
    from sess_schema.connection import open_reader

    home = paths.home()
    path = Path(os.path.expanduser(target))
    with fresh.open_index(sync=not no_sync, whole=True):
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
    if as_json:
        facts = {"path": str(made.path), "written_bytes": made.written}
        json_line({**facts, "pages": made.pages, "new_pages": made.new_pages})
        return
    pages = f"{made.new_pages:,} of {made.pages:,} pages" if path.is_dir() else "verified"
    say(f'backed up to "{made.path}" ({amounts.size(made.written)}, {pages})')
