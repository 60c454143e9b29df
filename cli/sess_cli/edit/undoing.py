"""Undoes edits: the bytes from before, and after them the lines that were appended since."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from sess_cli import settings
from sess_cli.edit import live, log
from sess_common.errors import Exit, SessError


class Undone(NamedTuple):
    """One file as it was before an edit."""

    edit: log.Edit  # that was undone
    by: log.Edit  # the entry of the undoing, which can be undone itself
    kept: int  # bytes appended since the edit


def last(*, redo: bool = False, session: str | None = None) -> log.Edit:
    """The newest edit that can be undone; with `redo`, the newest undoing."""
    for edit in log.entries():
        fits = edit.command == "undo" if redo else edit.undoes is None
        here = session is None or edit.session == session
        if fits and here and edit.state != log.UNDONE and not edit.expired:
            return edit
    where = "" if session is None else f" in session {session}"
    raise SessError(
        f"nothing to {'redo' if redo else 'undo'}{where}",
        hint="`sess undo --list` lists all edits",
        code=Exit.NOTHING_FOUND,
    )


def undo(edit: log.Edit, *, force: bool = False) -> list[Undone]:
    """Undo an edit and the others of the same command, the newest first."""
    if edit.expired:
        raise SessError(
            f"the snapshot of edit {edit.id} was removed after {settings.read().keep_days:g} days",
            hint="`sess restore --list` shows what the archive has",
            code=Exit.NOTHING_FOUND,
        )
    if edit.state == log.UNDONE:
        raise SessError(
            f"edit {edit.id} is undone already", hint="`sess undo --redo` does it again"
        )
    together = [
        other for other in log.entries() if (other.group, other.state) == (edit.group, log.DONE)
    ]
    group = log.new_id()
    with live.editing():
        return [_undo(each, group, force=force) for each in together or [edit]]


def _undo(edit: log.Edit, group: str, *, force: bool) -> Undone:
    change = log.Change(
        "redo" if edit.undoes else "undo",
        session=edit.session,
        agent=edit.agent,
        undoes=edit.id,
        group=group,
        lines=edit.lines,
        name=edit.name,
    )
    kept = 0
    if not os.path.exists(edit.path):
        if edit.before is None:
            raise SessError(f'"{edit.path}" does not exist', code=Exit.NOTHING_FOUND)
        by = live.create(edit.path, log.snapshot(edit), change, edit.mode, edit.owner)
    else:
        with live.opened(edit.path, force=force) as file:
            if edit.before is None:
                _check(file, edit, force=force)
                by = file.remove(change)
            else:
                kept = _check(file, edit, force=force)
                by = file.rewrite(_content(file, log.snapshot(edit), kept), change)
    log.write(replace(edit, state=log.UNDONE))
    _mark_redone(edit)
    return Undone(edit, by, kept)


def _mark_redone(edit: log.Edit) -> None:
    """An edit whose undoing is undone stands again."""
    first = log.by_id(edit.undoes) if edit.undoes else None
    if first is not None:
        log.write(replace(first, state=log.DONE))


def _check(file: live.LiveFile, edit: log.Edit, *, force: bool) -> int:
    """How many bytes were appended since the edit; an error if anything else changed."""
    before, after = edit.before, edit.after
    if before is not None and before.fits(file.fd) and (not after or before.size >= after.size):
        raise SessError(
            f'"{edit.path}" is as it was before edit {edit.id}', hint="there is nothing to undo"
        )
    grown = file.size - after.size if after else -1
    if after and after.fits(file.fd) and (grown == 0 or (edit.lines and edit.before)):
        return grown
    if force:
        return 0
    later = next((other for other in log.entries() if other.path == edit.path), edit)
    if later.id != edit.id and later.state != log.UNDONE:
        raise SessError(
            f'"{edit.path}" was edited again after {edit.id}',
            hint=f"undo the later one first: `sess undo {later.id}`",
        )
    raise SessError(
        f'"{edit.path}" was rewritten after edit {edit.id}',
        hint="`--force` puts the old content in its place; the present one can be brought back",
    )


def _content(file: live.LiveFile, before: Iterable[bytes], kept: int) -> Iterator[live.Piece]:
    """The old bytes and what was appended since, which may be the rest of an unfinished line."""
    start = file.size - kept
    at_line = start == 0 or os.pread(file.fd, 1, start - 1) == b"\n"
    last = b"\n"
    for piece in before:
        yield piece
        last = piece[-1:] or last
    if kept and at_line and last != b"\n":
        yield b"\n"
    yield start, file.size
