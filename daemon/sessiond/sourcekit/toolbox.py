"""Describes tool calls by a table of an agent's tools: most agents name tools and arguments alike.

Edits are read from the arguments, and from the patches that agents write.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import orjson

from sess_schema import calls, kinds, labels
from sess_schema.edits import Edit
from sessiond.sourcekit.base import Described, Event
from sessiond.sourcekit.values import as_dict, as_text, searchable_input

_LISTS = ("files", "filepaths", "paths", "operations")
_TASKS = (
    *("description", "title", "task", "tasks", "instructions", "prompt", "prompts", "message"),
    *("objective",),
)
_NAMED = ("command", "url", "question", "task", "description", "text")  # in a list of objects
_WORKERS = ("subagenttype", "agenttype", "agentname", "agent", "mode")
_QUESTIONS = ("question", "questions", "followup", "message", "text")
_SUBJECTS = (
    *("command", "description", "query", "question", "url", "prompt", "task", "name", "skill"),
    *("toolname", "uri", "action", "title", "message", "result", "summary", "text", "thought"),
)
_BY_KIND = {kinds.SHELL: calls.COMMANDS, kinds.FETCH: calls.PAGES, kinds.QUESTION: _QUESTIONS}
_ACTIONS = {kinds.READ: "read", kinds.WRITE: "write", kinds.EDIT: "edit"}
_GLOBS = frozenset("*?[{")
_LONGEST = 1000  # the event also keeps the whole input
_EXIT = re.compile(r"^Exit Code: (-?\d{1,10})$", re.MULTILINE)


class Toolbox:
    """The tools of an agent by kind; spelling does not matter (`ReadFile` is `read_file`)."""

    def __init__(
        self, tools: Mapping[str, Sequence[str]], mcp: tuple[str, ...] = ("mcp__", "mcp_")
    ) -> None:
        self._kinds = {calls.bare(tool): kind for kind, names in tools.items() for tool in names}
        self._mcp = mcp

    def kind(self, tool: str | None) -> str:
        name = tool or ""
        kind = self._kinds.get(calls.bare(name))
        if kind is None and name.startswith(self._mcp):
            return kinds.MCP
        return kind or kinds.OTHER

    def describe(
        self, tool: str | None, given: Any, kind: str = "", edits: tuple[Edit, ...] = ()
    ) -> Described:
        """`kind` and `edits` replace what the name and the arguments say."""
        kind = kind or self.kind(tool)
        fields = {calls.bare(name): value for name, value in as_dict(given).items()}
        paths = list(_paths(fields))
        if not edits and kind in (kinds.WRITE, kinds.EDIT):
            edits = edits_of_arguments(paths[0] if paths else "", as_dict(given))
        touched = list(dict.fromkeys([*paths, *(edit.path for edit in edits if edit.path)]))
        action = _ACTIONS.get(kind)
        files = tuple((path, action) for path in touched) if action else ()
        summary = given if isinstance(given, str) else _summary(kind, fields, touched)
        return Described(kind, one_line(summary), files, edits)

    def call(self, tool: str | None, given: Any, call_id: str | None, pointer: str | None) -> Event:
        """The event of a call that waits for its result."""
        return event_of(self.describe(tool, given), tool, given, call_id, pointer)


def arguments_in(given: Any, start: str = "{") -> Any:
    """Arguments that may be JSON in a string, if it begins with `start`; other text is text."""
    if isinstance(given, str) and given.lstrip().startswith(start):
        with suppress(orjson.JSONDecodeError):
            return orjson.loads(given)
    return given


def event_of(
    described: Described, tool: str | None, given: Any, call_id: str | None, pointer: str | None
) -> Event:
    return Event(
        "tool_use",
        tool=tool,
        status="pending",
        summary=described.summary,
        input=given if isinstance(given, str) else searchable_input(given),
        call_id=call_id,
        pointer=pointer,
        files=described.files,
        kind=described.kind,
        edits=described.edits,
    )


def run_by_user(command: str, output: str) -> list[Event]:
    """A shell command that a person ran from within the agent: a prompt, not a call."""
    events = [Event("user", f"! {command}", label=labels.BASH)] if command.strip() else []
    if output.strip():
        events.append(Event("system", output.strip(), label=labels.BASH_OUTPUT))
    return events


def exited_with_error(output: str) -> bool:
    """Whether a command failed, by the last line about it, which comes after what it printed."""
    codes = _EXIT.findall(output)
    return bool(codes) and int(codes[-1]) != 0


def one_line(text: str) -> str:
    text = " ".join(text[: 4 * _LONGEST].split()) if "\n" in text or "\r" in text else text
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."


def _paths(fields: Mapping[str, Any]) -> Iterator[str]:
    """The files that are given by name, not by a pattern."""
    if path := calls.path_in(fields):
        yield path
        return
    for name in _LISTS:
        listed = fields.get(name)
        for one in listed if isinstance(listed, list) else [listed]:
            if isinstance(one, dict):
                yield from _paths({calls.bare(key): value for key, value in one.items()})
            elif isinstance(one, str) and one and _GLOBS.isdisjoint(one):
                yield one


def _summary(kind: str, fields: Mapping[str, Any], paths: Sequence[str]) -> str:
    if kind in _ACTIONS and paths:
        return f"{', '.join(paths)} (edit)" if kind == kinds.EDIT else ", ".join(paths)
    if kind == kinds.SEARCH:
        return " in ".join(filter(None, (_first(fields, calls.PATTERNS), ", ".join(paths))))
    if kind == kinds.AGENT:
        worker, task = _first(fields, _WORKERS), _first(fields, _TASKS)
        return f"[{worker}] {task}".rstrip() if worker else task
    if isinstance(fields.get("todos"), list):
        return calls.progress(fields["todos"])
    if kind in _BY_KIND and (subject := _first(fields, _BY_KIND[kind])):
        return subject
    subject = _first(fields, _SUBJECTS) or ", ".join(paths) or _first(fields, fields)
    return subject or ", ".join(sorted(fields))


def _first(fields: Mapping[str, Any], names: Iterable[str]) -> str:
    """The text of the first of these arguments; a list is joined."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, list):
            value = "; ".join(filter(None, map(_text, value)))
        if isinstance(value, str) and value.strip():
            return value
    return ""


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    fields = as_dict(value)
    word = next((text for name in _NAMED if (text := as_text(fields.get(name)))), "")
    listed = fields.get("args")
    more = [one for one in listed if isinstance(one, str)] if isinstance(listed, list) else []
    return " ".join([word, *more]).strip()


_MOST_EDITS = 1000
_MOST_LINES = 10**9


def edits_of_arguments(path: str, given: dict[str, Any]) -> tuple[Edit, ...]:
    """The edits that a call with these arguments makes; `path` is the file they name."""
    fields = calls.named(given)
    several = fields.get("edits")
    if isinstance(several, list):
        edits = (_replacement(path, calls.named(one)) for one in several[:_MOST_EDITS])
        return tuple(edit for edit in edits if edit is not None)
    replaced = _replacement(path, fields)
    if replaced is not None:
        return (replaced,)
    for name in calls.PATCHES:
        if isinstance(fields.get(name), str) and (patched := edits_of_patch(fields[name], path)):
            return patched
    whole = calls.text_in(fields, *calls.CONTENTS)
    return (Edit(path, new=whole),) if whole is not None and path else ()


def _replacement(path: str, fields: dict[str, Any]) -> Edit | None:
    old, new = calls.text_in(fields, *calls.OLD), calls.text_in(fields, *calls.NEW)
    if not path or (old is None and new is None):
        return None
    return Edit(path, old or "", new or "")


def as_hunk(value: Any) -> dict[str, Any] | None:
    """A hunk of a structured patch, reduced to what diffs need."""
    lines = value.get("lines") if isinstance(value, dict) else None
    if not isinstance(lines, list):
        return None
    return {
        "oldStart": _line_number(value.get("oldStart")),
        "newStart": _line_number(value.get("newStart")),
        "lines": [line for line in lines if isinstance(line, str)],
    }


def _line_number(value: Any) -> int:
    return value if isinstance(value, int) and 0 <= value < _MOST_LINES else 1


_BEGIN, _END = "*** Begin Patch", "*** End Patch"
_FILE = re.compile(r"\*\*\* (Add|Update|Delete) File: (.+?)\s*$")
_MOST_FILES = 1000
# A text to find and what replaces it, in the two spellings that agents use; a line number and
# a rule may follow the first line.
_BLOCK = re.compile(
    r"^(?:<{5,}|-{5,}) SEARCH>?[^\n]*\n(?:(?::\w+:[^\n]*\n)+-{5,}\n)?(.*?)^={5,}[^\n]*\n"
    r"(.*?)^(?:>{5,}|\+{5,}) REPLACE",
    re.DOTALL | re.MULTILINE,
)


def is_patch(text: str) -> bool:
    """Whether a text is a patch in `*** Begin Patch` or unified format."""
    return _BEGIN in text or "\n@@ " in text or text.startswith("@@ ")


def edits_of_patch(text: str, path: str = "") -> tuple[Edit, ...]:
    """One edit per file; `path` is the file of a patch that names none."""
    if not is_patch(text):
        return ()
    edits = _edits_of_begin_patch(text) if _BEGIN in text else _edits_of_unified(text, path)
    return tuple(edit for edit, _ in zip(edits, range(_MOST_FILES), strict=False))


def edits_of_blocks(text: str, path: str) -> tuple[Edit, ...]:
    """One edit per SEARCH/REPLACE block, all of one file."""
    blocks = zip(_BLOCK.finditer(text), range(_MOST_FILES), strict=False)
    return tuple(Edit(path, block[1], block[2]) for block, _ in blocks)


def _edits_of_begin_patch(text: str) -> Iterator[Edit]:
    path, lines = "", list[str]()
    for line in [*text.split("\n"), _END]:
        header = _FILE.match(line)
        if header or line.startswith(_END):
            if path:
                yield Edit(path, patch="\n".join((_BEGIN, *lines, _END)))
            path, lines = header[2] if header else "", [line]
        else:
            lines.append(line)


def _edits_of_unified(text: str, path: str) -> Iterator[Edit]:
    """A file starts with a `--- ` line directly followed by a `+++ ` line."""
    lines = text.split("\n")
    starts = [
        at
        for at, line in enumerate(lines[:-1])
        if line.startswith("--- ") and lines[at + 1].startswith("+++ ")
    ]
    if not starts:
        if path:
            yield Edit(path, patch=text)
        return
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        file = _file_named(lines[start], lines[start + 1]) or path
        if file:
            yield Edit(file, patch="\n".join(lines[start:end]))


def _file_named(old: str, new: str) -> str:
    for line, prefix in ((new, "b/"), (old, "a/")):
        name = line[4:].split("\t")[0].strip()
        if name and name != "/dev/null":
            return name.removeprefix(prefix)
    return ""
