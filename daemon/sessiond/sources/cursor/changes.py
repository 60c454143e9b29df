"""Finds the changed conversations of a `state.vscdb` without reading the others.

Cursor writes by INSERT into a table that replaces on conflict, so a changed row gets a larger rowid
than any before. All new rows are therefore above the last one seen. The few composer keys are
compared each time, those of bubbles regularly. As Cursor need not always write this way, the newest
bubbles of the last changed conversations are compared by content.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from sessiond.engines.steps import hash64
from sessiond.sourcekit import disk
from sessiond.sourcekit.base import LOOK_AGAIN
from sessiond.sourcekit.foreign import NO_PLACE, Foreign, KnownRows, after

log = logging.getLogger("sessiond.cursor")

COMPOSER, BUBBLE, INLINE, HEADER = "composerData:", "bubbleId:", "inline:", "composerHeaders:"
SMALL = 10_000  # rows; smaller databases are compared each time
SCAN_EVERY = 300.0  # seconds between comparisons of all keys of a larger database
RECENT = 3  # conversations audited when rowids show no change
RECENT_DISTRUSTED, FAR = 8, 32  # once a rowid was wrong; after the 8th only the composer
AUDIT_EVERY = 5.0  # seconds, while no rowid was wrong
_PAGE = 5_000
_TABLE = "cursorDiskKV"


@dataclass(slots=True)
class Touched:
    """A conversation to compare."""

    verify: bool = False  # compare every value
    suspects: set[str] = field(default_factory=set)  # keys whose values must be compared


def as_bytes(value: Any) -> bytes:
    """The bytes of a value of any SQLite type."""
    if isinstance(value, bytes):
        return value
    return str(value).encode("utf-8", "replace")


def digest(value: Any) -> int:
    return 0 if value is None else hash64(as_bytes(value))


class Changes:
    """Compares a database with its known rows."""

    def __init__(self, foreign: Foreign, known: KnownRows, state: dict[str, Any]) -> None:
        self._foreign = foreign
        self._known = known
        self._state = state
        self._touched: dict[str, Touched] = {}
        self._keys = 0
        file = disk.stat_of(foreign.path)
        identity = [file.st_dev, file.st_ino]
        # Another file took the name: its rowids mean something else.
        self._replaced = "file" in state and state["file"] != identity
        if self._replaced:
            state.clear()
        state["file"] = identity
        self.complete = self._is_due()  # compare all keys this time
        self.distrust: bool = state.get("distrust", False)

    def _is_due(self) -> bool:
        state = self._state
        return (
            "top" not in state
            or state.get("keys", 0) <= SMALL
            or not 0 <= time.time() - state.get("scanned_at", 0) < SCAN_EVERY
        )

    def find(self) -> dict[str, Touched]:
        """The conversations that may have changed, with what to compare in them."""
        if not self._foreign.has_table(_TABLE):
            return {}
        top = self._top()
        if "top" in self._state:
            self._above(*self._state["top"])
        for key in self._differing(COMPOSER):
            self._touch(key)
        if self.complete:
            for key in self._differing(BUBBLE):
                self._touch(key)
            self._audit_any()
        self._audit_recent()
        if self._replaced:
            for key in (key for key, _ in self._known.places(BUBBLE)):
                self._touch(key).verify = True
        self._state["top"] = top
        if self.complete:
            self._state["keys"], self._state["scanned_at"] = self._keys, time.time()
        else:
            self._state[LOOK_AGAIN] = True
        return self._touched

    def note_miss(self, key: str) -> None:
        """A value changed but not its rowid: rowids are unreliable in this database."""
        if not self.distrust:
            log.warning(
                "%s: a row changed in place (%s); values are compared from now on",
                self._foreign.path,
                key.partition(":")[0],
            )
        self.distrust = self._state["distrust"] = True

    def _touch(self, key: str) -> Touched:
        return self._touched.setdefault(composer_of(key), Touched())

    def _top(self) -> list[Any]:
        """The row with the largest rowid."""
        for rowid, key, value in self._foreign.rows(
            f"SELECT rowid, key, value FROM {_TABLE} ORDER BY rowid DESC LIMIT 1"
        ):
            return [rowid, key if isinstance(key, str) else "", digest(value)]
        return [0, "", 0]

    def _above(self, rowid: int, key: str, seen: int) -> None:
        """Everything written since `rowid` was the largest."""
        for now, value in self._foreign.rows(
            f"SELECT key, value FROM {_TABLE} WHERE rowid = ?", (rowid,)
        ):
            if now != key and key:
                self.complete = True  # the largest rowid was freed and reused
            elif digest(value) != seen and key.startswith((COMPOSER, BUBBLE)):
                self._touch(key).suspects.add(key)
        if key and not self._foreign.rows(
            f"SELECT 1 FROM {_TABLE} WHERE key = ? AND rowid >= ?", (key, rowid)
        ):
            self.complete = True  # it was deleted: rowids up to its own are reused
        last = rowid
        while True:
            page = self._foreign.rows(
                f"SELECT rowid, key FROM {_TABLE} WHERE rowid > ? ORDER BY rowid LIMIT {_PAGE}",
                (last,),
            )
            for _, new in page:
                if isinstance(new, str) and new.startswith((COMPOSER, BUBBLE)):
                    self._touch(new)
            if len(page) < _PAGE:
                return
            last = page[-1][0]

    def _differing(self, prefix: str) -> Iterator[str]:
        """Keys that are new, gone or moved, using only the table's index."""
        known = self._known.places(prefix)
        ours = next(known, None)
        for key, rowid in self._present(prefix):
            self._keys += 1
            while ours is not None and ours[0] < key:
                if ours[1] != NO_PLACE:
                    yield ours[0]
                ours = next(known, None)
            if ours is not None and ours[0] == key:
                if ours[1] != rowid:
                    yield key
                ours = next(known, None)
            else:
                yield key
        while ours is not None:
            if ours[1] != NO_PLACE:
                yield ours[0]
            ours = next(known, None)

    def _present(self, prefix: str) -> Iterator[tuple[str, int]]:
        last, end = prefix, after(prefix)
        while True:
            page = self._foreign.rows(
                f"SELECT key, rowid FROM {_TABLE} WHERE key > ? AND key < ?"
                f" ORDER BY key LIMIT {_PAGE}",
                (last, end),
            )
            yield from page
            if len(page) < _PAGE:
                return
            last = page[-1][0]

    def _audit_recent(self) -> None:
        """Audit the conversations that changed last: they are the likeliest to change."""
        now = time.time()
        lately = 0 <= now - self._state.get("looked_at", 0) < AUDIT_EVERY
        if not self.distrust and (self._touched or lately):
            return
        self._state["looked_at"] = now
        near, far = (RECENT_DISTRUSTED, FAR) if self.distrust else (RECENT, RECENT)
        for number, composer_id in enumerate(self._known.recent(far)):
            if number < near or self._is_another(COMPOSER + composer_id):
                self._touched.setdefault(composer_id, Touched())

    def _is_another(self, key: str) -> bool:
        known = self._known.get(key)
        rows = self._foreign.rows(f"SELECT value FROM {_TABLE} WHERE key = ?", (key,))
        return known is None or [digest(value) for (value,) in rows] != [known.digest]

    def _audit_any(self) -> None:
        """Occasionally audit a random conversation."""
        now = time.time()
        if 0 <= now - self._state.get("audited_at", 0) < SCAN_EVERY:
            return
        self._state["audited_at"] = now
        everyone = self._known.recent(_PAGE)
        if everyone:
            chosen = random.choice(everyone)  # noqa: S311 - no secret
            self._touched.setdefault(chosen, Touched()).verify = True


def composer_of(key: str) -> str:
    """`composerData:<composer>` or `bubbleId:<composer>:<bubble>`."""
    return key.split(":", 2)[1]
