"""`sess handoff`: a brief with which another agent takes over."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from sess_cli.commands.export.shared import NoRedact, Output, Redact, RedactionReport
from sess_cli.options import AsJson, NoSync, SessionId


def handoff(
    session: SessionId,
    *,
    max_tokens: Annotated[
        int,
        typer.Option(
            "--max-tokens", min=100, metavar="N", help="Length, at four characters per token."
        ),
    ] = 3000,
    output: Output = None,
    no_redact: NoRedact = False,
    redact: Redact = None,
    redaction_report: RedactionReport = False,
    as_json: AsJson = False,
    no_sync: NoSync = False,
) -> None:
    """Write a brief with which another agent can take over.

    In Markdown: goal, decisions, files, commands, open errors, to-dos and where it stands, with
    secrets masked.
    """
    from sess_cli.commands.export import shared
    from sess_cli.continuing import facts, handoff

    redactor = shared.masking(off=no_redact, patterns=redact, report=redaction_report)
    with shared.opened(session, redactor, sync=not no_sync, images=False) as story:
        found = facts.of_story(story)
        text = handoff.write(story, found, max_tokens)
        if as_json:
            from dataclasses import asdict

            from sess_cli.output import json_line

            about = {"session": story.row.session, "agent": story.row.agent}
            json_line({**about, "project": story.project, **asdict(found), "brief": text})
            return
        raw = text.encode("utf-8", "backslashreplace")
        if output is None or output == "-":
            _print(raw)
            shared.report_masked(redactor)
            return
        from sess_cli.export import files

        with files.new_file(output) as out:
            out.write(raw)
        shared.report(output, redactor)


def _print(raw: bytes) -> None:
    from sess_cli.terminal import Terminal

    terminal = Terminal()
    if terminal.interactive:
        terminal.write(terminal.text(raw.decode()).rstrip())
    else:
        sys.stdout.buffer.write(raw)
        sys.stdout.buffer.flush()
