"""`sess export site`: all sessions as a static site."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Annotated

import apsw
import typer

from sess_cli import fresh
from sess_cli.commands.export import shared
from sess_cli.commands.export.shared import Open
from sess_cli.options import Masks, Matching, NoSync, Utc
from sess_cli.render import amounts, layout
from sess_cli.terminal import Terminal
from sess_common.errors import Exit, SessError
from sess_common.program import say
from sess_schema.queries import sessions
from sess_schema.queries.sessions import SessionRow

if TYPE_CHECKING:
    from sess_cli.export.site.build import Outcome, Site
    from sess_redaction import Redactor

_FOLDER = "sess-site"
_SHOWN = 3
_FEW = 5  # sessions are drawn soon


def site(
    *,
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="DIR", help="Directory; created if missing.")
    ] = _FOLDER,
    which: Matching,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be done; write nothing.")
    ] = False,
    masks: Masks,
    open_it: Open = False,
    quiet: Annotated[
        bool, typer.Option("-q", "--quiet", help="Print only what could not be drawn.")
    ] = False,
    utc: Utc = False,
    no_sync: NoSync = False,
) -> None:
    """Export all sessions as a static site with search.

    Pages of unchanged sessions are kept; pages of sessions that no longer match are removed.
    """
    from sess_cli.export.site.build import Site, Wanted

    listing = which.listing(utc=utc, alone=True, limit=0)
    _check_folder(output)
    redactor = masks.redactor
    rules = "" if redactor is None else redactor.identity
    with fresh.open_with_sessions(sync=not no_sync) as db:
        rows = which.rows(db, listing)
        whole = Site(db, output, rows, Wanted(masks=rules, utc=utc))
        if dry_run:
            if not quiet:
                _print_plan(db, whole, rows)
            return
        with _progress(0 if quiet else len(whole.stale())) as step:
            outcome = whole.build(redactor, step)
    if not quiet:
        _print_outcome(output, outcome, redactor, whole.unlisted)
    _print_failed(outcome)
    if open_it:
        shared.open_file(os.path.join(output, "index.html"))
    if outcome.failed:
        raise typer.Exit(Exit.SKIPPED_SOME)


def _check_folder(folder: str) -> None:
    from sess_cli.export.site.plan import MANIFEST

    if folder == "-":
        raise SessError("cannot write a site to stdout", hint="use `-o DIR`")
    if os.path.exists(folder) and not os.path.isdir(folder):
        raise SessError(f'"{folder}" is not a directory', hint="name another with `-o`")
    there = os.listdir(folder) if os.path.isdir(folder) else []
    if there and MANIFEST not in there:
        raise SessError(f'"{folder}" has other files in it', hint="name a new directory with `-o`")


def _print_outcome(folder: str, outcome: Outcome, redactor: Redactor | None, unlisted: int) -> None:
    parts = [f"{len(outcome.drawn):,} drawn", f"{outcome.unchanged:,} unchanged"]
    parts += [f"{outcome.removed:,} removed"] if outcome.removed else []
    say(f"{os.path.join(folder, 'index.html')}: {', '.join(parts)}")
    if unlisted:
        say(f"folded away on it: {unlisted:,} {shared.UNLISTED}")
    shared.report_masked(redactor)


def _print_failed(outcome: Outcome) -> None:
    if outcome.failed:
        say(f"{amounts.plural(len(outcome.failed), 'session')} could not be drawn:")
        for session, why in outcome.failed:
            say(f"  {session}: {why}")


def _print_plan(db: apsw.Connection, whole: Site, rows: list[SessionRow]) -> None:
    from sess_cli.export.site.plan import NO_PROJECT

    terminal = Terminal()
    stale = {row.key for row in whole.stale()}
    projects: dict[str, list[SessionRow]] = {}
    for row in rows:
        projects.setdefault(row.project or NO_PROJECT, []).append(row)
    for project, own in projects.items():
        count = amounts.plural(len(own), "session")
        terminal.write(f"{terminal.line(layout.home_short(project))}: {count}")
        for row in own[:_SHOWN]:
            mark = "draw" if row.key in stale else "keep"
            title = terminal.line(sessions.title_of(db, row))
            terminal.write(
                f"  {mark}  {terminal.line(row.session[:14]):<14}"
                f"  {layout.cut(title, (terminal.width or 100) - 24)}"
            )
        if len(own) > _SHOWN:
            terminal.write(f"  and {len(own) - _SHOWN:,} more")
    terminal.write(
        f"would draw {len(stale):,}, keep {len(rows) - len(stale):,},"
        f" remove {len(whole.leaving()):,}"
    )


@contextmanager
def _progress(total: int) -> Iterator[Callable[[str], None]]:
    """A progress bar; none in a pipe or for a few sessions."""
    if total < _FEW:
        yield lambda _: None
        return
    drawn = count(1)
    with shared.progress("drawing sessions") as update:
        yield lambda _: update(next(drawn), total) if update else None
