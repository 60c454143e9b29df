"""What a pass did: for programs, in words, and as an exit code."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from sess_common import program, receipt
from sess_common.errors import Exit
from sess_common.paths import Home
from sess_common.program import counted
from sess_schema.connection import reader_if_unchanged

if TYPE_CHECKING:
    from sessiond.engines.steps import Summary

MOST_SKIPPED_SHOWN = 10
MOST_ROOTS_SHOWN = 10

Facts = dict[str, Any]


def facts_of(summary: Summary, seconds: float, roots: Sequence[str]) -> Facts:
    """As `sessiond sync --json` prints it."""
    return {
        "seen": summary.seen,
        "changed": summary.changed,
        "read_bytes": summary.read_bytes,
        "records": summary.records,
        "warnings": summary.warnings,
        "gone": summary.gone,
        "skipped": [{"path": path, "reason": why} for path, why in summary.skipped],
        "roots": list(roots),
        "seconds": round(seconds, 3),
    }


def tell(facts: Facts, *, as_json: bool, quiet: bool, named: bool) -> int:
    """Print it; the exit code. `named` places were given on the command line."""
    if as_json:
        sys.stdout.write(json.dumps(facts) + "\n")
    elif not quiet:
        _tell_skipped(facts["skipped"], named=named)
        if facts["seen"] or facts["gone"]:
            sys.stdout.write(_in_words(**facts))
        elif not facts["skipped"]:
            _tell_nothing_found(facts["roots"])
    return Exit.SKIPPED_SOME if facts["skipped"] else Exit.OK


def tell_if_unchanged(home: Home, *, quiet: bool) -> bool:
    """Whether everything is as the last pass left it, and it had nothing else to say."""
    db = reader_if_unchanged(home)
    if db is None:
        return False
    with closing(db):
        seen = receipt.files_seen(home)
    if not seen:
        return False
    if not quiet:
        sys.stdout.write(_in_words(seen=seen))
    return True


def _in_words(
    *,
    seen: int,
    changed: int = 0,
    records: int = 0,
    read_bytes: int = 0,
    seconds: float = 0.0,
    warnings: int = 0,
    gone: int = 0,
    **_: Any,
) -> str:
    rate = f", {read_bytes / 1e6 / seconds:.0f} MB/s" if read_bytes > 1e6 else ""
    line = (
        f"{counted(seen, 'file')} seen, {changed:,} changed,"
        f" {counted(records, 'record')} read ({read_bytes / 1e6:.1f} MB{rate}) in {seconds:.1f} s"
    )
    if warnings:
        line += f"; {counted(warnings, 'warning')} (see `sess doctor`)"
    if gone:
        line += f"; {counted(gone, 'file')} gone, sessions kept"
    return line + "\n"


def _tell_nothing_found(roots: Sequence[str]) -> None:
    if len(roots) > MOST_ROOTS_SHOWN:
        sys.stdout.write(f"no transcripts found in {len(roots)} places\n")
        sys.stdout.write("hint: `sessiond agents --all` lists them\n")
    else:
        sys.stdout.write("no transcripts found in:\n")
        sys.stdout.writelines(f"  {root}\n" for root in roots)


def _tell_skipped(skipped: Sequence[dict[str, str]], *, named: bool) -> None:
    if not skipped:
        return
    from sessiond.service.logs import printable  # only when something is wrong

    for one in skipped[:MOST_SKIPPED_SHOWN]:
        program.say(f'sessiond: skipped "{printable(one["path"])}": {one["reason"]}')
    more = len(skipped) - MOST_SKIPPED_SHOWN
    if more > 0:
        program.say(f"sessiond: skipped {more:,} more; `sessiond sync --json` lists them")
    retried = "" if named else "; skipped files are retried at each sync"
    program.say(f"hint: the rest is indexed{retried}")
