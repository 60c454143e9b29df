"""Runs the checks of `sess check`, one after the other, on a reader's connection."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

import apsw

from sess_cli.render import amounts
from sess_common import lock
from sess_common.errors import SessError
from sess_common.progress_line import progress_line
from sess_schema import archive, connection, soundness
from sess_schema.soundness import ArchiveCheck, Finding

if TYPE_CHECKING:
    from sess_common.paths import Home

Checked = tuple[str, str, list[Finding]]  # name, message, what is wrong


def check_all(home: Home, share: float) -> Iterator[Checked]:
    """The foundations first; a damaged database is still read as far as possible."""
    with closing(connection.open_reader(home.index)) as db:
        with progress_line() as progress:
            progress("checking the pages")
            broken = soundness.structure(db)
        pages = [one for one in broken if one.about != soundness.FULL_TEXT]
        yield "pages", "damaged" if pages else "intact", pages
        yield _archive(db, share)
        yield _rows(db)
    yield _full_text(home, [one for one in broken if one.about == soundness.FULL_TEXT])


def _archive(db: apsw.Connection, share: float) -> Checked:
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


def _rows(db: apsw.Connection) -> Checked:
    try:
        findings = soundness.rows(db)
    except apsw.Error as error:
        findings = [Finding(soundness.STRUCTURE, f"cannot be read: {error}")]
    return "rows", "references and sums", findings


def _full_text(home: Home, findings: list[Finding]) -> Checked:
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
