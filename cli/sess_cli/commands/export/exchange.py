"""`sess export atif` and `otel`: sessions in formats that other tools read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from sess_cli.commands.export import shared
from sess_cli.commands.export.shared import Depth, Selection, Writing, Yes
from sess_cli.options import NoSync, Output, Utc
from sess_common.errors import Exit, SessError
from sess_common.program import counted, say

if TYPE_CHECKING:
    from sess_cli.export.files import Failures
    from sess_cli.export.receiver import Receiver


def atif(
    which: Selection,
    *,
    output: Output = None,
    depth: Depth = None,
    writing: Writing,
    utc: Utc = False,
    no_sync: NoSync = False,
) -> None:
    """Export a session as a trajectory in ATIF 1.7, with its subagents.

    Several sessions, named or chosen by the options, become one file with a trajectory per line,
    oldest first.
    """
    from sess_cli.export import atif as trajectories
    from sess_cli.export.files import Failures

    listing = which.checked_listing(utc=utc, alone=True)
    writing.check(output)
    failures = Failures()
    with which.stories(listing, writing.redactor, depth=depth, sync=not no_sync) as stories:

        def write(out: BinaryIO) -> None:
            if which.is_one:
                trajectories.write(stories[0], out)
            else:
                trajectories.write_several(stories, out, failures)

        name = which.file_name(stories, "atif.json" if which.is_one else "atif.jsonl")
        writing.put(write, writing.target(output, name), json=True)
    shared.report_failed(failures)


def otel(
    which: Selection,
    *,
    output: Output = None,
    endpoint: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Send to URL/v1/traces, as http://localhost:4318, and nowhere else."
        ),
    ] = None,
    yes: Yes = False,
    depth: Depth = None,
    writing: Writing,
    utc: Utc = False,
    no_sync: NoSync = False,
) -> None:
    """Export a session as an OpenTelemetry trace, to a file or to a receiver.

    OTLP/JSON by the GenAI semantic conventions 1.41.1: spans of agents, of responses and of calls.
    Sent again, a span has the same ID. OTEL_EXPORTER_OTLP_HEADERS sets headers such as a key.
    """
    from sess_cli.export import otel as traces
    from sess_cli.export.files import Failures
    from sess_cli.export.receiver import Receiver

    listing = which.checked_listing(utc=utc, alone=True)
    failures = Failures()
    receiver = None
    if endpoint is not None:
        if output is not None:
            raise SessError("-o cannot be combined with --endpoint")
        receiver = Receiver(endpoint)
        if writing.no_redact and not yes:
            shared.confirm_upload("--endpoint", masked=False)
    writing.check(output)
    redactor = writing.redactor
    with which.stories(listing, redactor, depth=depth, sync=not no_sync) as stories:
        if receiver is None:
            path = writing.target(output, which.file_name(stories, "otel.jsonl"))
            writing.put(lambda out: traces.write(stories, out, failures), path, json=True)
        else:
            say(f"sending to {receiver.host}")
            traces.send(stories, receiver, failures)
            shared.report_masked(redactor)
            _report_sent(receiver, failures)
    shared.report_failed(failures)


def _report_sent(receiver: Receiver, failures: Failures) -> None:
    say(f"sent {counted(receiver.sent, 'span')} to {receiver.address}")
    if receiver.refused:
        say(f"it refused {counted(receiver.refused, 'span')}: {receiver.why or 'it says not why'}")
        shared.report_failed(failures)
        raise typer.Exit(Exit.SKIPPED_SOME)
