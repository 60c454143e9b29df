"""Aider: the histories of the projects that config.toml names; Aider keeps no list of them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from sess_schema import kinds, labels
from sess_schema.edits import Edit
from sessiond.sourcekit import disk
from sessiond.sourcekit.base import (
    SOURCE_CODE,
    Conversation,
    Event,
    Item,
    Record,
    SessionSpec,
    Source,
    Usage,
)
from sessiond.sourcekit.toolbox import Toolbox, edits_of_blocks, edits_of_patch, event_of
from sessiond.sourcekit.values import as_local_time

_HISTORY = ".aider.chat.history.md"
_STARTED = "# aider chat started at "
_DEEPEST = 2  # a folder of projects may be named instead of each
_NEVER = frozenset({"node_modules", "venv", "target", "dist", "build", "vendor"})


class AiderSource(Source):
    agent = "aider"
    title = "Aider"
    variables = ("AIDER_CHAT_HISTORY_FILE",)
    reads = (
        "The chat history of each project that `[roots] aider` in config.toml names; each run is"
        " a session. Aider writes no times but the start of a run, and rounds its counts."
    )
    leaves = (
        (".aider.input.history", "prompts that the chat history has"),
        (".aider.llm.history", "the same conversation again, if it was asked for"),
        ("~/.aider/", "caches and analytics"),
    )
    known_from = SOURCE_CODE

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.documents = _Histories(self)

    def places(self) -> list[str]:
        moved = self.moved("AIDER_CHAT_HISTORY_FILE")
        return [moved] if os.path.isabs(moved) else []

    def classify(self, path: str) -> str | None:
        named = os.path.basename(path) == _HISTORY or path in self.places()
        return "document" if named else None

    def claims(self, path: str, head: bytes) -> bool:  # noqa: ARG002 - its first words are enough
        return _STARTED.encode() in head[:1000]

    def enters(self, directory: str) -> bool:
        name = os.path.basename(directory)
        if name.startswith(".") or name in _NEVER:
            return False
        above = [root for root in self._roots if directory.startswith(root + os.sep)]
        below = [directory[len(root) + 1 :].split(os.sep) for root in above]
        return any(len(names) <= _DEEPEST for names in below) or not above

    @cached_property
    def _roots(self) -> tuple[str, ...]:
        return tuple(map(disk.real, self.roots()))


class _Histories:
    """Splits a history into runs."""

    def __init__(self, source: AiderSource) -> None:
        self._source = source

    def conversations(self, path: str, data: bytes) -> Iterator[Conversation]:
        project = os.path.dirname(path)
        seen: dict[str, int] = {}
        runs: list[Run] = []
        for line in data.decode("utf-8", "replace").splitlines():
            if line.startswith(_STARTED) or not runs:
                started = line.removeprefix(_STARTED).strip() if line.startswith(_STARTED) else ""
                runs.append(Run(started, []))
                if started:
                    continue
            runs[-1].lines.append(line)
        for run in runs:
            stamp = "".join(filter(str.isdigit, run.started)) or "0"
            seen[stamp] = seen.get(stamp, 0) + 1
            again = f"-{seen[stamp]}" if seen[stamp] > 1 else ""
            session = f"{os.path.basename(project) or 'root'}-{stamp}{again}"
            items = [
                Item(key, number, value=block, record=record)
                for number, (key, block, record) in enumerate(read_run(run, session))
            ]
            if run.started or items:
                yield Conversation(
                    SessionSpec(session, home=project),  # unique only in its project
                    items=items,
                    project=project,
                    project_rank=1,
                    created_at=as_local_time(run.started, self._source.folders.zone()),
                )


# -- one run: what was typed, answered, applied and spent
# Aider ends each line of a prompt or notice with two spaces, and no line of an answer. Where a
# history has lost them, a heading inside an answer is not taken for a prompt.

_TYPED, _NOTICE, _BREAK = "#### ", "> ", "  "
_BLANK = "<blank>"
_MODEL = re.compile(r"(?:Main m|M)odel: (\S+)(?: with |$)")
_VERSION = re.compile(r"Aider (v\S+)")
_APPLIED = re.compile(r"Applied edit to (.+)")
_CREATED = re.compile(r"Creating empty file (.+)")
_LEFT = re.compile(r"(?:Did not apply edit to (.+?) \(--dry-run\)|Skipping edits to (.+))")
_RUNNING = re.compile(r"Running (.+)")
_FAILED = ("The LLM did not conform to the edit format", "Malformed response")
_TOKENS = re.compile(
    r"Tokens: (?P<sent>\S+) sent(?:, (?P<write>\S+) cache write)?(?:, (?P<hit>\S+) cache hit)?"
    r", (?P<received>\S+) received"
)
_COST = re.compile(r"Cost: \$([\d.]+) message")
_FENCE = re.compile(r"^`{3,}.*$")
_SEARCH = re.compile(r"^<{5,} SEARCH", re.MULTILINE)
_TOOLS = Toolbox({kinds.EDIT: ("edit",), kinds.WRITE: ("create",), kinds.SHELL: ("run",)})


class Run(NamedTuple):
    started: str
    lines: list[str]


@dataclass(slots=True)
class _Block:
    role: str
    lines: list[str]


def read_run(run: Run, session: str) -> Iterator[tuple[str, dict[str, Any], Record]]:
    """(key, block, record) triples in order."""
    model: str | None = None
    proposed: list[Edit] = []
    for number, block in enumerate(_blocks(run.lines)):
        text = "\n".join(line.rstrip() for line in block.lines).strip()
        record = Record(block.role, role=_ROLES[block.role], native_id=f"{session}/{number}")
        if block.role == "prompt":
            _type(record, text)
        elif block.role == "answer":
            record.model = model
            record.events.append(Event("assistant", text))
            proposed = list(_proposed(text))
        else:
            for line in block.lines:
                if match := _MODEL.match(line):
                    model = match[1]
                if match := _VERSION.match(line):
                    record.version = match[1]
            _note(record, block.lines, proposed, model)
        yield str(number), {"role": block.role, "text": "\n".join(block.lines)}, record


_ROLES = {"prompt": "user", "answer": "assistant", "notice": "system"}


def _blocks(lines: list[str]) -> Iterator[_Block]:
    """Consecutive lines of one role; blank lines belong to answers, and end prompts."""
    marked = any(line.startswith((_TYPED, _NOTICE)) and line.endswith(_BREAK) for line in lines)
    block: _Block | None = None
    for line in lines:
        role = _role(line, marked=marked, after=block.role if block else "")
        if role is None:
            if block is not None and block.role == "answer":
                block.lines.append(line)
            elif block is not None and block.role == "prompt":  # the next prompt is another one
                yield block
                block = None
            continue
        said = line[len(_TYPED) :] if role == "prompt" else line
        said = said.removeprefix(_NOTICE) if role == "notice" else said
        if block is None or block.role != role:
            if block is not None:
                yield block
            block = _Block(role, [])
        block.lines.append(said.removesuffix(_BREAK) if role != "answer" else said)
    if block is not None:
        yield block


def _role(line: str, *, marked: bool, after: str) -> str | None:
    """None for a blank line."""
    whole = line.endswith(_BREAK) or not marked
    if line.startswith(_TYPED) and whole and (marked or after != "answer"):
        return "prompt"
    if line.startswith(_NOTICE) and whole:
        return "notice"
    return "answer" if line.strip() else None


def _type(record: Record, text: str) -> None:
    if not text or text == _BLANK:
        return
    label = labels.COMMAND if text.startswith("/") else None
    label = labels.BASH if text.startswith(("!", "/run ")) else label
    record.ask(text, label=label)


# -- what Aider says


def _note(record: Record, lines: list[str], proposed: list[Edit], model: str | None) -> None:
    rest: list[str] = []
    for line in lines:
        event = _done(line.strip(), proposed)
        if event is not None:
            record.events.append(event)
        elif line.startswith(_FAILED):
            failed = event_of(_TOOLS.describe("edit", {}), "edit", {}, None, None)
            failed.status, failed.output = "error", "\n".join(lines)
            record.events.append(failed)
        elif usage := _usage(line, " ".join(lines), model):
            usage.message_id = record.native_id
            record.usage = usage
            rest.append(line)
        else:
            rest.append(line)
    record.say("system", "\n".join(rest), "notice")


def _done(line: str, proposed: list[Edit]) -> Event | None:
    """What Aider did with an answer, or refused to do."""
    if match := _APPLIED.fullmatch(line):
        event = _edit(match[1], proposed)
        event.status = "ok"
        return event
    if match := _LEFT.fullmatch(line):
        event = _edit(match[1] or match[2], proposed)
        event.status, event.output = "denied", line
        return event
    if match := _CREATED.fullmatch(line):
        given: dict[str, Any] = {"path": match[1], "content": ""}
        event = _TOOLS.call("create", given, None, None)
    elif match := _RUNNING.fullmatch(line):
        event = _TOOLS.call("run", {"command": match[1]}, None, None)
    else:
        return None
    event.status = "ok"
    return event


def _edit(path: str, proposed: list[Edit]) -> Event:
    """Takes the blocks of this file out of those that were proposed."""
    taken = tuple(edit for edit in proposed if _same(edit.path, path))
    proposed[:] = [edit for edit in proposed if edit not in taken]
    given = {"path": path}
    described = _TOOLS.describe("edit", given, edits=taken)
    return event_of(described._replace(files=((path, "edit"),)), "edit", given, None, None)


def _same(one: str, other: str) -> bool:
    return one == other or other.endswith(f"/{one}") or one.endswith(f"/{other}")


def _proposed(text: str) -> Iterator[Edit]:
    """The changes in an answer: blocks to search and replace, or diffs, below the file's name."""
    name, at = "", 0
    for match in _SEARCH.finditer(text):
        before = [line for line in text[at : match.start()].splitlines() if line.strip()]
        named = [line for line in before if not _FENCE.match(line)]
        if named:
            name = named[-1].strip().strip("*`:#").strip()
        end = text.find("REPLACE", match.start())
        at = end + len("REPLACE") if end >= 0 else len(text)
        yield from edits_of_blocks(text[match.start() : at], name)
    if not at:
        yield from edits_of_patch(text)


def _usage(line: str, around: str, model: str | None) -> Usage | None:
    match = _TOKENS.match(line)
    if match is None:
        return None
    sent, write, hit, received = (
        _count(match[name]) for name in ("sent", "write", "hit", "received")
    )
    cost = _COST.search(around)
    return Usage(
        message_id=None,
        model=model,
        stop_reason="end",
        input_tokens=max(0, sent - write - hit),
        output_tokens=received,
        cache_write_tokens=write,
        cache_read_tokens=hit,
        cost_usd=float(cost[1]) if cost and cost[1].count(".") <= 1 and cost[1] != "." else None,
    )


def _count(text: str | None) -> int:
    """`834`, `1.2k` and `12k`."""
    try:
        amount = float((text or "0").rstrip("kKmM,."))
    except ValueError:
        return 0
    unit = {"k": 1000, "m": 1_000_000}.get((text or "").lower()[-1:], 1)
    return round(amount * unit) if 0 <= amount < 1e12 else 0


SOURCE = AiderSource
