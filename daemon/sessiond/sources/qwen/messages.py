"""Reads messages: prompts, answers, calls and their results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sess_schema import kinds, labels
from sessiond.sourcekit.base import TITLE_PROMPT, Event, Record, Result, Title
from sessiond.sourcekit.titles import prompt_title
from sessiond.sourcekit.toolbox import Toolbox, exited_with_error
from sessiond.sourcekit.values import OPAQUE, as_dict, as_milliseconds, as_text, strings

_TOOLS = Toolbox(
    {
        kinds.SHELL: ("run_shell_command", "shell", "bash"),
        kinds.READ: ("read_file", "read_many_files"),
        kinds.WRITE: ("write_file",),
        kinds.EDIT: ("edit", "replace", "notebook_edit"),
        kinds.SEARCH: (
            *("glob", "grep_search", "list_directory", "ls", "lsp", "ripgrep"),
            *("search_file_content",),
        ),
        kinds.FETCH: ("web_fetch", "web_search", "google_web_search"),
        kinds.AGENT: ("task", "agent"),
        kinds.PLAN: ("todo_write", "enter_plan_mode", "exit_plan_mode"),
        kinds.QUESTION: ("ask_user_question", "ask_user"),
    }
)
_HOOK = "<qwen:user-prompt-submit-context>"
# How text starts that the program adds to a prompt, and its label.
_INJECTED = (
    (_HOOK, "hook"),
    ("<system-reminder>", labels.REMINDER),
    ("--- Content from ", "files"),
    ("This is the Qwen Code. We are setting up the context for our chat.", labels.CONTEXT),
)
_ENDS = {"error": "error", "failed": "error", "cancelled": "denied", "canceled": "denied"}
_HIDDEN = OPAQUE | {"id", "name", "mimeType", "thoughtSignature"}

Piece = tuple[str, dict[str, Any]]


def pieces(value: dict[str, Any]) -> Iterator[Piece]:
    """(JSON pointer, piece) pairs of a record's message."""
    message = value.get("message")
    parts = as_dict(message).get("parts")
    if isinstance(message, str) or isinstance(parts, str):
        yield "/message", {"text": message if isinstance(message, str) else parts}
        return
    for number, piece in enumerate(parts if isinstance(parts, list) else ()):
        if isinstance(piece, dict):
            yield f"/message/parts/{number}", piece
        elif isinstance(piece, str):
            yield f"/message/parts/{number}", {"text": piece}


def read_prompt(record: Record, value: dict[str, Any]) -> None:
    """What was shown is what was typed; the rest of the message was added to it."""
    shown = (as_text(as_dict(value.get("systemPayload")).get("displayText")) or "").strip()
    typed, added, images = [], list[tuple[str, str]](), 0
    for _, piece in pieces(value):
        text = (as_text(piece.get("text")) or "").strip()
        label = next((label for start, label in _INJECTED if text.startswith(start)), None)
        if label is None and added and added[-1][1] == "files":
            label = "files"  # one piece per file
        if text and label:
            added.append((text, label))
        elif text and shown and text not in shown:
            added.append((text, labels.CONTEXT))
        elif text:
            typed.append(text)
        mime = as_text(as_dict(piece.get("inlineData") or piece.get("fileData")).get("mimeType"))
        images += bool(mime and mime.startswith("image/"))
    prompt = shown or "\n".join(typed)
    if prompt or images:
        queued = labels.QUEUED if record.kind == "mid_turn_user_message" else None
        record.events.append(Event("user", prompt or "[image]", label=queued, images=images))
        if title := prompt_title(prompt):
            record.titles.append(Title(title, TITLE_PROMPT))
    record.events += [Event("system", text, label=label) for text, label in added]


def read_answer(record: Record, value: dict[str, Any]) -> None:
    for place, piece in pieces(value):
        text = as_text(piece.get("text")) or ""
        call = piece.get("functionCall")
        if text.strip():
            kind = "thinking" if piece.get("thought") is True else "assistant"
            last = record.events[-1] if record.events else None
            if last is not None and last.type == kind:
                last.text += text.rstrip()
            else:
                record.events.append(Event(kind, text.strip()))
        elif isinstance(call, dict):
            name, given = as_text(call.get("name")), call.get("args")
            pointer = f"{place}/functionCall/args"
            record.events.append(_TOOLS.call(name, given, as_text(call.get("id")), pointer))


def read_result(record: Record, value: dict[str, Any]) -> None:
    facts = as_dict(value.get("toolCallResult"))
    ended = _ENDS.get(as_text(facts.get("status")) or "")
    for place, piece in pieces(value):
        response = piece.get("functionResponse")
        if not isinstance(response, dict):
            continue
        call_id = as_text(facts.get("callId")) or as_text(response.get("id")) or record.native_id
        if call_id is None:
            continue
        output, failed = _output(response.get("response"))
        status = ended or ("error" if failed else "ok")
        if status == "ok" and _TOOLS.kind(as_text(response.get("name"))) == kinds.SHELL:
            status = "error" if exited_with_error(output) else "ok"
        shown = facts.get("resultDisplay")
        record.results.append(
            Result(
                call_id,
                output or as_text(shown) or "",
                status,
                duration_ms=as_milliseconds(facts.get("durationMs")),
                images=sum("inlineData" in one for one in _media(response)),
                pointer=f"{place}/functionResponse/response",
            )
        )
    call_id = as_text(facts.get("callId"))
    if call_id and not record.results:  # only how it ended, and what was shown
        shown = as_text(facts.get("resultDisplay")) or ""
        record.results.append(Result(call_id, shown, ended or "ok", pointer="/toolCallResult"))


def _media(response: dict[str, Any]) -> list[dict[str, Any]]:
    parts = response.get("parts")
    return [one for one in parts if isinstance(one, dict)] if isinstance(parts, list) else []


def _output(response: Any) -> tuple[str, bool]:
    """The text of a response, and whether it is an error."""
    fields = as_dict(response)
    for name, failed in (("error", True), ("output", False), ("result", False)):
        if fields.get(name):
            return "\n".join(strings(fields[name], _HIDDEN)), failed
    return "\n".join(strings(response, _HIDDEN)), fields.get("success") is False
