"""Describes tool calls by a table of an agent's tools: most agents name arguments alike."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sess_schema import kinds, labels
from sess_schema.calls import COMMANDS, PAGES, PATTERNS, bare, path_in, progress
from sess_schema.edits import Edit
from sessiond.sourcekit.base import Described, Event
from sessiond.sourcekit.changes import edits_of_arguments
from sessiond.sourcekit.content import searchable_input
from sessiond.sourcekit.values import as_dict, as_text

_LISTS = ("files", "filepaths", "paths", "operations")
_TASKS = (
    "description",
    "title",
    "task",
    "tasks",
    "instructions",
    "prompt",
    "prompts",
    "message",
    "objective",
)
_NAMED = ("command", "url", "question", "task", "description", "text")  # in a list of objects
_WORKERS = ("subagenttype", "agenttype", "agentname", "agent", "mode")
_QUESTIONS = ("question", "questions", "followup", "message", "text")
_SUBJECTS = (
    *("command", "description", "query", "question", "url", "prompt", "task", "name", "skill"),
    *("toolname", "uri", "action", "title", "message", "result", "summary", "text", "thought"),
)
_BY_KIND = {
    kinds.SHELL: COMMANDS,
    kinds.FETCH: PAGES,
    kinds.QUESTION: _QUESTIONS,
}
_ACTIONS = {kinds.READ: "read", kinds.WRITE: "write", kinds.EDIT: "edit"}
_GLOBS = frozenset("*?[{")
_LONGEST = 1000  # the event also keeps the whole input
_EXIT = re.compile(r"^Exit Code: (-?\d{1,10})$", re.MULTILINE)


class Toolbox:
    """The tools of an agent by kind; spelling does not matter (`ReadFile` is `read_file`)."""

    def __init__(
        self, tools: Mapping[str, Sequence[str]], mcp: tuple[str, ...] = ("mcp__", "mcp_")
    ) -> None:
        self._kinds = {bare(tool): kind for kind, names in tools.items() for tool in names}
        self._mcp = mcp

    def kind(self, tool: str | None) -> str:
        name = tool or ""
        found = self._kinds.get(bare(name))
        if found is None and name.startswith(self._mcp):
            return kinds.MCP
        return found or kinds.OTHER

    def describe(
        self, tool: str | None, given: Any, kind: str = "", edits: tuple[Edit, ...] = ()
    ) -> Described:
        """`kind` and `edits` replace what the name and the arguments say."""
        kind = kind or self.kind(tool)
        fields = {bare(name): value for name, value in as_dict(given).items()}
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
    if path := path_in(fields):
        yield path
        return
    for name in _LISTS:
        listed = fields.get(name)
        for one in listed if isinstance(listed, list) else [listed]:
            if isinstance(one, dict):
                yield from _paths({bare(key): value for key, value in one.items()})
            elif isinstance(one, str) and one and _GLOBS.isdisjoint(one):
                yield one


def _summary(kind: str, fields: Mapping[str, Any], paths: Sequence[str]) -> str:
    if kind in _ACTIONS and paths:
        return f"{', '.join(paths)} (edit)" if kind == kinds.EDIT else ", ".join(paths)
    if kind == kinds.SEARCH:
        return " in ".join(filter(None, (_first(fields, PATTERNS), ", ".join(paths))))
    if kind == kinds.AGENT:
        worker, task = _first(fields, _WORKERS), _first(fields, _TASKS)
        return f"[{worker}] {task}".rstrip() if worker else task
    if isinstance(fields.get("todos"), list):
        return progress(fields["todos"])
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
