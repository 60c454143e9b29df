"""System events, under names that readers understand."""

from __future__ import annotations

import re

from sess_cli.export import json_text
from sess_cli.export.html import markup, prose, values
from sess_cli.export.notice_names import NAMES
from sess_cli.export.story import Item
from sess_schema import labels

_OPEN = labels.ALARMS | {
    labels.AWAY_SUMMARY, labels.INTERRUPTED, labels.QUEUED, labels.TEAMMATE,
}  # fmt: skip
_SHORT = 200
_ELEMENT = re.compile(r"<summary>([^<]*)</summary>")


def name(item: Item) -> str:
    """The name shown in place of a speaker's."""
    if not item.label:
        return "Notice"
    known = NAMES.get(item.label)
    return known or markup.line(item.label.replace("_", " ").replace("-", " "), 60).capitalize()


def is_line(item: Item) -> bool:
    """Whether it fits into the header of its card."""
    return (
        len(item.text) <= _SHORT
        and "\n" not in item.text.strip()
        and item.label not in labels.OUTPUTS
    )


def gist(item: Item) -> str:
    """The rest of the header, as markup."""
    said = item.text.strip()
    named = name(item)
    if said[: len(named)].casefold() == named.casefold():
        rest = said[len(named) :].strip()
        if not rest:
            return ""
        said = rest[1:-1] if rest[0] == "(" and rest[-1] == ")" else said
    if is_line(item):
        shown = markup.text(said)
        return markup.link(said, shown) or shown
    if _is_about_task(said) and (found := _ELEMENT.search(said)):
        return markup.text(markup.line(found[1]))
    return ""


def body(item: Item) -> str:
    said = item.text.strip("\n")
    if item.unknown is not None and (shown := json_text.written(item.unknown)) is not None:
        head = "JSON" if is_line(item) else markup.line(said, 140)
        return markup.details(head, prose.code(markup.text(shown), "json"))
    if not said.strip() or is_line(item):
        return ""
    if item.label in labels.OUTPUTS:
        return values.output(said)
    if item.label in _OPEN and not _is_about_task(said):
        return markup.fold(prose.html(said), said)
    inside = values.output(said) if said.lstrip()[:1] in ("<", "{", "[") else prose.html(said)
    return markup.details("Notice" if _is_about_task(said) else markup.line(said, 140), inside)


def _is_about_task(said: str) -> bool:
    return said.lstrip().startswith("<task-notification")
