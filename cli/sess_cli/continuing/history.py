"""The messages of a session as a model would get them to continue it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from sess_cli.export.json_values import Image, as_json, images_in, text_in
from sess_schema import kinds, labels
from sess_schema.session import Entry, Reader

if TYPE_CHECKING:
    from sess_redaction import Redactor

NO_RESULT = "[no result was recorded]"
DENIED = "[the call was not allowed]"
_IMAGE = "[image]"
_NOT_SHOWN = "[what came before is not shown]"
# Not typed by a person, but what the model answered.
_ANSWERED = labels.MESSAGES | {labels.TASK, labels.BASH_OUTPUT}
_NOT_IN_NAMES = re.compile(r"[^0-9A-Za-z_-]")  # of tools and calls, for every API
_LONGEST_NAME = 64
_KEPT = "kept_n"  # of a compaction: messages that stay beside the summary
PROTECTED = 2  # of the last prompts, with all that followed them
_HINTS = {
    kinds.READ: "read the file again",
    kinds.SEARCH: "search again",
    kinds.SHELL: "run the command again",
    kinds.FETCH: "fetch it again",
    kinds.WRITE: "read the file",
    kinds.EDIT: "read the file",
}


@dataclass(slots=True)
class Call:
    id: str
    tool: str
    arguments: str  # JSON


@dataclass(slots=True)
class Message:
    role: str  # system, user, assistant, tool
    text: str = ""
    images: list[Image] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)  # of an assistant
    call: Call | None = None  # of a tool: what it answers
    kind: str | None = None  # of that call
    about: str = ""  # that call in one line
    failed: bool = False
    typed: bool = False  # by a person


def messages_of(reader: Reader, *, compacted: bool = True) -> list[Message]:
    """Without what subagents did. Every call has a result, every result its call.

    `compacted`: a summary takes the place of what it summarises, as it did for the model.
    """
    messages = _Messages(reader, compacted=compacted)
    for entry in reader.entries():
        messages.add(entry)
    return messages.all()


def masked(messages: Iterable[Message], redactor: Redactor) -> Iterator[Message]:
    """Without the secrets that `redactor` finds or knows."""
    for message in messages:
        redactor.begin_event()
        calls = [
            replace(call, arguments=_masked_json(call.arguments, redactor))
            for call in message.calls
        ]
        text, about = redactor(message.text), redactor.excerpt(message.about)
        yield replace(message, text=text, about=about, calls=calls)


def _masked_json(arguments: str, redactor: Redactor) -> str:
    return as_json(redactor.value(json.loads(arguments))).decode()


class _Messages:
    def __init__(self, reader: Reader, *, compacted: bool) -> None:
        self._reader = reader
        self._compacted = compacted
        self._done: list[Message] = []
        self._open: Message | None = None  # of an assistant, with the entries of its calls
        self._called: list[Entry] = []
        self._ids: set[str] = set()
        self._last: tuple[int, ...] = ()  # the record of the last text

    def all(self) -> list[Message]:
        self._close()
        return self._done

    def add(self, entry: Entry) -> None:
        if entry.type == "user":
            self._say(entry, typed=True)
        elif entry.type == "assistant":
            if entry.label not in labels.ALARMS:
                self._answer(entry)
        elif entry.type == "tool_use":
            if entry.unjoined is None:
                self._call(entry)
        elif entry.type == "summary":
            if self._compacted and entry.label not in labels.TITLES:
                self._compact(entry)
        elif entry.label in _ANSWERED:
            self._say(entry)

    def _say(self, entry: Entry, *, typed: bool = False) -> None:
        self._close()
        images = images_in(self._reader.record(entry)) if entry.images else []
        text = "" if images and entry.text == _IMAGE else entry.text
        if text or images:
            self._done.append(Message("user", text, images, typed=typed))

    def _answer(self, entry: Entry) -> None:
        if not entry.text.strip():
            return
        opened = self._opened(entry)
        if opened.text and self._last != entry.place:
            self._close()
            opened = self._opened(entry)
        opened.text = f"{opened.text}\n\n{entry.text}" if opened.text else entry.text
        self._last = entry.place

    def _call(self, entry: Entry) -> None:
        opened = self._opened(entry)
        tool = _NOT_IN_NAMES.sub("_", entry.tool or "unknown")[:_LONGEST_NAME]
        opened.calls.append(Call(self._id(entry), tool, self._arguments(entry)))
        self._called.append(entry)

    def _opened(self, entry: Entry) -> Message:
        """The message that an assistant is writing: a result since then has ended it."""
        if any(_is_before(called, entry) for called in self._called):
            self._close()
        if self._open is None:
            self._open = Message("assistant")
        return self._open

    def _close(self) -> None:
        if self._open is not None:
            self._done.append(self._open)
            for call, entry in zip(self._open.calls, self._called, strict=True):
                self._done.append(self._result(call, entry))
        self._open, self._called, self._last = None, [], ()

    def _result(self, call: Call, entry: Entry) -> Message:
        raw = self._reader.result(entry) if entry.result_place is not None else None
        # What the model got; the index has the whole of an output that was cut for it.
        text = text_in(raw) or entry.output
        if not text and entry.status in ("pending", "denied"):
            text = NO_RESULT if entry.status == "pending" else DENIED
        elif not text and images_in(raw):
            text = _IMAGE
        failed = entry.status in ("error", "denied")
        about = entry.summary or ""
        return Message("tool", text, call=call, kind=entry.kind, about=about, failed=failed)

    def _compact(self, entry: Entry) -> None:
        self._close()
        record = self._reader.record(entry)
        kept = record.get(_KEPT) if isinstance(record, dict) else None
        at = len(self._done) - kept if isinstance(kept, int) and kept > 0 else len(self._done)
        at = max(0, at)
        while 0 < at < len(self._done) and self._done[at].role == "tool":
            at -= 1  # no result without its call
        self._done = [Message("system", entry.text), *self._done[at:]]

    def _id(self, entry: Entry) -> str:
        wanted, number = entry.call_id or "call", 1
        free = wanted if entry.call_id else f"{wanted}_1"
        while free in self._ids:
            number += 1
            free = f"{wanted}_{number}"
        self._ids.add(free)
        return free

    def _arguments(self, entry: Entry) -> str:
        given: Any = self._reader.input(entry)
        if not isinstance(given, dict):
            given = {} if given is None else {"input": given}
        return as_json(given).decode()


def _is_before(called: Entry, entry: Entry) -> bool:
    """Whether the result of a call was written before this entry; for a fork's copy, assume so."""
    result = called.result_place
    if result is None:
        return False
    return result[:2] != entry.place[:2] or result[2] < entry.place[2]


# -- as APIs take them


def as_chat(messages: list[Message]) -> Iterator[dict[str, Any]]:
    """In the form of chat completions."""
    for message in messages:
        if message.role == "tool" and message.call is not None:
            named = {"tool_call_id": message.call.id, "name": message.call.tool}
            yield {"role": "tool", **named, "content": message.text}
            continue
        content: Any = message.text or None
        if message.images:
            content = [_text_block(message.text)] if message.text else []
            for image in message.images:
                url = f"data:{image.media};base64,{image.data}"
                content.append({"type": "image_url", "image_url": {"url": url}})
        written: dict[str, Any] = {"role": message.role, "content": content}
        if message.calls:
            written["tool_calls"] = [*map(_chat_call, message.calls)]
        yield written


def _chat_call(call: Call) -> dict[str, Any]:
    function = {"name": call.tool, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def as_blocks(messages: list[Message]) -> Iterator[dict[str, Any]]:
    """The first message is a user's, and neighbours have different roles."""
    ids: dict[str, str] = {}
    role, blocks = "user", list[dict[str, Any]]()
    for message in messages:
        says = "assistant" if message.role == "assistant" else "user"
        if says != role:
            yield {"role": role, "content": blocks or [_text_block(_NOT_SHOWN)]}
            role, blocks = says, []
        blocks += _blocks(message, ids)
    if blocks:
        yield {"role": role, "content": blocks}


def _blocks(message: Message, ids: dict[str, str]) -> Iterator[dict[str, Any]]:
    if message.role == "tool" and message.call is not None:
        content = [_text_block(message.text)] if message.text.strip() else []
        result = {"type": "tool_result", "tool_use_id": ids[message.call.id], "content": content}
        yield {**result, "is_error": True} if message.failed else result
        return
    if message.text.strip():
        yield _text_block(message.text)
    for image in message.images:
        source = {"type": "base64", "media_type": image.media, "data": image.data}
        yield {"type": "image", "source": source}
    for call in message.calls:
        name = _NOT_IN_NAMES.sub("_", call.id)
        taken = set(ids.values())
        ids[call.id] = name if name not in taken else f"{name}_{len(taken)}"
        given = json.loads(call.arguments)
        yield {"type": "tool_use", "id": ids[call.id], "name": call.tool, "input": given}


def _text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def pruned(messages: Sequence[Message], protected: int) -> list[Message]:
    """Outputs before the last `protected` prompts replaced; none if there are fewer prompts."""
    protected = protected if protected > 0 else PROTECTED
    prompts = [place for place, message in enumerate(messages) if message.typed]
    if len(prompts) < protected:
        return [*messages]
    end = prompts[-protected]
    return [
        replace(message, text=hint(message)) if place < end and _is_output(message) else message
        for place, message in enumerate(messages)
    ]


def _is_output(message: Message) -> bool:
    return message.role == "tool" and message.text not in (NO_RESULT, DENIED)


def hint(message: Message) -> str:
    tool = message.call.tool if message.call is not None else "the tool"
    how = _HINTS.get(message.kind or "", f"call {tool} again")
    about = f": {message.about}" if message.about else ""
    failed = " The call failed." if message.failed else ""
    return f"[old output removed.{failed} If you need it, {how}{about}]"
