"""Builds one user message from its blocks: what was typed and what was injected."""

from __future__ import annotations

from dataclasses import replace
from hashlib import blake2b
from typing import Any

from sess_schema import labels
from sessiond.sourcekit.base import TITLE_PROMPT, Event, Link, Record, Retire, Title
from sessiond.sourcekit.values import as_dict, as_text, content_blocks, prompt_title
from sessiond.sources.claude import blocks
from sessiond.sources.claude.blocks import joined_texts
from sessiond.sources.claude.injected import Segment, split_prompt, task_link

_PERSON = "human"


class Prompt:
    """Collects the blocks of a user message; `machine` labels one that no person typed."""

    def __init__(self, machine: str | None, queued: str | None = None) -> None:
        self._machine = machine
        self._queued = queued
        self._segments: list[Segment] = []
        self._texts: list[str] = []
        self._images = 0
        self._others: list[Event] = []
        self.links: list[Link] = []

    @property
    def typed(self) -> str:
        """What the person typed, without commands."""
        return "\n".join(self._texts)

    def add(self, block: dict[str, Any]) -> None:
        kind = block.get("type")
        if kind == "image":
            self._images += 1
        elif kind == "document":
            self._texts.append(blocks.document_marker(block))
        elif isinstance(text := block.get("text"), str):
            for segment in split_prompt(text):
                self._add_segment(segment)
        else:
            event = blocks.other_event(block)
            if event is not None:
                self._others.append(event)

    def _add_segment(self, segment: Segment) -> None:
        if segment.label == labels.TASK:
            link = task_link(segment.text)
            if link is not None:
                self.links.append(link)
        if segment.type == "user" and self._machine is not None:
            self._segments.append(Segment("system", segment.label or self._machine, segment.text))
        elif segment.type == "user" and segment.label is None:
            self._texts.append(segment.text)
        else:
            self._segments.append(segment)

    def events(self) -> list[Event]:
        """What was injected, then what the person typed."""
        events = [
            Event(segment.type, segment.text, label=segment.label) for segment in self._segments
        ]
        events += self._others
        images = self._images
        if self._texts or images:
            text = "\n".join(self._texts) or "[image]"
            if self._machine is not None:
                events.append(Event("system", text, label=self._machine, images=images))
            else:
                if self._queued == labels.BASH:
                    text = f"! {text}"
                events.append(Event("user", text, label=self._queued, images=images))
        return _as_one(events)

    def titles(self) -> list[Title]:
        titles = (
            prompt_title(event.text, event.label) for event in self.events() if event.type == "user"
        )
        return [Title(title, TITLE_PROMPT) for title in titles if title]


def _as_one(events: list[Event]) -> list[Event]:
    """A command and the words after it are one prompt."""
    commands = [event for event in events[:-1] if event.label == labels.COMMAND]
    if not commands or events[-1].type != "user":
        return events
    words = "\n".join(event.text for event in (*commands, events[-1]))
    rest = [event for event in events[:-1] if event not in commands]
    return [*rest, replace(events[-1], text=words, label=labels.COMMAND)]


def machine_label(value: dict[str, Any]) -> str | None:
    """A label for a user message that the client marks as not typed by a person."""
    origin = as_text(as_dict(value.get("origin")).get("kind"))
    if origin is not None and origin != _PERSON:
        return origin
    if value.get("isMeta") is True or value.get("promptSource") == "system":
        return "meta"
    return None


# -- the queue: messages that a person types while the agent works
# A message enters the queue and leaves it as the next prompt, which has a record of its own; in the
# middle of a turn, where some versions write another record for it, before or after, and others
# none; or back to the person.

_MOST = 32
_NEAR = 5000  # ms in which a prompt can be the one that just left the queue


class Queue:
    """What a parser remembers of the queue, in bounded JSON."""

    def __init__(self, state: dict[str, Any]) -> None:
        stored = state.get("queue")
        lists = stored if isinstance(stored, list) and len(stored) == 4 else ([], [], [], [])
        self._waiting: list[Any] = [*lists[0]]  # contents
        self._taken: list[list[Any]] = [*lists[1]]  # digest, id, time; each is a prompt by itself
        self._written: list[str] = [*lists[2]]  # digests of records whose message still waits
        self._left: list[Any] = [*lists[3]]  # contents that left; the next prompt should be one

    def state(self) -> dict[str, Any]:
        lists = [self._waiting, self._taken, self._written, self._left]
        return {"queue": [[*one] for one in lists]} if any(lists) else {}

    def read(self, record: Record, value: dict[str, Any]) -> None:
        """Read a change of the queue."""
        content = value.get("content")
        operation = value.get("operation")
        if operation == "enqueue":
            _append(self._waiting, _without_images(content))
            self._announce(record, content)
        elif operation == "dequeue":
            self._left += self._waiting[:1]
            del self._left[:-_MOST], self._waiting[:1]
        elif operation == "popAll":
            at = self._find(content)
            del self._waiting[slice(at, at + 1) if at is not None else slice(None)]
        elif operation == "remove":
            self._take(record, as_text(value.get("sessionId")), content)

    def note_record(self, record: Record, typed: str) -> None:
        """Another record repeats a message that was or will be taken from the queue."""
        if not self._replace(record, typed):
            _append(self._written, _digest(typed))

    def note_content(self, content: Any) -> None:
        """A user message may be one that waits: not all that leave are told, or leave in order."""
        left, self._left = self._left, []
        if not self._waiting or content is None:
            return
        said = joined_texts(content, [])
        at = self._find(content)
        if at is None or any(joined_texts(one, []) == said for one in left):
            return
        del self._waiting[at]
        self._waiting[:0] = left

    def note_prompt(self, record: Record, typed: str) -> None:
        """A prompt may be the message that was taken from the queue just before."""
        if self._taken and record.ts is not None:
            self._taken = [one for one in self._taken if record.ts - one[2] <= _NEAR]
            self._replace(record, typed)

    def _replace(self, record: Record, typed: str) -> bool:
        digest = _digest(typed)
        for at, (taken, name, _) in enumerate(self._taken):
            if taken == digest:
                record.retires.append(Retire(name))
                del self._taken[at]
                return True
        return False

    @staticmethod
    def _announce(record: Record, content: Any) -> None:
        text = joined_texts(content, record.warnings)
        if text:
            segments = split_prompt(text)
            command = any(segment.label == labels.COMMAND for segment in segments)
            said = "\n".join(segment.text for segment in segments) if command else text
            record.events.append(Event("system", said, label=labels.QUEUED))
        link = task_link(text)
        if link is not None:
            record.links.append(link)

    def _take(self, record: Record, session: str | None, content: Any) -> None:
        at = self._find(content) if content is not None else 0
        if at is not None and at < len(self._waiting):
            content = self._waiting.pop(at)
        prompt = _prompt(content, record.warnings)
        digest = _digest(prompt.typed)
        if digest in self._written:
            self._written.remove(digest)
        elif prompt.typed:
            record.native_id = f"{session}/queue/{record.ts}/{digest}"
            record.events += [event for event in prompt.events() if event.type == "user"]
            record.titles += prompt.titles()
            _append(self._taken, [digest, record.native_id, record.ts or 0])

    def _find(self, content: Any) -> int | None:
        """The place of the first waiting message with this content."""
        if content is None:
            return None
        wanted = joined_texts(content, [])
        places = (at for at, one in enumerate(self._waiting) if joined_texts(one, []) == wanted)
        return next(places, None)


def _append(remembered: list[Any], one: Any) -> None:
    remembered.append(one)
    del remembered[:-_MOST]


def _without_images(content: Any) -> list[Any]:
    blocks: list[Any] = []
    for _, block in content_blocks(content, "", []):
        if isinstance(text := block.get("text"), str):
            blocks.append(text)
        elif block.get("type") == "image":
            blocks.append({"type": "image"})
    return blocks


def _prompt(content: Any, warnings: list[str]) -> Prompt:
    prompt = Prompt(None, queued=labels.QUEUED)
    for _, block in content_blocks(content, "/content", warnings):
        prompt.add(block)
    return prompt


def _digest(typed: str) -> str:
    return blake2b(" ".join(typed.split()).encode("utf-8", "replace"), digest_size=8).hexdigest()
