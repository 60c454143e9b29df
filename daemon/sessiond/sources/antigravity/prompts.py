"""Prompts: what a person wrote, and what the program adds to it."""

from __future__ import annotations

import re

from sess_schema import labels
from sessiond.sourcekit.base import TITLE_PROMPT, Event, Record, Title
from sessiond.sourcekit.titles import prompt_title

_REQUEST = re.compile(r"<USER_REQUEST>\s*(.*?)\s*</USER_REQUEST>", re.DOTALL)
_MODEL = re.compile(r"setting `Model Selection` from .+? to (.+?)\.(?:\s|\Z)", re.DOTALL)


def read_prompt(record: Record, text: str, images: int = 0, *, queued: bool = False) -> None:
    record.role = "user"
    asked = _REQUEST.search(text)
    added = _REQUEST.sub("", text).strip() if asked else ""
    text = (asked[1] if asked else text).strip()
    if text or images:
        label = labels.COMMAND if text.startswith("/") else labels.QUEUED if queued else None
        record.events.append(Event("user", text or "[image]", label=label, images=images))
        if title := prompt_title(text, label):
            record.titles.append(Title(title, TITLE_PROMPT))
    if added:
        record.events.append(Event("system", added, label=labels.CONTEXT))


def chosen_model(text: str) -> str | None:
    """The model that a prompt says was selected, by its display name."""
    found = _MODEL.findall(text)
    return found[-1].strip() if found else None
