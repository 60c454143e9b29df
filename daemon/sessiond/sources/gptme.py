"""gptme: one log of messages for each conversation; calls and results are in their texts."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from operator import itemgetter
from typing import Any

from sess_schema import kinds, labels
from sessiond.sourcekit.base import (
    SOURCE_CODE,
    Event,
    Parser,
    Record,
    Result,
    SessionSpec,
    Source,
    Usage,
)
from sessiond.sourcekit.disk import small_file
from sessiond.sourcekit.folders import absolute
from sessiond.sourcekit.toolbox import Toolbox
from sessiond.sourcekit.values import as_count, as_dict, as_dollars, as_text, as_time, without_empty

_LOG, _CONFIG, _BRANCHES = "conversation.jsonl", "config.toml", "branches"
_OWN = re.compile(rb'\s*\{"role": "(?:system|user|assistant)", "content": ".*"timestamp": "')
_WORKSPACE = re.compile(r'^workspace\s*=\s*"((?:[^"\\]|\\.)*)"', re.MULTILINE)
_NAME = re.compile(r'^name\s*=\s*"((?:[^"\\]|\\.)*)"', re.MULTILINE)


class GptmeSource(Source):
    agent = "gptme"
    title = "gptme"
    variables = ("GPTME_LOGS_HOME", "XDG_DATA_HOME")
    reads = "Conversations with their branches, and the calls that stand in their texts."
    leaves = (
        ("views/", "compacted copies of conversations"),
        ("~/.config/gptme", "settings and credentials"),
    )
    known_from = SOURCE_CODE

    def places(self) -> list[str]:
        moved = self.moved("GPTME_LOGS_HOME")
        return [moved or os.path.join(self.folders.data_home(), "gptme", "logs")]

    def classify(self, path: str) -> str | None:
        folder, name = os.path.split(path)
        if name == _CONFIG:
            return "sidecar"
        branch = os.path.basename(folder) == _BRANCHES and name.endswith(".jsonl")
        return "transcript" if name == _LOG or branch else None

    def claims(self, path: str, head: bytes) -> bool:
        first = head.partition(b"\n")[0]
        return path.endswith(".jsonl") and _OWN.match(first) is not None

    def enters(self, directory: str) -> bool:
        return os.path.basename(directory) not in ("views", "workspace", "attachments")

    def sidecars(self, path: str) -> Sequence[str]:
        return (os.path.join(_folder(path), _CONFIG),)

    def owner(self, sidecar: str) -> str:
        return os.path.join(os.path.dirname(sidecar), _LOG)

    def identify(self, path: str, head: bytes) -> SessionSpec:  # noqa: ARG002 - its place says all
        folder, name = _folder(path), os.path.basename(path)
        session = os.path.basename(folder)
        facts = small_file(os.path.join(folder, _CONFIG)).decode("utf-8", "replace")
        title, project = _NAME.search(facts), _WORKSPACE.search(facts)
        branch = "" if name == _LOG else f"/{name.removesuffix('.jsonl')}"
        return SessionSpec(
            session + branch,
            title=title[1] if title and title[1] != session else None,
            project=absolute(project[1]) if project else None,
            resume=("gptme", "--name", session),
        )

    def parser(self, spec: SessionSpec, state: dict[str, Any]) -> Parser:
        return MessageParser(spec, state)


def _folder(path: str) -> str:
    folder = os.path.dirname(path)
    return os.path.dirname(folder) if os.path.basename(folder) == _BRANCHES else folder


# -- messages

_TOOLS = Toolbox(
    {
        kinds.SHELL: ("shell", "ipython", "tmux", "computer", "gh"),
        kinds.READ: ("read", "vision", "rag"),
        kinds.WRITE: ("save", "append"),
        kinds.EDIT: ("patch", "morph", "patch_many"),
        kinds.SEARCH: ("chats", "lessons"),
        kinds.FETCH: ("browser", "search", "youtube", "screenshot"),
        kinds.AGENT: ("subagent",),
        kinds.PLAN: ("todo", "todowrite", "todoread", "complete", "form"),
        kinds.QUESTION: ("choice",),
    }
)
# A block that gptme runs is headed by the name of a tool.
_HEAD = re.compile(
    r"(`{3,})(shell|ipython|tmux|gh|read|vision|save|append|patch|morph|todo|choice|browser"
    r"|subagent|complete|computer)(?: ([^\n]*))?\n?\Z"
)
_CALL = re.compile(r"^@(?P<tool>\w+)\((?P<id>[\w\-:.]+)\):\s*(?=\{)", re.MULTILINE)
_THOUGHT, _THOUGHT_ENDS = re.compile(r"<think(?:ing)?>"), re.compile(r"</think(?:ing)?>")
_STOPPED = re.compile(r"Abort|Interrupted|.{0,80}\buser (?:chose not|declined|interrupted)")
_FAILED = re.compile(r"Error\b|Shell error|(?:.{0,400}\n)?Return code: (?!0\b)-?\d", re.DOTALL)
_TAIL = 400
_DECODER = json.JSONDecoder()
_MOST_OPEN = 32


class MessageParser:
    """Parses the messages of one log in order."""

    def __init__(self, spec: SessionSpec, state: dict[str, Any]) -> None:
        self._session = spec.native_id
        self._open: list[str] = [*filter(as_text, state.get("open") or ())]
        self._begun = state.get("begun") is True  # a person has said something

    def state(self) -> dict[str, Any]:
        return without_empty(open=self._open, begun=self._begun)

    def parse(self, value: dict[str, Any]) -> Record:
        role, text = as_text(value.get("role")) or "other", as_text(value.get("content")) or ""
        record = Record(role, role=role, ts=as_time(value.get("timestamp")))
        if value.get("timestamp") is not None and record.ts is None:
            record.warnings.append("bad timestamp")
        written = f"{value.get('timestamp')} {role} {text}".encode("utf-8", "replace")
        name = blake2b(written, digest_size=8).hexdigest()
        record.native_id = f"{self._session.partition('/')[0]}/{name}"
        if role == "user":
            self._begun, self._open = True, []
            record.ask(text.strip())
        elif role == "assistant":
            self._answer(record, text, as_dict(value.get("metadata")))
        elif role == "system":
            self._result(record, text, as_text(value.get("call_id")))
        else:
            record.say("system", text, role)
        return record

    def _answer(self, record: Record, text: str, facts: dict[str, Any]) -> None:
        record.model = as_text(facts.get("served_model")) or as_text(facts.get("model"))
        self._open = []
        at = 0
        for start, end, event in _calls(record.native_id or "", text):
            self._say(record, text[at:start])
            record.events.append(event)
            self._open = [*self._open, event.call_id or ""][-_MOST_OPEN:]
            at = end
        self._say(record, text[at:])
        used = as_dict(facts.get("usage")) or facts
        given, said, read, written, thought = (
            as_count(used.get(f"{name}_tokens"))
            for name in ("input", "output", "cache_read", "cache_creation", "reasoning")
        )
        if given or said or read or written:
            record.usage = Usage(
                message_id=record.native_id,
                model=record.model,
                stop_reason="end",
                input_tokens=given,
                output_tokens=said,
                cache_write_tokens=written,
                cache_read_tokens=read,
                cost_usd=as_dollars(facts.get("cost")),
                reasoning_tokens=min(thought, said),
            )

    @staticmethod
    def _say(record: Record, text: str) -> None:
        at, begin = 0, _THOUGHT.search(text)
        while begin and (end := _THOUGHT_ENDS.search(text, begin.end())):
            record.say("assistant", text[at : begin.start()])
            record.say("thinking", text[begin.end() : end.start()])
            at = end.end()
            begin = _THOUGHT.search(text, at)
        record.say("assistant", text[at:])

    def _result(self, record: Record, text: str, call_id: str | None) -> None:
        call = call_id or (self._open[0] if self._open else None)
        if not self._begun or call is None:
            record.say("system", text, labels.CONTEXT)
            return
        self._open = [one for one in self._open if one != call]
        status = "error" if _FAILED.match(text) or _FAILED.match(text[-_TAIL:]) else "ok"
        status = "denied" if _STOPPED.match(text) else status
        record.role = "user"
        record.results.append(Result(call, text.strip(), status, pointer="/content"))


Placed = tuple[int, int, Event]  # where in a text a call begins and ends


def _calls(message: str, text: str) -> list[Placed]:
    """The calls in both of the forms that gptme has, in order, none inside another."""
    found = sorted([*_blocks(message, text), *_named(text)], key=itemgetter(0))
    at, kept = 0, list[Placed]()
    for one in found:
        if one[0] >= at:
            kept.append(one)
            at = one[1]
    return kept


def _blocks(message: str, text: str) -> Iterator[Placed]:
    at, begin, code = 0, 0, 0
    head: re.Match[str] | None = None
    for line in text.splitlines(keepends=True):
        if head is None:
            head = _HEAD.match(line)
            begin, code = at, at + len(line)
        elif line.strip() == head[1]:
            given = _given(head[2], (head[3] or "").strip(), text[code:at])
            event = _TOOLS.call(head[2], given, f"{message}/{begin}", None)
            yield begin, at + len(line), event
            head = None
        at += len(line)


def _given(tool: str, argument: str, code: str) -> dict[str, str]:
    """The arguments of a block: a path beside the tool's name, and what it encloses."""
    if tool in ("save", "append"):
        return {"path": argument, "content": code}
    if tool in ("patch", "morph"):
        return {"path": argument, "patch": code}
    if tool == "read":
        return {"path": argument or code.strip()}
    return {"command": code.strip(), **({"arguments": argument} if argument else {})}


def _named(text: str) -> Iterator[Placed]:
    end = 0
    for call in _CALL.finditer(text):
        if call.start() < end:
            continue
        try:
            given, end = _DECODER.raw_decode(text, call.end())
        except (ValueError, RecursionError):
            continue
        yield call.start(), end, _TOOLS.call(call["tool"], given, call["id"], None)


SOURCE = GptmeSource
