"""Reads the conversations of a `state.vscdb`, in any of its five generations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sess_schema import labels
from sessiond.engines.steps import hash64
from sessiond.reading.tail import LONGEST_LINE
from sessiond.sourcekit.base import Conversation, Event, Item, Record, SessionSpec
from sessiond.sourcekit.folders import folder_of_window
from sessiond.sourcekit.foreign import NO_PLACE, Foreign, KnownRow, KnownRows
from sessiond.sourcekit.values import as_list
from sessiond.sources.cursor import envelope
from sessiond.sources.cursor.changes import (
    BUBBLE,
    COMPOSER,
    INLINE,
    Changes,
    Touched,
    as_bytes,
    digest,
)
from sessiond.sources.cursor.composers import Arranged, Composer, Headers, read_composer, unwrap
from sessiond.sources.cursor.envelope import add_inline
from sessiond.sources.cursor.tool_calls import fetch
from sessiond.sources.cursor.windows import Workspaces

NEWEST = 8  # last bubbles of a changed conversation to compare whatever their rowids
NEWEST_DISTRUSTED = 64  # the same, once a rowid missed a change
_BATCH = 32  # values read in one transaction
_PIECE = 8 << 20  # bytes of a conversation handed over at once
# Its length is known without reading it.
_VALUE = (
    f"SELECT key, rowid, iif(octet_length(value) > {LONGEST_LINE}, NULL, value),"
    " octet_length(value) FROM cursorDiskKV WHERE key = ?"
)
_BY_COMPOSER, _BY_WORKSPACE, _BY_REPOSITORY = 5, 2, 1  # between them: the headers


class DatabaseReader:
    """One read of one database."""

    def __init__(
        self, foreign: Foreign, known: KnownRows, state: dict[str, Any], workspaces: Workspaces
    ) -> None:
        self._foreign = foreign
        self._known = known
        self._workspaces = workspaces
        self._changes = Changes(foreign, known, state)
        self._headers = Headers(foreign, known, state)
        self._state = state
        self._unplaced: set[str] = set(state.get("unplaced", ()))

    def conversations(self) -> Iterator[Conversation]:
        touched = self._changes.find()
        for composer_id in self._headers.changed(complete=self._changes.complete):
            touched.setdefault(composer_id, Touched())
        if self._unplaced and self._workspaces.changed():
            for composer_id in self._unplaced:
                touched.setdefault(composer_id, Touched())
        for composer_id, how in touched.items():
            yield from self._conversation(composer_id, how)
        self._state["unplaced"] = sorted(self._unplaced)

    # -- one conversation

    def _conversation(self, composer_id: str, how: Touched) -> Iterator[Conversation]:
        prefix = f"{BUBBLE}{composer_id}:"
        known = self._known.under(prefix) | self._known.under(f"{INLINE}{composer_id}:")
        present: dict[str, int] = dict(
            self._foreign.rows(
                "SELECT key, rowid FROM cursorDiskKV WHERE key >= ? AND key < ?",
                (prefix, prefix[:-1] + ";"),
            )
        )
        stored, facts = self._composer(composer_id)
        composer = stored or Composer(composer_id)
        inline = {
            f"{INLINE}{composer_id}:{bubble_id}": (bubble_id, bubble, tool)
            for bubble_id, bubble, tool in composer.inline
            if prefix + bubble_id not in present
        }
        is_empty = not present and not inline
        if not is_empty:
            notes = composer.notes
            inline |= {
                f"{INLINE}{composer_id}:{name}": (name, note, None) for name, note, _ in notes
            }
        change = self._whole(composer_id, composer)
        change.items += facts
        left = [key for key in known if key not in present and key not in inline]
        if is_empty:
            self._end(change, left)
            yield change
            return
        if stored is None:  # being deleted row by row: the index keeps what it has
            change.moved += [(key, NO_PLACE) for key in left]
        else:
            change.removed = left
        arranged = Arranged(composer, prefix, known, present, inline)
        if stored is None:
            arranged.stay(self._known.in_order(known))
        change.order = arranged.keys()
        add_inline(change, inline, known)
        wanted = self._wanted(change.order, present, known, how)
        for start in range(0, len(wanted), _BATCH):
            self._add_bubbles(change, composer, wanted[start : start + _BATCH], known)
            if sum(len(item.raw) for item in change.items) > _PIECE:
                change.order = arranged.keys(change.items)
                change.times = arranged.times(change.order)
                yield change
                change = self._whole(composer_id, composer)
                change.order = arranged.keys()
        change.order = arranged.keys(change.items)
        change.times = arranged.times(change.order)
        yield change

    @staticmethod
    def _end(change: Conversation, left: list[str]) -> None:
        """The conversation has no messages any more, or none yet."""
        composer = COMPOSER + change.spec.native_id
        there = any(item.key == composer for item in change.items)
        change.gone = bool(left) or not there
        change.removed = left if there else [*left, composer]

    def _composer(self, composer_id: str) -> tuple[Composer | None, list[Item]]:
        """The composer from its row, and what to remember about the row and the header."""
        key = COMPOSER + composer_id
        remembered = []
        composer = None
        for rowid, value in self._foreign.rows(
            "SELECT rowid, value FROM cursorDiskKV WHERE key = ?", (key,)
        ):
            composer = read_composer(value, composer_id)
            item = Item(key, rowid, digest(value))
            before = self._known.get(key)
            if before and before.place == rowid and before.digest != item.digest:
                self._changes.note_miss(key)
            remembered.append(item)
        header = self._headers.item(composer_id)
        if header:
            remembered.append(header)
        return composer, remembered

    def _whole(self, composer_id: str, composer: Composer) -> Conversation:
        """The conversation without its records."""
        header = self._headers.get(composer_id)
        parent = composer.parent or header.parent
        project, rank = self._project(composer_id, composer)
        return Conversation(
            SessionSpec(
                composer_id,
                kind="subagent" if parent or self._headers.is_subagent(composer_id) else "main",
                parent=parent,
                call_id=composer.parent_call or header.parent_call,
                agent_type=composer.agent_type or header.agent_type,
                title=composer.title or header.title,
            ),
            project=project,
            project_rank=rank,
            git_branch=composer.branch or header.branch,
            mode=composer.mode or header.mode,
            model=composer.model or header.model,
            created_at=composer.created_at or header.created_at,
            updated_at=composer.updated_at or header.updated_at,
            children=composer.subagents,
            costs=composer.costs,
        )

    def _project(self, composer_id: str, composer: Composer) -> tuple[str | None, int]:
        self._unplaced.discard(composer_id)
        if folder := folder_of_window(composer.workspace):
            return folder, _BY_COMPOSER
        if folder := self._headers.folder(composer_id):
            return folder, self._headers.rank(composer_id)
        if folder := self._workspaces.folder(composer_id):
            return folder, _BY_WORKSPACE
        self._unplaced.add(composer_id)
        return (composer.repos[0], _BY_REPOSITORY) if composer.repos else (None, 0)

    # -- its records

    def _wanted(
        self,
        order: Sequence[str],
        present: dict[str, int],
        known: dict[str, KnownRow],
        how: Touched,
    ) -> list[str]:
        """Keys whose values must be read, in order."""
        rows = [key for key in order if key in present]
        few = NEWEST_DISTRUSTED if self._changes.distrust else NEWEST
        newest = set(rows[-few:]) | how.suspects
        return [
            key
            for key in rows
            if how.verify or key in newest or key not in known or known[key].place != present[key]
        ]

    def _add_bubbles(
        self, change: Conversation, composer: Composer, keys: list[str], known: dict[str, KnownRow]
    ) -> None:
        for key, rowid, value, length in self._foreign.many(_VALUE, keys):
            if length is not None and length > LONGEST_LINE:
                self._add_oversize(change, (key, rowid), length, known)
                continue
            contents = fetch(self._foreign, as_bytes(value))
            item = Item(key, rowid, _digest(value, contents))
            before = known.get(key)
            if before is not None and before.digest == item.digest:
                if before.place != rowid:
                    change.moved.append((key, rowid))
                continue
            if before is not None and before.place == rowid:
                self._changes.note_miss(key)
            if value is not None:
                bubble = self._read(item, composer, key.split(":", 2)[2], value, contents)
                self._place_by(change, bubble)
            change.items.append(item)

    def _add_oversize(
        self, change: Conversation, at: tuple[str, int], length: int, known: dict[str, KnownRow]
    ) -> None:
        """A note in the place of a value that would take several times its size in memory."""
        key, rowid = at
        item = Item(key, rowid, hash64(b"oversize %d" % length))
        before = known.get(key)
        if before is not None and before.digest == item.digest and before.place == rowid:
            return
        bubble_id = key.split(":", 2)[2]
        reason = f"record of {length >> 20} MiB is too long to read; only Cursor has it"
        note = {"oversize": length}
        item.raw = envelope.pack(change.spec.native_id, note, bubble_id=bubble_id)
        item.record = Record(
            "oversize",
            native_id=bubble_id,
            events=[Event("system", reason, label=labels.OVERSIZE)],
            warnings=[reason],
        )
        change.items.append(item)

    def _place_by(self, change: Conversation, bubble: Any) -> None:
        """Use the folders of the bubble's window if nothing better is known."""
        if change.project_rank or not isinstance(bubble, dict):
            return
        for uri in as_list(bubble.get("workspaceUris")):
            if folder := folder_of_window(uri):
                change.project, change.project_rank = folder, _BY_REPOSITORY
                return

    def _read(
        self,
        item: Item,
        composer: Composer,
        bubble_id: str,
        value: Any,
        contents: dict[str, str],
    ) -> Any:
        raw = as_bytes(value)
        bubble = unwrap(value)
        named = bubble.get("bubbleId") if isinstance(bubble, dict) else None
        wrapped = not isinstance(bubble, dict) or raw[:1] != b"{"
        if bubble is None:  # not JSON
            bubble = raw.decode("utf-8", "replace")
        given = None if named == bubble_id else bubble_id
        item.raw = envelope.pack(
            composer.composer_id,
            bubble,
            raw=None if wrapped else raw,
            bubble_id=given,
            contents=contents,
        )
        item.record = envelope.read({"bubble": bubble, "bubbleId": bubble_id, "contents": contents})
        item.alias = named if isinstance(named, str) and named != bubble_id else None
        return bubble


def _digest(value: Any, contents: dict[str, str]) -> int:
    """Of a bubble with the texts that belong to it, which may be written later."""
    if not contents:
        return digest(value)
    texts = (part for pair in contents.items() for part in pair)
    return hash64(as_bytes(value), *(text.encode("utf-8", "replace") for text in texts))
