"""Builds one user message from its blocks: what was typed and what was injected."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sess_schema import labels
from sessiond.sourcekit.base import TITLE_PROMPT, Event, Link, Title
from sessiond.sourcekit.titles import prompt_title
from sessiond.sourcekit.values import as_dict, as_text
from sessiond.sources.claude import blocks
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
        found = (
            prompt_title(event.text, event.label) for event in self.events() if event.type == "user"
        )
        return [Title(title, TITLE_PROMPT) for title in found if title]


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
