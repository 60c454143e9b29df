"""`sess export html`: one session as a page that needs nothing but a browser."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Literal

import typer

from sess_cli.commands.export.grouped import expanded
from sess_cli.commands.export.shared import Depth, Force, Masks, Output, Publishing, Repo
from sess_cli.options import NoSync, SessionId, Utc

if TYPE_CHECKING:
    from sess_cli.export.html.encrypted import Lock
    from sess_cli.export.story import Story

_PASSPHRASE = "SESS_PASSPHRASE"  # noqa: S105 - the name of a variable
_FOLDER_STYLES = frozenset({"pages"})


def register(group: typer.Typer) -> None:
    group.command("html")(expanded(html))


def html(
    session: SessionId,
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
    """Export a session as one self-contained HTML file."""
    from sess_cli.commands.export import shared  # noqa: PLC0415 - not needed for --help
    from sess_schema.errors import SessError  # noqa: PLC0415

    if output == "-" and style in _FOLDER_STYLES:
        raise SessError("`-o -` cannot be combined with --style pages")
    shared.check_output(output, force=force)
    publishing.check(output, masked=not masks.no_redact)
    redactor = masks.redactor()
    lock = _lock() if encrypt else None
    with shared.opened(session, redactor, sync=not no_sync, depth=depth) as story:
        if style in _FOLDER_STYLES:
            folder = output or shared.default_name(story, "html").removesuffix(".html")
            written = _write_pages(story, folder, repo, lock, utc=utc)
            shared.report(written[0], redactor)
        else:
            wanted: dict[str, Any] = {
                "style": style, "lock": lock, "level": level, "repo": repo,
                "static": static, "utc": utc,
            }  # fmt: skip
            written = [output or shared.default_name(story, "html")]
            shared.put(lambda out: _write(story, out, **wanted), written[0], redactor)
    publishing.publish(written)


def _write(
    story: Story,
    out: BinaryIO,
    *,
    style: str,
    lock: Lock | None,
    level: str,
    repo: str | None,
    static: bool,
    utc: bool,
) -> None:
    if style == "timeline":
        from sess_cli.export.html import timeline  # noqa: PLC0415

        timeline.write(story, out, utc=utc, lock=lock)
        return
    from sess_cli.export import repositories  # noqa: PLC0415
    from sess_cli.export.html import page  # noqa: PLC0415

    look = page.Look(level, static, utc, repositories.of(story, repo))
    if lock is None:
        page.write(story, out, look)
        return
    from sess_cli.export.html import encrypted  # noqa: PLC0415

    encrypted.write(story, out, lock, look)


def _write_pages(
    story: Story, folder: str, repo: str | None, lock: Lock | None, *, utc: bool
) -> list[str]:
    """Every file, the index first."""
    from sess_cli.export import repositories  # noqa: PLC0415
    from sess_cli.export.html import pages  # noqa: PLC0415
    from sess_cli.render import amounts  # noqa: PLC0415
    from sess_schema.program import say  # noqa: PLC0415

    repository = repositories.of(story, repo)
    done = pages.write(story, folder, repository=repository, utc=utc, lock=lock)
    prompts, count = amounts.plural(done.prompts, "prompt"), amounts.plural(done.pages, "page")
    say(f"{prompts} on {count}, {amounts.size(done.size)} in total")
    return done.files


def _lock() -> Lock:
    """The passphrase is asked for before drawing, which may take long."""
    from getpass import getpass  # noqa: PLC0415

    from sess_cli.export import passphrases  # noqa: PLC0415
    from sess_cli.export.html import encrypted  # noqa: PLC0415
    from sess_schema.errors import SessError  # noqa: PLC0415

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
