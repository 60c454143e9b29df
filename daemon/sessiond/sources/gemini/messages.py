"""One message of a chat: what was typed, injected, answered, thought and called."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sessiond.sourcekit.base import TITLE_PROMPT, Event, Record, Result, Title, Usage
from sessiond.sourcekit.titles import prompt_title
from sessiond.sourcekit.values import as_count, as_dict, as_text, as_time, strings
from sessiond.sources.gemini.calls import links_of, response_text, tool_call

_ROLES = {"user": "user", "gemini": "assistant"}
_NOTICES = frozenset({"info", "error", "warning"})
# Where text in the person's name was put there by the program: its beginning, and a name for it.
_INJECTED = (
    ("<session_context>", "context"),
    ("This is the Gemini CLI. We are setting up the context for our chat.", "context"),
    ("<hook_context>", "hook"),
    ("--- Content from referenced files ---", "files"),
    ("--- Content from ", "files"),
    ("System: Please continue.", "continue"),
)
_SNAPSHOTS = ("<state_snapshot>", "<compressed_chat_history>")
_MEDIA = ("inlineData", "fileData")

Part = tuple[str, dict[str, Any]]


def read_message(value: dict[str, Any], place: str = "") -> Record:
    """A record without operations; `place` leads to the message where it is inside another."""
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
        text = "\n".join(part["text"] for _, part in _texts(value.get("content"), "")).strip()
        if not text and kind not in _NOTICES:
            text = "\n".join(strings(value.get("content"))).strip()
        if text:
            record.events.append(Event("system", text, label=kind))
    return record


# -- the person's side


def _read_prompt(record: Record, value: dict[str, Any], place: str) -> None:
    shown, content = value.get("displayContent"), value.get("content")
    if _is_response(shown):  # what a tool answered, in the person's name
        _add_responses(record, shown, f"{place}/displayContent")
        _add_injected(record, _joined(content), "tool")
        return
    _add_responses(record, content, f"{place}/content")
    typed, injected = _told_apart(content)
    display = _joined(shown)
    if display:
        typed, given = [display], typed
        injected = [*((text, "context") for text in given if text not in display), *injected]
    images = sum(_is_image(part) for _, part in _parts(content, ""))
    text = "\n".join(typed).strip()
    if text or (images and not injected):
        record.events.append(Event("user", text or "[image]", images=images))
        if title := prompt_title(text):
            record.titles.append(Title(title, TITLE_PROMPT))
    for text, label in injected:
        _add_injected(record, text, label)


def _told_apart(content: Any) -> tuple[list[str], list[tuple[str, str]]]:
    """What a person typed, and (text, label) of what the program put beside it."""
    typed: list[str] = []
    injected: list[tuple[str, str]] = []
    for _, part in _texts(content, ""):
        text = part["text"]
        label = _label(text)
        if label is None and injected and injected[-1][1] == "files":
            label = "files"  # they come after the prompt, in as many pieces as there are files
        if label and injected and injected[-1][1] == label:
            injected[-1] = (f"{injected[-1][0]}\n{text}", label)
        elif label:
            injected.append((text, label))
        else:
            typed.append(text)
    return typed, injected


def _label(text: str) -> str | None:
    begun = text.lstrip()
    if begun.startswith(_SNAPSHOTS):
        return "summary"
    return next((label for start, label in _INJECTED if begun.startswith(start)), None)


def _add_injected(record: Record, text: str, label: str) -> None:
    if text := text.strip():
        kind = "summary" if label == "summary" else "system"
        record.events.append(Event(kind, text, label=None if kind == "summary" else label))


def _is_response(content: Any) -> bool:
    return any("functionResponse" in part for _, part in _parts(content, ""))


def _add_responses(record: Record, content: Any, place: str) -> None:
    for pointer, part in _parts(content, place):
        response = as_dict(part.get("functionResponse"))
        call = as_text(response.get("id"))
        if call:
            output, failed = response_text(part)
            status = "error" if failed else "ok"
            told = f"{pointer}/functionResponse/response"
            record.results.append(Result(call, output, status, pointer=told))


# -- the model's side


def _read_answer(record: Record, value: dict[str, Any], place: str) -> None:
    record.model = as_text(value.get("model"))
    thoughts = value.get("thoughts")
    for thought in thoughts if isinstance(thoughts, list) else ():
        if text := _thought(thought):
            record.events.append(Event("thinking", text))
    calls = value.get("toolCalls")
    _read_parts(record, value.get("content"), f"{place}/content", alone=not calls)
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


def _read_parts(record: Record, content: Any, place: str, *, alone: bool) -> None:
    """`alone`: no list of calls stands beside the content, so its own calls count."""
    thought_of = bool(record.events)
    answer: list[str] = []
    for pointer, part in _parts(content, place):
        text = as_text(part.get("text"))
        if text and part.get("thought"):
            if not thought_of:
                record.events.append(Event("thinking", text.strip()))
        elif text:
            answer.append(text)
        elif alone and isinstance(part.get("functionCall"), dict):
            record.events.append(tool_call(part["functionCall"], f"{pointer}/functionCall"))
    if text := "".join(answer).strip():
        at = next((n for n, e in enumerate(record.events) if e.type == "tool_use"), None)
        record.events.insert(len(record.events) if at is None else at, Event("assistant", text))


def _thought(thought: Any) -> str:
    if isinstance(thought, str):
        return thought.strip()
    told = as_dict(thought)
    lines = (as_text(told.get(name)) for name in ("subject", "description", "summary"))
    return "\n".join(filter(None, lines)).strip()


def _usage(tokens: Any, model: str | None) -> Usage | None:
    if not isinstance(tokens, dict):
        return None
    given, cached = as_count(tokens.get("input")), as_count(tokens.get("cached"))
    return Usage(
        message_id=None,  # the caller's to say
        request_id=None,
        model=model,
        stop_reason=None,
        input_tokens=max(0, given - cached) + as_count(tokens.get("tool")),
        output_tokens=as_count(tokens.get("output")) + as_count(tokens.get("thoughts")),
        cache_write_tokens=0,
        cache_write_1h_tokens=0,
        cache_read_tokens=cached,
    )


# -- parts


def _parts(content: Any, place: str) -> Iterator[Part]:
    """(JSON pointer, part) of a content in any of its shapes."""
    if isinstance(content, str):
        yield place, {"text": content}
    elif isinstance(content, dict):
        yield place, content
    elif isinstance(content, list):
        for number, part in enumerate(content):
            if isinstance(part, str):
                yield f"{place}/{number}", {"text": part}
            elif isinstance(part, dict):
                yield f"{place}/{number}", part


def _texts(content: Any, place: str) -> Iterator[Part]:
    for pointer, part in _parts(content, place):
        if as_text(part.get("text")) and not part.get("thought"):
            yield pointer, part


def _joined(content: Any) -> str:
    return "\n".join(part["text"] for _, part in _texts(content, "")).strip()


def _is_image(part: dict[str, Any]) -> bool:
    return any(
        (as_text(as_dict(part.get(name)).get("mimeType")) or "").startswith("image/")
        for name in _MEDIA
    )
