"""Claude Code: where its transcripts are and which session each one belongs to."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from sess_schema.chains import ONWARD, Chain, Name
from sessiond.sourcekit import disk
from sessiond.sourcekit.base import REAL_FILES, Conversation, Parser, SessionSpec, Source
from sessiond.sourcekit.disk import small_json
from sessiond.sourcekit.folders import ProjectFolder
from sessiond.sourcekit.values import as_text

_PROJECTS = "projects"
_SUBAGENTS = "subagents"
_TOOL_RESULTS = "tool-results"
_DESKTOP = "local-agent-mode-sessions"
_AGENT = "agent-"
_TRANSCRIPT = ".jsonl"
_SIDECAR = ".meta.json"
_LOCAL, _JSON = "local_", ".json"  # what the desktop app knows about a session
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_SESSION_ID = re.compile(rb'(?<!\\)"sessionId"\s*:\s*"([\w.-]{1,200})"')
_CODED = re.compile(r"-|[A-Za-z]--")  # the start of an absolute path in the name of a folder
_LOGLINES = re.compile(rb'(?<!\\)"loglines"\s*:\s*\[')  # of a saved session
_FIRST_LINES = 20
_OWN_KEYS = ({"parentUuid"}, {"leafUuid"}, {"uuid", "message"}, {"sessionId", "type"})


class _Sessions:
    """A session of Claude Code on the web, saved as one JSON object."""

    def conversations(self, path: str, data: bytes) -> Iterator[Conversation]:
        from sessiond.sources.claude.transcript import read_saved  # when something changed

        yield read_saved(path, data)


class ClaudeSource(Source):
    agent = "claude"
    title = "Claude Code"
    edition = 4
    variables = ("CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME")
    reads = "Transcripts with subagents and overflowed outputs, Cowork, sessions saved on the web."
    leaves = (
        ("history.jsonl", "prompts only; the transcripts have them"),
        (
            "file-history/, todos/, plans/, shell-snapshots/",
            "state of the program, not conversations",
        ),
    )
    known_from = REAL_FILES
    # It goes on from the newest leaf, whatever comes last; what a compaction has kept is named.
    chain = Chain(
        "uuid",
        "parentUuid",
        names=(
            Name("system", "logicalParentUuid"),
            Name("system", "compactMetadata.preservedSegment.headUuid", ONWARD),
            Name("system", "compactMetadata.preservedSegment.anchorUuid"),
            Name("system", "compactMetadata.preservedSegment.tailUuid"),
            Name("last-prompt", "leafUuid"),
            Name("summary", "leafUuid"),
        ),
    )
    documents = _Sessions()
    whole = _LOGLINES

    def places(self) -> list[str]:
        return [*self._project_roots(), *self._desktop_roots()]

    def classify(self, path: str) -> str | None:
        folder, name = os.path.split(path)
        if os.path.basename(folder) == _TOOL_RESULTS:
            kind = "attachment"
        elif name.lower().endswith(_TRANSCRIPT):
            kind = "transcript"
        elif name.startswith(_AGENT) and name.endswith(_SIDECAR):
            kind = "sidecar"
        elif name.startswith(_LOCAL) and name.endswith(_JSON) and _DESKTOP in folder:
            return "sidecar"
        else:
            return None
        if _DESKTOP in folder:
            names = _names(folder)
            # The desktop app keeps its own logs around the transcripts.
            if _DESKTOP in names and _PROJECTS not in names[names.index(_DESKTOP) :]:
                return None
        return kind

    def sidecars(self, path: str) -> Sequence[str]:
        beside = _desktop_facts(path)
        if os.path.basename(path).startswith(_AGENT):
            return (path[: -len(_TRANSCRIPT)] + _SIDECAR,)
        return (beside,) if beside else ()

    def owner(self, sidecar: str) -> str:
        if os.path.basename(sidecar).startswith(_LOCAL):
            return sidecar.removesuffix(_JSON)  # a directory
        return sidecar.removesuffix(_SIDECAR) + _TRANSCRIPT

    def claims(self, path: str, head: bytes) -> bool:
        if head.lstrip()[:1] == b"{" and _LOGLINES.search(head):
            return True
        if os.path.basename(os.path.dirname(path)) == _TOOL_RESULTS:
            return True
        records = [*_first_records(head)]
        own = any(keys <= record.keys() for record in records for keys in _OWN_KEYS)
        return own and not any(map(_is_foreign, records))

    def identify(self, path: str, head: bytes) -> SessionSpec:
        folder, name = os.path.split(path)
        stem = name[: -len(_TRANSCRIPT)] if name.lower().endswith(_TRANSCRIPT) else name
        session_folder = _session_folder(folder)
        parent = os.path.basename(session_folder) if session_folder else None
        if stem.startswith(_AGENT):
            parent = parent or _session_in(head)
            return _subagent(folder, stem, parent, session_folder)
        if stem == "history" or (stem == "journal" and parent is not None):
            above = _home(parent, os.path.dirname(session_folder or ""))
            return SessionSpec(stem, home=folder, kind="log", parent=parent, parent_home=above)
        return SessionSpec(
            stem,
            home=_home(stem, folder),
            folder=_project_folder(folder),
            title=_desktop_title(path, stem),
            attachments=os.path.join(folder, stem, _TOOL_RESULTS),
            resume=("claude", "--resume", stem),
        )

    def probe(self, word: str) -> dict[str, bytes]:
        session = "d0c70000-0000-4000-8000-000000000001"
        record = {
            "type": "user",
            "uuid": "d0c7-1",
            "sessionId": session,
            "timestamp": "2026-01-01T00:00:00.000Z",
            "cwd": "/doctor",
            "message": {"role": "user", "content": f"put the {word} on"},
        }
        path = os.path.join(self._project_roots()[0], "-doctor", session + _TRANSCRIPT)
        return {path: orjson.dumps(record) + b"\n"}

    def parser(self, spec: SessionSpec, state: dict[str, Any]) -> Parser:
        from sessiond.sources.claude.transcript import ClaudeParser  # when something changed

        return ClaudeParser(spec, state)

    # -- roots

    def _project_roots(self) -> list[str]:
        listed = self.environ.get("CLAUDE_CONFIG_DIR", "").split(",")
        configured = [self.folders.expand(entry.strip()) for entry in listed if entry.strip()]
        if not configured:
            configured = [
                os.path.join(self.folders.home(), ".claude"),
                os.path.join(self.folders.config_home(), "claude"),
            ]
        return [
            folder
            if os.path.basename(os.path.normpath(folder)) == _PROJECTS
            else os.path.join(folder, _PROJECTS)
            for folder in configured
        ]

    def _desktop_roots(self) -> list[str]:
        parents = [self.folders.application_data()]
        if self.platform == "win32":
            local = self.folders.local()
            parents += disk.below(local, "Packages", "*Claude*", "LocalCache", "Roaming")
        return [os.path.join(parent, "Claude", _DESKTOP) for parent in parents]


def _home(session: str | None, folder: str) -> str:
    """The folder, for sessions not named by a UUID, whose names may repeat elsewhere."""
    return "" if session is None or _UUID.fullmatch(session) else folder


def _project_folder(folder: str) -> ProjectFolder | None:
    """A folder in `projects`, or one that is named like those."""
    above, name = os.path.split(folder)
    code = name if _CODED.match(name) else None
    if code is None and os.path.basename(above) != _PROJECTS:
        return None
    return ProjectFolder(folder, code)


def _names(path: str) -> list[str]:
    return path.replace(os.altsep or os.sep, os.sep).split(os.sep)


def _desktop_facts(path: str) -> str | None:
    """The file in which the desktop app describes the session of a transcript."""
    if _DESKTOP not in path:
        return None
    names = _names(path)
    for at in range(len(names) - 2, 0, -1):
        if names[at].startswith(_LOCAL):
            return os.sep.join(names[: at + 1]) + _JSON
    return None


def _desktop_title(path: str, session: str) -> str | None:
    facts = small_json(_desktop_facts(path) or "")
    return as_text(facts.get("title")) if facts.get("cliSessionId") == session else None


def _session_folder(folder: str) -> str | None:
    """The session directory whose `subagents` folder a file is in."""
    names = _names(folder)
    for index in range(len(names) - 1, 0, -1):
        if names[index] == _SUBAGENTS and names[index - 1]:
            return os.sep.join(names[:index])
    return None


def _session_in(head: bytes) -> str | None:
    """The session that the first records name."""
    for record in _first_records(head):
        session = as_text(record.get("sessionId"))
        if session:
            return session
    # A first line longer than the head is cut and does not decode.
    match = _SESSION_ID.search(head)
    return match[1].decode("utf-8", "replace") if match else None


def _is_foreign(record: dict[str, Any]) -> bool:
    """Other agents write the same fields: around messages in Gemini's form, or with other ids."""
    message = record.get("message")
    prefixed, _, session = (as_text(record.get("sessionId")) or "").rpartition("session-")
    renamed = not prefixed and session != record.get("sessionId") and _UUID.fullmatch(session)
    return bool(renamed) or (isinstance(message, dict) and "parts" in message)


def _first_records(head: bytes) -> Iterator[dict[str, Any]]:
    for line in head.split(b"\n", _FIRST_LINES)[:_FIRST_LINES]:
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if isinstance(record, dict):
            yield record


def _subagent(
    folder: str, stem: str, parent: str | None, session_folder: str | None
) -> SessionSpec:
    if session_folder is None and parent and _UUID.fullmatch(parent):
        session_folder = os.path.join(folder, parent)
    facts = small_json(os.path.join(folder, stem + _SIDECAR))
    return SessionSpec(
        stem,
        home=parent or folder,
        kind="subagent",
        parent=parent,
        parent_home=_home(parent, os.path.dirname(session_folder or "") or folder),
        call_id=as_text(facts.get("toolUseId")),
        agent_type=as_text(facts.get("agentType")),
        title=as_text(facts.get("description")) or as_text(facts.get("name")),
        folder=_project_folder(os.path.dirname(session_folder) if session_folder else folder),
        attachments=os.path.join(session_folder, _TOOL_RESULTS) if session_folder else None,
    )


SOURCE = ClaudeSource
