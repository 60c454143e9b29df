"""`sess export html`: a session, or several, as a page that needs nothing but a browser."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Literal

import typer

from sess_cli.commands.export.selection import Selection
from sess_cli.commands.export.shared import Depth, Force, Masks, Output, Publishing, Repo
from sess_cli.options import NoSync, Utc

if TYPE_CHECKING:
    from sess_cli.export.html.combined import Combined
    from sess_cli.export.html.encrypted import Lock
    from sess_cli.export.story import Story

_PASSPHRASE = "SESS_PASSPHRASE"  # noqa: S105 - the name of a variable
_FOLDER_STYLES = frozenset({"pages"})


def html(
    which: Selection,
    *,
    output: Output = None,
    style: Annotated[
        Literal["reader", "timeline", "pages"],
        typer.Option(
            help="reader: one page; timeline: dense, for audits; pages: a directory of pages."
        ),
    ] = "reader",
    level: Annotated[
        Literal["conversation", "tools", "thinking", "everything"],
        typer.Option(help="What the page shows at first."),
    ] = "tools",
    static: Annotated[
        bool,
        typer.Option("--static", help="Write plain HTML that needs no JavaScript."),
    ] = False,
    depth: Depth = None,
    repo: Repo = None,
    encrypt: Annotated[
        bool,
        typer.Option("--encrypt", help=f"Encrypt with ${_PASSPHRASE}, or ask for a passphrase."),
    ] = False,
    publishing: Publishing,
    masks: Masks,
    force: Force = False,
    utc: Utc = False,
    no_sync: NoSync = False,
) -> None:
    """Export a session as one self-contained HTML file.

    Several sessions, named or chosen by the options, become one page, oldest first.
    """
    from sess_cli import fresh  # not needed for --help
    from sess_cli.commands.export import shared
    from sess_cli.export.failures import Failures
    from sess_cli.export.html.combined import Combined
    from sess_cli.export.story import Story
    from sess_common.errors import SessError

    which.check()
    if style != "reader" and not which.is_one:
        hint = "name one session, or `sess export site` for a page of each"
        raise SessError(f"--style {style} is for one session", hint=hint)
    listing = which.listing(utc=utc, orphans=True, limit=0)
    if output is not None and style in _FOLDER_STYLES:
        if output == "-":
            raise SessError("`-o -` cannot be combined with --style pages")
        if os.path.isfile(output):
            raise SessError(f'"{output}" is not a directory', hint="name another with `-o`")
    shared.check_output(output, force=force)
    publishing.check(output, masked=not masks.no_redact)
    redactor = masks.redactor()
    lock, failures = _lock() if encrypt else None, Failures()
    with fresh.open_with_sessions(sync=not no_sync) as db:
        stories = [Story(db, row, redactor, depth=depth) for row in which.rows(db, listing)]
        story = stories[0]
        whole = story if which.is_one else Combined(stories, failures)
        if style in _FOLDER_STYLES:
            folder = output or shared.default_name(story, "html").removesuffix(".html")
            written = _write_pages(story, folder, repo, lock, utc=utc)
            shared.report(written[0], redactor)
        else:
            wanted: dict[str, Any] = {
                "style": style, "lock": lock, "level": level, "repo": repo,
                "static": static, "utc": utc,
            }  # fmt: skip
            name = shared.default_name(story, "html") if which.is_one else "sessions.html"
            written = [shared.target(output, name, force=force)]
            shared.put(lambda out: _write(whole, out, **wanted), written[0], redactor)
    publishing.publish(written)
    shared.report_failed(failures)


def _write(
    story: Story | Combined,
    out: BinaryIO,
    *,
    style: str,
    lock: Lock | None,
    level: str,
    repo: str | None,
    static: bool,
    utc: bool,
) -> None:
    from sess_cli.export.html.combined import Combined

    if style == "timeline" and not isinstance(story, Combined):
        from sess_cli.export.html import timeline

        timeline.write(story, out, utc=utc, lock=lock)
        return
    from sess_cli.export import repositories
    from sess_cli.export.html import page

    if isinstance(story, Combined) and repo is None and not story.of_one_project:
        repository = None
    else:
        first = story.stories[0] if isinstance(story, Combined) else story
        repository = repositories.of(first, repo)
    look = page.Look(level, static, utc, repository)
    if lock is None:
        page.write(story, out, look)
        return
    from sess_cli.export.html import encrypted

    encrypted.write(story, out, lock, look)


def _write_pages(
    story: Story, folder: str, repo: str | None, lock: Lock | None, *, utc: bool
) -> list[str]:
    """Every file, the index first."""
    from sess_cli.export import repositories
    from sess_cli.export.html import pages
    from sess_cli.render import amounts
    from sess_common.program import say

    repository = repositories.of(story, repo)
    done = pages.write(story, folder, repository=repository, utc=utc, lock=lock)
    prompts, count = amounts.plural(done.prompts, "prompt"), amounts.plural(done.pages, "page")
    say(f"{prompts} on {count}, {amounts.size(done.size)} in total")
    return done.files


def _lock() -> Lock:
    """The passphrase is asked for before drawing, which may take long."""
    from getpass import getpass

    from sess_cli.export import passphrases
    from sess_cli.export.html import encrypted
    from sess_common.errors import SessError

    encrypted.require()
    given = os.environ.get(_PASSPHRASE)
    if given is None and not sys.stdin.isatty():
        raise SessError("no terminal to ask for a passphrase", hint=f"set {_PASSPHRASE}")
    asked = given is None
    if given is None:
        given = getpass("Passphrase: ", stream=sys.stderr)
    if weakness := passphrases.weakness(given):
        raise SessError(f"the passphrase {weakness}", hint=passphrases.ENOUGH)
    if asked and getpass("Again: ", stream=sys.stderr) != given:
        raise SessError("the passphrases differ")
    return encrypted.Lock(given)
