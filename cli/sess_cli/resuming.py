"""The command with which an agent resumes one of its sessions."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from dataclasses import dataclass

import apsw

from sess_common.errors import Exit, SessError
from sess_schema.ids import SessionId
from sess_schema.queries import sessions
from sess_schema.queries.sessions import SessionRow

# An id comes from a file name; it must not become an option.
_HARMLESS = re.compile(r"[0-9A-Za-z][0-9A-Za-z_.-]*")


def arguments(row: SessionRow) -> tuple[str, ...]:
    """The program and its arguments; empty if none is known or the id looks like an option."""
    if row.resume is None or not _HARMLESS.fullmatch(row.session):
        return ()
    return tuple(map(str, json.loads(row.resume)))


@dataclass(frozen=True, slots=True)
class Resume:
    """A command that takes the place of this process."""

    arguments: tuple[str, ...]
    directory: str | None
    vanished: str | None = None  # the directory, if it no longer exists

    def as_typed(self) -> str:
        command = shlex.join(self.arguments)
        return f"cd {shlex.quote(self.directory)} && {command}" if self.directory else command

    def program(self) -> str | None:
        path = shutil.which(self.arguments[0])
        return None if path is None else os.path.abspath(path)

    def replace_this_process(self) -> None:
        program = self.program()
        if program is None:
            raise SessError(
                f"{self.arguments[0]} is not on PATH",
                hint=f"`{self.as_typed()}`",
                code=Exit.PROGRAM_FAILED,
            )
        if self.directory is not None:
            os.chdir(self.directory)
        os.execv(program, self.arguments)  # noqa: S606 - no shell is the point


def resume(db: apsw.Connection, session: SessionId) -> Resume:
    """How to resume a session; for a subagent, the session that started it."""
    row = sessions.by_key(db, session)
    seen = {row.key}
    while row.parent_key is not None and row.parent_key not in seen:
        row = sessions.by_key(db, row.parent_key)
        seen.add(row.key)
    if row.resume is None:
        raise SessError("no command resumes this session", hint=f"open it in {row.agent} itself")
    command = arguments(row)
    if not command:
        raise SessError("this session has no ID to resume")
    if row.source_gone:
        raise SessError(
            "the transcript of this session is gone",
            hint=f"`sess restore {row.session} --in-place` writes it back for the agent",
            code=Exit.NOTHING_FOUND,
        )
    if row.directory is None or os.path.isdir(row.directory):
        return Resume(command, row.directory)
    return Resume(command, None, vanished=row.directory)
