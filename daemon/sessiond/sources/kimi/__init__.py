"""Kimi CLI and Kimi Code: where their sessions are, and what they are called."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from typing import Any

import orjson

from sess_schema.chains import Chain, Count
from sessiond.sourcekit import disk
from sessiond.sourcekit.base import SOURCE_CODE, Parser, SessionSpec, Source
from sessiond.sourcekit.disk import small_json
from sessiond.sourcekit.folders import absolute
from sessiond.sourcekit.values import as_dict, as_list, as_text

_SESSIONS, _AGENTS, _SUBAGENTS = "sessions", "agents", "subagents"
_WIRE, _CONTEXT, _STATE, _META = "wire.jsonl", "context.jsonl", "state.json", "meta.json"
_MAIN = "main"
_CODE, _CODE_SESSION = ".kimi-code", "session_"
_PROJECTS = "kimi.json"
_WIRE_RANK, _CONTEXT_RANK = 0, 1
_LARGEST = 4 << 20


class KimiSource(Source):
    agent = "kimi"
    title = "Kimi"
    variables = ("KIMI_SHARE_DIR", "KIMI_CODE_HOME")
    reads = "Sessions of Kimi CLI and Kimi Code with their subagents."
    leaves = (
        ("context*.jsonl", "what the model saw; read only where no wire log is"),
        ("user-history/, logs/, credentials/", "prompts only, the program's own log, sign-in data"),
    )
    known_from = SOURCE_CODE
    chain = Chain(
        heads=("metadata",),
        counts=(Count("context.undo", "count"),),
        beside=_CONTEXT,  # Kimi CLI's log is only what it shows
    )
    edition = 3  # calls in pieces have their whole input, also of subagents side by side

    def places(self) -> list[str]:
        return [os.path.join(home, _SESSIONS) for home in (self._share(), self._code_home())]

    def _share(self) -> str:
        return self.moved("KIMI_SHARE_DIR") or os.path.join(self.folders.home(), ".kimi")

    def _code_home(self) -> str:
        return self.moved("KIMI_CODE_HOME") or os.path.join(self.folders.home(), _CODE)

    def classify(self, path: str) -> str | None:
        folder, name = os.path.split(path)
        if name == _WIRE:
            return "transcript"
        if name == _CONTEXT:
            alone = not disk.exists(os.path.join(folder, _WIRE))
            return "transcript" if alone else None
        return "sidecar" if name in (_STATE, _META) else None

    def claims(self, path: str, head: bytes) -> bool:
        if b'"protocol_version"' in head.partition(b"\n")[0]:
            return True
        first = head.partition(b"\n")[2]
        return os.path.basename(path) == _WIRE and (b'"message"' in first or b'"time"' in first)

    def sidecars(self, path: str) -> Sequence[str]:
        session, folder = _session_folder(path), os.path.dirname(path)
        beside = [os.path.join(session, _STATE), os.path.join(folder, _META)]
        if not os.path.basename(session).startswith(_CODE_SESSION):  # its state has no project
            beside.append(os.path.join(self._share(), _PROJECTS))
        return beside

    def owner(self, sidecar: str) -> str:
        folder, name = os.path.split(sidecar)
        return folder if name == _STATE else os.path.join(folder, _WIRE)

    def identify(self, path: str, head: bytes) -> SessionSpec:  # noqa: ARG002 - its place says all
        folder = _session_folder(path)
        session, inner = os.path.basename(folder), os.path.basename(os.path.dirname(path))
        state = small_json(os.path.join(folder, _STATE), _LARGEST)
        named = as_text(state.get("workDir")) or as_text(state.get("cwd"))
        project = absolute(named) or self._project(folder)
        rank = _CONTEXT_RANK if os.path.basename(path) == _CONTEXT else _WIRE_RANK
        if os.path.dirname(path) != folder and inner != _MAIN:
            return self._subagent(path, session, inner, state, project)
        title = as_text(state.get("custom_title")) or as_text(state.get("title"))
        return SessionSpec(
            session,
            title=" ".join(title.split()) if title else None,
            project=project,
            fallback=rank,
            resume=("kimi", "--session", session),
        )

    def _subagent(
        self, path: str, session: str, name: str, state: dict[str, Any], project: str | None
    ) -> SessionSpec:
        facts = as_dict(as_dict(state.get("agents")).get(name))
        meta = small_json(os.path.join(os.path.dirname(path), _META))
        above = as_text(facts.get("parentAgentId"))
        nested = above is not None and above != _MAIN
        return SessionSpec(
            name,
            home=session,
            kind="subagent",
            parent=above if nested else session,
            parent_home=session if nested else "",
            agent_type=as_text(meta.get("subagent_type")) or as_text(facts.get("profileName")),
            title=as_text(meta.get("description")),
            project=project,
        )

    def _project(self, folder: str) -> str | None:
        """Kimi CLI names the folder of a project's sessions after the digest of its path."""
        digest = os.path.basename(os.path.dirname(folder))
        known = small_json(os.path.join(self._share(), _PROJECTS), _LARGEST).get("work_dirs")
        for entry in as_list(known):
            path = as_text(as_dict(entry).get("path")) or ""
            hashed = hashlib.md5(path.encode("utf-8", "replace"), usedforsecurity=False)
            if digest.endswith(hashed.hexdigest()):
                return absolute(path)
        return None

    def parser(self, spec: SessionSpec, state: dict[str, Any]) -> Parser:
        from sessiond.sources.kimi.wire import WireParser  # when something changed

        return WireParser(spec, state)

    def probe(self, word: str) -> dict[str, bytes]:
        lines = (
            {"type": "metadata", "protocol_version": "1.9"},
            {
                "timestamp": 1767225600.0,
                "message": {"type": "TurnBegin", "payload": {"user_input": f"put the {word} on"}},
            },
        )
        path = os.path.join(self.places()[0], "d0c7", "d0c70000-kimi", _WIRE)
        return {path: b"".join(orjson.dumps(line) + b"\n" for line in lines)}


def _session_folder(path: str) -> str:
    """The folder of the session that a log belongs to."""
    folder = os.path.dirname(path)
    above = os.path.dirname(folder)
    return os.path.dirname(above) if os.path.basename(above) in (_AGENTS, _SUBAGENTS) else folder


SOURCE = KimiSource
