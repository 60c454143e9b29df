"""jcode by cnjack: where its sessions, teammates and overflowed outputs are."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from sess_common.decode import decode
from sessiond.sourcekit.base import SOURCE_CODE, Conversation, NotReady, Parser, SessionSpec, Source
from sessiond.sourcekit.documents import whole_json
from sessiond.sourcekit.files import KeptFile, first_line
from sessiond.sourcekit.values import as_dict, as_text

__all__ = ["SOURCE", "JcodeSource"]

_PLACES = (".jcode", ".jcoding")  # today's and that of the first release
_SESSIONS, _OVERFLOW, _SUBAGENTS = "sessions", "overflow", "subagents"
_INDEX = "session.json"
_STATE = frozenset({"projects.json", "last_session.json"})
_OTHER_JCODE = "session_"  # how 1jehuang's jcode, which uses the same folder, names its files
_AGENT = "agent-"
_UNTITLED = "New session"
_HEADER = re.compile(rb'\A\s*\{"type"\s*:\s*"session_start"\s*,.*"timestamp"\s*:')
_LARGEST_INDEX = 64 << 20


class JcodeSource(Source):
    agent = "jcode"
    title = "jcode"
    edition = 4
    reads = "Sessions of all versions, teammates, overflowed outputs, and titles from the index."
    leaves = (
        ("projects.json, last_session.json", "what the program opened last"),
        ("config.json, log files", "settings and the program's own log"),
    )
    known_from = SOURCE_CODE
    records_tokens = False

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.documents = _Index()
        self._titles = KeptFile(_titles_in, _LARGEST_INDEX)

    def places(self) -> list[str]:
        return [os.path.join(self.folders.home(), place, _SESSIONS) for place in _PLACES]

    def classify(self, path: str) -> str | None:
        folder, name = os.path.split(path)
        if name.startswith((".", _OTHER_JCODE)) or name in _STATE:
            return None
        above = os.path.basename(folder)
        if name.endswith(".jsonl"):
            return "transcript" if above == _SUBAGENTS and name.startswith(_AGENT) else None
        if name.endswith(".txt"):
            return "attachment" if _OVERFLOW in folder.split(os.sep) else None
        if not name.endswith(".json") or above in (_SUBAGENTS, _OVERFLOW):
            return None
        return "document" if name == _INDEX else "transcript"

    def claims(self, path: str, head: bytes) -> bool:  # noqa: ARG002 - the content decides
        return _HEADER.match(head.partition(b"\n")[0]) is not None

    def sidecars(self, path: str) -> Sequence[str]:
        leader = _leader(path)
        return (leader,) if leader else ()

    def identify(self, path: str, head: bytes) -> SessionSpec:  # noqa: ARG002 - the name decides
        folder, name = os.path.split(path)
        leader = _leader(path)
        if leader:
            member = name.removeprefix(_AGENT).removesuffix(".jsonl")
            session = os.path.basename(leader).removesuffix(".json")
            above = os.path.join(os.path.dirname(leader), _OVERFLOW)
            return SessionSpec(
                f"{session}/{member}",
                kind="subagent",
                parent=session,
                agent_type="teammate",
                title=member,
                project=_project_in(leader),
                attachments=os.path.join(above, session, member),
            )
        session = name.removesuffix(".json")
        return SessionSpec(
            session,
            title=self._titles.of(os.path.join(folder, _INDEX)).get(session),
            attachments=os.path.join(folder, _OVERFLOW, session),
            resume=("jcode", "--resume", session),
        )

    def parser(self, spec: SessionSpec, state: dict[str, Any]) -> Parser:
        from sessiond.sources.jcode.entries import JcodeParser  # when something changed

        return JcodeParser(spec, state)

    def probe(self, word: str) -> dict[str, bytes]:
        session, moment = "d0c70000-0000-4000-8000-00000000000c", "2026-01-01T00:00:00Z"
        entries = (
            {"type": "session_start", "uuid": session, "project": "/doctor", "timestamp": moment},
            {"type": "user", "content": f"put the {word} on", "timestamp": moment},
        )
        path = os.path.join(self.places()[0], f"{session}.json")
        return {path: b"".join(orjson.dumps(entry) + b"\n" for entry in entries)}


class _Index:
    """`session.json`: names sessions after their first prompt, and when a person renames one."""

    def conversations(self, path: str, data: bytes) -> Iterator[Conversation]:  # noqa: ARG002
        value = whole_json(data)
        if not isinstance(value, dict):
            raise NotReady("is not an index of jcode")
        for session, title in _titles(value):
            yield Conversation(SessionSpec(session, title=title))


def _titles_in(data: bytes) -> dict[str, str]:
    try:
        value, _ = decode(data)
    except ValueError:
        return {}
    return dict(_titles(value))


def _titles(index: Any) -> Iterator[tuple[str, str]]:
    for listed in as_dict(as_dict(index).get("sessions")).values():
        for meta in listed if isinstance(listed, list) else ():
            session, title = as_text(as_dict(meta).get("uuid")), as_text(as_dict(meta).get("title"))
            if session and title and title != _UNTITLED:
                yield session, " ".join(title.split())


def _leader(path: str) -> str | None:
    """The file of the session that a teammate works for."""
    folder = os.path.dirname(path)
    if os.path.basename(folder) != _SUBAGENTS:
        return None
    return os.path.dirname(folder) + ".json"


def _project_in(leader: str) -> str | None:
    try:
        return as_text(as_dict(orjson.loads(first_line(leader))).get("project"))
    except orjson.JSONDecodeError:
        return None


SOURCE = JcodeSource
