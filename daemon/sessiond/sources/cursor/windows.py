"""Reads the conversations in a window's own database, where versions before 0.43 kept them.

They are in a few values of its `ItemTable`, which also contains credentials: only the keys named
here are ever read.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from sessiond.engines.steps import hash64
from sessiond.sourcekit import disk
from sessiond.sourcekit.base import Conversation, SessionSpec
from sessiond.sourcekit.folders import folder_of_workspace
from sessiond.sourcekit.foreign import (
    NO_PLACE,
    Changed,
    Foreign,
    ForeignError,
    KnownRows,
    after,
    fingerprint,
)
from sessiond.sourcekit.values import as_dict, as_list, as_text, as_time
from sessiond.sources.cursor.bubbles import prompt_text, time_of
from sessiond.sources.cursor.changes import COMPOSER as COMPOSER_ROWS
from sessiond.sources.cursor.changes import digest
from sessiond.sources.cursor.composers import Arranged, Inline, read_header, unwrap
from sessiond.sources.cursor.envelope import add_inline

_CHATS = "workbench.panel.aichat.view.aichat.chatdata"
_COMPOSERS = "composer.composerData"
_PROMPTS, _GENERATIONS = "aiService.prompts", "aiService.generations"
_KEYS = (_CHATS, _COMPOSERS, _PROMPTS, _GENERATIONS)
_TAB, _COMPOSER = "tab:", "window:"
_BY_WINDOW = 5
_COPY = 1  # `fallback` of composers: the global database may have them too


def read_window(
    foreign: Foreign, known: KnownRows, state: dict[str, Any]
) -> Iterator[Conversation]:
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
    yield from reader.composers(unwrap(values.get(_COMPOSERS)))
    yield from reader.closed()
    named = _named_composers(foreign) | _any_composer(foreign)
    rest = _remembered_prompts(foreign, known, values, named, reader.prompts)
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
        for tab in as_list(as_dict(value).get("tabs")):
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
            yield self._complete(change, f"{_TAB}{tab_id}:", inline)

    def composers(self, value: Any) -> Iterator[Conversation]:
        """Composers with their messages; later versions have only a list of them here."""
        for entry in as_list(as_dict(value).get("allComposers")):
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
            self._complete(change, prefix, inline)
            change.order = arranged.keys(change.items)
            change.times = arranged.times(change.order)
            yield change

    def _complete(
        self, change: Conversation, prefix: str, inline: dict[str, Inline]
    ) -> Conversation:
        before = self._known.under(prefix)
        change.project, change.project_rank = self.folder, _BY_WINDOW
        add_inline(change, inline, before)
        change.removed = [key for key in before if key not in inline]
        self._present.add(prefix)
        self.prompts.update(_words_of(prompt_text(bubble)) for _, bubble, _ in inline.values())
        return change

    def closed(self) -> Iterator[Conversation]:
        """Conversations that are no longer there."""
        gone: dict[str, list[str]] = {}
        for kind in (_TAB, _COMPOSER):
            for key, place in self._known.places(kind):
                prefix = f"{kind}{key.split(':', 2)[1]}:"
                if prefix not in self._present and place != NO_PLACE:
                    gone.setdefault(prefix, []).append(key)
        for prefix, keys in gone.items():
            yield Conversation(SessionSpec(prefix.split(":")[1]), removed=keys, gone=True)


def _any_composer(foreign: Foreign) -> set[str]:
    """One composer that has a row, as all have in the global database."""
    if not foreign.has_table("cursorDiskKV"):
        return set()
    first = "SELECT key FROM cursorDiskKV WHERE key >= ? AND key < ? LIMIT 1"
    return {key for (key,) in foreign.rows(first, (COMPOSER_ROWS, after(COMPOSER_ROWS)))}


# -- prompts that a window remembers, where the conversations themselves are not kept
# A window lists what was asked in it lately: `aiService.generations` with times,
# `aiService.prompts` without.

_ASKED = "asked:"
_BY_THE_MODEL = "apply"  # an edit of an answer, not a prompt


def _remembered_prompts(
    foreign: Foreign,
    known: KnownRows,
    values: Mapping[str, Any],
    named: set[str],
    better: set[str],
) -> Conversation | None:
    """One conversation of all prompts that no other one has.

    `better` are the prompts in conversations of the window, `named` the composers that it knows:
    they have all prompts since the first of them.
    """
    window = os.path.basename(os.path.dirname(foreign.path))
    first = _first_start(values.get(_COMPOSERS), named)
    dated = dict(_generations(values.get(_GENERATIONS)))
    listed = {_words_of(bubble["text"]) for bubble in dated.values()}
    everything = dict(_prompts(values.get(_PROMPTS))) | dated
    inline: dict[str, Inline] = {
        key: (f"{window}-{key.removeprefix(_ASKED)}", bubble, None)
        for key, bubble in everything.items()
        if _words_of(bubble["text"]) not in (better if key in dated else better | listed)
        and (first is None or bubble.get("createdAt", first) < first)
    }
    before = known.under(_ASKED)
    if not inline and not before:
        return None
    change = Conversation(SessionSpec(f"{window}-prompts"))
    change.created_at = min((bubble["createdAt"] for bubble in dated.values()), default=None)
    change.removed = [key for key in before if key in everything and key not in inline]
    # The list has only the last ones.
    kept = [key for key in known.in_order(before) if key not in {*change.removed, *inline}]
    change.order = [*kept, *inline]
    add_inline(change, inline, before)
    return change


def _words_of(text: str) -> str:
    """A text without its white space, in which copies differ."""
    return " ".join(text.split())


def _first_start(value: Any, named: set[str]) -> int | None:
    """When the first composer started: None if there is none, 0 if that is not known."""
    entries = [as_dict(entry) for entry in as_list(as_dict(unwrap(value)).get("allComposers"))]
    starts = {as_text(one.get("composerId")): time_of(one.get("createdAt")) or 0 for one in entries}
    return min((starts.get(name, 0) for name in named), default=None)


def _generations(value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    for entry in map(as_dict, as_list(unwrap(value))):
        text, time = as_text(entry.get("textDescription")), time_of(entry.get("unixMs"))
        if text and text.strip() and time is not None and entry.get("type") != _BY_THE_MODEL:
            name = as_text(entry.get("generationUUID")) or str(time)
            yield _ASKED + name, {"type": "user", "text": text, "createdAt": time}


def _prompts(value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    listed = unwrap(value)
    times: Counter[str] = Counter()
    for entry in map(as_dict, as_list(listed)):
        text = as_text(entry.get("text"))
        if text and text.strip():
            times[text] += 1
            digest = hash64(text.encode("utf-8", "replace")) & (1 << 64) - 1
            yield f"{_ASKED}{digest:016x}:{times[text]}", {"type": "user", "text": text}


# -- the folder of a conversation that only its window's database names

_DATABASE = "state.vscdb"
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
                return _named_composers(foreign)
        except Changed:
            continue
        except ForeignError:
            break
    return set()


def _named_composers(foreign: Foreign) -> set[str]:
    """The composers that a window's database names."""
    return {name for name in _named(foreign) if name}


def _named(foreign: Foreign) -> Iterator[str]:
    if not foreign.has_table("ItemTable"):
        return
    for (value,) in foreign.rows("SELECT value FROM ItemTable WHERE key = ?", (_COMPOSERS,)):
        listed = as_dict(unwrap(value))
        for entry in as_list(listed.get("allComposers")):
            yield as_text(as_dict(entry).get("composerId")) or ""
        for name in ("selectedComposerIds", "lastFocusedComposerIds"):
            yield from (entry for entry in as_list(listed.get(name)) if isinstance(entry, str))
    for (value,) in foreign.rows(
        "SELECT value FROM ItemTable WHERE key >= ? AND key < ?", (_PANELS, after(_PANELS))
    ):
        for name in as_dict(unwrap(value)):
            if name.startswith(_VIEW):
                yield name.removeprefix(_VIEW)
