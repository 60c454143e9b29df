"""`sess check` and `backup`: verify the index and every archived byte, and copy it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import apsw
import typer

from sess_cli import fresh
from sess_cli.options import AsJson, NoSync
from sess_cli.render import amounts
from sess_cli.terminal import Terminal, json_line
from sess_common import lock, paths
from sess_common.errors import Exit, SessError
from sess_common.program import say
from sess_common.progress import progress_line
from sess_schema import archive, connection, soundness
from sess_schema.soundness import ArchiveCheck, Finding

if TYPE_CHECKING:
    from sess_common.paths import Home


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
    from sess_common import upkeep

    share = _share(subset)
    home = paths.home()
    terminal = Terminal()
    wrong = False
    for name, message, findings in check_all(home, share):
        wrong = wrong or bool(findings)
        if as_json:
            json_line(
                {
                    "check": name,
                    "ok": not findings,
                    "message": message,
                    "problems": [finding.message for finding in findings],
                }
            )
            continue
        mark = terminal.style("fail", "red") if findings else terminal.style("ok  ", "green")
        terminal.write(f"{mark}  {name:<{_NAME_WIDTH}}  {terminal.line(message)}")
        for finding in findings[:_MOST_SHOWN]:
            terminal.write(" " * (_NAME_WIDTH + 8) + terminal.line(finding.message))
        if len(findings) > _MOST_SHOWN:
            more = f"and {len(findings) - _MOST_SHOWN:,} more; --json lists all"
            terminal.write(" " * (_NAME_WIDTH + 8) + more)
    upkeep.note(home.data, upkeep.CHECK, ok=not wrong, share=share)
    if wrong:
        if not as_json:
            terminal.write("hint: `sessiond repair` mends what can be mended and names the rest")
        raise typer.Exit(Exit.INDEX_UNUSABLE)


def _share(given: str) -> float:
    try:
        share = float(given.removesuffix("%")) / 100
    except ValueError:
        share = -1.0
    if not given.endswith("%") or not 0 < share <= 1:
        raise SessError(
            f'"{given}" is not a share of the archive', hint="give a percentage, such as 10%"
        )
    return share


Checked = tuple[str, str, list[Finding]]  # name, message, what is wrong


def check_all(home: Home, share: float) -> Iterator[Checked]:
    """The foundations first; a damaged database is still read as far as possible."""
    with closing(connection.open_reader(home.index)) as db:
        with progress_line() as progress:
            progress("checking the pages")
            broken = soundness.structure(db)
        pages = [one for one in broken if one.about != soundness.FULL_TEXT]
        yield "pages", "damaged" if pages else "intact", pages
        yield _check_archive(db, share)
        yield _check_rows(db)
    yield _check_full_text(home, [one for one in broken if one.about == soundness.FULL_TEXT])


def _check_archive(db: apsw.Connection, share: float) -> Checked:
    checking = ArchiveCheck(db, share)
    findings: list[Finding] = []
    with progress_line() as progress:

        def draw(done: int, of: int) -> None:
            progress(f"checking the archive, {done:,} of {of:,} pieces")

        try:
            findings.extend(checking.findings(draw))
        except apsw.Error as error:
            findings.append(Finding(soundness.STRUCTURE, f"cannot be read further: {error}"))
    archive.met.clear()  # it is in the findings
    looked = checking.looked
    pieces = amounts.plural(looked.chunks, "piece")
    if looked.chunks < looked.of_chunks:
        pieces += f" of {looked.of_chunks:,}"
    message = (
        f"{pieces}, {amounts.size(looked.bytes)} read,"
        f" {amounts.plural(looked.files, 'unchanged file')} compared"
    )
    if looked.accepted:
        message += f"; {amounts.size(looked.accepted)} are lost, which was accepted"
    return "archive", message, findings


def _check_rows(db: apsw.Connection) -> Checked:
    try:
        findings = soundness.rows(db)
    except apsw.Error as error:
        findings = [Finding(soundness.STRUCTURE, f"cannot be read: {error}")]
    return "rows", "references and sums", findings


def _check_full_text(home: Home, findings: list[Finding]) -> Checked:
    """FTS5 compares its index with the texts only in a statement that may write."""
    if findings:
        return "full text", "damaged", findings
    held = lock.acquire(home.lock)
    if held is None:
        message = "sound in itself; not compared with the texts while the daemon is running"
        return "full text", message, []
    try:
        with closing(connection.open_writer(home.index)) as db:
            return "full text", "compared with the texts", soundness.full_text(db)
    except (apsw.Error, SessError) as error:
        return "full text", "not compared", [Finding(soundness.STRUCTURE, str(error))]
    finally:
        held.release()


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

    from sess_common import upkeep
    from sess_common.progress import progress_line
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
