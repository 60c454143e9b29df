"""Reads a chat session: each request is a prompt and a response."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from sess_schema import labels
from sessiond.families.copilot import SAID, call, describe, usage_of
from sessiond.sourcekit.base import Conversation, Event, Item, Record, SessionSpec
from sessiond.sourcekit.folders import of_uri
from sessiond.sourcekit.values import as_count, as_dict, as_list, as_text, as_time, strings

_ANSWER = (
    *("response", "result", "isCanceled", "modelId", "requestId", "timestamp", "modelState"),
    *("responseTimestamp", "completionTokens"),
)
_VENDORS = ("copilot/", "github/")


def read_chat(
    chat: dict[str, Any], name: str, project: str | None, rank: int
) -> Iterator[Conversation]:
    """The session, and its subagents."""
    session = as_text(chat.get("sessionId")) or name
    scope = f"{session}@{rank}" if rank else session  # what is hidden owns nothing that is shown
    items: list[Item] = []
    below: dict[str, list[Item]] = {}
    for number, request in enumerate(chat["requests"]):
        facts = as_dict(request)
        key = as_text(facts.get("requestId")) or str(number)
        items.append(_prompt(facts, f"{scope}/{key}", key))
        response = _answer(facts, f"{scope}/{key}", f"{session}/{key}")
        items.append(response.item)
        for call_id, child in response.children():
            below.setdefault(call_id, []).append(child)
    project = project or of_uri(chat.get("workingDirectory"))
    title = as_text(chat.get("customTitle")) or as_text(chat.get("computedTitle"))
    spec = SessionSpec(session, title=title, project=project, fallback=rank)
    # Of copies in several windows, the one that was used last has the project.
    latest = max((item.ts or 0 for item in items), default=0)
    rank_of_project = 1 + latest // 1000 if project else 0
    yield Conversation(
        spec,
        items=items,
        project=project,
        project_rank=rank_of_project,
        created_at=as_time(chat.get("creationDate")),
        updated_at=as_time(chat.get("lastMessageDate")),
    )
    for call_id, children in below.items():
        spec = SessionSpec(
            f"{session}/{call_id}",
            kind="subagent",
            parent=session,
            call_id=call_id,
            title=_task(items, call_id),
            project=project,
            fallback=rank,
        )
        yield Conversation(spec, items=children, project=project, project_rank=rank_of_project)


def _task(items: list[Item], call_id: str) -> str | None:
    """What the call asks that began a subagent."""
    events = [event for item in items if item.record for event in item.record.events]
    return next((event.summary for event in events if event.call_id == call_id), None)


def _prompt(request: dict[str, Any], native_id: str, key: str) -> Item:
    record = Record("request", role="user", native_id=native_id)
    record.ts = as_time(request.get("timestamp"))
    message = request.get("message")
    text = as_text(message) or as_text(as_dict(message).get("text")) or ""
    images = _images(as_dict(request.get("variableData")).get("variables"))
    if request.get("isSystemInitiated") is True:  # as when a command in the background ends
        record.say("system", text, labels.TASK)
    else:
        record.ask(text.strip(), images)
    raw = {name: value for name, value in request.items() if name not in _ANSWER[:2]}
    return Item(key, value=raw, record=record)


def _images(variables: Any) -> int:
    listed = [as_dict(one) for one in as_list(variables)]
    return sum(one.get("kind") == "image" or bool(one.get("mimeType")) for one in listed)


def _answer(request: dict[str, Any], native_id: str, spent_by: str) -> Response:
    value = {name: request[name] for name in _ANSWER if name in request}
    result = as_dict(value.get("result"))
    metadata, timings = as_dict(result.get("metadata")), as_dict(result.get("timings"))
    response = Response(value, native_id)
    record = response.record
    asked = as_time(value.get("timestamp"))
    ended = as_time(as_dict(value.get("modelState")).get("completedAt"))
    took = as_count(timings.get("totalElapsed"))
    ended = ended or as_time(value.get("responseTimestamp"))
    record.ts = ended or (asked + took if asked is not None else None)
    record.model = _model(metadata, value)
    response.read()
    error = as_dict(result.get("errorDetails"))
    if message := as_text(error.get("message")):
        record.events.append(Event("system", message, label=labels.API_ERROR))
    if value.get("isCanceled") is True:
        record.say("system", "Canceled", labels.INTERRUPTED)
    spent = as_dict(result.get("usage")) | metadata
    entered, written = spent.get("promptTokens"), spent.get("outputTokens")
    written = written or spent.get("completionTokens") or value.get("completionTokens")
    if as_count(entered) or as_count(written):
        record.usage = usage_of(spent_by, record.model, [entered, 0, 0], written, 0)
        record.usage.fallback = SAID
    return response


def _model(metadata: dict[str, Any], value: dict[str, Any]) -> str | None:
    model = as_text(metadata.get("resolvedModel")) or as_text(value.get("modelId"))
    for vendor in _VENDORS:
        model = model.removeprefix(vendor) if model else None
    return None if model in ("auto", "") else model


# -- responses: what was shown, joined with what the model asked for
# The parts that were shown have the order and the outcome of calls; the rounds with the model have
# their arguments and results. Neither names the other in older builds.

_HIDDEN = frozenset({"mimeType", "base64Data", "uri", "type", "ref"})
_FAILURES = ("ERROR while calling tool", "ERROR: Your input to the tool was invalid")
_EXIT = re.compile(r"(?:Command )?exited with (?:exit )?code:? (-?\d{1,10})\.?\s*\Z")
_TAIL = 200
_TEXTS = (None, "markdownContent", "markdownVuln", "inlineReference")
_CALL = "toolInvocationSerialized"
_REFUSALS = (0, 5)  # a person denied or skipped a call

Asked = tuple[str, dict[str, Any]]  # pointer to a call in a round, and the call


class Response:
    """The record of a response, built from its parts."""

    def __init__(self, value: dict[str, Any], request: str) -> None:
        self.record = Record("response", role="assistant", native_id=f"{request}/response")
        self._request = request
        self._value = value
        metadata = as_dict(as_dict(value.get("result")).get("metadata"))
        self._asked = _asked(metadata)
        self._results = as_dict(metadata.get("toolCallResults"))
        self._text: list[str] = []
        # What subagents did, by the call that began them: parts and their events.
        self._below: dict[str, list[tuple[dict[str, Any], Event]]] = {}

    @property
    def item(self) -> Item:
        key = self._request.rpartition("/")[2] + "/response"
        return Item(key, value=self._value, record=self.record)

    def children(self) -> Iterator[tuple[str, Item]]:
        for call_id, pieces in self._below.items():
            record = Record("response", role="assistant", ts=as_time(self._value.get("timestamp")))
            record.native_id = f"{self._request}/{call_id}"
            record.events = [event for _, event in pieces]
            parts = {"response": [part for part, _ in pieces]}
            key = self._request.rpartition("/")[2]
            yield call_id, Item(key, value=parts, record=record)

    def read(self) -> None:
        parts = self._value.get("response")
        parts = as_list(parts)
        calls = [part for part in map(as_dict, parts) if _is_own_call(part)]
        matched = _matched(calls, self._asked)
        for number, given in enumerate(parts):
            part = as_dict(given)
            kind = part.get("kind")
            if kind in _TEXTS:
                self._text.append(_shown(part))
                continue
            if kind == "thinking":
                self._say()
                self._think(part.get("value"))
            elif kind == _CALL:
                self._say()
                self._call(part, f"/response/{number}", matched)
        self._say()
        if not calls:  # hidden, or never shown
            for pointer, asked in self._asked:
                self.record.events.append(self._event({}, "", (pointer, asked)))

    def _say(self) -> None:
        text = "".join(self._text).strip()
        self._text = []
        self.record.say("assistant", text)

    def _think(self, thought: Any) -> None:
        self.record.say("thinking", "".join(strings(thought)))

    def _call(self, part: dict[str, Any], place: str, matched: dict[int, Asked]) -> None:
        above = as_text(part.get("subAgentInvocationId"))
        event = self._event(part, place, matched.get(id(part)))
        if above and above != event.call_id:
            listed = self._below.setdefault(above, [])
            event.pointer = f"/response/{len(listed)}"
            listed.append((part, event))
        else:
            self.record.events.append(event)

    def _event(self, part: dict[str, Any], place: str, asked: Asked | None) -> Event:
        """A call; `part` is how it was shown, `asked` what the model asked for."""
        data = as_dict(part.get("toolSpecificData"))
        call_id = as_text(part.get("toolCallId"))
        if asked is not None:
            pointer, request = asked
            event = call(
                as_text(request.get("name")),
                request.get("arguments"),
                call_id or as_text(request.get("id")),
                f"{pointer}/arguments",
                _server(part),
            )
            event.output = _flat(as_dict(self._results.get(as_text(request.get("id")) or "")))
        else:
            shown = f"{place}/toolSpecificData" if data else place
            event = call(
                as_text(part.get("toolId")), _given(part, data), call_id, shown, _server(part)
            )
            if not event.summary:
                event.summary = _message(part.get("invocationMessage"))
        details = as_dict(part.get("resultDetails"))
        event.output = event.output or "\n".join(
            filter(None, (as_text(as_dict(data.get("terminalCommandOutput")).get("text")),
                          *strings(details.get("output"), _HIDDEN)))
        )  # fmt: skip
        event.status = self._status(part, data, details, event.output)
        return event

    def _status(
        self, part: dict[str, Any], data: dict[str, Any], details: dict[str, Any], output: str
    ) -> str:
        answer = part.get("isConfirmed")
        answered = as_dict(answer).get("type")
        if answer is False or (isinstance(answered, int) and answered in _REFUSALS):
            return "denied"
        code = as_dict(data.get("terminalCommandState")).get("exitCode")
        if not isinstance(code, int) and data.get("kind") == "terminal":
            match = _EXIT.search(output[-_TAIL:])
            code = int(match[1]) if match else None
        if details.get("isError") is True or output.startswith(_FAILURES):
            return "error"
        if isinstance(code, int) and not isinstance(code, bool) and code:
            return "error"
        ended = part.get("isComplete", "result" in self._value)
        return "ok" if ended is True or output else "pending"


def _is_own_call(part: dict[str, Any]) -> bool:
    return part.get("kind") == _CALL and not as_text(part.get("subAgentInvocationId"))


def _asked(metadata: dict[str, Any]) -> list[Asked]:
    rounds = metadata.get("toolCallRounds")
    asked = []
    for number, turn in enumerate(as_list(rounds)):
        for index, one in enumerate(as_list(as_dict(turn).get("toolCalls"))):
            if isinstance(one, dict):
                place = f"/result/metadata/toolCallRounds/{number}/toolCalls/{index}"
                asked.append((place, one))
    return asked


def _matched(parts: list[dict[str, Any]], asked: list[Asked]) -> dict[int, Asked]:
    """By id, else in order: a part that was shown has at most one call, of its kind."""
    named = {_bare_id(one.get("id")): (place, one) for place, one in asked}
    ids = [(part, _bare_id(part.get("toolCallId"))) for part in parts]
    pairs = {id(part): named[key] for part, key in ids if key in named}
    taken = {place for place, _ in pairs.values()}
    left = [part for part in parts if id(part) not in pairs]
    waiting = [one for one in asked if one[0] not in taken]
    if len(left) == len(waiting):
        return pairs | {id(part): one for part, one in zip(left, waiting, strict=True)}
    for part in left:
        kind = describe(as_text(part.get("toolId")), {}).kind
        for number, (place, one) in enumerate(waiting):
            if describe(as_text(one.get("name")), {}).kind == kind:
                pairs[id(part)] = (place, one)
                del waiting[: number + 1]
                break
    return pairs


def _bare_id(call_id: Any) -> str:
    return (as_text(call_id) or "?").partition("__vscode")[0]


def _server(part: dict[str, Any]) -> str | None:
    source = as_dict(part.get("source"))
    return (as_text(source.get("label")) or "mcp") if source.get("type") == "mcp" else None


def _given(part: dict[str, Any], data: dict[str, Any]) -> Any:
    """What a call was given, as far as it was shown."""
    line = data.get("commandLine")
    command = (
        as_text(line) or as_text(as_dict(line).get("original")) or as_text(data.get("command"))
    )
    if command:
        return {"command": command}
    for name in ("rawInput", "input"):
        if data.get(name) is not None:
            return data[name]
    if data.get("kind") == "subagent":
        return {name: data[name] for name in ("agentName", "description", "prompt") if name in data}
    if isinstance(data.get("todoList"), list):
        return {"todos": data["todoList"]}
    return as_dict(part.get("resultDetails")).get("input") or _message(
        part.get("invocationMessage")
    )


def _message(message: Any) -> str:
    return as_text(message) or as_text(as_dict(message).get("value")) or ""


def _shown(part: dict[str, Any]) -> str:
    """The text of a part; a reference to a file is its name."""
    if part.get("kind") == "inlineReference":
        reference = as_dict(part.get("inlineReference"))
        place = as_dict(reference.get("location")) or reference
        path = as_text(as_dict(place.get("uri")).get("path")) or as_text(place.get("path")) or ""
        name = (
            as_text(part.get("name")) or as_text(reference.get("name")) or path.rpartition("/")[2]
        )
        return f"`{name}`" if name else ""
    content = part.get("content")
    return _message(part.get("value")) or _message(content)


def _flat(result: dict[str, Any]) -> str:
    """The text of a result; it may be a tree of pieces that were laid out for the model."""
    texts: list[str] = []
    stack: list[Iterator[Any]] = [iter(as_list(result.get("content")))]
    while stack:
        for piece in stack[-1]:
            if isinstance(piece, str):
                texts.append(piece)
            elif isinstance(piece, dict):
                if piece.get("lineBreakBefore") and texts:
                    texts.append("\n")
                if isinstance(piece.get("text"), str):
                    texts.append(piece["text"])
                inner = [piece.get(name) for name in ("value", "node", "children")]
                stack.append(iter([one for one in inner if one is not None]))
                break
            elif isinstance(piece, list):
                stack.append(iter(piece))
                break
        else:
            stack.pop()
    return "".join(texts).strip()
