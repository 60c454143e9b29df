"""`sess export json`: everything the index has about a session."""

from __future__ import annotations

import typer

from sess_cli.commands.export.shared import Force, NoRedact, Output, Redact, RedactionReport
from sess_cli.options import NoSync, SessionId


def register(group: typer.Typer) -> None:
    group.command("json")(json_)


def json_(
    session: SessionId,
    *,
    output: Output = None,
    no_redact: NoRedact = False,
    redact: Redact = None,
    redaction_report: RedactionReport = False,
    force: Force = False,
    no_sync: NoSync = False,
) -> None:
    """Export a session as JSON: events, records and subagents."""
    from sess_cli.commands.export import shared  # noqa: PLC0415 - not needed for --help
    from sess_cli.export import files, lossless  # noqa: PLC0415

    shared.check_output(output, force=force)
    redactor = shared.masking(off=no_redact, patterns=redact, report=redaction_report)
    with shared.opened(session, redactor, sync=not no_sync) as story:
        if output == "-":
            lossless.write(story, shared.standard_output(json=True))
            shared.report_masked(redactor)
            return
        path = output or shared.default_name(story, "json")
        with files.new_file(path) as out:
            lossless.write(story, out)
        shared.report(path, redactor)
