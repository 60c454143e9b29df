"""`sess search`: find events by their words."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from sess_cli.options import Agents, AsJson, NoSync, Projects, Since, Superseded, Until, Utc

if TYPE_CHECKING:
    from sess_schema.queries.search import Hit


class WordsCommand(TyperCommand):
    """Takes words that begin with a dash: `-word` excludes, a pasted `--flag` is looked for."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        import difflib  # noqa: PLC0415

        from sess_schema.errors import SessError  # noqa: PLC0415

        if args == ["-h"]:  # among other words it excludes one
            args = ["--help"]
        known = [name for parameter in self.params for name in parameter.opts]
        for word in args[: args.index("--")] if "--" in args else args:
            name = word.partition("=")[0]
            if not name.startswith("--") or name in (*known, "--help"):
                continue
            # A slip must not silently become a word that nothing contains.
            if close := difflib.get_close_matches(name, known, 1, 0.75):
                raise SessError(
                    f"no such option: {name}",
                    hint=f"did you mean {close[0]}? `-- {name}` looks for it as a word",
                )
        return super().parse_args(ctx, args)


def register(app: typer.Typer) -> None:
    app.command(
        "search",
        cls=WordsCommand,
        context_settings={"ignore_unknown_options": True, "help_option_names": ["--help"]},
    )(search)


def search(
    words: Annotated[
        list[str],
        typer.Argument(metavar="WORDS", help="words, '\"a phrase\"', begin*, -without"),
    ],
    *,
    agents: Agents = None,
    projects: Projects = None,
    tools: Annotated[
        list[str] | None,
        typer.Option("--tool", metavar="NAME", help="Only calls of this tool (mcp__* works)."),
    ] = None,
    types: Annotated[
        list[str] | None,
        typer.Option(
            "--type",
            metavar="TYPE",
            help="user, assistant, thinking, tool_use, system, summary or error.",
        ),
    ] = None,
    error: Annotated[bool, typer.Option("--error", help="Only failed or denied calls.")] = False,
    since: Since = None,
    until: Until = None,
    utc: Utc = False,
    session: Annotated[
        str | None, typer.Option("--session", metavar="ID", help="Only in this session.")
    ] = None,
    limit: Annotated[int, typer.Option(min=0, metavar="N", help="How many hits; 0 for all.")] = 20,
    superseded: Superseded = False,
    as_json: AsJson = False,
    no_sync: NoSync = False,
) -> None:
    """Find events by their words, the best match first.

    Searches prompts, answers, thoughts, commands, tool inputs and whole tool
    outputs. All words must occur in the same event. Exit code 1 when nothing is found.
    """
    from sess_cli import fresh  # noqa: PLC0415
    from sess_schema import times  # noqa: PLC0415
    from sess_schema.errors import Exit  # noqa: PLC0415
    from sess_schema.program import say  # noqa: PLC0415
    from sess_schema.queries import sessions  # noqa: PLC0415
    from sess_schema.queries.scope import Scope  # noqa: PLC0415
    from sess_schema.queries.search import Search  # noqa: PLC0415

    scope = Scope(
        agents or (),
        projects or (),
        tools or (),
        types or (),
        failed=error,
        since=times.since(since, utc=utc) if since is not None else None,
        until=times.until(until, utc=utc) if until is not None else None,
        superseded=superseded,
    )
    request = Search(" ".join(words), scope, limit)
    request.check()
    with fresh.open_with_sessions(sync=not no_sync) as db:
        if session is not None:
            scope.session = sessions.resolve(db, session).key
        show = _as_json if as_json else _Printer(db, utc=utc)
        found = 0
        for hit in request.hits(db):
            found += 1
            show(hit)
    if not found:
        if sys.stdout.isatty():
            say("nothing found")
        raise typer.Exit(Exit.NOTHING_FOUND)


def _as_json(hit: Hit) -> None:
    from sess_cli.output import json_line  # noqa: PLC0415
    from sess_schema import times  # noqa: PLC0415

    json_line(
        {
            "session": hit.session,
            "agent": hit.agent,
            "project": hit.project,
            "title": hit.title,
            "parent": hit.parent,
            "event": hit.event,
            "ts": times.iso(hit.ts),
            "type": hit.type,
            "tool": hit.tool,
            "status": hit.status,
            "snippet": hit.snippet.text,
            "score": float(f"{-hit.score or 0.0:.6g}"),
        }
    )


class _Printer:
    """Writes hits for people, each when it comes; hits of one session in a row share its line."""

    def __init__(self, db: Any, *, utc: bool) -> None:
        from sess_cli.render.results import ResultView  # noqa: PLC0415
        from sess_cli.terminal import Terminal  # noqa: PLC0415

        self._terminal = Terminal()
        self._view = ResultView(self._terminal, db, utc=utc)

    def __call__(self, hit: Hit) -> None:
        for line in self._view.lines(hit):
            self._terminal.write(line)
        self._terminal.stream.flush()
