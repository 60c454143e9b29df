"""Parses one bubble (message) of a Cursor conversation, of any generation, into one record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from sess_schema import labels
from sessiond.sourcekit.base import Event, Record, Usage
from sessiond.sourcekit.values import as_count, as_dict, as_list, as_milliseconds, as_text, as_time
from sessiond.sources.cursor.richtext import plain, readable, structured
from sessiond.sources.cursor.summaries import as_path
from sessiond.sources.cursor.tool_calls import NO_CONTENTS, is_call, tool_event, tool_result

_USERS = (1, "1", "user", "human")
_SUMMARY_BUBBLE, _THINKING_BUBBLE = 22, 30  # capabilityType
_NO_MODELS = frozenset({"", "auto", "default"})
_MODES = {1: "ask", 2: "agent", 5: "plan"}
_EARLIEST = 1_577_836_800_000  # 2020; earlier values come from a performance clock
_QUERY, _QUERY_END = "<user_query>", "</user_query>"


def parse_bubble(
    bubble: dict[str, Any],
    *,
    pointer: str = "/bubble",
    extra_tool: dict[str, Any] | None = None,
    tool_pointer: str = "/tool",
    fallback_id: str | None = None,
    contents: Mapping[str, str] = NO_CONTENTS,
) -> Record:
    """Parse a bubble.

    `extra_tool` is a call that an old composer keeps outside its bubbles, `contents` are the texts
    of files that its calls name by ids.
    """
    body, images = _body(bubble)
    typed = is_user(bubble.get("type"))
    outcomes = as_list(bubble.get("toolResults"))
    role = "tool" if outcomes and not body else "user" if typed else "assistant"
    record = Record(role, role)
    record.native_id = as_text(bubble.get("bubbleId")) or as_text(bubble.get("id")) or fallback_id
    _read_time(record, bubble)
    record.model = model_of(as_dict(bubble.get("modelInfo")).get("modelName"))
    record.model = record.model or model_of(bubble.get("modelType"))
    record.usage = _usage(bubble, record)
    _read_thoughts(record, bubble)
    if typed:
        _read_prompt(record, bubble, body, images + _image_count(bubble))
    elif bubble.get("capabilityType") == _SUMMARY_BUBBLE:
        text = summary_text(bubble.get("conversationSummary")) or body or "Summarized the chat."
        record.events.append(Event("summary", text, label=labels.COMPACT))
    else:
        _read_answer(record, bubble, body, images)
    calls = _calls(bubble, pointer, extra_tool, tool_pointer)
    record.events += _tool_events(calls, contents)
    _read_results(record, outcomes, pointer)
    return record


def mode_of(value: Any) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return _MODES.get(value)
    return as_text(value)


def model_of(value: Any) -> str | None:
    """A model's name; None if Cursor chose the model without recording it."""
    name = (as_text(value) or "").strip()
    return None if name.casefold() in _NO_MODELS else name


def time_of(value: Any) -> int | None:
    """UTC milliseconds, if Cursor existed at that time."""
    time = as_time(value)
    return time if time is not None and time >= _EARLIEST else None


def is_user(kind: Any) -> bool:
    return isinstance(kind, (int, float, str)) and not isinstance(kind, bool) and kind in _USERS


def _read_time(record: Record, bubble: dict[str, Any]) -> None:
    written = bubble.get("createdAt")
    record.ts = time_of(written)
    if record.ts is None and written not in (None, ""):
        record.warnings.append("bad timestamp")
    timing = as_dict(bubble.get("timingInfo"))
    for name in ("clientRpcSendTime", "clientSettleTime", "clientEndTime"):
        if record.ts is None:
            record.ts = time_of(timing.get(name))


def _usage(bubble: dict[str, Any], record: Record) -> Usage | None:
    """Token counts, unless they are the zeros that builds since the end of 2025 write."""
    counts = as_dict(bubble.get("tokenCount"))
    given, made = as_count(counts.get("inputTokens")), as_count(counts.get("outputTokens"))
    if not given and not made:
        return None
    return Usage(
        message_id=record.native_id,
        model=record.model,
        input_tokens=given,
        output_tokens=made,
    )


# -- texts and thoughts


def _body(bubble: dict[str, Any]) -> tuple[str, int]:
    """The text of a bubble and the number of images in it."""
    text = bubble.get("text")
    candidates = [text if isinstance(text, str) else plain(text)]
    for name in ("richText", "richtext", "rawText"):
        if not candidates[-1].strip():
            candidates.append(plain(bubble.get(name)))
    body, images = readable(candidates[-1])
    return body.strip(), images


def _image_count(bubble: dict[str, Any]) -> int:
    """The same image may be listed as sent and as selected."""
    context = as_dict(bubble.get("context"))
    lists = (bubble.get("images"), context.get("selectedImages"), context.get("images"))
    return max(len(as_list(images)) for images in lists)


def _read_thoughts(record: Record, bubble: dict[str, Any]) -> None:
    text = _thought(bubble.get("thinking"))
    if not text:
        blocks = map(_thought, as_list(bubble.get("allThinkingBlocks")))
        text = "\n\n".join(filter(None, blocks))
    if not text and _is_thinking(bubble):
        text = _body(bubble)[0]
    if text:
        duration = as_milliseconds(bubble.get("thinkingDurationMs"))
        record.events.append(Event("thinking", text, duration_ms=duration))


def _is_thinking(bubble: dict[str, Any]) -> bool:
    return bubble.get("capabilityType") == _THINKING_BUBBLE and not is_user(bubble.get("type"))


def _thought(value: Any) -> str:
    if isinstance(value, dict):
        words = (value.get(name) for name in ("text", "thinking", "content"))
        value = next((word for word in words if isinstance(word, str) and word.strip()), None)
    return readable(value)[0].strip() if isinstance(value, str) else ""


def _read_prompt(record: Record, bubble: dict[str, Any], body: str, images: int) -> None:
    typed, injected = _typed(body)
    context = "\n".join(filter(None, (injected, attachments(bubble))))
    if context:
        record.events.append(Event("system", context, label=labels.CONTEXT))
    record.ask(typed, images)


def _typed(body: str) -> tuple[str, str]:
    """What a person typed, and what Cursor added around it."""
    start = body.find(_QUERY)
    if start < 0:
        return body, ""
    end = body.find(_QUERY_END, start)
    typed = body[start + len(_QUERY) : end if end >= 0 else None]
    rest = body[end + len(_QUERY_END) :] if end >= 0 else ""
    return typed.strip(), f"{body[:start].strip()}\n{rest.strip()}".strip()


def prompt_text(bubble: dict[str, Any]) -> str:
    """What a person typed; empty for other bubbles."""
    return _typed(_body(bubble)[0])[0] if is_user(bubble.get("type")) else ""


def _read_answer(record: Record, bubble: dict[str, Any], body: str, images: int) -> None:
    if _is_thinking(bubble) and [event.text for event in record.events] == [body]:
        body = ""
    text = "\n\n".join(filter(None, (body, *_code_blocks(bubble, body))))
    if text:
        count = images + _image_count(bubble)
        record.events.append(Event("assistant", text, images=count))
    record.say("summary", summary_text(bubble.get("conversationSummary")), labels.COMPACT)
    record.say("system", _error(bubble.get("errorDetails")), labels.ERROR)


def _error(details: Any) -> str:
    """Why there is no answer, or only a part of one."""
    facts = structured(details)
    texts = [facts.get("message")] if isinstance(facts, dict) else [facts]
    return "\n".join(text.strip() for text in texts if isinstance(text, str)).strip()


def _code_blocks(bubble: dict[str, Any], body: str) -> list[str]:
    """The code that the text does not show, fenced."""
    blocks: dict[str, None] = {}
    for block in as_list(bubble.get("codeBlocks")):
        content = as_text(as_dict(block).get("content"))
        if content is None or not content.strip() or content.strip() in body:
            continue
        fence = "````" if "```" in content else "```"
        head = (as_text(block.get("languageId")), as_path(block.get("uri")))
        code = readable(content)[0].strip("\n")
        blocks[f"{fence}{' '.join(filter(None, head))}\n{code}\n{fence}"] = None
    return [*blocks]


# -- calls and results


def _calls(
    bubble: dict[str, Any], pointer: str, extra_tool: dict[str, Any] | None, tool_pointer: str
) -> Iterator[tuple[dict[str, Any], str]]:
    """Each call with the pointer to it."""
    own = bubble.get("toolFormerData")
    calls = [(own, f"{pointer}/toolFormerData")]
    if not is_call(own):
        calls.append((extra_tool, tool_pointer))
    for index, call in enumerate(as_list(bubble.get("toolFormers"))):
        calls.append((call, f"{pointer}/toolFormers/{index}"))
    for call, place in calls:
        if isinstance(call, dict) and is_call(call):
            yield call, place


def _tool_events(
    calls: Iterable[tuple[dict[str, Any], str]], contents: Mapping[str, str]
) -> Iterator[Event]:
    seen: set[str] = set()
    for call, place in calls:
        event = tool_event(call, place, contents)
        if event.call_id in seen:
            continue
        if event.call_id is not None:
            seen.add(event.call_id)
        yield event


def _read_results(record: Record, outcomes: list[Any], pointer: str) -> None:
    for index, outcome in enumerate(outcomes):
        place = f"{pointer}/toolResults/{index}"
        item = outcome if isinstance(outcome, dict) else {"result": outcome}
        result = tool_result(item, place)
        if result.call_id:
            record.results.append(result)
        elif result.output.strip():
            record.events.append(Event("system", result.output.strip(), label=labels.TOOL_RESULT))


# -- the files, selections, links and other things that a person attached to a prompt

# Members of a bubble or of its `context`, in the order shown.
_LISTS = (
    *("fileSelections", "folderSelections", "attachedFolders", "attachedFoldersNew"),
    *("selections", "terminalSelections", "attachedCodeChunks", "quotes", "notepads"),
    *("selectedDocs", "docsReferences", "externalLinks", "webReferences"),
    *("selectedCommits", "selectedPullRequests", "cursorCommands"),
)
_PLACES = ("uri", "relativeWorkspacePath", "relativePath", "path", "folderPath")
_NAMES = ("url", "link", "title", "name", "filename", "docId", "sha", "message", "id")
_TEXTS = ("text", "rawText", "content", "markdown", "selection", "output")
_FIRST_LINES = ("startLineNumber", "selectionStartLineNumber")
_LAST_LINES = ("endLineNumber", "positionLineNumber")


def attachments(bubble: dict[str, Any]) -> str:
    """Each attachment with its text, if it has one; the same thing is listed once."""
    context = as_dict(bubble.get("context"))
    described: dict[str, None] = {}
    for name in _LISTS:
        for holder in (context, bubble):
            described.update(dict.fromkeys(_described(holder.get(name))))
    return "\n".join(described)


def _described(listed: Any) -> Iterator[str]:
    for item in as_list(listed):
        facts = item if isinstance(item, dict) else {"name": item}
        head = _place(facts) or next(filter(None, (as_text(facts.get(n)) for n in _NAMES)), "")
        text = _text(facts)
        if text and text != head:
            head = f"{head}\n{text}" if head else text
        if head.strip():
            yield head.strip()


def _place(facts: dict[str, Any]) -> str:
    path = next(filter(None, (as_path(facts.get(name)) for name in _PLACES)), None)
    lines = as_dict(facts.get("range")) or facts
    first = next((n for name in _FIRST_LINES if (n := _number(lines.get(name)))), None)
    last = next((n for name in _LAST_LINES if (n := _number(lines.get(name)))), None)
    if not path or first is None:
        return path or ""
    return f"{path}:{first}" if last is None or last <= first else f"{path}:{first}-{last}"


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _text(facts: dict[str, Any]) -> str:
    lines = facts.get("lines")
    if isinstance(lines, list):
        texts = (line if isinstance(line, str) else as_dict(line).get("text") for line in lines)
        return readable("\n".join(text for text in texts if isinstance(text, str)))[0].strip("\n")
    text = next(filter(None, (as_text(facts.get(name)) for name in _TEXTS)), "")
    return readable(text)[0].strip("\n")


_SUMMARY_NOTE, _TODO_NOTE = "summary", "todos"
_MARKS = {"completed": "x", "in_progress": "~", "cancelled": "-"}


class Note(NamedTuple):
    bubble_id: str
    bubble: dict[str, Any]
    after: str | None = None  # the bubble that it follows; otherwise it is the last one


def notes_of(facts: dict[str, Any], composer_id: str) -> list[Note]:
    notes = []
    latest = as_dict(facts.get("latestConversationSummary"))
    if text := summary_text(latest.get("summary")):
        covered = as_dict(latest.get("summary")).get("truncationLastBubbleIdInclusive")
        after = as_text(latest.get("lastBubbleId")) or as_text(covered)
        bubble = {"type": _SUMMARY_NOTE, "text": text}
        notes.append(Note(f"{composer_id}-{_SUMMARY_NOTE}", bubble, after))
    todos = facts.get("todos")
    if isinstance(todos, list) and _lines(todos):
        notes.append(Note(f"{composer_id}-{_TODO_NOTE}", {"type": _TODO_NOTE, "todos": todos}))
    return notes


def read_note(bubble: dict[str, Any]) -> Record | None:
    """The record of a note; None if the bubble is a message."""
    if bubble.get("type") == _SUMMARY_NOTE:
        text = summary_text(bubble.get("text"))
        return Record(_SUMMARY_NOTE, events=[Event("summary", text, label=labels.COMPACT)])
    if bubble.get("type") == _TODO_NOTE and isinstance(bubble.get("todos"), list):
        text = "\n".join(_lines(bubble["todos"]))
        return Record(_TODO_NOTE, events=[Event("system", text, label=labels.TODO)])
    return None


def summary_text(value: Any) -> str:
    """The text of a summary, which newer versions put into an object or a string of JSON."""
    value = structured(value)
    if isinstance(value, dict):
        value = value.get("summary")
    return value.strip() if isinstance(value, str) else ""


def _lines(todos: list[Any]) -> list[str]:
    entries = (as_dict(structured(todo)) for todo in todos)
    texts = [(as_text(entry.get("content")), entry.get("status")) for entry in entries]
    return [f"[{_MARKS.get(str(status), ' ')}] {text}" for text, status in texts if text]
