"""What a tool call is about, whatever the agent calls the tool and its arguments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sess_cli.export.story import Item

_SHELLS = frozenset({
    "bash", "shell", "runterminalcmd", "runterminalcommand", "execcommand", "localshell",
    "runshellcommand", "terminal", "execute", "executecommand", "powershell",
})  # fmt: skip
_WRITES = frozenset({"write", "writefile", "create", "createfile", "writetofile", "save"})
_TODOS = frozenset({"todowrite", "updatetodos", "updateplan", "todolist", "writetodos"})
_AGENTS = frozenset({"task", "agent", "subagent", "spawnagent", "dispatchagent"})
_SEARCHES = frozenset({
    "grep", "glob", "ls", "search", "ripgreprawsearch", "ripgrepsearch", "codebasesearch",
    "filesearch", "listdir", "globfilesearch", "semanticsearchfull", "findfiles", "searchfiles",
})  # fmt: skip
_READS = frozenset({"read", "readfile", "notebookread", "view", "cat", "viewfile"})
_PATHS = (
    "filepath", "path", "targetfile", "notebookpath", "relativeworkspacepath", "file", "filename",
)  # fmt: skip
_DONE = frozenset({"completed", "complete", "done", "finished"})
_DOING = frozenset({"in_progress", "inprogress", "active", "doing"})


@dataclass(slots=True, frozen=True)
class Edit:
    old: str
    new: str


@dataclass(slots=True, frozen=True)
class Todo:
    text: str
    state: str  # done, doing, open


def kind_of(item: Item) -> str:
    """shell, edit, write, todo, agent, search, read, or other."""
    name = bare(item.tool or "")
    if name in _SHELLS:
        return "shell"
    if name in _TODOS:
        return "todo"
    if name in _AGENTS:
        return "agent"
    if name in _WRITES and written(item) is not None:
        return "write"
    if edits(item) or patch_text(item):
        return "edit"
    if name in _SEARCHES:
        return "search"
    return "read" if name in _READS else "other"


def path_of(item: Item) -> str:
    """The file that a call names."""
    named = _named(item)
    return next((path for name in _PATHS if (path := _said(named, name))), "")


def command(item: Item) -> str:
    """What a shell was told to run."""
    given = item.input
    if isinstance(given, str):
        return given
    value = _named(item).get("command") or _named(item).get("cmd") or _named(item).get("script")
    if isinstance(value, list):
        return " ".join(map(str, value))
    return value if isinstance(value, str) else item.summary


def description(item: Item) -> str:
    return _said(_named(item), "description") or _said(_named(item), "explanation")


def prompt(item: Item) -> str:
    """What an agent was asked to do."""
    return _said(_named(item), "prompt") or _said(_named(item), "task")


def edits(item: Item) -> list[Edit]:
    """Each replaced text with what replaced it."""
    named = _named(item)
    several = named.get("edits")
    if isinstance(several, list):
        found = [_edit({bare(k): v for k, v in e.items()}) for e in several if isinstance(e, dict)]
    else:
        found = [_edit(named)]
    return [edit for edit in found if edit is not None]


def patch_text(item: Item) -> str:
    """A patch in the `*** Begin Patch` or the unified form."""
    given = item.input
    texts = [given] if isinstance(given, str) else _named(item).values()
    for text in texts:
        if isinstance(text, str) and ("*** Begin Patch" in text or "\n@@ " in text):
            return text
    return ""


def written(item: Item) -> str | None:
    """The whole new content of a file."""
    named = _named(item)
    for name in ("content", "contents", "filetext", "codeedit", "newsource"):
        if isinstance(named.get(name), str):
            return str(named[name])
    return None


def todos(item: Item) -> list[Todo]:
    named = _named(item)
    listed = named.get("todos") or named.get("plan") or named.get("items")
    return [*_todos(listed)] if isinstance(listed, list) else []


def arguments(item: Item) -> list[tuple[str, Any]]:
    """Every argument by name, for calls of no special kind."""
    if isinstance(item.input, dict):
        return [*item.input.items()]
    return [] if item.input is None else [("input", item.input)]


@lru_cache(maxsize=512)
def bare(name: str) -> str:
    """The same name, whether it was `target_file`, `targetFile` or `TargetFile`; no version."""
    return name.replace("_", "").replace("-", "").casefold().removesuffix("v2")


def _edit(named: dict[str, Any]) -> Edit | None:
    old = next((named[n] for n in ("oldstring", "oldstr", "oldtext") if n in named), None)
    new = next((named[n] for n in ("newstring", "newstr", "newtext") if n in named), None)
    if isinstance(old, str) or isinstance(new, str):
        return Edit(old if isinstance(old, str) else "", new if isinstance(new, str) else "")
    return None


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
    if not isinstance(item.input, dict):
        return {}
    return {bare(str(name)): value for name, value in item.input.items()}


def _said(named: dict[str, Any], name: str) -> str:
    value = named.get(name)
    return value if isinstance(value, str) else ""
