"""Reads Cursor's list of conversations: a table, in older versions one large value.

`ItemTable` also contains credentials; only the keys named here are ever read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sessiond.engines.slices import hash64
from sessiond.sourcekit.base import Item
from sessiond.sourcekit.editors import folder_of
from sessiond.sourcekit.foreign import Foreign
from sessiond.sourcekit.known_rows import KnownRows
from sessiond.sourcekit.values import as_dict, as_line, as_text
from sessiond.sources.cursor.changes import HEADER, digest
from sessiond.sources.cursor.composers import Composer, read_header, unwrap

_TABLE = "composerHeaders"
_LIST = "composer.composerHeaders"
_BY_TABLE, _BY_LIST = 4, 3  # how certain the project of each is


class Headers:
    """The headers of one database; the table takes precedence over the list of older versions."""

    def __init__(self, foreign: Foreign, known: KnownRows, state: dict[str, Any]) -> None:
        self._foreign = foreign
        self._known = known
        self._state = state
        self._has_table = foreign.has_table(_TABLE)
        self._rows: dict[str, tuple[Composer, int, bool] | None] = {}
        self._list: dict[str, tuple[Composer, int]] | None = None

    def changed(self, *, complete: bool) -> Iterator[str]:
        """Conversations whose header changed since it was last read."""
        rowid = self._place_of_list()
        if rowid != self._state.get("headers"):
            self._state["headers"] = rowid
            yield from self._differing(
                {composer_id: found[1] for composer_id, found in self._listed().items()}
            )
        if complete and self._has_table:
            rows = self._foreign.rows(f"SELECT composerId, value FROM {_TABLE}")
            named = ((key, value) for key, value in rows if isinstance(key, str))
            yield from self._differing({key: digest(value) for key, value in named})

    def _differing(self, digests: dict[str, int]) -> Iterator[str]:
        known = self._known.under(HEADER)
        for composer_id, now in digests.items():
            before = known.get(HEADER + composer_id)
            if (before is None or before.digest != now) and self._current(composer_id) == now:
                yield composer_id

    def _current(self, composer_id: str) -> int | None:
        row = self._row(composer_id)
        if row:
            return row[1]
        listed = self._listed().get(composer_id)
        return listed[1] if listed else None

    def item(self, composer_id: str) -> Item | None:
        """What to remember about a header."""
        now = self._current(composer_id)
        return Item(HEADER + composer_id, 0, now) if now is not None else None

    def get(self, composer_id: str) -> Composer:
        row = self._row(composer_id)
        if row:
            return row[0]
        listed = self._listed().get(composer_id)
        return listed[0] if listed else Composer(composer_id)

    def is_subagent(self, composer_id: str) -> bool:
        row = self._row(composer_id)
        return row is not None and row[2]

    def folder(self, composer_id: str) -> str | None:
        return folder_of(self.get(composer_id).workspace)

    def rank(self, composer_id: str) -> int:
        return _BY_TABLE if self._row(composer_id) else _BY_LIST

    def _row(self, composer_id: str) -> tuple[Composer, int, bool] | None:
        if not self._has_table:
            return None
        if composer_id not in self._rows:
            self._rows[composer_id] = None
            for value, subagent in self._foreign.rows(
                f"SELECT value, isSubagent FROM {_TABLE} WHERE composerId = ?", (composer_id,)
            ):
                header = read_header(value) or Composer(composer_id)
                self._rows[composer_id] = header, digest(value), bool(subagent)
        return self._rows[composer_id]

    def _place_of_list(self) -> int | None:
        if not self._foreign.has_table("ItemTable"):
            return None
        rows = self._foreign.rows("SELECT rowid FROM ItemTable WHERE key = ?", (_LIST,))
        return rows[0][0] if rows else None

    def _listed(self) -> dict[str, tuple[Composer, int]]:
        if self._list is None:
            self._list = {}
            if self._foreign.has_table("ItemTable"):
                for (value,) in self._foreign.rows(
                    "SELECT value FROM ItemTable WHERE key = ?", (_LIST,)
                ):
                    self._read_list(value)
        return self._list

    def _read_list(self, value: Any) -> None:
        assert self._list is not None
        entries = as_dict(unwrap(value)).get("allComposers")
        for entry in entries if isinstance(entries, list) else ():
            composer_id = as_text(as_dict(entry).get("composerId"))
            header = read_header(entry) if composer_id else None
            if composer_id and header:
                self._list[composer_id] = header, hash64(as_line(entry))
