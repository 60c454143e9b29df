"""Reads messages that a person types while the agent works.

A message enters the queue and leaves it as the next prompt, which has a record of its own; in the
middle of a turn, where some versions write another record for it, before or after, and others
none; or back to the person.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

from sess_schema import labels
from sessiond.sourcekit.base import Event, Record, Retire
from sessiond.sourcekit.content import elements
from sessiond.sourcekit.values import as_text
from sessiond.sources.claude.blocks import joined_texts
from sessiond.sources.claude.injected import task_link
from sessiond.sources.claude.prompts import Prompt

_MOST = 32
_NEAR = 5000  # ms in which a prompt can be the one that just left the queue


class Queue:
    """What a parser remembers of the queue, in bounded JSON."""

    def __init__(self, state: dict[str, Any]) -> None:
        stored = state.get("queue")
        lists = stored if isinstance(stored, list) and len(stored) == 3 else ([], [], [])
        self._waiting: list[Any] = [*lists[0]]  # contents
        self._taken: list[list[Any]] = [*lists[1]]  # digest, id, time; each is a prompt by itself
        self._written: list[str] = [*lists[2]]  # digests of records whose message still waits

    def state(self) -> dict[str, Any]:
        lists = [self._waiting, self._taken, self._written]
        return {"queue": [[*one] for one in lists]} if any(lists) else {}

    def read(self, record: Record, value: dict[str, Any]) -> None:
        """Read a change of the queue."""
        content = value.get("content")
        operation = value.get("operation")
        if operation == "enqueue":
            _append(self._waiting, _without_images(content))
            self._announce(record, content)
        elif operation == "dequeue":
            del self._waiting[:1]
        elif operation == "popAll":
            at = self._find(content)
            del self._waiting[slice(at, at + 1) if at is not None else slice(None)]
        elif operation == "remove":
            self._take(record, as_text(value.get("sessionId")), content)

    def written(self, record: Record, typed: str) -> None:
        """Another record repeats a message that was or will be taken from the queue."""
        if not self._replace(record, typed):
            _append(self._written, _digest(typed))

    def prompted(self, record: Record, typed: str) -> None:
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
            record.events.append(Event("system", text, label=labels.QUEUED))
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
        found = (at for at, one in enumerate(self._waiting) if joined_texts(one, []) == wanted)
        return next(found, None)


def _append(remembered: list[Any], one: Any) -> None:
    remembered.append(one)
    del remembered[:-_MOST]


def _without_images(content: Any) -> list[Any]:
    found: list[Any] = []
    for _, block in elements(content, "", []):
        if isinstance(text := block.get("text"), str):
            found.append(text)
        elif block.get("type") == "image":
            found.append({"type": "image"})
    return found


def _prompt(content: Any, warnings: list[str]) -> Prompt:
    prompt = Prompt(None, queued=labels.QUEUED)
    for _, block in elements(content, "/content", warnings):
        prompt.add(block)
    return prompt


def _digest(typed: str) -> str:
    return blake2b(" ".join(typed.split()).encode("utf-8", "replace"), digest_size=8).hexdigest()
