"""`sess scrub`: mask secrets in an agent's own transcripts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from sess_cli import fresh
from sess_cli.options import AsJson, DryRun, SessionId, Yes, confirmed
from sess_cli.render import layout
from sess_cli.terminal import Terminal, json_line
from sess_common import paths, requests
from sess_common.errors import Exit, SessError
from sess_common.program import counted, say
from sess_schema.queries import sessions

if TYPE_CHECKING:
    from sess_cli.edit.log import Edit
    from sess_cli.edit.scrubbing import Findings, Scrub

_MOST_PLACES = 20


def scrub(
    session: SessionId,
    *,
    everywhere: Annotated[
        bool,
        typer.Option(
            "--everywhere",
            help="Also in the index, the archive and snapshots. `sess undo` cannot bring it back.",
        ),
    ] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    force: Annotated[
        bool, typer.Option("--force", help="Even soon after the agent has written.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Mask the secrets in the transcripts of a session.

    Stars take their place; no other byte changes. Transcripts of its subagents and saved outputs
    are masked with it. `sess undo` brings them back. `sess doctor --secrets` lists sessions with
    secrets. What was sent to a model or copied elsewhere stays there: revoke such secrets, too.
    """
    from sess_cli.edit import live, running, scrubbing
    from sess_cli.edit.whole_files import checked_id

    with fresh.open_with_sessions() as db:
        row = sessions.resolve(db, checked_id(session))
        findings = scrubbing.Findings(db, row)
        try:
            scrubs = scrubbing.planned(db, findings)
        except live.Changed:
            raise SessError(
                f'the files of "{row.session}" have changed', hint="try again when the agent rests"
            ) from None
        files = [one.path for one in findings.files()]
        if everywhere:
            _check_there(findings)
        if not scrubs and not everywhere:
            if as_json:
                _write(findings, scrubs, None)
            _tell_nothing(findings)
        if not as_json:
            _show(findings, scrubs)
    agreed = not dry_run and (yes or confirmed(_question(scrubs, everywhere=everywhere), "masks"))
    edits = scrubbing.perform(findings, scrubs, force=force) if agreed else []
    if as_json:
        _write(findings, scrubs, edits[0] if edits else None)
    if not agreed:
        if not dry_run:
            say("nothing was changed")
        return
    for one in scrubs:
        running.wait_until_read(one.file.path)
    if scrubs:
        say(f"masked {_amount(scrubs)}")
    if everywhere:
        _forget_what_was(findings, files)
    elif edits:
        say(
            "the index, the archive and the snapshot have them still: --everywhere masks them there"
        )
        say(f"undo: sess undo {edits[0].id}")


def _amount(scrubs: list[Scrub]) -> str:
    places = sum(one.masks for one in scrubs)
    return f"{counted(places, 'place')} in {counted(len(scrubs), 'file')}"


def _question(scrubs: list[Scrub], *, everywhere: bool) -> str:
    if not everywhere:
        return f"Mask {_amount(scrubs)}?"
    return f"Mask {_amount(scrubs)}, and for good in the index, the archive and snapshots?"


def _tell_nothing(findings: Findings) -> None:
    if findings.kinds:
        raise SessError(
            "the secrets that the index has are no longer in the files",
            hint="--everywhere masks them in the index and the archive",
            code=Exit.NOTHING_FOUND,
        )
    raise SessError(f'no secrets found in "{findings.row.session}"', code=Exit.NOTHING_FOUND)


def _check_there(findings: Findings) -> None:
    """What only the archive has cannot be read again without its secrets."""
    gone = [one.path for one in findings.files() if one.state == "gone"]
    if gone:
        raise SessError(
            f'"{gone[0]}" is gone, and only the archive has it',
            hint=f"`sess forget {findings.row.session}` deletes it there for good",
        )


def _show(findings: Findings, scrubs: list[Scrub]) -> None:
    terminal = Terminal()
    for kind, count in findings.kinds.most_common():
        terminal.write(f"{count:>7,}  {kind}")
    for place in findings.places[:_MOST_PLACES]:
        times = f" ({place.times} times)" if place.times > 1 else ""
        where = terminal.line(f"{place.session}#{place.event}")
        terminal.write(f"         {where}  {place.kind}{times}")
    if len(findings.places) > _MOST_PLACES:
        terminal.write(f"         and {len(findings.places) - _MOST_PLACES:,} more events")
    for one in scrubs:
        where = terminal.line(layout.home_short(one.file.path))
        terminal.write(f"{one.masks:>7,}  in {where}")


def _write(findings: Findings, scrubs: list[Scrub], edit: Edit | None) -> None:
    told: dict[str, Any] = {
        "session": findings.row.session,
        "agent": findings.row.agent,
        "secrets": dict(findings.kinds),
        "places": [place._asdict() for place in findings.places],
        "files": [{"path": one.file.path, "masks": one.masks} for one in scrubs],
        "done": edit is not None,
        "edit": edit.id if edit else None,
    }
    json_line(told)


def _forget_what_was(findings: Findings, files: list[str]) -> None:
    """Forget the session with its archive, and read it again from the masked files."""
    from sess_cli.edit import log

    names = {row.session for row in findings.family}
    log.discard(names, {*files})
    done = requests.ask(paths.home(), "forget", sessions=[findings.row.key], again=True)
    say("masked in the index, the archive and snapshots, too: this cannot be undone")
    for path in done["shared"]:
        say(f'note: "{path}" also has other sessions, so its archived copy stays as it is')
    if done["shared"]:
        raise typer.Exit(Exit.SKIPPED_SOME)
