"""OpenCode and agents made from it: where their databases and older files are.

Every version keeps sessions in a database, the first ones in a tree of JSON files, which stays
behind when it is copied into the database.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sessiond.families.in_tables import InTables
from sessiond.sourcekit import disk
from sessiond.sourcekit.base import SOURCE_CODE, Conversation, Layout

if TYPE_CHECKING:
    from sessiond.sourcekit.foreign import Foreign

_STORAGE, _SESSION, _INFO, _PROJECTS = "storage", "session", "info", "project"
_JSON = ".json"


class OpencodeFamily(InTables):
    """An agent that stores sessions as OpenCode does."""

    reads = (
        "Sessions with their messages and parts in the agent's databases, of the first and the"
        " second generation, in the JSON files of versions before it had one, and in exports."
    )
    leaves = (
        ("the tables account, credential, control_account and session_share", "secrets"),
        ("the table event", "repeats what messages say"),
        ("snapshot/", "copies of edited files"),
    )
    known_from = SOURCE_CODE
    program: str  # the command, and the name of its folder and its database
    database_variable: str
    older_program: str | None = None  # by which early versions named the database

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.documents = _Tree(self.program)

    def places(self) -> list[str]:
        home = os.path.join(self.folders.data_home(), self.program)
        named = self.environ.get(self.database_variable, "").strip()
        if not named or named == ":memory:":
            return [home]
        return [home, os.path.join(home, self.folders.expand(named))]

    def classify(self, path: str) -> str | None:
        folder, name = os.path.split(path)
        if self._database_name.fullmatch(name) or path in self._named:
            return "database"
        if not name.endswith(_JSON):
            return None
        above, kind = os.path.split(os.path.dirname(folder))
        return "document" if kind == _SESSION and os.path.basename(above) == _STORAGE else None

    def layout(self, foreign: Foreign) -> Layout:
        from sessiond.families.opencode.storage import SessionTables  # when changed

        return SessionTables(foreign, self.program)

    def enters(self, directory: str) -> bool:
        """Skips messages and parts, which are read with their session, and everything else."""
        if not directory.startswith(self._home + os.sep):
            return True
        below = directory[len(self._home) + 1 :].split(os.sep)
        if below[0] == _PROJECTS:  # project/NAME/storage/session/info
            inner = below[2:5]
            return inner == [_STORAGE, _SESSION, _INFO][: len(inner)]
        return below[:2] in ([_STORAGE], [_STORAGE, _SESSION])

    def sidecars(self, path: str) -> Sequence[str]:
        if path.endswith(_JSON):
            from sessiond.families.opencode.storage import written_later  # rarely

            return written_later(path)
        return super().sidecars(path)

    @cached_property
    def _database_name(self) -> re.Pattern[str]:
        """Versions of a release channel have their own, `opencode-dev.db`."""
        names = "|".join(filter(None, (self.program, self.older_program)))
        return re.compile(rf"(?:{names})(?:-[\w.-]+)?\.db")

    @cached_property
    def _home(self) -> str:
        return disk.real(self.places()[0])

    @cached_property
    def _named(self) -> frozenset[str]:
        return frozenset({*self.places()[1:], *map(disk.real, self.places()[1:])})


class _Tree:
    def __init__(self, program: str) -> None:
        self._program = program

    def conversations(self, path: str, data: bytes) -> Iterator[Conversation]:
        # When something changed.
        from sessiond.families.opencode.storage import exported_session, tree_session

        read = exported_session if is_export(data[:_HEAD]) else tree_session
        yield read(path, data, self._program)


_HEAD = 64 << 10
_EXPORT = re.compile(rb'\A(?:\xef\xbb\xbf)?\s*\{\s*"info"\s*:\s*\{')


def is_export(head: bytes) -> bool:
    """Whether it is what `export` writes: a session with its messages in one object."""
    return _EXPORT.match(head) is not None and b'"ses' in head
