"""Reads one message of a chat: prompts, injected text, answers, thoughts and calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sessiond.sourcekit.base import TITLE_PROMPT, Event, Record, Result, Title, Usage
from sessiond.sourcekit.titles import prompt_title
from sessiond.sourcekit.values import as_count, as_dict, as_text, as_time, strings
from sessiond.sources.gemini.calls import command_failed, links_of, response_text, tool_call

_ROLES = {"user": "user", "gemini": "assistant"}
_NOTICES = frozenset({"info", "error", "warning"})
# Text in user messages that the CLI added: how it starts, and its label.
_INJECTED = (
    ("<session_context>", "context"),
    ("This is the Gemini CLI. We are setting up the context for our chat.", "context"),
    ("<hook_context>", "hook"),
    ("--- Content from referenced files ---", "files"),
    ("--- Content from ", "files"),
    ("System: Please continue.", "continue"),
)
_CANCELLED = "[Operation Cancelled]"
_SNAPSHOTS = ("<state_snapshot>", "<compressed_chat_history>")
_REMEMBERED = 64
_MEDIA = ("inlineData", "fileData")

Piece = tuple[str, dict[str, Any]]


class Answered:
    """The calls that ended: newer versions repeat their results in a message to the model."""

    def __init__(self, calls: Any) -> None:
        self._calls = [*filter(as_text, calls)] if isinstance(calls, list) else []

    def state(self) -> list[str]:
        return list(self._calls)

    def compare(self, record: Record) -> None:
        """Take what is repeated out of the record, and remember what ended in it."""
        record.results = [one for one in record.results if one.call_id not in self._calls]
        ended = [
            event.call_id
            for event in record.events
            if event.call_id and event.status not in (None, "pending")
        ]
        if ended:
            self._calls = [*self._calls, *ended][-_REMEMBERED:]


def read_message(value: dict[str, Any], place: str = "") -> Record:
    """A record without operations; `place` is the pointer to a message inside another record."""
    kind = as_text(value.get("type")) or "message"
    record = Record(
        kind,
        role=_ROLES.get(kind, "system"),
        native_id=as_text(value.get("id")),
        ts=as_time(value.get("timestamp")),
    )
    if kind == "user":
        _read_prompt(record, value, place)
    elif kind == "gemini":
        _read_answer(record, value, place)
    else:
        text = "\n".join(piece["text"] for _, piece in _texts(value.get("content"), "")).strip()
        if not text and kind not in _NOTICES:
            text = "\n".join(strings(value.get("content"))).strip()
        if text:
            record.events.append(Event("system", text, label=kind))
    return record


# -- user messages


def _read_prompt(record: Record, value: dict[str, Any], place: str) -> None:
    shown, content = value.get("displayContent"), value.get("content")
    if _is_response(shown):  # the result of a tool, as a user message
        _add_responses(record, shown, f"{place}/displayContent")
        _add_injected(record, _joined(content), "tool")
        return
    _add_responses(record, content, f"{place}/content")
    typed, injected = _typed_and_injected(content)
    display = _joined(shown)
    if display:
        typed, given = [display], typed
        injected = [*((text, "context") for text in given if text not in display), *injected]
    images = sum(_is_image(piece) for _, piece in _pieces(content, ""))
    text = "\n".join(typed).strip()
    if text or (images and not injected):
        record.events.append(Event("user", text or "[image]", images=images))
        if title := prompt_title(text):
            record.titles.append(Title(title, TITLE_PROMPT))
    for text, label in injected:
        _add_injected(record, text, label)


def _typed_and_injected(content: Any) -> tuple[list[str], list[tuple[str, str]]]:
    """What a person typed, and (text, label) pairs of what the CLI added."""
    typed: list[str] = []
    injected: list[tuple[str, str]] = []
    for _, piece in _texts(content, ""):
        text = piece["text"]
        label = _label(text)
        if label is None and injected and injected[-1][1] == "files":
            label = "files"  # they follow the prompt, one piece per file
        if label and injected and injected[-1][1] == label:
            injected[-1] = (f"{injected[-1][0]}\n{text}", label)
        elif label:
            injected.append((text, label))
        else:
            typed.append(text)
    return typed, injected


def _label(text: str) -> str | None:
    text = text.lstrip()
    if text.startswith(_SNAPSHOTS):
        return "summary"
    return next((label for start, label in _INJECTED if text.startswith(start)), None)


def _add_injected(record: Record, text: str, label: str) -> None:
    if text := text.strip():
        kind = "summary" if label == "summary" else "system"
        record.events.append(Event(kind, text, label=None if kind == "summary" else label))


def _is_response(content: Any) -> bool:
    return any("functionResponse" in piece for _, piece in _pieces(content, ""))


def _add_responses(record: Record, content: Any, place: str) -> None:
    for at, piece in _pieces(content, place):
        response = as_dict(piece.get("functionResponse"))
        call = as_text(response.get("id"))
        if call:
            output, failed = response_text(piece)
            failed = failed or command_failed(as_text(response.get("name")), output)
            status = "error" if failed else "ok"
            status = "denied" if output.startswith(_CANCELLED) else status
            pointer = f"{at}/functionResponse/response"
            record.results.append(Result(call, output, status, pointer=pointer))


# -- model messages


def _read_answer(record: Record, value: dict[str, Any], place: str) -> None:
    record.model = as_text(value.get("model"))
    thoughts = value.get("thoughts")
    for thought in thoughts if isinstance(thoughts, list) else ():
        if text := _thought(thought):
            record.events.append(Event("thinking", text))
    calls = value.get("toolCalls")
    _read_content(record, value.get("content"), f"{place}/content", alone=not calls)
    if isinstance(calls, list):
        for number, call in enumerate(calls):
            if isinstance(call, dict):
                record.events.append(tool_call(call, f"{place}/toolCalls/{number}"))
                record.links += links_of(call)
            else:
                record.warnings.append(f"call {number} is not an object")
    elif calls is not None:
        record.warnings.append("calls are not a list")
    record.usage = _usage(value.get("tokens"), record.model)


def _read_content(record: Record, content: Any, place: str, *, alone: bool) -> None:
    """`alone`: the message has no list of calls, so calls in the content count."""
    has_thoughts = bool(record.events)
    answer: list[str] = []
    for pointer, piece in _pieces(content, place):
        text = as_text(piece.get("text"))
        if text and piece.get("thought"):
            if not has_thoughts:
                record.events.append(Event("thinking", text.strip()))
        elif text:
            answer.append(text)
        elif alone and isinstance(piece.get("functionCall"), dict):
            record.events.append(tool_call(piece["functionCall"], f"{pointer}/functionCall"))
    if text := "".join(answer).strip():
        at = next((n for n, e in enumerate(record.events) if e.type == "tool_use"), None)
        record.events.insert(len(record.events) if at is None else at, Event("assistant", text))


def _thought(thought: Any) -> str:
    if isinstance(thought, str):
        return thought.strip()
    fields = as_dict(thought)
    lines = (as_text(fields.get(name)) for name in ("subject", "description", "summary"))
    return "\n".join(filter(None, lines)).strip()


def _usage(tokens: Any, model: str | None) -> Usage | None:
    if not isinstance(tokens, dict):
        return None
    given, cached = as_count(tokens.get("input")), as_count(tokens.get("cached"))
    return Usage(
        message_id=None,  # set by the caller
        request_id=None,
        model=model,
        stop_reason=None,
        input_tokens=max(0, given - cached) + as_count(tokens.get("tool")),
        output_tokens=as_count(tokens.get("output")) + as_count(tokens.get("thoughts")),
        cache_write_tokens=0,
        cache_write_1h_tokens=0,
        cache_read_tokens=cached,
        reasoning_tokens=as_count(tokens.get("thoughts")),
    )


# -- pieces of content (Gemini's `Part`)


def _pieces(content: Any, place: str) -> Iterator[Piece]:
    """(JSON pointer, piece) pairs of content in any of its forms."""
    if isinstance(content, str):
        yield place, {"text": content}
    elif isinstance(content, dict):
        yield place, content
    elif isinstance(content, list):
        for number, piece in enumerate(content):
            if isinstance(piece, str):
                yield f"{place}/{number}", {"text": piece}
            elif isinstance(piece, dict):
                yield f"{place}/{number}", piece


def _texts(content: Any, place: str) -> Iterator[Piece]:
    for pointer, piece in _pieces(content, place):
        if as_text(piece.get("text")) and not piece.get("thought"):
            yield pointer, piece


def _joined(content: Any) -> str:
    return "\n".join(piece["text"] for _, piece in _texts(content, "")).strip()


def _is_image(piece: dict[str, Any]) -> bool:
    return any(
        (as_text(as_dict(piece.get(name)).get("mimeType")) or "").startswith("image/")
        for name in _MEDIA
    )
