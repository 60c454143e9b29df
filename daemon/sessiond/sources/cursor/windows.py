"""Reads the conversations in a window's own database, where versions before 0.43 kept them.

They are in a few values of its `ItemTable`, which also contains credentials: only the keys named
here are ever read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from sessiond.sourcekit.base import Conversation, SessionSpec
from sessiond.sourcekit.editors import folder_of_workspace
from sessiond.sourcekit.foreign import Foreign
from sessiond.sourcekit.known_rows import GONE, KnownRows, after
from sessiond.sourcekit.values import as_dict, as_text, as_time
from sessiond.sources.cursor.asked import GENERATIONS, PROMPTS, asked, words_of
from sessiond.sources.cursor.bubbles import prompt_text
from sessiond.sources.cursor.changes import COMPOSER as COMPOSER_ROWS
from sessiond.sources.cursor.changes import digest
from sessiond.sources.cursor.composers import Inline, read_header, unwrap
from sessiond.sources.cursor.inline import add_inline
from sessiond.sources.cursor.order import Arranged
from sessiond.sources.cursor.workspaces import COMPOSERS, named_composers

_CHATS = "workbench.panel.aichat.view.aichat.chatdata"
_KEYS = (_CHATS, COMPOSERS, PROMPTS, GENERATIONS)
_TAB, _COMPOSER = "tab:", "window:"
_BY_WINDOW = 5
_COPY = 1  # `fallback` of composers: the global database may have them too


def window(foreign: Foreign, known: KnownRows, state: dict[str, Any]) -> Iterator[Conversation]:
    """Every conversation with what changed in it, if one of the values changed."""
    values: dict[str, Any] = {}
    if foreign.has_table("ItemTable"):
        values = dict(foreign.many("SELECT key, value FROM ItemTable WHERE key = ?", _KEYS))
    folder = folder_of_workspace(os.path.dirname(foreign.path))
    now = {"folder": folder, **{key: digest(value) for key, value in values.items()}}
    if now == state.get("window"):
        return
    reader = _Window(known, folder)
    yield from reader.tabs(unwrap(values.get(_CHATS)))
    yield from reader.composers(unwrap(values.get(COMPOSERS)))
    yield from reader.closed()
    named = named_composers(foreign) | _any_composer(foreign)
    rest = asked(foreign, known, values, named, reader.prompts)
    if rest is not None:
        rest.project, rest.project_rank = reader.folder, _BY_WINDOW
        yield rest
    state["window"] = now


class _Window:
    """One read of a window's database."""

    def __init__(self, known: KnownRows, folder: str | None) -> None:
        self._known = known
        self.folder = folder
        self.prompts: set[str] = set()  # texts of prompts in conversations
        self._present: set[str] = set()  # prefixes of keys

    def tabs(self, value: Any) -> Iterator[Conversation]:
        """The chats of the oldest versions."""
        for tab in _listed(as_dict(value).get("tabs")):
            tab_id = as_text(as_dict(tab).get("tabId"))
            if not tab_id or not isinstance(tab.get("bubbles"), list):
                continue
            sent = as_time(tab.get("lastSendTime"))
            change = Conversation(
                SessionSpec(tab_id, title=as_text(tab.get("chatTitle"))),
                created_at=sent,  # its start is not recorded
                updated_at=sent,
            )
            inline: dict[str, Inline] = {}
            for number, bubble in enumerate(tab["bubbles"], 1):
                if isinstance(bubble, dict):
                    bubble_id = as_text(bubble.get("id")) or f"bubble-{number}"
                    key = f"{_TAB}{tab_id}:{bubble_id}"
                    inline.setdefault(key, (f"{tab_id}-{bubble_id}", bubble, None))
            change.order = [*inline]
            yield self._told(change, f"{_TAB}{tab_id}:", inline)

    def composers(self, value: Any) -> Iterator[Conversation]:
        """Composers with their messages; later versions have only a list of them here."""
        for entry in _listed(as_dict(value).get("allComposers")):
            composer = read_header(entry)
            if composer is None or not composer.inline:
                continue
            prefix = f"{_COMPOSER}{composer.composer_id}:"
            before = self._known.under(prefix)
            inline = {prefix + bubble[0]: bubble for bubble in composer.inline}
            inline |= {prefix + note[0]: (note[0], note[1], None) for note in composer.notes}
            change = Conversation(
                SessionSpec(composer.composer_id, title=composer.title, fallback=_COPY),
                git_branch=composer.branch,
                mode=composer.mode,
                model=composer.model,
                created_at=composer.created_at,
                updated_at=composer.updated_at,
                costs=composer.costs,
            )
            arranged = Arranged(composer, prefix, before, {}, inline)
            self._told(change, prefix, inline)
            change.order = arranged.keys(change.items)
            change.times = arranged.times(change.order)
            yield change

    def _told(self, change: Conversation, prefix: str, inline: dict[str, Inline]) -> Conversation:
        before = self._known.under(prefix)
        change.project, change.project_rank = self.folder, _BY_WINDOW
        add_inline(change, inline, before)
        change.removed = [key for key in before if key not in inline]
        self._present.add(prefix)
        self.prompts.update(words_of(prompt_text(bubble)) for _, bubble, _ in inline.values())
        return change

    def closed(self) -> Iterator[Conversation]:
        """Conversations that are no longer there."""
        gone: dict[str, list[str]] = {}
        for kind in (_TAB, _COMPOSER):
            for key, place in self._known.places(kind):
                prefix = f"{kind}{key.split(':', 2)[1]}:"
                if prefix not in self._present and place != GONE:
                    gone.setdefault(prefix, []).append(key)
        for prefix, keys in gone.items():
            yield Conversation(SessionSpec(prefix.split(":")[1]), removed=keys, gone=True)


def _any_composer(foreign: Foreign) -> set[str]:
    """One composer that has a row, as all have in the global database."""
    if not foreign.has_table("cursorDiskKV"):
        return set()
    first = "SELECT key FROM cursorDiskKV WHERE key >= ? AND key < ? LIMIT 1"
    return {key for (key,) in foreign.rows(first, (COMPOSER_ROWS, after(COMPOSER_ROWS)))}


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
