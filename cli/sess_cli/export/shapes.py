"""The meaning of a tool call's arguments, whatever the agent calls them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sess_cli.export.story import Item
from sess_schema import edits, kinds

TODO = "todo"
_PATHS = (
    "filepath", "path", "targetfile", "notebookpath", "relativeworkspacepath", "file", "filename",
)  # fmt: skip
_DONE = frozenset({"completed", "complete", "done", "finished"})
_DOING = frozenset({"in_progress", "inprogress", "active", "doing"})


@dataclass(slots=True, frozen=True)
class Todo:
    text: str
    state: str  # done, doing, open


def kind_of(item: Item) -> str:
    """The kind of a call, or `todo` for a to-do list; `other` if arguments are missing.

    A call without its arguments cannot be drawn as its kind.
    """
    kind = item.kind if item.kind in kinds.ALL else kinds.OTHER
    if kind == kinds.WRITE and item.edits and written(item) is not None:
        return kinds.WRITE
    if kind in (kinds.EDIT, kinds.WRITE):
        return kinds.EDIT if item.edits else kinds.OTHER
    return TODO if kind == kinds.PLAN and _listed(item) is not None else kind


def path_of(item: Item) -> str:
    """The file that a call names."""
    named = _named(item)
    return next((path for name in _PATHS if (path := _said(named, name))), "")


def command(item: Item) -> str:
    """The command that a shell call ran."""
    given = item.given
    if isinstance(given, str):
        return given
    value = _named(item).get("command") or _named(item).get("cmd") or _named(item).get("script")
    if isinstance(value, list):
        return " ".join(map(str, value))
    return value if isinstance(value, str) else item.summary


def description(item: Item) -> str:
    return _said(_named(item), "description") or _said(_named(item), "explanation")


def prompt(item: Item) -> str:
    """The prompt given to a subagent."""
    return _said(_named(item), "prompt") or _said(_named(item), "task")


def patch_text(item: Item) -> str:
    """The patches in a call's arguments."""
    return "\n".join(edit.patch for edit in edits.shown(item.edits) if edit.patch is not None)


def written(item: Item) -> str | None:
    """The complete new content of a file."""
    named = _named(item)
    for name in ("content", "contents", "filetext", "codeedit", "newsource"):
        if isinstance(named.get(name), str):
            return str(named[name])
    return None


def todos(item: Item) -> list[Todo]:
    return [*_todos(_listed(item) or [])]


def _listed(item: Item) -> list[Any] | None:
    named = _named(item)
    lists = (named.get(name) for name in ("todos", "plan", "items"))
    return next((one for one in lists if isinstance(one, list)), None)


def says(item: Item, name: str) -> str:
    """A string argument by name; empty if there is none."""
    return _said(_named(item), name)


def arguments(item: Item) -> list[tuple[str, Any]]:
    """Every argument by name, for calls of kind `other`."""
    if isinstance(item.given, dict):
        return [*item.given.items()]
    return [] if item.given is None else [("input", item.given)]


@lru_cache(maxsize=512)
def bare(name: str) -> str:
    """The name normalised: `target_file`, `targetFile`, `TargetFileV2` are all `targetfile`."""
    return name.replace("_", "").replace("-", "").casefold().removesuffix("v2")


def _todos(listed: list[Any]) -> Iterator[Todo]:
    for one in listed:
        if isinstance(one, str):
            yield Todo(one, "open")
        elif isinstance(one, dict):
            text = next(
                (
                    one[n]
                    for n in ("content", "step", "text", "title")
                    if isinstance(one.get(n), str)
                ),
                "",
            )
            status = one.get("status")
            state = status.casefold() if isinstance(status, str) else ""
            yield Todo(text, "done" if state in _DONE else "doing" if state in _DOING else "open")


def _named(item: Item) -> dict[str, Any]:
    if not isinstance(item.given, dict):
        return {}
    return {bare(str(name)): value for name, value in item.given.items()}


def _said(named: dict[str, Any], name: str) -> str:
    value = named.get(name)
    return value if isinstance(value, str) else ""
