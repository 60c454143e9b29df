"""`sess doctor`: check everything, name the fix for what is wrong, and count secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from sess_cli import fresh
from sess_cli.options import AsJson
from sess_cli.terminal import Terminal, json_line
from sess_common import paths
from sess_common.errors import Exit
from sess_common.program import module, say
from sess_schema.queries.sessions import Listing

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator

    from sess_cli.checks import Check
    from sess_common.paths import Home

_STYLES = {"ok": "green", "warn": "yellow", "fail": "red"}
_NAME_WIDTH = 11
_MOST_SESSIONS = 20
_MOST_PLACES = 3


def doctor(
    *,
    deep: Annotated[
        bool,
        typer.Option(
            "--deep",
            help="Also check every page, archived piece and the full text, and show where the bytes"
            " are (slower).",
        ),
    ] = False,
    fix: Annotated[bool, typer.Option("--fix", help="Mend what can be mended.")] = False,
    bundle: Annotated[
        str | None,
        typer.Option(
            "--bundle", metavar="FILE", help="Write a report without any transcript content."
        ),
    ] = None,
    secrets: Annotated[
        bool,
        typer.Option("--secrets", help="List secrets in sessions, by kind and place, instead."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check the installation and the index, end to end.

    Exits with 0 if all is well, 4 if the index is unusable, 5 with warnings.
    """
    from sess_cli import checks

    terminal = Terminal()
    if secrets:
        raise typer.Exit(_show_secrets(terminal, as_json=as_json))
    if fix:
        _fix(paths.home())
    results = []
    for check in checks.every_check(paths.home(), deep=deep):
        results.append(check)
        if as_json:
            json_line(check.as_object())
        else:
            _write_check(terminal, check)
    if bundle is not None:
        checks.write_bundle(bundle, results)
    states = {check.state for check in results}
    if checks.FAIL in states:
        raise typer.Exit(Exit.INDEX_UNUSABLE)
    if checks.WARN in states:
        raise typer.Exit(Exit.SKIPPED_SOME)


def _fix(home: Home) -> None:
    """Close what is open to others, and let the daemon's program mend the index."""
    import subprocess

    from sess_cli.checks import close_to_others

    for path in close_to_others(home):
        say(f'made "{path}" private')
    if home.index.exists():
        subprocess.run([*module("sessiond"), "repair"], check=False)


def _write_check(terminal: Terminal, check: Check) -> None:
    state = terminal.style(f"{check.state:<4}", _STYLES[check.state])
    terminal.write(f"{state}  {check.name:<{_NAME_WIDTH}}  {terminal.line(check.message)}")
    indent = " " * (_NAME_WIDTH + 8)
    for detail in check.details:
        terminal.write(indent + terminal.line(detail))
    if check.hint:
        terminal.write(indent + terminal.style(f"hint: {check.hint}", "dim"))
    terminal.stream.flush()


class _Secrets(NamedTuple):
    """How many secrets of each kind a session has, and where; never the secrets themselves."""

    session: str
    agent: str
    title: str  # masked
    counts: Counter[str]
    places: Counter[tuple[str, str]]  # kind and event


def _secrets() -> Iterator[_Secrets]:
    """The sessions that have any."""
    from collections import Counter

    from sess_cli.export.story import usual_redactor
    from sess_redaction import HOME
    from sess_schema.ids import EventId
    from sess_schema.session import Reader

    with fresh.open_with_sessions() as db:
        for row in Listing(every=True, limit=0).rows(db):
            redactor, reader = usual_redactor(home=None), Reader(db, row.key)
            redactor.places = Counter()
            for entry in reader.entries():
                redactor.place = str(entry.id)
                for text in (entry.text, entry.input, entry.output):
                    redactor(text or "")
            counts = Counter({kind: n for kind, n in redactor.masked.items() if kind != HOME})
            if counts:
                found, redactor.places = redactor.places, None
                places = Counter(
                    {
                        (kind, reader.keys.short(EventId(int(at)))): n
                        for (kind, at), n in found.items()
                    }
                )
                yield _Secrets(row.session, row.agent, redactor(row.title or ""), counts, places)


def _show_secrets(terminal: Terminal, *, as_json: bool) -> int:
    from collections import Counter

    sessions = [*_secrets()]
    if as_json:
        for session, agent, _, counts, places in sessions:
            listed = [
                {"kind": kind, "event": event, "times": times}
                for (kind, event), times in places.items()
            ]
            told = {"session": session, "agent": agent, "secrets": dict(counts), "places": listed}
            json_line(told)
    elif not sessions:
        terminal.write("no secrets found")
    else:
        total = sum((one.counts for one in sessions), Counter[str]())
        for kind, count in total.most_common():
            terminal.write(f"{count:>7,}  {kind}")
        terminal.write("")
        sessions.sort(key=lambda one: -one.counts.total())
        for session, _, title, counts, places in sessions[:_MOST_SESSIONS]:
            terminal.write(f"{counts.total():>7,}  " + terminal.line(f"{session}  {title}"))
            for kind, event in [*places][:_MOST_PLACES]:
                terminal.write(terminal.style(f"           #{event}  {kind}", "dim"))
            if len(places) > _MOST_PLACES:
                rest = (
                    f"           and {len(places) - _MOST_PLACES:,} more events; --json lists all"
                )
                terminal.write(terminal.style(rest, "dim"))
        if len(sessions) > _MOST_SESSIONS:
            more = len(sessions) - _MOST_SESSIONS
            terminal.write(f"and {more:,} more sessions; --json lists all")
        say(f"hint: `sess scrub {sessions[0].session} --dry-run` masks them in the transcript")
    return Exit.OK if sessions else Exit.NOTHING_FOUND
