"""Follows a to-do list through the calls and notices that change it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sess_schema import calls
from sess_schema.calls import Todo

_NUMBER = re.compile(r"#(\d+)")


class Todos:
    """A list that is replaced as a whole or changed item by item."""

    def __init__(self) -> None:
        self.all: list[Todo] = []

    def take(self, given: Any, answer: str = "") -> bool:
        """Follow a call or a notice; False if it is not about to-dos."""
        named = calls.named(given)
        todos = calls.todos_in(named)
        if todos is None:
            return self._take_one(named, answer)
        if todos and named.get("merge") is True:
            for todo in todos:
                self._put(todo)
        else:
            self.all = [todo for todo in todos if not todo.is_gone]
        return True

    def take_notice(self, text: str) -> None:
        """Follow a notice of the whole list: if it has none, nothing is left to do."""
        if not self.take({"todos": text}):
            self.all = []

    def _take_one(self, named: Mapping[str, Any], answer: str) -> bool:
        key = calls.word(named.get("taskid"))
        if key is None and calls.word(named.get("subject")) is None:
            return False
        if key is None:
            numbered = _NUMBER.search(answer)
            key = numbered[1] if numbered else str(len(self.all) + 1)
        elif not named.keys() & {"status", "subject"}:
            return False  # only asked for
        self._put(calls.todo_of({**named, "id": key}))
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
        self.all = [one for one in self.all if not one.is_gone]
