"""Separates what a person typed from what the extension put around it."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from sessiond.sourcekit.folders import absolute
from sessiond.sourcekit.values import as_dict, as_text

# What people typed stands in one of these; everything else in a message is the extension's.
_TYPED = re.compile(
    r"<(task|user_message|feedback|answer|user_input|user_command)(?: [^>\n]*)?>\n?(.*?)\n?</\1>",
    re.DOTALL,
)
_NOTICE = re.compile(
    r"<(mode_notice|hook_context|recalled_memory|file_content)\b.*?</\1>", re.DOTALL
)
_DETAILS = re.compile(r"<environment_details>.*?(?:</environment_details>|\Z)", re.DOTALL)
_DIRECTORY = re.compile(r"# Current (?:Working|Workspace) Directory \(([^)\n]+)\)")
_MODEL = re.compile(r"# Current Mode\b.*?<model>\s*([^<>\s]+)\s*</model>", re.DOTALL)
_BRANCH = re.compile(r"# Git Status\n(?:.*\n)?## ([^\s.]+(?:\.[^\s.]+)*)")
_RESULT = re.compile(r"\A\[(\w+)(?: .*?)?\] Result:[ \t]*(?:\n|\Z)", re.DOTALL)
_INJECTED = (
    "[TASK RESUMPTION]",
    "[ERROR]",
    "[NOTE]",
    "[[NOTE]",
    "Missing value for required parameter",
    "<explicit_instructions",
    "<file_content",
    "<folder_content",
    "<url_content",
    "<workspace_diagnostics",
    "<git_working_state",
    "<terminal_output",
    "<hook_context",
    "<slash_command",
    "<command name",
    "# task_progress",
    "The user has made the following",
    "The user made the following",
    "You seem to be having trouble proceeding",
    "Task was interrupted before this tool call could be completed",
    "New message to respond to",
    "New instructions for task continuation",
    "(This is an automated message",
    "The user approved switching to act mode",
)
_LONGEST_HEADER = 20_000


class Facts(NamedTuple):
    """What a message says about the place and the model."""

    directory: str | None = None
    model: str | None = None
    branch: str | None = None


class Split(NamedTuple):
    typed: list[str]
    injected: list[tuple[str, str]]  # (text, label)


def result_header(text: str) -> tuple[str, str] | None:
    """The tool whose result this is, and what follows the header."""
    found = _RESULT.match(text[:_LONGEST_HEADER])
    return (found[1], text[found.end() :]) if found else None


def facts_of(text: str) -> Facts:
    details = _DETAILS.search(text)
    if details is None:
        return Facts()
    directory, model = _DIRECTORY.search(details[0]), _MODEL.search(details[0])
    branch = _BRANCH.search(details[0])
    return Facts(
        absolute(directory[1].strip()) if directory else None,
        model[1] if model else None,
        branch[1] if branch else None,
    )


def typed_in(text: str) -> list[str]:
    """What people typed, where it stands inside a result."""
    found = (_NOTICE.sub("", one[2]).strip() for one in _TYPED.finditer(text))
    return [typed for typed in found if typed and not typed.startswith(_INJECTED)]


def split(text: str, *, plain: bool) -> Split:
    """`plain`: text outside of the known tags is a person's too."""
    injected = [(found[0], "context") for found in _DETAILS.finditer(text)]
    rest = _DETAILS.sub("", text).strip()
    typed = typed_in(rest)
    if typed:
        around = [found[0] for found in _NOTICE.finditer(rest)]
        around.append(_NOTICE.sub("", _TYPED.sub("", rest)))
        return Split(typed, [*_labelled(around), *injected])
    if not plain or _TYPED.search(rest) or rest.startswith(_INJECTED):
        return Split([], [*_labelled([rest]), *injected])
    around = [found[0] for found in _NOTICE.finditer(rest)]
    rest = _NOTICE.sub("", rest).strip()
    return Split([rest] if rest else [], [*_labelled(around), *injected])


def without_details(text: str) -> str:
    return _DETAILS.sub("", text).strip()


def _labelled(texts: list[str]) -> list[tuple[str, str]]:
    return [(text, _label(text)) for text in texts if text.strip()]


def _label(text: str) -> str:
    return "resumption" if text.startswith("[TASK RESUMPTION]") else "context"


def may_be_result(text: str) -> bool:
    """Whether a text may be a result: neither typed nor only details."""
    return bool(without_details(text)) and not typed_in(text)


def feedback(output: str) -> str | None:
    """What a person typed when they allowed or denied a call."""
    if not output.startswith("{"):
        return None
    try:
        value, _ = json.JSONDecoder().raw_decode(output)
    except (ValueError, RecursionError):
        return None
    found = as_dict(value)
    return as_text(found.get("feedback")) if "status" in found else None
