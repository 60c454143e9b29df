"""Describes calls of Cursor's tools: a one-line summary, kind, files and edits.

The editor and cursor-agent use different names for the same tools and arguments: `targetFile` of
`read_file_v2` is `path` of `Read`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import unquote

from sess_schema import calls, kinds
from sess_schema.calls import bare, progress
from sess_schema.edits import Edit
from sessiond.sourcekit.base import Described
from sessiond.sourcekit.toolbox import edits_of_arguments, edits_of_patch
from sessiond.sourcekit.values import as_text, strings
from sessiond.sources.cursor.richtext import readable, structured

_ALIASES = {
    "delete": ("delete", "deletefile"),
    "edit": (
        *("edit", "editfile", "editnotebook", "multiedit", "reapply", "searchreplace"),
        *("strreplace",),
    ),
    "glob": ("filesearch", "glob", "globfilesearch"),
    "grep": ("grep", "grepsearch", "ripgrep", "ripgreprawsearch"),
    "list": ("listdir", "ls"),
    "patch": ("applypatch",),
    "read": ("read", "readfile"),
    "shell": ("bash", "runterminalcmd", "runterminalcommand", "shell"),
    "task": ("agent", "subagent", "task"),
    "todos": ("todowrite",),
    "write": ("createfile", "newfile", "write", "writefile"),
}
_KINDS = {alias: kind for kind, aliases in _ALIASES.items() for alias in aliases}
# Common kinds; tools without a special summary are listed here.
_ACTS = {
    "delete": kinds.EDIT, "edit": kinds.EDIT, "glob": kinds.SEARCH, "grep": kinds.SEARCH,
    "list": kinds.SEARCH, "patch": kinds.EDIT, "read": kinds.READ, "shell": kinds.SHELL,
    "task": kinds.AGENT, "todos": kinds.PLAN, "write": kinds.WRITE,
}  # fmt: skip
_OTHER_ACTS = {
    **dict.fromkeys(("askfollowupquestion", "askquestion", "askuserquestion"), kinds.QUESTION),
    **dict.fromkeys(("createplan", "todoread", "updateplan", "updatetodos"), kinds.PLAN),
    **dict.fromkeys(("fetch", "fetchurl", "webfetch", "websearch"), kinds.FETCH),
    **dict.fromkeys(
        (
            *("codebasesearch", "ripgrepsearch", "search", "searchsymbols", "semanticsearch"),
            *("semanticsearchfull",),
        ),
        kinds.SEARCH,
    ),
    **dict.fromkeys(("callmcptool", "fetchmcpresource", "listmcpresources"), kinds.MCP),
}
_TELLING = frozenset({"oldstring", "newstring", "oldstr", "newstr", "patch"})
_VERSION = re.compile(r"v\d$")
_ACTIONS = {"delete": "edit", "edit": "edit", "patch": "edit", "read": "read", "write": "write"}

# Bare names of arguments, the best first.
_FILES = (*calls.FILES, "effectiveuri", "uri")
_PATTERNS = ("pattern", "regex")
_GLOBS = ("globpattern",)
_AGENTS = ("subagenttype", "subagenttypename")
_QUERIES = ("query", "searchterm", "url", "symbol")
_WORDS = ("description", "title", "prompt", "plan", "question", "explanation")

_PATCHED = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+?)\s*$", re.MULTILINE)
_PATCHES = {"Add": "write", "Update": "edit", "Delete": "edit"}
_WHOLE_PATH = re.compile(r"[/\\~]|[A-Za-z]:[/\\]")
_WINDOWS_URI = re.compile(r"/[A-Za-z]:")
_MOST_FILES = 100
_LONGEST = 1000  # the whole arguments are stored too

Files = tuple[tuple[str, str], ...]


def describe(tool: str | None, given: Any, loose: Sequence[str] = ()) -> Described:
    """Describe a call; `loose` are texts besides the named arguments."""
    given = structured(given)
    kind = _act(tool)
    edits = _edits(tool, kind, given, loose)
    if kind == kinds.OTHER and edits:
        kind = kinds.EDIT
    # A patch is loose text and names more files than the arguments beside it.
    files = files_of_call(tool, [*loose]) or files_of_call(tool, given)
    return Described(kind, summarize_call(tool, given or "\n".join(loose[:1])), files, edits)


def _act(tool: str | None) -> str:
    name = _VERSION.sub("", bare(tool or ""))
    if name.startswith("mcp"):
        return kinds.MCP
    known = _KINDS.get(name)
    return _ACTS[known] if known else _OTHER_ACTS.get(name, kinds.OTHER)


def _edits(tool: str | None, kind: str, given: Any, loose: Sequence[str]) -> tuple[Edit, ...]:
    named = given if isinstance(given, dict) else {}
    if "streamingContent" in named:  # the whole file
        named = {"content": named["streamingContent"], **named}
    if kind == kinds.OTHER and _TELLING.isdisjoint(map(bare, named)):
        return ()
    if kind not in (kinds.WRITE, kinds.EDIT, kinds.OTHER):
        return ()
    path = _named_file(named)
    texts = (*loose, given) if isinstance(given, str) else loose
    patched = (edits for text in texts if (edits := edits_of_patch(text, path)))
    return next(patched, ()) or edits_of_arguments(path, named)


def summarize_call(tool: str | None, given: Any) -> str:
    """What a call does, at a glance."""
    given, kind = structured(given), _kind(tool)
    if kind == "patch" and (patched := _patched(given)):
        return _one_line(", ".join(path for path, _ in patched))
    if not isinstance(given, dict):
        return _one_line(given) if isinstance(given, str) else ""
    named = {bare(name): value for name, value in given.items()}
    special = _SUMMARIES.get(kind or "")
    text = (special(named) if special else "") or _distinctive(named)
    return _one_line(text or ("" if kind else ", ".join(sorted(given))))


def files_of_call(tool: str | None, given: Any) -> Files:
    """(path, action) of the files that a call reads or changes, with full paths if given."""
    given, kind = structured(given), _kind(tool)
    if kind == "patch" and (patched := _patched(given)):
        return patched
    action = _ACTIONS.get(kind or "")
    if action is None or not isinstance(given, dict):
        return ()
    path = _named_file(given)
    return ((path, action),) if path else ()


def _named_file(given: dict[str, Any]) -> str:
    """The file that arguments name, with its full path if given."""
    named = {bare(name): value for name, value in given.items()}
    paths = [path for name in _FILES if (path := as_path(named.get(name)))]
    return next((path for path in paths if _WHOLE_PATH.match(path)), paths[0] if paths else "")


def as_path(value: Any) -> str | None:
    """The path in a string, a `file:` URI or a URI as JSON components."""
    if isinstance(value, dict):
        value = as_text(value.get("fsPath")) or value.get("path")
    text = as_text(value)
    if text is None or not text.startswith("file://"):
        return text
    path = unquote(text.removeprefix("file://"))
    return path[1:] if _WINDOWS_URI.match(path) else path or None


def _kind(tool: str | None) -> str | None:
    return _KINDS.get(_VERSION.sub("", bare(tool or "")))


def _patched(given: Any) -> Files:
    patches = (patch for text in strings(given) for patch in _PATCHED.finditer(text))
    files = dict.fromkeys((patch[2], _PATCHES[patch[1]]) for patch in patches)
    return tuple(files)[:_MOST_FILES]


def _one_line(text: str) -> str:
    text = " ".join(readable(text[: 4 * _LONGEST])[0].split())
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."


# -- summaries; arguments are given by their bare names


def _first_text(named: dict[str, Any], *names: str) -> str:
    return next((text for name in names if (text := as_text(named.get(name)))), "")


def _path(named: dict[str, Any]) -> str:
    paths = (as_path(named.get(name)) for name in (*_FILES, *calls.FOLDERS))
    return next(filter(None, paths), "")


def _noted(note: str) -> Callable[[dict[str, Any]], str]:
    return lambda named: f"{path} ({note})" if (path := _path(named)) else ""


def _shell(named: dict[str, Any]) -> str:
    command, description = _first_text(named, "command"), _first_text(named, "description")
    return f"{command} # {description}" if command and description else command


def _write(named: dict[str, Any]) -> str:
    path = _path(named)
    contents = (named.get(name) for name in calls.CONTENTS)
    content = next((text for text in contents if isinstance(text, str)), None)
    size = "write" if content is None else f"{len(content.encode('utf-8', 'replace'))} bytes"
    return f"{path} ({size})" if path else ""


def _grep(named: dict[str, Any], *more: str) -> str:
    pattern = _first_text(named, *_PATTERNS, *more)
    return f"/{pattern}/ in {_path(named) or '.'}" if pattern else ""


def _glob(named: dict[str, Any], *more: str) -> str:
    pattern, path = _first_text(named, *_GLOBS, *more), _path(named)
    return f"{pattern} in {path}" if pattern and path else pattern


def _task(named: dict[str, Any]) -> str:
    kind = _first_text(named, *_AGENTS)
    return f"[{kind}] {_first_text(named, *_WORDS)}".rstrip() if kind else ""


def _todos(named: dict[str, Any]) -> str:
    listed = named.get("todos")
    return progress(listed) if isinstance(listed, list) and listed else ""


def _distinctive(named: dict[str, Any]) -> str:
    """For any tool: the first argument that distinguishes most calls."""
    text = _shell(named) or _grep(named) or _glob(named) or _task(named)
    return (
        text
        or _first_text(named, *_QUERIES)
        or _path(named)
        or _first_text(named, *_WORDS)
        or _todos(named)
    )


_SUMMARIES: dict[str, Callable[[dict[str, Any]], str]] = {
    "delete": _noted("delete"),
    "edit": _noted("edit"),
    "glob": lambda named: _glob(named, "pattern", "query"),
    "grep": lambda named: _grep(named, "query"),
    "list": _path,
    "patch": _noted("edit"),
    "read": _path,
    "shell": _shell,
    "task": _task,
    "todos": _todos,
    "write": _write,
}
