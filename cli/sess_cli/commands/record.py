"""`sess record` and `import`: conversations that no agent has put where it is looked for."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from sess_cli.options import AsJson
from sess_common.errors import Exit, SessError
from sess_common.program import counted, module, say

if TYPE_CHECKING:
    from sess_cli.recording.recorder import Recorder

_MOST_SHOWN = 20
_PREVIEW = 80


def record(
    *,
    project: Annotated[
        str | None,
        typer.Option("--project", metavar="DIR", help="Working directory; default: this one."),
    ] = None,
    model: Annotated[str, typer.Option("--model", metavar="NAME", help="The model.")] = "",
    provider: Annotated[
        str, typer.Option("--provider", metavar="NAME", help="Who runs the model.")
    ] = "",
    title: Annotated[
        str, typer.Option("--title", metavar="TEXT", help="Instead of the first prompt.")
    ] = "",
    session: Annotated[
        str | None,
        typer.Option("--session", metavar="ID", help="Append to this session, or begin it."),
    ] = None,
    teammate: Annotated[
        str | None,
        typer.Option("--teammate", metavar="NAME", help="A teammate that works for --session."),
    ] = None,
) -> None:
    """Record the events on stdin as a session.

    Each line is a JSON object: an event such as {"type": "user", "content": "..."}, or a message of
    a chat with "role". See docs/record.md. The ID of the session is printed when it begins.
    """
    if sys.stdin.isatty():
        raise SessError(
            "nothing to record: stdin is a terminal",
            hint="`your-agent | sess record`; `sess records` lists those of a session",
        )
    recorder = _recorder(project, model, provider, session, teammate)
    skipped, failure = _write(recorder, title)
    if failure is not None:
        raise SessError(f'cannot write "{recorder.path}": {failure}', code=Exit.USAGE)
    if not recorder.has_recording:
        raise SessError("nothing was recorded", hint="see docs/record.md", code=Exit.NOTHING_FOUND)
    if skipped:
        say(f"sess: skipped {counted(skipped, 'line')}")
        raise typer.Exit(Exit.SKIPPED_SOME)


def _recorder(
    project: str | None, model: str, provider: str, session: str | None, teammate: str | None
) -> Recorder:
    from sess_cli.recording.recorder import Recorder, check_id

    for name in (session, teammate):
        try:
            check_id("-" if name is None else name)
        except ValueError as error:
            raise SessError(str(error)) from None
    if teammate is None:
        recorder = Recorder(project, model=model, provider=provider)
        if session is not None:
            recorder.resume(session)
        return recorder
    if session is None:
        raise SessError("--teammate needs --session", hint="the session that it works for")
    return Recorder.teammate(session, teammate, model=model)


def _write(recorder: Recorder, title: str) -> tuple[int, Exception | None]:
    """(lines that were skipped, why an entry could not be written)."""
    from sess_cli.recording.recorder import Incoming, Refused

    incoming, skipped, announced = Incoming(), 0, False
    with recorder:
        # A line at a time: iterating over a pipe would wait for more of them.
        for number, line in enumerate(iter(sys.stdin.buffer.readline, b""), 1):
            if not line.strip():
                continue
            try:
                entries = incoming.entries(line)
            except Refused as error:
                skipped += 1
                if skipped <= _MOST_SHOWN:
                    say(f"sess: line {number} skipped: {error}: {_preview(line)}")
                continue
            for entry in entries:
                if not recorder.entry(entry):
                    return skipped, recorder.error
            if not announced and recorder.has_recording:
                announced = True
                recorder.rename(title)
                typer.echo(recorder.session)
    return skipped, None


def _preview(line: bytes) -> str:
    text = " ".join(line[: _PREVIEW * 4].decode("utf-8", "replace").split())
    return text if len(text) <= _PREVIEW else text[:_PREVIEW] + "…"


def import_(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE|-|URL...", help="Files, standard input, or web addresses."),
    ],
    *,
    agent: Annotated[
        str | None,
        typer.Option("--agent", metavar="NAME", help="The agent that wrote it, if unclear."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Index a file that lies anywhere.

    For example an export, or a colleague's transcript. The content tells which agent wrote it. A
    file on this machine is followed while it grows; what comes from standard input or from the web
    is saved first. Only an address that you give is ever contacted: its host is named before, and
    256 MiB are the limit.
    """
    import subprocess

    options = [*(["--agent", agent] if agent else []), *(["--json"] if as_json else [])]
    child = [*module("sessiond.service.importing"), *options, "--", *files]
    raise typer.Exit(subprocess.run(child, check=False).returncode)
