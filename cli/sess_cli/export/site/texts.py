"""The data of the site-wide search: the packed texts of each session, in bundles.

A bundle is a script with one call per session, because a page opened from disk may load scripts but
not read other files. A session that grew changes one line of one bundle.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import apsw

from sess_cli.export import ansi
from sess_cli.export.html.chunks import packed
from sess_cli.export.html.page import loose_key
from sess_cli.export.story import Item, Story
from sess_redaction import Redactor
from sess_schema.queries.sessions import SessionRow

# In long output, what people search for is mostly at the ends.
_HEAD, _TAIL = 3000, 1000
CALL = "sessTexts"


class ListeningStory(Story):
    """A story that collects its searchable texts while it is drawn."""

    def __init__(self, db: apsw.Connection, row: SessionRow, clean: Redactor | None) -> None:
        super().__init__(db, row, clean)
        self.heard: list[tuple[str, str, str]] = []  # card, tool or event type, text
        self.prefix = ""  # of the card keys of a subagent, which are drawn inside another card

    def _child(self, row: SessionRow) -> Story:
        child = ListeningStory(self.db, row, self._clean)
        child.heard, child._above = self.heard, self._above | {row.key}
        child.prefix = f"{loose_key(child)}-"  # until the call that started it is found
        return child

    def items(self) -> Iterator[Item]:
        for item in super().items():
            card = self.prefix + item.key
            if text := _searched(item):
                self.heard.append((card, item.tool or item.type, text))
            if isinstance(item.agent, ListeningStory):
                item.agent.prefix = f"{card}-"
            yield item


def _searched(item: Item) -> str:
    if item.type == "system" or item.is_title:
        return ""
    if item.type != "tool_use":
        return _ends(item.text.strip())
    return _ends("\n".join(filter(None, (item.summary, ansi.plain(item.output).strip()))))


def _ends(text: str) -> str:
    if len(text) <= _HEAD + _TAIL:
        return text
    return f"{text[:_HEAD]}\n…\n{text[-_TAIL:]}"


def line(file: str, heard: list[tuple[str, str, str]]) -> str:
    """The call that loads one session's texts."""
    columns = [[*column] for column in zip(*heard, strict=True)] or [[], [], []]
    texts = json.dumps(columns, separators=(",", ":"), ensure_ascii=False)
    return f'{CALL}({json.dumps(file)},"{packed(texts)}");\n'


def bundle_name(number: int) -> str:
    return f"search/{number:03}.js"


def kept_lines(folder: str, number: int, wanted: set[str]) -> dict[str, str]:
    """The calls of an earlier run, by file, for the files in `wanted`."""
    found = {}
    try:
        with open(os.path.join(folder, bundle_name(number)), encoding="utf-8") as bundle:
            for call in bundle:
                name = call[len(CALL) + 1 :].partition(",")[0]
                if call.startswith(f"{CALL}(") and json.loads(name) in wanted:
                    found[json.loads(name)] = call
    except (OSError, ValueError):
        return {}
    return found
