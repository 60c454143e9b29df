"""`sess recall`: the places that may answer a question."""

from __future__ import annotations

from typing import Annotated

import typer

from sess_cli.options import Agents, AsJson, NoSync, Since, Texts, Until, Utc
from sess_cli.parsing import WordsCommand


def register(app: typer.Typer) -> None:
    app.command("recall", cls=WordsCommand, context_settings={"help_option_names": ["--help"]})(
        recall
    )


def recall(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="QUESTION", help="A question in plain words, or - to read stdin."),
    ] = None,
    *,
    agent: Agents = None,
    project: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="Prefer sessions of this project; `project:PATH` in QUESTION takes no others.",
        ),
    ] = None,
    session: Annotated[
        Texts, typer.Option("--session", metavar="ID", help="Only this session.")
    ] = None,
    since: Since = None,
    until: Until = None,
    not_session: Annotated[
        str | None,
        typer.Option(
            metavar="ID", help="Leave out this session, and what is younger than ten minutes."
        ),
    ] = None,
    error: Annotated[
        bool | None,
        typer.Option(
            "--error/--no-error",
            help="QUESTION is an error that was pasted, which is otherwise recognised.",
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option("-n", "--limit", min=1, metavar="N", help="Show at most N places.")
    ] = 20,
    max_tokens: Annotated[
        int | None,
        typer.Option(
            min=50, metavar="N", help="Print at most N tokens (default: 1500; --json: no limit)."
        ),
    ] = None,
    as_json: AsJson = False,
    utc: Utc = False,
    no_sync: NoSync = False,
) -> None:
    """Answer a question from past sessions.

    QUESTION is in plain words, which need not be those of the answer. Shows the places that fit
    best, each with what followed it, and says so if nothing seems to fit. Nothing is sent
    anywhere, and no model is asked.
    """
    from sess_cli.recalling import Answer, asked

    filters = {"agent": agent, "session": session, "since": since, "until": until}
    answer = Answer(
        asked(words or ()),
        filters,
        project,
        not_session,
        error,
        limit=limit,
        max_tokens=max_tokens,
        utc=utc,
    )
    answer.print(sync=not no_sync, as_json=as_json)
