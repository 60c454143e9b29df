"""`sess truncate`: take out the end of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sess_cli.choosing import Editing
from sess_cli.options import SessionId

if TYPE_CHECKING:
    import apsw

    from sess_cli.edit.cutting import Cut


def truncate(
    session: SessionId,
    *,
    before_user: Annotated[
        int,
        typer.Option(
            "--before-user",
            min=0,
            metavar="N",
            help="Keep the first N prompts and what followed them; 0 keeps none.",
        ),
    ],
    options: Editing,
) -> None:
    """Take everything after the first N prompts out of a session.

    The session keeps its ID and can be resumed from there. A snapshot is taken first: `sess undo`
    brings everything back.
    """
    from sess_cli import fresh
    from sess_cli.edit import running, target, truncating
    from sess_cli.edit.ids import checked
    from sess_common.program import counted, say
    from sess_schema.queries import transcripts

    with fresh.open_with_sessions() as db:
        chosen = target.find(db, checked(session), options.source)

    def plan(db: apsw.Connection) -> Cut:
        found = transcripts.read(db, chosen.source)
        cut = truncating.planned(db, chosen, found, before_user)
        if cut is None:
            say(f"the session has no more than {counted(before_user, 'prompt')}: nothing to do")
            raise typer.Exit
        return cut

    running.run(plan, options)
