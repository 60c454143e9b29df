"""The files, selections, links and other things that a person attached to a prompt."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sessiond.sourcekit.values import as_dict, as_text
from sessiond.sources.cursor.calls import as_path
from sessiond.sources.cursor.richtext import readable

# Members of a bubble or of its `context`, in the order shown.
_LISTS = (
    *("fileSelections", "folderSelections", "attachedFolders", "attachedFoldersNew"),
    *("selections", "terminalSelections", "attachedCodeChunks", "quotes", "notepads"),
    *("selectedDocs", "docsReferences", "externalLinks", "webReferences"),
    *("selectedCommits", "selectedPullRequests", "cursorCommands"),
)
_PLACES = ("uri", "relativeWorkspacePath", "relativePath", "path", "folderPath")
_NAMES = ("url", "link", "title", "name", "filename", "docId", "sha", "message", "id")
_TEXTS = ("text", "rawText", "content", "markdown", "selection", "output")
_FIRST_LINES = ("startLineNumber", "selectionStartLineNumber")
_LAST_LINES = ("endLineNumber", "positionLineNumber")


def attachments(bubble: dict[str, Any]) -> str:
    """Each attachment with its text, if it has one; the same thing is listed once."""
    context = as_dict(bubble.get("context"))
    found: dict[str, None] = {}
    for name in _LISTS:
        for holder in (context, bubble):
            found.update(dict.fromkeys(_described(holder.get(name))))
    return "\n".join(found)


def _described(listed: Any) -> Iterator[str]:
    for item in listed if isinstance(listed, list) else ():
        facts = item if isinstance(item, dict) else {"name": item}
        head = _place(facts) or next(filter(None, (as_text(facts.get(n)) for n in _NAMES)), "")
        text = _text(facts)
        if text and text != head:
            head = f"{head}\n{text}" if head else text
        if head.strip():
            yield head.strip()


def _place(facts: dict[str, Any]) -> str:
    path = next(filter(None, (as_path(facts.get(name)) for name in _PLACES)), None)
    lines = as_dict(facts.get("range")) or facts
    first = next((n for name in _FIRST_LINES if (n := _number(lines.get(name)))), None)
    last = next((n for name in _LAST_LINES if (n := _number(lines.get(name)))), None)
    if not path or first is None:
        return path or ""
    return f"{path}:{first}" if last is None or last <= first else f"{path}:{first}-{last}"


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _text(facts: dict[str, Any]) -> str:
    lines = facts.get("lines")
    if isinstance(lines, list):
        texts = (line if isinstance(line, str) else as_dict(line).get("text") for line in lines)
        return readable("\n".join(text for text in texts if isinstance(text, str)))[0].strip("\n")
    text = next(filter(None, (as_text(facts.get(name)) for name in _TEXTS)), "")
    return readable(text)[0].strip("\n")
