"""What the arguments of a call say, whatever an agent names them: one list of names for all.

Names are compared bare: `target_file`, `targetFile` and `TargetFileV2` are all `targetfile`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

# The best first.
FILES: Final = (
    *("filepath", "path", "absolutepath", "targetfile", "notebookpath", "filename", "file"),
    *("relativeworkspacepath", "targetnotebook"),
)
FOLDERS: Final = (*("dirpath", "directory", "directorypath", "targetdirectory", "relativedirpath"),)
PATHS: Final = (*FILES, *FOLDERS)
OLD: Final = ("oldstring", "oldstr", "oldtext")  # of an edit
NEW: Final = ("newstring", "newstr", "newtext")
CONTENTS: Final = ("content", "contents", "filetext", "codeedit", "newsource")  # of a whole file
PATCHES: Final = ("patch", "input", "diff", "patchtext")
COMMANDS: Final = ("command", "cmd", "commands", "commandline", "script", "input")
PATTERNS: Final = (
    *("pattern", "regex", "query", "queries", "globpattern", "filepattern", "searchterm"),
)
PAGES: Final = ("url", "uri", "query", "objective", "urls", "requests", "searchqueries")
OPEN, DOING, DONE = "open", "doing", "done"
_DONE = frozenset({"completed", "complete", "done", "finished"})
_DOING = frozenset({"in_progress", "inprogress", "in-progress", "active", "doing", "running"})
_GONE = frozenset({"deleted", "cancelled", "canceled"})
_LISTS = ("todos", "plan", "items", "tasks", "content")
_TEXTS = ("content", "step", "text", "title", "subject", "task", "name", "description")
_BOX = re.compile(r"^\s*(?:[-*+]|\d+[.)])?\s*\[(.)\]\s*(.+)$")
_MARKS = {OPEN: " ", DOING: ">", DONE: "x"}


def bare(name: str) -> str:
    """One spelling of the name of an argument or a tool."""
    return name.replace("_", "").replace("-", "").casefold()


def unversioned(name: str) -> str:
    return bare(name).removesuffix("v2")


def named(given: Any) -> dict[str, Any]:
    """The arguments by their bare names; none if they have no names."""
    if not isinstance(given, Mapping):
        return {}
    return {unversioned(str(name)): value for name, value in given.items()}


def path_in(fields: Mapping[str, Any]) -> str:
    """The file, else the folder, that arguments name by their bare names."""
    return text_in(fields, *PATHS) or ""


def text_in(fields: Mapping[str, Any], *names: str) -> str | None:
    """The first text that arguments have by one of these names, preferring one with words."""
    texts = [text for name in names if isinstance(text := fields.get(name), str)]
    return next(filter(None, texts), texts[0] if texts else None)


@dataclass(slots=True)
class Todo:
    id: str | None
    text: str
    state: str  # open, doing, done
    status: str | None = None  # the agent's word for it

    @property
    def is_gone(self) -> bool:
        return self.status in _GONE

    @property
    def mark(self) -> str:
        """As between the brackets of a list of tasks."""
        return _MARKS[self.state]

    def as_object(self) -> dict[str, Any]:
        return {"id": self.id, "title": self.text, "status": self.status, "state": self.state}


def todos_in(fields: Mapping[str, Any]) -> list[Todo] | None:
    """The whole list of to-dos in the arguments of a call; None if they have none."""
    for name in _LISTS:
        if todos := _listed(fields.get(name)):
            return todos
    return [] if any(fields.get(name) == [] for name in _LISTS) else None


def progress(listed: list[Any]) -> str:
    """How far a list of to-dos is, in one line."""
    todos = [todo_of(one) for one in listed if isinstance(one, Mapping)]
    done = sum(todo.state == DONE for todo in todos)
    now = next((todo.text for todo in todos if todo.state == DOING), "")
    return f"{done}/{len(listed)} done" + (f": {now}" if now else "")


def _listed(value: Any) -> list[Todo] | None:
    """None if it is not a list of to-dos."""
    if isinstance(value, str):
        return _boxes(value.splitlines()) or None
    if not isinstance(value, list) or not value:
        return None
    if all(isinstance(one, str) for one in value):
        return _boxes(value) or [Todo(None, one, OPEN) for one in value]
    todos = [todo_of(one) for one in value if isinstance(one, Mapping)]
    return [todo for todo in todos if todo.text or todo.id] or None


def _boxes(lines: Iterable[str]) -> list[Todo]:
    boxes = (_BOX.match(line) for line in lines)
    return [
        Todo(None, box[2].strip(), DONE if box[1] in "xX✓" else OPEN if box[1] == " " else DOING)
        for box in boxes
        if box
    ]


def todo_of(one: Mapping[str, Any]) -> Todo:
    text = next((text for name in _TEXTS if (text := word(one.get(name)))), "")
    status = word(one.get("status"))
    if status is None and one.get("completed") is True:
        status = "completed"
    return Todo(word(one.get("id")), text, _state(status), status)


def _state(status: str | None) -> str:
    said = (status or "").casefold()
    return DONE if said in _DONE else DOING if said in _DOING else OPEN


def word(value: Any) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) and value else None
