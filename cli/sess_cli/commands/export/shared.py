"""What all exports share: choosing sessions, masking, file names, the closing message."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, BinaryIO, cast

import apsw
import typer

from sess_cli import fresh
from sess_cli.options import Force, Masks, Matching
from sess_cli.render import amounts
from sess_common.classes import dataclass
from sess_common.errors import Exit, SessError
from sess_common.program import counted, say
from sess_schema.ids import SessionId
from sess_schema.queries import sessions
from sess_schema.queries.sessions import Listing, SessionRow

if TYPE_CHECKING:
    from sess_cli.export.files import Failures
    from sess_cli.export.story import Story
    from sess_redaction import Redactor


Ids = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[ID]...", help="Session IDs, their first 4 or more characters, or `last`."
    ),
]


UNLISTED = "unlisted (subagents without their session, logs, warm-ups)"


@dataclass
class Selection(Matching):
    """Sessions with these IDs, or those that match; as one document if there are several."""

    ids: Ids = None

    def checked_listing(
        self, *, utc: bool, alone: bool = False, all_if_none: bool = False
    ) -> Listing:
        """All that the options allow; an error if they cannot be combined, or choose nothing."""
        if self.ids and self.is_given:
            raise SessError("an ID cannot be combined with filters, such as --project or --since")
        if not self.ids and not self.is_given and not all_if_none:
            hint = "name one, or choose with --project or --since"
            raise SessError("no session named", hint=hint)
        return self.listing(utc=utc, alone=alone, limit=0)

    @property
    def is_one(self) -> bool:
        """Whether one session is named: it is exported alone, and not as one of several."""
        return len(self.ids or ()) == 1

    def rows(self, db: apsw.Connection, listing: Listing) -> list[SessionRow]:
        """Oldest first."""
        if not self.ids:
            found = super().rows(db, listing)
            if not listing.alone and (left := replace(listing, alone=True).count(db) - len(found)):
                say(f"left out {left:,} {UNLISTED}; name them by ID to export them")
            return _oldest_first(found)
        rows = {row.key: row for row in (sessions.resolve(db, name) for name in self.ids)}
        return _oldest_first([row for row in rows.values() if not _is_below(db, row, rows)])

    @contextmanager
    def stories(
        self, listing: Listing, redactor: Redactor | None, *, depth: int | None, sync: bool
    ) -> Iterator[list[Story]]:
        from sess_cli.export.learning import learn
        from sess_cli.export.story import Story

        with fresh.open_with_sessions(sync=sync) as db:
            rows = self.rows(db, listing)
            learn(db, rows, redactor)
            yield [Story(db, row, redactor, depth=depth) for row in rows]

    def file_name(self, stories: list[Story], suffix: str) -> str:
        return default_name(stories[0], suffix) if self.is_one else f"sessions.{suffix}"


def _oldest_first(rows: list[SessionRow]) -> list[SessionRow]:
    return sorted(rows, key=lambda row: (row.started or 0, row.key))


def _is_below(db: apsw.Connection, row: SessionRow, others: Container[SessionId]) -> bool:
    """Whether it is a subagent of another chosen session, which includes it."""
    above, seen = row.parent_key, {row.key}
    while above is not None and above not in seen:
        if above in others:
            return True
        seen.add(above)
        above = db.execute("SELECT parent_id FROM sessions WHERE id = ?", (above,)).get
    return False


Depth = Annotated[
    int | None,
    typer.Option("--depth", metavar="N", min=0, help="Levels of subagents to include; 0 for none."),
]
Yes = Annotated[bool, typer.Option("--yes", help="Upload without asking.")]
Open = Annotated[bool, typer.Option("--open", help="Open the result.")]
Repo = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Link commits to this repository: OWNER/NAME or a URL."),
]
Gist = Annotated[bool, typer.Option("--gist", help="Upload as a secret gist with `gh`.")]


@dataclass
class Writing(Masks):
    """How files are written: what is masked in them, and which may be replaced."""

    force: Force = False

    def check(self, output: str | None) -> None:
        """Fail before anything is read, if the file must not be replaced."""
        from sess_schema import outputs

        if output not in (None, "-"):
            outputs.check_replacing(output, force=self.force)

    def target(self, output: str | None, name: str) -> str:
        """The file that was asked for and checked, or else the one with the usual name."""
        if output is None:
            self.check(name)
        return output or name

    def put(self, write: Callable[[BinaryIO], None], output: str, *, json: bool = False) -> None:
        """Write to a file, or to stdout for `-`, and say what was written and masked."""
        from sess_schema import outputs

        if output == "-":
            write(standard_output(json=json))
            report_masked(self.redactor)
            return
        with outputs.new_file(output, replace=self.force) as out:
            write(out)
        report(output, self.redactor)

    def put_lines(self, lines: Iterable[str], output: str, *, json: bool = False) -> None:
        def write(out: BinaryIO) -> None:
            out.writelines(line.encode("utf-8", "replace") for line in lines)

        self.put(write, output, json=json)


@dataclass
class Publishing:
    """What happens to a finished file."""

    gist: Gist = False
    yes: Yes = False
    open_it: Open = False

    def check(self, output: str | None, *, masked: bool) -> None:
        """Fail before anything is read; secrets leave the machine only if somebody says so."""
        if output == "-" and (self.open_it or self.gist):
            raise SessError("`-o -` cannot be combined with --open or --gist")
        if self.gist and not self.yes:
            confirm_upload("--gist", masked=masked)

    def publish(self, files: list[str]) -> None:
        """Upload and open as asked; the first file is the one to open."""
        if self.gist:
            from sess_cli.export.files import upload_gist

            upload_gist(files)
        if self.open_it:
            open_file(files[0])


def confirm_upload(option: str, *, masked: bool) -> None:
    """Fail unless somebody says that it may leave the machine."""
    if not sys.stdin.isatty():
        what = "uploads what nobody has looked at" if masked else "uploads secrets"
        raise SessError(
            f"{option} {'' if masked else 'with --no-redact '}{what}",
            hint="`--yes` does it without asking",
        )
    what = "the session, with its secrets masked" if masked else "without masking secrets"
    sys.stderr.write(f"Upload {what}? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        hint = None if masked else "leave --no-redact out to mask secrets"
        raise SessError("nothing was uploaded", hint=hint)


@contextmanager
def opened(
    session: str, redactor: Redactor | None, *, sync: bool, images: bool = True
) -> Iterator[Story]:
    """The session with this ID, its secrets masked."""
    from sess_cli.export.story import Story

    with fresh.open_with_sessions(sync=sync) as db:
        yield Story(db, sessions.resolve(db, session), redactor, images=images)


def report_failed(failures: Failures) -> None:
    """Name the sessions that could not be exported; the exit code tells that there are some."""
    if not failures.found:
        return
    say(f"sess: {counted(len(failures.found), 'session')} could not be exported:")
    for session, why in failures.found:
        say(f"  {session}: {why}")
    raise typer.Exit(Exit.SKIPPED_SOME)


def standard_output(*, json: bool = False) -> BinaryIO:
    """For `-o -`: on a terminal, control characters are escaped."""
    from sess_cli.export.files import EscapingTerminal

    if not sys.stdout.isatty():
        return sys.stdout.buffer
    return cast("BinaryIO", EscapingTerminal(sys.stdout.buffer, json=json))


def default_name(story: Story, suffix: str) -> str:
    """A file name made from the session ID, which is untrusted."""
    name = "".join(
        c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in story.row.session
    )
    return f"{name.strip('-')[:40] or 'session'}.{suffix}"


def report(path: str, redactor: Redactor | None) -> None:
    """Print the file, its size, and what was masked."""
    say(f"wrote {path} ({amounts.size(os.path.getsize(path))})")
    report_masked(redactor)


def report_masked(redactor: Redactor | None) -> None:
    if redactor is None:
        return
    for (kind, place), count in (redactor.places or {}).items():
        say(f"masked {counted(count, kind)} in {place or 'the session'}")
    if masked := redactor.report():
        say(f"masked {masked}; --no-redact turns this off")
    elif redactor.places is not None:
        say("nothing was masked")


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar; None in a pipe."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def open_file(path: str) -> None:
    """Open with the system's default program."""
    from pathlib import Path

    from sess_cli.export.files import open_address

    open_address(Path(path).resolve().as_uri(), hint=f'open "{path}" yourself')
