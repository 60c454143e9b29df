"""Cursor: where its databases and transcripts are and which session each file belongs to."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import orjson

from sessiond.reading import tail
from sessiond.sourcekit import disk
from sessiond.sourcekit.base import REAL_FILES, Conversation, Parser, SessionSpec, Source
from sessiond.sourcekit.folders import ProjectFolder

if TYPE_CHECKING:
    from sessiond.sourcekit.foreign import Foreign, KnownRows
    from sessiond.sources.cursor.windows import Workspaces

_STATE = "state.vscdb"
_STORE = "store.db"
_META = "meta.json"  # beside a chat of cursor-agent
_WORKSPACE = "workspace.json"  # beside the database of a window
_DATABASES = (".vscdb", ".sqlite")
_TRANSCRIPT = ".jsonl"
_PLAIN_TRANSCRIPT = ".txt"
_LOG = "-wal"
_TRANSCRIPTS = "agent-transcripts"
_SUBAGENTS = "subagents"
_GLOBAL, _WINDOWS = "globalStorage", "workspaceStorage"
_CHATS, _PROJECTS = "chats", "projects"
_FIRST_LINES = 20
# `fallback` of transcripts and exports: databases come first.
_FILE, _PLAIN_FILE = 2, 3
_HEAD = 64 << 10
_OWN_TABLE = re.compile(rb"CREATE TABLE (?:cursorDiskKV|composerHeaders|blobs)\b")
_APPLICATION = "Cursor"
_NO_FOLDER = re.compile(r"empty-window|\d*")  # of a window without a folder
_COMPOSER_ID = re.compile(rb'"composerId"\s*:\s*"([\w.:-]{1,200})"')


class CursorSource(Source):
    agent = "cursor"
    title = "Cursor"
    edition = 2
    variables = ("CURSOR_CONFIG_DIR", "XDG_CONFIG_HOME")
    reads = (
        "Conversations in the databases of the editor and its windows, chats of cursor-agent, and"
        " transcripts."
    )
    leaves = (
        ("other keys of state.vscdb", "settings and sign-in data"),
        ("globalStorage/*/, History/", "files of extensions, and local copies of edited files"),
        ("agentKv:, checkpointId:, codeBlockDiff: and similar rows", "copies of what is read"),
        ("conversation-search.db, ai-code-tracking.db", "Cursor's own indexes"),
        ("chats/*/*/prompt_history.json", "prompts that the chat has"),
    )
    known_from = REAL_FILES
    subscription = True

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.databases = CursorDatabases()
        self.documents = CursorDocuments(self._spec_of)
        slugs = [os.path.join(place, _PROJECTS) for place in self._agent_directories()]
        self._slugs = {*slugs, *map(disk.real, slugs)}

    def places(self) -> list[str]:
        user = self._user_directory()
        roots = [os.path.join(user, _GLOBAL), os.path.join(user, _WINDOWS)]
        for place in self._agent_directories():
            roots += [os.path.join(place, _CHATS), os.path.join(place, _PROJECTS)]
        return roots

    def claims(self, path: str, head: bytes) -> bool:
        names = path.split(os.sep)
        if self._is_database(names[-1]):
            # Every editor made from VS Code has an ItemTable.
            own = _OWN_TABLE.search(head) or (b"ItemTable" in head and _APPLICATION in names)
            return bool(own)
        return _TRANSCRIPTS in names[:-1] or _is_export(head)

    def is_whole(self, head: bytes) -> bool:
        return _LINE.match(head) is None

    def classify(self, path: str) -> str | None:
        folder, name = os.path.split(path)
        if name.endswith(_LOG):
            return "sidecar" if self._is_database(name.removesuffix(_LOG)) else None
        if self._is_database(name):
            return "database"
        if name in (_META, _WORKSPACE):
            return "sidecar" if disk.exists(self.owner(path)) else None
        if name.lower().endswith(_TRANSCRIPT):
            known = _TRANSCRIPTS in folder.split(os.sep) or _is_ours(path)
            return "transcript" if known else None
        plain = name.lower().endswith(_PLAIN_TRANSCRIPT) and _TRANSCRIPTS in folder.split(os.sep)
        return "document" if plain else None

    @staticmethod
    def _is_database(name: str) -> bool:
        return name.endswith(_STORE) or name.lower().endswith(_DATABASES)

    def sidecars(self, path: str) -> Sequence[str]:
        folder, name = os.path.split(path)
        if not self._is_database(name):
            return ()
        if name == _STORE:
            return path + _LOG, os.path.join(folder, _META)
        if os.path.basename(folder) != _GLOBAL:
            return path + _LOG, os.path.join(folder, _WORKSPACE)
        # Window databases name the folders of conversations, but are written late.
        windows = os.path.join(os.path.dirname(folder), _WINDOWS)
        return path + _LOG, *disk.below(windows, "*", _STATE + "*")

    def owner(self, sidecar: str) -> str:
        folder, name = os.path.split(sidecar)
        owners = {_META: _STORE, _WORKSPACE: _STATE}
        return os.path.join(folder, owners.get(name, name.removesuffix(_LOG)))

    def enters(self, directory: str) -> bool:
        """Skip the many files of editor extensions and the agent's tools."""
        parent, name = os.path.split(directory)
        above = os.path.basename(parent)
        if above == _GLOBAL or os.path.basename(os.path.dirname(parent)) == _WINDOWS:
            return False
        if os.path.dirname(parent) in self._slugs:
            return name == _TRANSCRIPTS
        return True

    def identify(self, path: str, head: bytes) -> SessionSpec:
        composer = _composer_in(head)
        if composer:
            return SessionSpec(composer, fallback=_FILE)
        return self._spec_of(path)

    def _spec_of(self, path: str) -> SessionSpec:
        folder, name = os.path.split(path)
        stem, suffix = os.path.splitext(name)
        fallback = _PLAIN_FILE if suffix.lower() == _PLAIN_TRANSCRIPT else _FILE
        named = _project_folder(path)
        if os.path.basename(folder) == _SUBAGENTS:
            parent = os.path.basename(os.path.dirname(folder))
            return SessionSpec(
                stem, kind="subagent", parent=parent, folder=named, fallback=fallback
            )
        project = self._folder_of(path, stem)
        return SessionSpec(stem, project=project, folder=named, fallback=fallback)

    @staticmethod
    def _folder_of(path: str, session: str) -> str | None:
        """The folder from a chat of the same name; a slug is ambiguous."""
        place = path.partition(os.sep + _PROJECTS + os.sep)[0]
        for chat in disk.below(os.path.join(place, _CHATS), "*"):
            meta = os.path.join(chat, session, _META)
            if disk.lexists(meta):
                from sessiond.sources.cursor.storedb import read_meta  # when something changed

                return read_meta(meta).cwd
        return None

    def parser(self, spec: SessionSpec, state: dict[str, Any]) -> Parser:
        from sessiond.sources.cursor.envelope import CursorParser  # when something changed

        return CursorParser(spec, state)

    # -- roots

    def _user_directory(self) -> str:
        return os.path.join(self.folders.application_data(), _APPLICATION, "User")

    def _agent_directories(self) -> list[str]:
        places = [self.moved("CURSOR_CONFIG_DIR"), os.path.join(self.folders.home(), ".cursor")]
        if self.platform not in ("darwin", "win32"):
            places.append(os.path.join(self.folders.config_home(), "cursor"))
        return [*filter(None, places)]


class CursorDocuments:
    """Reads transcripts in plain text."""

    def __init__(self, spec_of: Callable[[str], SessionSpec]) -> None:
        self._spec_of = spec_of

    def conversations(self, path: str, data: bytes) -> Iterator[Conversation]:
        from sessiond.sources.cursor.agent_messages import conversation  # when changed

        yield from conversation(self._spec_of(path), data)


class CursorDatabases:
    """Reads `state.vscdb` of the editor and its windows, and `store.db` of cursor-agent."""

    def __init__(self) -> None:
        self._workspaces: dict[str, Workspaces] = {}

    def conversations(
        self, foreign: Foreign, known: KnownRows, state: dict[str, Any]
    ) -> Iterator[Conversation]:
        if os.path.basename(foreign.path) == _STORE or foreign.has_table("blobs"):
            from sessiond.sources.cursor.chats import chat  # when something changed

            yield from chat(foreign, known, state)
            return
        from sessiond.sources.cursor.database import DatabaseReader  # when something changed
        from sessiond.sources.cursor.windows import Workspaces, read_window

        user = os.path.dirname(os.path.dirname(foreign.path))
        workspaces = self._workspaces.setdefault(user, Workspaces(user))
        yield from DatabaseReader(foreign, known, state, workspaces).conversations()
        yield from read_window(foreign, known, state)


def _project_folder(path: str) -> ProjectFolder | None:
    """The directory of a transcript that is named after its project; `/a b` is `a-b`."""
    place, _, inside = path.partition(os.sep + _TRANSCRIPTS + os.sep)
    parent, slug = os.path.split(place)
    if not inside or os.path.basename(parent) != _PROJECTS or _NO_FOLDER.fullmatch(slug):
        return None
    return ProjectFolder(place, f"-{slug}")


def _is_ours(path: str) -> bool:
    """Exports may be anywhere under any name, so check their first line."""
    try:
        fd = tail.open_regular(path)
    except (OSError, tail.Unreadable):
        return False
    try:
        head = tail.read_at(fd, _HEAD, 0)
    except OSError:
        return False
    finally:
        os.close(fd)
    return _is_export(head)


_LINE = re.compile(rb'\s*\{\s*"role"\s*:')  # of a transcript


def _is_export(head: bytes) -> bool:
    if _composer_in(head):
        return True
    try:
        value = orjson.loads(head.partition(b"\n")[0])
    except orjson.JSONDecodeError:
        return False
    return (
        isinstance(value, dict) and "role" in value and "message" in value and "uuid" not in value
    )


def _composer_in(head: bytes) -> str | None:
    """The conversation of an export, from its first line."""
    for line in head.split(b"\n", _FIRST_LINES)[:_FIRST_LINES]:
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        is_envelope = isinstance(value, dict) and "composerId" in value and "bubble" in value
        return str(value["composerId"]) if is_envelope else None
    # A first line longer than the head is cut and does not decode.
    match = _COMPOSER_ID.search(head) if b'"bubble"' in head else None
    return match[1].decode() if match else None


SOURCE = CursorSource
