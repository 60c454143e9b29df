"""Prompts that a window remembers, where the conversations themselves are not kept.

A window lists what was asked in it lately: `aiService.generations` with times, `aiService.prompts`
without.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from sessiond.engines.slices import hash64
from sessiond.sourcekit.base import Conversation, SessionSpec
from sessiond.sourcekit.foreign import Foreign
from sessiond.sourcekit.known_rows import KnownRows
from sessiond.sourcekit.values import as_dict, as_text
from sessiond.sources.cursor.bubbles import time_of
from sessiond.sources.cursor.composers import Inline, unwrap
from sessiond.sources.cursor.inline import add_inline
from sessiond.sources.cursor.workspaces import COMPOSERS

PROMPTS, GENERATIONS = "aiService.prompts", "aiService.generations"
_ASKED = "asked:"
_BY_THE_MODEL = "apply"  # an edit of an answer, not a prompt


def asked(
    foreign: Foreign,
    known: KnownRows,
    values: Mapping[str, Any],
    named: set[str],
    better: set[str],
) -> Conversation | None:
    """One conversation of all prompts that no other one has.

    `better` are the prompts in conversations of the window, `named` the composers that it knows:
    they have all prompts since the first of them.
    """
    window = os.path.basename(os.path.dirname(foreign.path))
    first = _first_start(values.get(COMPOSERS), named)
    dated = dict(_generations(values.get(GENERATIONS)))
    listed = {words_of(bubble["text"]) for bubble in dated.values()}
    everything = dict(_prompts(values.get(PROMPTS))) | dated
    inline: dict[str, Inline] = {
        key: (f"{window}-{key.removeprefix(_ASKED)}", bubble, None)
        for key, bubble in everything.items()
        if words_of(bubble["text"]) not in (better if key in dated else better | listed)
        and (first is None or bubble.get("createdAt", first) < first)
    }
    before = known.under(_ASKED)
    if not inline and not before:
        return None
    change = Conversation(SessionSpec(f"{window}-prompts"))
    change.created_at = min((bubble["createdAt"] for bubble in dated.values()), default=None)
    change.removed = [key for key in before if key in everything and key not in inline]
    # The list has only the last ones.
    kept = [key for key in known.in_order(before) if key not in {*change.removed, *inline}]
    change.order = [*kept, *inline]
    add_inline(change, inline, before)
    return change


def words_of(text: str) -> str:
    """A text without its white space, in which copies differ."""
    return " ".join(text.split())


def _first_start(value: Any, named: set[str]) -> int | None:
    """When the first composer started: None if there is none, 0 if that is not known."""
    listed = as_dict(unwrap(value)).get("allComposers")
    entries = [as_dict(entry) for entry in listed] if isinstance(listed, list) else []
    starts = {as_text(one.get("composerId")): time_of(one.get("createdAt")) or 0 for one in entries}
    return min((starts.get(name, 0) for name in named), default=None)


def _generations(value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    listed = unwrap(value)
    for entry in map(as_dict, listed if isinstance(listed, list) else ()):
        text, time = as_text(entry.get("textDescription")), time_of(entry.get("unixMs"))
        if text and text.strip() and time is not None and entry.get("type") != _BY_THE_MODEL:
            name = as_text(entry.get("generationUUID")) or str(time)
            yield _ASKED + name, {"type": "user", "text": text, "createdAt": time}


def _prompts(value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    listed = unwrap(value)
    times: Counter[str] = Counter()
    for entry in map(as_dict, listed if isinstance(listed, list) else ()):
        text = as_text(entry.get("text"))
        if text and text.strip():
            times[text] += 1
            digest = hash64(text.encode("utf-8", "replace")) & (1 << 64) - 1
            yield f"{_ASKED}{digest:016x}:{times[text]}", {"type": "user", "text": text}
