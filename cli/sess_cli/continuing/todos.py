"""To-do lists and plans out of what agents call them, whatever their tools are named."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sess_cli.export.shapes import bare

OPEN, DOING, DONE = "open", "doing", "done"
_DONE = frozenset({"completed", "complete", "done", "finished"})
_DOING = frozenset({"in_progress", "inprogress", "in-progress", "active", "doing", "running"})
_GONE = frozenset({"deleted", "cancelled", "canceled"})
_LISTS = ("todos", "plan", "items", "tasks", "content")
_TEXTS = ("content", "step", "text", "title", "subject", "task", "name", "description")
_BOX = re.compile(r"^\s*(?:[-*+]|\d+[.)])?\s*\[(.)\]\s*(.+)$")
_NUMBER = re.compile(r"#(\d+)")


@dataclass(slots=True)
class Todo:
    id: str | None
    text: str
    state: str  # open, doing, done
    status: str | None = None  # the agent's word for it

    def as_object(self) -> dict[str, Any]:
        return {"id": self.id, "title": self.text, "status": self.status, "state": self.state}


class Todos:
    """A list that is replaced as a whole or changed item by item."""

    def __init__(self) -> None:
        self.all: list[Todo] = []

    def take(self, given: Any, answer: str = "") -> bool:
        """Follow a call or a notice; False if it is not about to-dos."""
        if not isinstance(given, Mapping):
            return False
        named = {bare(str(name)): value for name, value in given.items()}
        listed = next((found for name in _LISTS if (found := _listed(named.get(name)))), None)
        if listed is not None:
            if named.get("merge") is True:
                for todo in listed:
                    self._put(todo)
            else:
                self.all = [todo for todo in listed if todo.status not in _GONE]
            return True
        if any(named.get(name) == [] for name in _LISTS):
            self.all = []
            return True
        return self._take_one(named, answer)

    def take_notice(self, text: str) -> None:
        """Follow a notice of the whole list: if it has none, nothing is left to do."""
        if not self.take({"todos": text}):
            self.all = []

    def _take_one(self, named: Mapping[str, Any], answer: str) -> bool:
        key = _word(named.get("taskid"))
        if key is None and _word(named.get("subject")) is None:
            return False
        if key is None:
            numbered = _NUMBER.search(answer)
            key = numbered[1] if numbered else str(len(self.all) + 1)
        elif not named.keys() & {"status", "subject"}:
            return False  # only asked for
        self._put(_todo({**named, "id": key}))
        return True

    def _put(self, todo: Todo) -> None:
        for known in self.all:
            if known.id is not None and known.id == todo.id:
                known.text = todo.text or known.text
                if todo.status is not None:
                    known.state, known.status = todo.state, todo.status
                break
        else:
            if todo.text:
                self.all.append(todo)
        self.all = [one for one in self.all if one.status not in _GONE]


def _listed(value: Any) -> list[Todo] | None:
    """None if it is not a list of to-dos."""
    if isinstance(value, str):
        return _boxes(value.splitlines()) or None
    if not isinstance(value, list) or not value:
        return None
    if all(isinstance(one, str) for one in value):
        return _boxes(value) or [Todo(None, one, OPEN) for one in value]
    found = [_todo(one) for one in value if isinstance(one, Mapping)]
    return [one for one in found if one.text or one.id] or None


def _boxes(lines: Iterable[str]) -> list[Todo]:
    found = (_BOX.match(line) for line in lines)
    return [
        Todo(None, box[2].strip(), DONE if box[1] in "xX✓" else OPEN if box[1] == " " else DOING)
        for box in found
        if box
    ]


def _todo(one: Mapping[str, Any]) -> Todo:
    text = next((found for name in _TEXTS if (found := _word(one.get(name)))), "")
    status = _word(one.get("status"))
    if status is None and one.get("completed") is True:
        status = "completed"
    return Todo(_word(one.get("id")), text, _state(status), status)


def _state(status: str | None) -> str:
    said = (status or "").casefold()
    return DONE if said in _DONE else DOING if said in _DOING else OPEN


def _word(value: Any) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) and value else None
