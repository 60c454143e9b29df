"""Steps of a conversation: decodes them, and reads what was decoded."""

from __future__ import annotations

import base64
from typing import Any

from sess_schema import labels
from sessiond.sourcekit.base import TITLE_AI, Event, Record, Result, Title, Usage
from sessiond.sourcekit.values import as_milliseconds, as_text, decoded
from sessiond.sources.antigravity.prompts import read_prompt
from sessiond.sources.antigravity.tools import call, folder_of, status_of
from sessiond.sources.antigravity.wire import Message

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
    found = (one for field in range(6, 400) if field not in about for one in step.messages(field))
    return {"output": "\n".join(text for message in found for text in message.texts())}


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
        if value["summary"].strip():
            record.events.append(Event("summary", value["summary"].strip(), label=labels.COMPACT))
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
    if value["thinking"].strip():
        record.events.append(Event("thinking", value["thinking"].strip()))
    if value["text"].strip():
        record.events.append(Event("assistant", value["text"].strip()))
    for number, made in enumerate(value["calls"]):
        pointer = f"/calls/{number}/given"
        record.events.append(call(made["name"], made["given"], made["id"] or None, pointer))
        record.cwd = folder_of(made["given"]) or record.cwd
    if value["status"] in (_CANCELED, _INTERRUPTED):
        record.events.append(Event("system", "Canceled", label=labels.INTERRUPTED))
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
