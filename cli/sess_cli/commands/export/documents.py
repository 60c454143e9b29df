"""`sess export html`, `md`, `json` and `sqlite`: sessions as documents and as data."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated, BinaryIO, Literal

import typer

from sess_cli import fresh
from sess_cli.commands.export import shared
from sess_cli.commands.export.shared import Depth, Publishing, Repo, Selection, Writing
from sess_cli.options import NoSync, Output, Utc
from sess_cli.render import amounts
from sess_common.errors import SessError
from sess_common.program import counted, say

if TYPE_CHECKING:
    from sess_cli.export.forge import Repository
    from sess_cli.export.html.encrypted import Lock
    from sess_cli.export.html.page import Combined, Look
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
        bool, typer.Option("--static", help="Write plain HTML that needs no JavaScript.")
    ] = False,
    depth: Depth = None,
    repo: Repo = None,
    encrypt: Annotated[
        bool,
        typer.Option("--encrypt", help=f"Encrypt with ${_PASSPHRASE}, or ask for a passphrase."),
    ] = False,
    publishing: Publishing,
    writing: Writing,
    utc: Utc = False,
    no_sync: NoSync = False,
) -> None:
    """Export a session as one self-contained HTML file.

    Several sessions, named or chosen by the options, become one page, oldest first.
    """
    from sess_cli.export.files import Failures, make_folder
    from sess_cli.export.html import page
    from sess_cli.export.html.page import Combined

    listing = which.checked_listing(utc=utc)
    if style != "reader" and not which.is_one:
        hint = "name one session, or `sess export site` for a page of each"
        raise SessError(f"--style {style} is for one session", hint=hint)
    if output is not None and style in _FOLDER_STYLES:
        if output == "-":
            raise SessError("`-o -` cannot be combined with --style pages")
        if os.path.isfile(output):
            raise SessError(f'"{output}" is not a directory', hint="name another with `-o`")
        make_folder(os.path.dirname(os.path.abspath(output)))
    writing.check(output)
    publishing.check(output, masked=not writing.no_redact)
    redactor = writing.redactor
    lock, failures = _lock() if encrypt else None, Failures()
    with which.stories(listing, redactor, depth=depth, sync=not no_sync) as stories:
        story = stories[0]
        whole = story if which.is_one else Combined(stories, failures)
        if style in _FOLDER_STYLES:
            folder = output or shared.default_name(story, "html").removesuffix(".html")
            written = _write_pages(story, folder, repo, lock, utc=utc)
            shared.report(written[0], redactor)
        else:
            repository = None if style == "timeline" else _repository(whole, repo)
            look = page.Look(level, static, utc, repository)
            written = [writing.target(output, which.file_name(stories, "html"))]
            writing.put(lambda out: _write_page(whole, out, style, look, lock), written[0])
    publishing.publish(written)
    shared.report_failed(failures)


def _repository(story: Story | Combined, repo: str | None) -> Repository | None:
    """The one that commits are linked to; none for sessions of several projects."""
    from sess_cli.export import forge
    from sess_cli.export.html.page import Combined

    if not isinstance(story, Combined):
        return forge.repository_of(story, repo)
    if repo is None and not story.of_one_project:
        return None
    return forge.repository_of(story.stories[0], repo)


def _write_page(
    story: Story | Combined, out: BinaryIO, style: str, look: Look, lock: Lock | None
) -> None:
    from sess_cli.export.html import page, timeline
    from sess_cli.export.html.page import Combined

    if style == "timeline" and not isinstance(story, Combined):
        timeline.write(story, out, utc=look.utc, lock=lock)
    else:
        page.write(story, out, look, lock)


def _write_pages(
    story: Story, folder: str, repo: str | None, lock: Lock | None, *, utc: bool
) -> list[str]:
    """Every file, the index first."""
    from sess_cli.export import forge
    from sess_cli.export.html import pages

    repository = forge.repository_of(story, repo)
    done = pages.write(story, folder, repository=repository, utc=utc, lock=lock)
    prompts, count = amounts.plural(done.prompts, "prompt"), amounts.plural(done.pages, "page")
    say(f"{prompts} on {count}, {amounts.size(done.size)} in total")
    return done.files


def _lock() -> Lock:
    """The passphrase is asked for before drawing, which may take long."""
    from getpass import getpass

    from sess_cli.export.html import encrypted

    encrypted.require_cipher()
    configured = os.environ.get(_PASSPHRASE)
    if configured is None and not sys.stdin.isatty():
        raise SessError("no terminal to ask for a passphrase", hint=f"set {_PASSPHRASE}")
    passphrase = getpass("Passphrase: ", stream=sys.stderr) if configured is None else configured
    if weakness := encrypted.weakness(passphrase):
        raise SessError(f"the passphrase {weakness}", hint=encrypted.ENOUGH)
    if configured is None and getpass("Again: ", stream=sys.stderr) != passphrase:
        raise SessError("the passphrases differ")
    return encrypted.Lock(passphrase)


def md(
    which: Selection,
    *,
    output: Output = None,
    tree: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Write one note per session into DIR, as for Obsidian."),
    ] = None,
    depth: Depth = None,
    full: Annotated[
        bool, typer.Option("--full", help="Do not shorten long input and output.")
    ] = False,
    repo: Repo = None,
    publishing: Publishing,
    writing: Writing,
    utc: Utc = False,
    no_sync: NoSync = False,
) -> None:
    """Export a session as Markdown, with tool output folded.

    Several sessions, named or chosen by the options, become one file, oldest first.
    """
    from sess_cli.export import forge, markdown
    from sess_cli.export.files import Failures

    listing = which.checked_listing(utc=utc, all_if_none=tree is not None)
    single = output is not None or publishing.gist or publishing.open_it or repo is not None
    if tree is not None and single:
        raise SessError("--tree cannot be combined with -o, --gist, --open or --repo")
    writing.check(output)
    publishing.check(output, masked=not writing.no_redact)
    redactor, failures = writing.redactor, Failures()
    with which.stories(listing, redactor, depth=depth, sync=not no_sync) as stories:
        if tree is not None:
            count = markdown.write_tree(stories, tree, failures, full=full, utc=utc)
            say(f"wrote {counted(count, 'note')} to {tree}")
            shared.report_masked(redactor)
            shared.report_failed(failures)
            return

        def write(out: BinaryIO) -> None:
            if not which.is_one:
                markdown.write_all(stories, out, failures, full=full, utc=utc)
                return
            repository = forge.repository_of(stories[0], repo)
            markdown.write(stories[0], out, full=full, utc=utc, repository=repository)

        path = writing.target(output, which.file_name(stories, "md"))
        writing.put(write, path)
    publishing.publish([path])
    shared.report_failed(failures)


def json_(
    which: Selection,
    *,
    output: Output = None,
    depth: Depth = None,
    writing: Writing,
    utc: Utc = False,
    no_sync: NoSync = False,
) -> None:
    """Export a session as JSON: events, records and subagents.

    Several sessions, named or chosen by the options, become one file, oldest first.
    """
    from sess_cli.export import data
    from sess_cli.export.files import Failures

    listing = which.checked_listing(utc=utc, alone=True)
    writing.check(output)
    redactor, failures = writing.redactor, Failures()
    with which.stories(listing, redactor, depth=depth, sync=not no_sync) as stories:

        def write(out: BinaryIO) -> None:
            if which.is_one:
                data.write_json(stories[0], out)
            else:
                data.write_several_json(stories, out, failures)

        path = writing.target(output, which.file_name(stories, "json"))
        writing.put(write, path, json=True)
    shared.report_failed(failures)


def sqlite(
    which: Selection,
    *,
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="FILE", help="Write to this file.")
    ] = "sessions.db",
    writing: Writing,
    utc: Utc = False,
    no_sync: NoSync = False,
) -> None:
    """Export sessions as an SQLite database, for Datasette; all, unless some are chosen."""
    from sess_cli.export import data, files
    from sess_cli.export.learning import learn
    from sess_cli.export.story import Story
    from sess_schema import outputs

    if output == "-":
        raise SessError("cannot write a database to stdout", hint="use `-o FILE`")
    listing = which.checked_listing(utc=utc, alone=True, all_if_none=True)
    outputs.check_target(output)
    writing.check(output)
    redactor, failures = writing.redactor, files.Failures()
    with fresh.open_with_sessions(sync=not no_sync) as db:
        rows = which.rows(db, listing)
        learn(db, rows, redactor)
        stories = (Story(db, row, redactor, images=False) for row in rows)
        data.write_database(stories, output, failures, replace=writing.force)
        shared.report(output, redactor)
    shared.report_failed(failures)
