"""Finds the folder of a conversation that only its window's database names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from sessiond.sourcekit import disk
from sessiond.sourcekit.editors import folder_of_workspace
from sessiond.sourcekit.foreign import Changed, Foreign, ForeignError, fingerprint
from sessiond.sourcekit.known_rows import after
from sessiond.sourcekit.values import as_dict, as_text
from sessiond.sources.cursor.composers import unwrap

_DATABASE = "state.vscdb"
COMPOSERS = "composer.composerData"
_PANELS = "workbench.panel.composerChatViewPane."
_VIEW = "workbench.panel.aichat.view."


class Workspaces:
    """The windows of one user directory, each reread only when its database changed."""

    def __init__(self, user_directory: str) -> None:
        self._storage = os.path.join(user_directory, "workspaceStorage")
        self._seen: dict[str, tuple[object, set[str], str | None]] = {}
        self._folders: dict[str, str] | None = None

    def changed(self) -> bool:
        """Whether any window's database changed since it was last read."""
        now = {path: _mark(path) for path in self._databases()}
        same = now == {path: mark for path, (mark, _, _) in self._seen.items()}
        if not same:
            self._folders = None
        return not same

    def folder(self, composer_id: str) -> str | None:
        if self._folders is None:
            self._folders = self._read()
        return self._folders.get(composer_id)

    def _databases(self) -> Iterator[str]:
        try:
            entries = sorted(disk.entries(self._storage), key=lambda entry: entry.name)
        except OSError:
            return
        for entry in entries:
            path = os.path.join(entry.path, _DATABASE)
            if disk.is_file(path):
                yield path

    def _read(self) -> dict[str, str]:
        folders: dict[str, str] = {}
        seen = {}
        for path in self._databases():
            mark = _mark(path)
            known = self._seen.get(path)
            if known is None or known[0] != mark:
                known = mark, _composers(path), folder_of_workspace(os.path.dirname(path))
            seen[path] = known
            _, composers, folder = known
            if folder:
                folders |= dict.fromkeys(composers, folder)
        self._seen = seen
        return folders


def _mark(path: str) -> tuple[object, ...]:
    return fingerprint(path), fingerprint(os.path.join(os.path.dirname(path), "workspace.json"))


def _composers(path: str) -> set[str]:
    for live in (False, True):
        try:
            with Foreign(path, live=live) as foreign:
                return named_composers(foreign)
        except Changed:
            continue
        except ForeignError:
            break
    return set()


def named_composers(foreign: Foreign) -> set[str]:
    """The composers that a window's database names."""
    return {name for name in _named(foreign) if name}


def _named(foreign: Foreign) -> Iterator[str]:
    if not foreign.has_table("ItemTable"):
        return
    for (value,) in foreign.rows("SELECT value FROM ItemTable WHERE key = ?", (COMPOSERS,)):
        listed = as_dict(unwrap(value))
        for entry in _items(listed.get("allComposers")):
            yield as_text(as_dict(entry).get("composerId")) or ""
        for name in ("selectedComposerIds", "lastFocusedComposerIds"):
            yield from (entry for entry in _items(listed.get(name)) if isinstance(entry, str))
    for (value,) in foreign.rows(
        "SELECT value FROM ItemTable WHERE key >= ? AND key < ?", (_PANELS, after(_PANELS))
    ):
        for name in as_dict(unwrap(value)):
            if name.startswith(_VIEW):
                yield name.removeprefix(_VIEW)


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
