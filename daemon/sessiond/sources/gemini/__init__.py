"""Gemini CLI: where its chats are, and which session and project each one belongs to."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import orjson

from sess_schema.chains import ONWARD, Chain, Name, Pack
from sessiond.sourcekit import disk
from sessiond.sourcekit.base import (
    SOURCE_CODE,
    Conversation,
    Item,
    Parser,
    SessionSpec,
    Source,
    whole_object,
)
from sessiond.sourcekit.disk import small_file, small_json
from sessiond.sourcekit.folders import ProjectFolder, absolute
from sessiond.sourcekit.values import SCOPE, as_dict, as_list, as_text, as_time, is_uuid, scoped

_CHATS = "chats"
_PROJECT_ROOT, _REGISTRY, _HISTORY = ".project_root", "projects.json", "history"
_CHAT = "session-"
_LOG, _DOCUMENT = ".jsonl", ".json"
_UNREADABLE = ".unreadable-"  # the agent's copies of files that it could not read
_FACT = re.compile(rb'(?<!\\)"(sessionId|projectHash|kind)"\s*:\s*"([\w.:-]{1,200})"')
_OWN = re.compile(rb'"projectHash"\s*:|"type"\s*:\s*"gemini"')
_FOREIGN = re.compile(rb'"parentUuid"\s*:|"type"\s*:\s*"qwen"')
_MESSAGES = re.compile(rb'"messages"\s*:\s*\[')
_DIGEST = re.compile("[0-9a-f]{64}")
_LOG_RANK, _DOCUMENT_RANK = 0, 1  # resuming a chat copies its document into a log


class GeminiSource(Source):
    agent = "gemini"
    title = "Gemini CLI"
    variables = ("GEMINI_CLI_HOME",)
    reads = "Chats of all versions: logs of operations, and the JSON documents before them."
    leaves = (
        ("logs.json", "prompts only; the chats have them"),
        ("shadow history, tool-outputs/", "copies of files and of outputs that the chats have"),
    )
    known_from = SOURCE_CODE
    # Going back to a message that is not there empties the chat.
    chain = Chain(
        "id",
        own=f"{SCOPE}(.*)",
        heads=("metadata",),
        names=(Name("rewind", "$rewindTo", ONWARD, or_goes=True),),
        packs=(Pack("set", "$set.messages"),),
    )
    edition = 3  # subagents in documents of their own; helpers with the id of their parent

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.documents, self.whole = _Chats(), _MESSAGES

    def places(self) -> list[str]:
        homes = [self._home()]
        if self.platform == "darwin":  # where it writes in a sandbox
            homes.append(os.path.join(self._home(), ".cache"))
        return [os.path.join(home, ".gemini", "tmp") for home in homes]

    def classify(self, path: str) -> str | None:
        folder, name = os.path.split(path)
        if _UNREADABLE in name:
            return None
        if os.path.basename(folder) == _CHATS:
            is_chat = name.startswith(_CHAT)
        else:  # a subagent's, in a folder named after its parent
            is_chat = os.path.basename(os.path.dirname(folder)) == _CHATS
        if not is_chat:
            return None
        if name.endswith(_LOG):
            return "transcript"
        return "document" if name.endswith(_DOCUMENT) else None

    def claims(self, path: str, head: bytes) -> bool:  # noqa: ARG002 - the content decides
        return bool(_OWN.search(head)) and not _FOREIGN.search(head)

    def enters(self, directory: str) -> bool:
        """Skips the logs, tool outputs and shell history that a project's folder also holds."""
        for root in self._roots:
            if directory.startswith(root + os.sep):
                below = directory[len(root) + 1 :].split(os.sep)
                return len(below) == 1 or below[1] == _CHATS
        return True

    def sidecars(self, path: str) -> Sequence[str]:
        return (os.path.join(_project_folder(path), _PROJECT_ROOT),)

    def identify(self, path: str, head: bytes) -> SessionSpec:
        return _spec(path, _facts_in(head), _LOG_RANK)

    def parser(self, spec: SessionSpec, state: dict[str, Any]) -> Parser:
        from sessiond.sources.gemini.chat import GeminiParser  # when something changed

        return GeminiParser(spec, state)

    def probe(self, word: str) -> dict[str, bytes]:
        session = "d0c70000-0000-4000-8000-00000000006e"
        moment = "2026-01-01T00:00:00.000Z"
        records = (
            {"sessionId": session, "projectHash": "d0c7", "startTime": moment, "kind": "main"},
            {"id": "d0c7-1", "timestamp": moment, "type": "user", "content": f"put the {word} on"},
        )
        name = f"{_CHAT}2026-01-01T00-00-d0c70000{_LOG}"
        path = os.path.join(self.places()[0], "doctor", _CHATS, name)
        return {path: b"".join(orjson.dumps(record) + b"\n" for record in records)}

    def _home(self) -> str:
        return self.moved("GEMINI_CLI_HOME") or self.folders.home()

    @cached_property
    def _roots(self) -> tuple[str, ...]:
        return tuple(map(disk.real, self.places()))


class _Chats:
    """Chats of older versions: one JSON document each."""

    def conversations(self, path: str, data: bytes) -> Iterator[Conversation]:
        from sessiond.sources.gemini.chat import Answered, read_message

        chat = whole_object(data, "messages", "is not a Gemini CLI chat")
        spec = _spec(path, chat, _DOCUMENT_RANK)
        answered = Answered(None)
        items = []
        for number, message in enumerate(chat["messages"]):
            value = message if isinstance(message, dict) else {"content": message}
            record = read_message(value)
            answered.drop_repeats(record)
            record.native_id = scoped(spec.native_id, record.native_id)
            if record.usage is not None:
                record.usage.message_id = record.native_id
            key = as_text(value.get("id")) or str(number)
            items.append(Item(key, number, value=value, record=record))
        yield Conversation(
            spec,
            items=items,
            project=spec.project,
            project_rank=1 if spec.project else 0,
            created_at=as_time(chat.get("startTime")),
            updated_at=as_time(chat.get("lastUpdated")),
        )


def _spec(path: str, facts: Mapping[str, Any], rank: int) -> SessionSpec:
    folder, name = os.path.split(path)
    stem = name.removesuffix(_LOG).removesuffix(_DOCUMENT)
    named = _project_folder(path)
    project = _project_of(named, facts)
    # Older versions name the folder by a digest, which says nothing to people.
    kept = os.path.basename(folder) == _CHATS or _is_nested(folder)  # not handed over
    digest = _DIGEST.fullmatch(os.path.basename(named))
    named_after = ProjectFolder(named) if kept and not digest else None
    if _is_nested(folder):  # a subagent, in a folder named after its parent
        parent = os.path.basename(folder)
        return SessionSpec(
            stem,
            home=parent,
            kind="subagent",
            parent=parent,
            parent_home=_home_of(parent, os.path.dirname(folder)),
            project=project,
            folder=named_after,
            fallback=rank,
        )
    session = as_text(facts.get("sessionId")) or stem
    home = _home_of(session, folder)
    if facts.get("kind") == "subagent":  # early ones bear the id of their parent
        return SessionSpec(
            stem,
            home=session,
            kind="subagent",
            parent=session,
            parent_home=home,
            project=project,
            folder=named_after,
            fallback=rank,
        )
    titled = rank == _DOCUMENT_RANK and not _follows_another(path)
    return SessionSpec(
        session,
        home=home,
        title=as_text(facts.get("summary")) if titled else None,
        project=project,
        folder=named_after,
        fallback=rank,
        resume=("gemini", "--resume", session),
    )


def _follows_another(path: str) -> bool:
    """Whether an older document seems to be of the same session: its summary is the title.

    Early versions wrote one for the chat and one for each of its helpers, all with one id, whose
    beginning ends their names, after the time.
    """
    folder, name = os.path.split(path)
    ending = name[name.rfind("-") :]
    try:
        beside = disk.names(folder)
    except OSError:
        return False
    return any(one < name and one.startswith(_CHAT) and one.endswith(ending) for one in beside)


def _home_of(session: str, folder: str) -> str:
    """A session id that is not a UUID is unique only in its folder."""
    return "" if is_uuid(session) else folder


def _is_nested(folder: str) -> bool:
    """Whether it is inside `chats`."""
    above, name = os.path.split(folder)
    return name != _CHATS and os.path.basename(above) == _CHATS


def _project_folder(path: str) -> str:
    """The folder above `chats`."""
    folder = os.path.dirname(path)
    if os.path.basename(folder) != _CHATS:
        folder = os.path.dirname(folder)
    return os.path.dirname(folder)


def _facts_in(head: bytes) -> dict[str, Any]:
    """The facts in the first line; if it is longer than the head, those near its start."""
    line = head.partition(b"\n")[0]
    try:
        return as_dict(orjson.loads(line))
    except orjson.JSONDecodeError:
        facts = {name.decode(): value.decode() for name, value in _FACT.findall(line)}
        return dict(facts)


def _project_of(folder: str, facts: Mapping[str, Any]) -> str | None:
    """The project of a folder in `tmp`, if it is certain: records name none."""
    from sessiond.sources.gemini.chat import with_digest  # when something changed

    slug, home = os.path.basename(folder), os.path.dirname(os.path.dirname(folder))
    for noted in (folder, os.path.join(home, _HISTORY, slug)):
        root = small_file(os.path.join(noted, _PROJECT_ROOT)).decode("utf-8", "replace").strip()
        if path := absolute(root):
            return path
    known = as_dict(small_json(os.path.join(home, _REGISTRY)).get("projects"))
    for path, name in known.items():
        if name == slug and absolute(path):
            return absolute(path)
    digests = {slug, as_text(facts.get("projectHash")) or slug}
    return with_digest(digests, [*known, *as_list(facts.get("directories"))])


SOURCE = GeminiSource
