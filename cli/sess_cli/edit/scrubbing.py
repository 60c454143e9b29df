"""Masks secrets in an agent's own transcripts: stars of the same length, and no other byte changes.

What counts as a secret is what is found in the words of a session, its calls and its outputs.
What an agent keeps for itself, such as signatures and ids, is changed only where it repeats one.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from sess_cli.edit import live, log
from sess_cli.edit.cutting import DATABASE, DOCUMENT, archived
from sess_cli.edit.log import Change, Edit
from sess_cli.edit.splices import Swap, around
from sess_common import paths
from sess_common.errors import SessError
from sess_redaction import Redactor, raw
from sess_redaction.redactor import configured_rules
from sess_schema.ids import EventId
from sess_schema.queries import sessions
from sess_schema.session import Reader

if TYPE_CHECKING:
    import apsw

    from sess_schema.ids import SourceId
    from sess_schema.queries.sessions import SessionRow

_MOST_PASSES = 8
_FILES = (
    "SELECT DISTINCT coalesce(w.path, p.path), iif(w.id IS NULL, 'log', w.kind),"
    " coalesce(w.id, p.id), coalesce(w.state, p.state) FROM session_sources m"
    " JOIN sources p ON p.id = m.source_id LEFT JOIN sources w ON w.id = p.part_of"
    " WHERE m.session_id = ? AND p.kind = 'transcript' ORDER BY 1"
)
_OUTPUTS = (
    "SELECT DISTINCT overflow FROM events WHERE session_id = ? AND overflow IS NOT NULL ORDER BY 1"
)


@dataclass(frozen=True, slots=True)
class File:
    """A file of a session or one of its subagents."""

    session: SessionRow
    path: str
    kind: str  # log, document, database; output
    source: SourceId | None  # None: an output
    state: str


class Place(NamedTuple):
    """Where a session has secrets, never what they are."""

    session: str
    event: str
    kind: str
    times: int


class Findings:
    """The secrets of a session and its subagents."""

    def __init__(self, db: apsw.Connection, row: SessionRow) -> None:
        self._db, self.row = db, row
        self.family = [sessions.by_key(db, key) for key in sessions.family(db, row.key)]
        self.places: list[Place] = []
        self._rules = configured_rules(paths.home().config_file)
        self.redactor = Redactor(None, self._rules)
        self._texts: list[str] = []
        for one in self.family:
            self._look(one)

    def _look(self, row: SessionRow) -> None:
        reader = Reader(self._db, row.key)
        found: Counter[tuple[str, str]] = Counter()
        self.redactor.places = found
        for entry in reader.entries():
            self.redactor.place = str(entry.id)
            for text in (entry.text, entry.input, entry.output):
                if text:
                    self.redactor(text)
                    self._texts.append(text)
        self.places += (
            Place(row.session, reader.keys.short(EventId(int(event))), kind, times)
            for (kind, event), times in found.items()
        )

    @property
    def kinds(self) -> Counter[str]:
        """How many different secrets of each kind."""
        return self.redactor.masked

    @cached_property
    def _said(self) -> str:
        return "\0".join(self._texts)

    def files(self) -> list[File]:
        """The transcripts with them, and the outputs that were too long for these."""
        files: list[File] = []
        for row in self.family:
            files += [File(row, *values) for values in self._db.execute(_FILES, (row.key,))]
            outputs = [path for (path,) in self._db.execute(_OUTPUTS, (row.key,))]
            files += [File(row, path, "output", None, "live") for path in outputs]
        return [*{file.path: file for file in reversed(files)}.values()][::-1]

    def masked(self, data: bytes) -> bytes:
        """A record or a text without its secrets, as long as before."""
        text = data.decode("utf-8", "surrogateescape")
        is_json = _is_json(text)
        for _ in range(_MOST_PASSES):  # a mask changes what is around it
            before = text
            text = raw.covered(text, self._in_json(text) if is_json else self._in_text(text))
            if text == before:
                break
        masked = text.encode("utf-8", "surrogateescape")
        if is_json and masked != data and not _is_json(text):
            raise SessError("a record would not be JSON without its secrets; nothing was changed")
        return masked

    def _in_text(self, text: str) -> list[raw.Span]:
        return [*raw.Search(self._rules).in_text(text), *self._repeated(text)]

    def _in_json(self, text: str) -> list[raw.Span]:
        """Inside of strings only, and only what the session says."""
        spans = [
            span
            for span in raw.Search(self._rules).in_json(text)
            if raw.unescaped(text[slice(*span)])[0] in self._said
        ]
        again = self._repeated(text)
        for string in raw.STRING.finditer(text) if again else ():
            begin, end = string.span(1)
            inner = [
                (max(first, begin), min(last, end))
                for first, last in again
                if first < end and last > begin
            ]
            spans += raw.whole_escapes(string[1], begin, inner)
        return spans

    def _repeated(self, text: str) -> list[raw.Span]:
        return [
            (at, at + len(written))
            for written in self.redactor.repeated_in(text)
            for at in _places(written, text)
        ]


def _places(written: str, text: str) -> Iterator[int]:
    at = text.find(written)
    while at >= 0:
        yield at
        at = text.find(written, at + len(written))


def _is_json(text: str) -> bool:
    if text.lstrip()[:1] not in ("{", "["):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


@dataclass(frozen=True, slots=True)
class Scrub:
    """What is masked in one file."""

    file: File
    swaps: list[Swap]
    content: log.Content

    @property
    def masks(self) -> int:
        return len(self.swaps)


def planned(db: apsw.Connection, findings: Findings) -> list[Scrub]:
    """What to mask in each file; files that are gone or have nothing are left out."""
    scrubs = []
    for file in findings.files():
        if file.state == "gone" or not os.path.exists(file.path):
            continue
        if file.kind == DATABASE:
            raise SessError(
                f'"{file.path}" is a database of {file.session.agent}, which is never written to',
                hint="`sess export` masks secrets; delete the conversation in the agent",
            )
        with live.opened(file.path, force=True) as opened:
            if file.source is None:
                content = opened.content()
            else:
                content = archived(db, file.source, opened, whole=file.kind == DOCUMENT)
            data = b"".join(log.pieces(opened.fd, 0, content.size))
        parts = data.splitlines(keepends=True) if file.kind == "log" else [data]
        swaps = [*_swaps(findings, parts)]
        if swaps:
            scrubs.append(Scrub(file, swaps, content))
    return scrubs


def _swaps(findings: Findings, parts: list[bytes]) -> Iterator[Swap]:
    at = 0
    for part in parts:
        masked = findings.masked(part)
        if masked != part:
            yield from (
                Swap(at + begin, at + end, masked[begin:end])
                for begin, end in _changes(part, masked)
            )
        at += len(part)


def _changes(before: bytes, after: bytes) -> Iterator[raw.Span]:
    """Where two texts of one length differ: whole runs of stars."""
    star = ord(raw.SIGN)
    begin = -1
    for at, (old, new) in enumerate(zip(before, after, strict=True)):
        if begin < 0 and old != new:
            begin = at
        elif begin >= 0 and new != star:
            yield begin, at
            begin = -1
    if begin >= 0:
        yield begin, len(before)


def perform(findings: Findings, scrubs: list[Scrub], *, force: bool) -> list[Edit]:
    """Mask in all files or in none."""
    from sess_cli.edit import undoing

    group = log.new_id()
    done: list[Edit] = []
    try:
        for scrub in scrubs:
            file = scrub.file
            change = Change(
                "scrub",
                session=file.session.session,
                agent=file.session.agent,
                group=group,
                lines=file.kind == "log",
            )
            with live.opened(file.path, force=force or file.kind == "output") as opened:
                pieces = around(scrub.swaps, scrub.content.size)
                done.append(opened.rewrite(pieces, change, scrub.content))
    except BaseException as error:
        if done:
            undoing.undo(done[-1], force=True)
        if isinstance(error, live.Changed):
            raise SessError(
                f'the files of "{findings.row.session}" keep changing; nothing was masked',
                hint="try again when the agent has finished",
            ) from None
        raise
    return done
