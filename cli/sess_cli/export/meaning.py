"""The meaning of a tool call's arguments, whatever the agent calls them."""

from __future__ import annotations

from typing import Any

from sess_cli.export.story import Item
from sess_schema import calls, edits, kinds
from sess_schema.calls import Todo

TODO = "todo"


def kind_of(item: Item) -> str:
    """The kind of a call, or `todo` for a to-do list; `other` if arguments are missing.

    A call without its arguments cannot be drawn as its kind.
    """
    kind = item.kind if item.kind in kinds.ALL else kinds.OTHER
    if kind == kinds.WRITE and item.edits and written(item) is not None:
        return kinds.WRITE
    if kind in (kinds.EDIT, kinds.WRITE):
        return kinds.EDIT if item.edits else kinds.OTHER
    listed = calls.todos_in(calls.named(item.given)) if kind == kinds.PLAN else None
    return kind if listed is None else TODO


def path_of(item: Item) -> str:
    """The file that a call touched, as the index knows it, else the path that it names."""
    if len(item.files) == 1:
        return item.files[0]["path"]
    return calls.path_in(calls.named(item.given))


def command(item: Item) -> str:
    """The command that a shell call ran."""
    if isinstance(item.given, str):
        return item.given
    named = calls.named(item.given)
    value = next(filter(None, map(named.get, calls.COMMANDS)), None)
    if isinstance(value, list):
        return " ".join(map(str, value))
    return value if isinstance(value, str) else item.summary


def pattern(item: Item) -> str:
    """What a search looked for."""
    return says(item, *calls.PATTERNS)


def page(item: Item) -> str:
    """The address that a call fetched, or the words it looked for on the web."""
    return says(item, *calls.PAGES)


def description(item: Item) -> str:
    return says(item, "description", "explanation")


def prompt(item: Item) -> str:
    """The prompt given to a subagent."""
    return says(item, "prompt", "task")


def patch_text(item: Item) -> str:
    """The patches in a call's arguments."""
    return "\n".join(edit.patch for edit in edits.shown(item.edits) if edit.patch is not None)


def written(item: Item) -> str | None:
    """The complete new content of a file."""
    return calls.text_in(calls.named(item.given), *calls.CONTENTS)


def todos(item: Item) -> list[Todo]:
    return calls.todos_in(calls.named(item.given)) or []


def says(item: Item, *names: str) -> str:
    """The first text among the arguments with these names; empty if there is none."""
    return calls.text_in(calls.named(item.given), *names) or ""


def arguments(item: Item) -> list[tuple[str, Any]]:
    """Every argument by name, for calls of kind `other`."""
    if isinstance(item.given, dict):
        return [*item.given.items()]
    return [] if item.given is None else [("input", item.given)]
