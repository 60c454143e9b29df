"""Conversations in databases: steps, which are protobuf, and what each generation used."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sess_schema import labels
from sessiond.sourcekit.base import (
    TITLE_AI,
    Conversation,
    Event,
    Layout,
    Listed,
    Record,
    Result,
    SessionSpec,
    Table,
    Title,
    Usage,
)
from sessiond.sourcekit.folders import of_uri
from sessiond.sourcekit.foreign import Foreign, fingerprint
from sessiond.sourcekit.protobuf import Message
from sessiond.sourcekit.values import as_milliseconds, as_text, decoded
from sessiond.sources.antigravity.transcript import call, folder_of, read_prompt, status_of

_STEPS, _GENERATIONS, _ABOUT = "steps", "gen_metadata", "trajectory_metadata_blob"
_GENERATION = "gen-"
_COLUMNS = ("step_type", "status", "step_payload", "error_details")


class AntigravityTables(Layout):
    """A database has one conversation and is named after it."""

    def __init__(self, resume: tuple[str, ...]) -> None:
        self._resume = resume
        self._name = ""

    def tables(self, db: Foreign) -> Sequence[Table]:  # noqa: ARG002 - no column names it
        return ()

    def heads(self, db: Foreign) -> Iterable[tuple[str, Any]]:
        if db.has_table(_STEPS):
            self._name = os.path.splitext(os.path.basename(db.path))[0]
            yield self._name, fingerprint(db.path)

    def whole(self, db: Foreign, conversation: str) -> Conversation | None:
        about = Message(_first(db, f"SELECT data FROM {_ABOUT}") if db.has_table(_ABOUT) else b"")
        folder = about.message(1)
        project = of_uri(folder.text(1)) or of_uri(about.text(7))
        model = None
        for (data,) in self._generations(db, "data", "ORDER BY idx DESC LIMIT 1"):
            model = _model(Message(data).message(1))
        return Conversation(
            SessionSpec(
                conversation,
                resume=(*self._resume, conversation) if self._resume else (),
            ),
            project=project,
            project_rank=1 if project else 0,
            git_branch=folder.text(4) or None,
            model=model,
            created_at=about.time(2),
        )

    @staticmethod
    def _generations(db: Foreign, columns: str, more: str) -> list[tuple[Any, ...]]:
        there = db.has_table(_GENERATIONS)
        return db.rows(f"SELECT {columns} FROM {_GENERATIONS} {more}") if there else []

    def listing(self, db: Foreign, conversation: str) -> list[Listed]:  # noqa: ARG002
        """What changes in a step also changes the times in its metadata."""
        mark = "idx, step_type, status, length(step_payload), length(error_details), metadata"
        steps = db.rows(f"SELECT {mark} FROM {_STEPS} ORDER BY idx")
        made = self._generations(db, "idx, length(data)", "ORDER BY idx")
        return [Listed(str(idx), tuple(facts)) for idx, *facts in steps] + [
            Listed(f"{_GENERATION}{idx}", tuple(facts)) for idx, *facts in made
        ]

    def fetch(
        self,
        db: Foreign,
        conversation: str,  # noqa: ARG002
        keys: Sequence[str],
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        steps = [int(key) for key in keys if not key.startswith(_GENERATION)]
        query = f"SELECT idx, {', '.join(_COLUMNS)} FROM {_STEPS} WHERE idx = ?"
        for idx, kind, status, payload, errors in db.many(query, steps):
            yield str(idx), decode_step(idx, kind, status, payload, errors)
        made = [int(key.removeprefix(_GENERATION)) for key in keys if key.startswith(_GENERATION)]
        for idx, data in db.many(f"SELECT idx, data FROM {_GENERATIONS} WHERE idx = ?", made):
            yield f"{_GENERATION}{idx}", _generation(idx, Message(data).message(1))

    def record(self, value: dict[str, Any]) -> Record:
        if "type" in value:
            return read_step(self._name, value)
        name = f"{self._name}/{_GENERATION}{value['generation']}"
        record = Record("generation", native_id=name, ts=value["at"], model=value["model"])
        record.usage = usage_of(name, value["usage"], record.model, 0)
        return record


def _first(db: Foreign, query: str) -> bytes:
    rows = db.rows(f"{query} LIMIT 1")
    return rows[0][0] if rows and isinstance(rows[0][0], bytes) else b""


def _model(chat: Message) -> str | None:
    name = chat.text(19) or chat.text(22) or chat.text(21)
    number = chat.number(3)
    return name.strip() or (f"model-{number}" if number else None)


def _generation(idx: int, chat: Message) -> dict[str, Any]:
    """What a response used: the sum has the attempts that failed before it, unless it is empty."""
    spent, seen = counts(chat.message(4)), set[str]()
    for attempt in () if any(spent) else (one.message(2) for one in chat.messages(17)):
        if _response(attempt) not in seen:
            seen.add(_response(attempt))
            spent = [mine + more for mine, more in zip(spent, counts(attempt), strict=True)]
    at = chat.message(9).time(4)
    return {"generation": idx, "model": _model(chat), "usage": spent, "at": at}


def _response(used: Message) -> str:
    """What tells a response from others; its counts if it has no id."""
    return used.text(11) or used.text(12) or used.text(7) or repr(counts(used))


# -- steps: what is decoded of them, and what it says

_PROMPT, _ANSWER, _ERROR, _CHECKPOINT = 14, 15, 17, 23
_EPHEMERAL, _HISTORY, _SYSTEM = 90, 98, 101
_NOTICES = {_EPHEMERAL: (103, labels.REMINDER), _SYSTEM: (114, "system")}
_COMMAND, _GREP, _FILE, _FOLDER, _EDIT, _MCP, _OTHER = 21, 7, 8, 9, 5, 38, 132
_BODY = {_COMMAND: 28, _GREP: 13, _FILE: 14, _FOLDER: 15, _EDIT: 10, _MCP: 47, _OTHER: 140}
_FAILED, _CANCELED, _INTERRUPTED = 7, 6, 12
_OVER = frozenset({3, 4, 5, _CANCELED, _FAILED, _INTERRUPTED})
_AFTER_GENERATIONS = 1  # steps repeat what generations used


def decode_step(idx: int, kind: int, status: int, payload: Any, errors: Any) -> dict[str, Any]:
    """What a row says, as JSON; what is not understood in base64."""
    step = Message(payload)
    about = step.message(5)
    value: dict[str, Any] = {"idx": idx, "type": kind, "status": status, "at": about.time(1)}
    if kind == _PROMPT:
        asked = step.message(19)
        typed = [item.text(1) for item in asked.messages(3)]
        value["text"] = asked.text(2) or "".join(typed) or asked.text(1)
        value["images"] = len(asked.blobs(5)) + len(asked.blobs(9))
        value["queued"] = bool(asked.number(6))
    elif kind == _ANSWER:
        said = step.message(20)
        value["text"], value["thinking"] = said.text(8) or said.text(1), said.text(3)
        value["calls"] = [_call(one) for one in said.messages(7)]
        value["usage"], value["model"] = counts(about.message(9)), about.text(24, 12)
    elif kind == _CHECKPOINT:
        seen = step.message(30)
        value["title"], value["summary"] = seen.text(10), seen.text(5)
    elif kind in _NOTICES:
        value["text"] = step.text(_NOTICES[kind][0], 1)
    elif kind == _ERROR:
        value["text"] = _problem(step.message(24).message(3)) or step.text(24, 1)
    elif about.has(4):
        value["call"] = _call(about.message(4))
        value.update(_outcome(kind, step))
        value["began"], value["ended"] = about.time(32), about.time(8)
    elif kind != _HISTORY:
        value["payload"] = base64.b64encode(payload or b"").decode()
    if problem := _problem(Message(errors)) or _problem(step.message(31)):
        value["error"] = problem
    if not step.whole:
        value["damaged"] = True
    return value


def _call(made: Message) -> dict[str, Any]:
    given = decoded(made.text(3))
    return {"id": made.text(1), "name": made.text(2), "given": given or made.text(3)}


def _problem(details: Message) -> str:
    """Of an error, what the model was told comes before what people see."""
    return next((text for field in (9, 1, 2) if (text := details.text(field).strip())), "")


def _outcome(kind: int, step: Message) -> dict[str, Any]:
    body = step.message(_BODY.get(kind, 0))
    if kind == _COMMAND:
        output = body.text(21, 1) or "\n".join(filter(None, (body.text(4), body.text(5))))
        return {"output": output, "exit": body.number(6) or 0, "denied": bool(body.number(14))}
    if kind == _GREP:
        return {"output": body.text(5) or body.text(3), "exit": int(bool(body.text(5).strip()))}
    if kind == _FILE:
        return {"output": body.text(4) or body.text(9)}
    if kind == _FOLDER:
        return {"output": "\n".join(_entry(one) for one in body.messages(3))}
    if kind == _MCP:
        images = len(body.blobs(5)) + len(body.blobs(6))
        return {"output": body.text(3), "images": images, "denied": bool(body.number(7))}
    if kind == _OTHER:
        return {"output": body.text(2, 1)}
    if kind == _EDIT:
        return {"output": ""}
    about = {1, 2, 3, 4, 5, 31, 56, 147}
    others = [field for field in range(6, 400) if field not in about]
    messages = (message for field in others for message in step.messages(field))
    return {"output": "\n".join(text for message in messages for text in message.texts())}


def _entry(one: Message) -> str:
    return one.text(1) + ("/" if one.number(2) else "")


def counts(used: Message) -> list[int]:
    """Input, output, cache writes, cache reads and reasoning of a response."""
    given, said, written, read = (used.number(field) or 0 for field in (2, 3, 4, 5))
    thought = used.number(9) or 0
    return [given, max(said, thought + (used.number(10) or 0)), written, read, thought]


def usage_of(name: str, spent: list[int], model: str | None, fallback: int) -> Usage | None:
    given, said, written, read, thought = spent
    if not any(spent):
        return None
    return Usage(
        name,
        None,
        model,
        None,
        given,
        said,
        written,
        0,
        read,
        reasoning_tokens=min(thought, said),
        fallback=fallback,
    )


def read_step(session: str, value: dict[str, Any]) -> Record:
    kind = value["type"]
    record = Record(f"step {kind}", native_id=f"{session}/{value['idx']}", ts=value["at"])
    if value.get("damaged"):
        record.warnings.append("a damaged step")
    if kind == _PROMPT:
        read_prompt(record, value["text"], value["images"], queued=value["queued"])
    elif kind == _ANSWER:
        _answer(record, value)
    elif kind == _CHECKPOINT:
        if title := value["title"].strip():
            record.titles.append(Title(title, TITLE_AI))
        record.say("summary", value["summary"], labels.COMPACT)
    elif kind in _NOTICES or kind == _ERROR:
        label = labels.API_ERROR if kind == _ERROR else _NOTICES[kind][1]
        text = value["text"].strip() or value.get("error", "")
        if text:
            record.events.append(Event("system", text, label=label))
    elif "call" in value:
        _result(record, value)
    elif kind != _HISTORY:
        record.warnings.append("step of an unknown type")
    return record


def _answer(record: Record, value: dict[str, Any]) -> None:
    record.role = "assistant"
    record.model = value["model"] or None
    record.say("thinking", value["thinking"])
    record.say("assistant", value["text"])
    for number, made in enumerate(value["calls"]):
        pointer = f"/calls/{number}/given"
        record.events.append(call(made["name"], made["given"], made["id"] or None, pointer))
        record.cwd = folder_of(made["given"]) or record.cwd
    if value["status"] in (_CANCELED, _INTERRUPTED):
        record.say("system", "Canceled", labels.INTERRUPTED)
    elif value.get("error"):
        record.events.append(Event("system", value["error"], label=labels.API_ERROR))
    name = record.native_id or ""
    record.usage = usage_of(name, value["usage"], record.model, _AFTER_GENERATIONS)


def _result(record: Record, value: dict[str, Any]) -> None:
    record.role = "user"
    call_id, status = as_text(value["call"]["id"]), value["status"]
    if call_id is None or status not in _OVER:
        return
    output = value.get("error") or value["output"]
    failed = status == _FAILED or bool(value.get("error")) or value.get("exit", 0) != 0
    told = status_of(output, failed=failed)
    if value.get("denied") or status in (_CANCELED, _INTERRUPTED):
        told = "denied"
    began, ended = value.get("began"), value.get("ended")
    took = as_milliseconds(ended - began) if began and ended else None
    pointer = "/error" if value.get("error") else "/output"
    images = value.get("images", 0)
    record.results.append(Result(call_id, output, told, took, images, pointer=pointer))
