"""`sess list`: the sessions, newest activity first."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import apsw
import typer

from sess_cli import fresh
from sess_cli.options import AsJson, Branches, Matching, Models, NoPager, NoSync, Texts, Utc
from sess_cli.terminal import json_line, pager
from sess_common import times
from sess_common.errors import Exit, SessError, no_such
from sess_common.program import counted, say
from sess_schema.marks import Marks
from sess_schema.queries import known, sessions
from sess_schema.queries.sessions import Listing

if TYPE_CHECKING:
    from sess_cli.render.listing import Chosen
    from sess_cli.terminal import Terminal

SORTS = ("recent", "started", "cost", "tokens", "events", "duration", "project", "title")


def list_(
    words: Annotated[
        Texts,
        typer.Argument(
            metavar="[WORDS]...", help="Only sessions with these in title, project or ID."
        ),
    ] = None,
    *,
    which: Matching,
    models: Models = None,
    branches: Branches = None,
    older_than: Annotated[
        str | None,
        typer.Option("--older-than", metavar="TIME", help="Only sessions quiet since then: 30d."),
    ] = None,
    utc: Utc = False,
    sort: Annotated[
        str, typer.Option(metavar="ORDER", help=f"Order by {', '.join(SORTS[:-1])} or {SORTS[-1]}.")
    ] = "recent",
    reverse: Annotated[bool, typer.Option("-r", "--reverse", help="Reverse the order.")] = False,
    limit: Annotated[
        int, typer.Option("-n", "--limit", min=0, metavar="N", help="List at most N; 0 for all.")
    ] = 30,
    every: Annotated[
        bool, typer.Option("--all", help="Include subagents, prompt logs and empty sessions.")
    ] = False,
    no_pager: NoPager = False,
    as_json: AsJson = False,
    no_sync: NoSync = False,
) -> None:
    """List sessions, newest activity first."""
    if sort not in SORTS:
        raise no_such("order", sort, SORTS)
    listing = which.listing(
        utc=utc,
        ended_before=times.since(older_than, utc=utc) if older_than is not None else None,
        every=every,
        models=models or (),
        branches=branches or (),
        limit=limit,
    )
    with (
        pager(wanted=not no_pager and not as_json) as terminal,
        fresh.open_with_sessions(sync=not no_sync) as db,
    ):
        from sess_cli.render import listing as drawn

        known.check(db, listing)
        chosen = drawn.chosen(db, listing, words or (), sort, reverse=reverse)
        if as_json:
            from sess_schema import objects

            marks = Marks(db)
            for row in chosen.rows:
                title = sessions.title_of(db, row)
                json_line(objects.session(row, title, chosen.numbers[row.key], marks))
        elif chosen.rows:
            for line in drawn.lines(db, terminal, chosen, utc=utc):
                terminal.write(line)
            _count(db, terminal, listing, chosen, words=bool(words))
        if not chosen.rows:
            raise _nothing(db, listing, words or ())


def _nothing(db: apsw.Connection, listing: Listing, words: Sequence[str]) -> SessError:
    problem = known.nothing(db, listing)
    if problem is not None and not words:
        return problem
    inside = shlex.join(["sess", "search", *words])
    hint = f"`{inside}` looks inside sessions; `sess list --all --limit 0` lists every session"
    return SessError("no session matches", hint=hint, code=Exit.NOTHING_FOUND)


def _count(
    db: apsw.Connection, terminal: Terminal, listing: Listing, chosen: Chosen, *, words: bool
) -> None:
    """How many are not listed, and why."""
    from dataclasses import replace

    notes = []
    if len(chosen.rows) < chosen.total:
        notes.append(f"{len(chosen.rows):,} of {counted(chosen.total, 'session')}; -n 0 lists all")
    if not terminal.interactive:
        for note in notes:
            say(note)
        return
    if not listing.every and not words:
        hidden = replace(listing, every=True).count(db) - chosen.total
        if hidden:
            notes = notes or [counted(chosen.total, "session")]
            notes.append(f"{hidden:,} more with --all: subagents, logs, empty ones")
    if notes:
        terminal.write("")
    for note in notes:
        terminal.write(terminal.style(note, "dim"))
