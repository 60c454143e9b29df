"""Reads a chat of cursor-agent: a `store.db` of content-addressed blobs, with a `meta.json`.

The caller opens the connection and handles its errors: busy, not a database, or gone.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from sess_common.decode import decode
from sessiond.sourcekit.disk import small_json
from sessiond.sourcekit.folders import folder_of_window
from sessiond.sourcekit.foreign import Foreign
from sessiond.sourcekit.protobuf import fields, member, members, text_of, whole_number
from sessiond.sourcekit.values import as_milliseconds, as_text, as_time, title_line
from sessiond.sources.cursor.richtext import readable

_ID_LENGTH = 32
_LARGEST_META = 1 << 20
_LARGEST_BLOB = 64 << 20
_MOST_IDS = 100_000
_DEEPEST = 8
_UNNAMED = "new agent"
_NO_MODEL = frozenset({"auto", "default"})

# Fields of a root.
_CHILD, _SUMMARY, _TURN, _WORKSPACE, _LAST_ARCHIVE, _ARCHIVE, _TIMING, _SUMMARIES, _BRANCH = (
    *(1, 6, 8, 9, 11, 13, 14, 17, 19),
)
_MESSAGE = 4  # of a message
_HEAD = 400
_ROLE = re.compile(rb'"role"\s*:\s*"([a-z]{1,20})"')


@dataclass(slots=True)
class Chat:
    """The metadata in the database, without its encryption key."""

    agent_id: str | None
    root: str | None  # blob id
    title: str | None
    mode: str | None
    model: str | None
    created_at: int | None


@dataclass(slots=True)
class Meta:
    """The metadata in the file beside the database."""

    cwd: str | None = None
    title: str | None = None
    created_at: int | None = None
    updated_at: int | None = None


class Archive(NamedTuple):
    """Messages that a summary replaced."""

    messages: list[str]  # blob ids
    text: str
    message: str | None  # blob id of the summary among the messages


@dataclass(slots=True)
class Root:
    """The state of a chat, without the list of messages that its model sees."""

    turns: list[bytes]  # blob ids, or the turns themselves
    archives: list[Archive]
    summary: str
    summarized: bool
    timings: list[tuple[int, int]]  # start and end of each turn
    folder: str | None
    branch: str | None


def read_chat(db: Foreign) -> Chat | None:
    """The chat's metadata; None if the database is new and has no tables."""
    if not db.has_table("meta"):
        return None
    query = "SELECT value FROM meta WHERE key = '0' AND length(value) <= ?"
    facts = _meta_object(_first(db, query, _LARGEST_META))
    if facts is None:
        return None
    model = as_text(facts.get("lastUsedModel"))
    return Chat(
        agent_id=as_text(facts.get("agentId")),
        root=as_text(facts.get("latestRootBlobId")),
        title=_title(facts.get("name")),
        mode=as_text(facts.get("mode")),
        model=None if model and model.lower() in _NO_MODEL else model,
        created_at=as_time(facts.get("createdAt")),
    )


def read_meta(path: str) -> Meta:
    """The `meta.json` of a chat; empty if there is none."""
    facts = small_json(path)
    return Meta(
        cwd=as_text(facts.get("cwd")),
        title=_title(facts.get("title")),
        created_at=as_time(facts.get("createdAtMs")),
        updated_at=as_time(facts.get("updatedAtMs")),
    )


def child_ids(root: bytes) -> list[str]:
    """The blobs that a root lists, in order; those readable in a damaged one."""
    ids: list[str] = []
    for data in members(root, _CHILD):
        if len(data) == _ID_LENGTH:
            ids.append(data.hex())
            if len(ids) == _MOST_IDS:
                break
    return ids


def message_ids(db: Foreign, root_id: str, seen: Collection[str] = frozenset()) -> list[str]:
    """The messages below a root, in order. Equal messages have equal ids, so ids may repeat.

    Missing and unknown blobs are listed too, for the reader to decide. Those in `seen` are
    messages and are not opened.
    """
    ids: list[str] = []
    roots = {root_id}
    ways = [iter(child_ids(read_blob(db, root_id) or b""))]
    while ways and len(ids) < _MOST_IDS:
        child = next(ways[-1], None)
        if child is None:
            ways.pop()
            continue
        inner = [] if child in seen or child in roots else _children_below(db, child)
        if inner and len(ways) < _DEEPEST:
            roots.add(child)
            ways.append(iter(inner))
        elif child not in roots:
            ids.append(child)
    return ids


def read_message(db: Foreign, blob_id: str) -> dict[str, Any] | None:
    """The role and content in a blob, which is JSON or protobuf around JSON."""
    data = read_blob(db, blob_id)
    return _message(data) if data else None


def has_role(db: Foreign, blob_id: str, role: str) -> bool:
    """Whether a blob is a message of a role, by its first bytes."""
    head = _first(db, f"SELECT substr(data, 1, {_HEAD}) FROM blobs WHERE id = ?", blob_id)
    head = head.encode("utf-8", "replace") if isinstance(head, str) else head
    match = _ROLE.search(head) if isinstance(head, bytes) else None
    return match is not None and match[1].decode() == role


def read_root(db: Foreign, root_id: str) -> Root:
    """What a root says beside its list of messages."""
    data = read_blob(db, root_id) or b""
    archives = members(data, _ARCHIVE) or members(data, _LAST_ARCHIVE)
    summary = member(data, _SUMMARY)
    return Root(
        turns=members(data, _TURN)[:_MOST_IDS],
        archives=[_archive(resolve(db, one)) for one in archives],
        summary=text_of(resolve(db, summary), 1).strip() if summary else "",
        summarized=bool(archives or summary or whole_number(data, _SUMMARIES)),
        timings=[*_timings(data)],
        folder=folder_of_window(text_of(data, _WORKSPACE)) if member(data, _WORKSPACE) else None,
        branch=as_text(text_of(data, _BRANCH).strip()),
    )


def resolve(db: Foreign, value: bytes) -> bytes:
    """The blob that a value names by its id, or the value itself."""
    named = read_blob(db, value.hex()) if len(value) == _ID_LENGTH else None
    return value if named is None else named


def _archive(data: bytes) -> Archive:
    messages = [one.hex() for one in members(data, 1) if len(one) == _ID_LENGTH]
    shown = member(data, 4)
    return Archive(messages, text_of(data, 2).strip(), shown.hex() if shown else None)


def _timings(root: bytes) -> Iterator[tuple[int, int]]:
    """When each turn started and ended; only its duration and its end are recorded."""
    for timing in members(root, _TIMING):
        duration, end = whole_number(timing, 1) or 0, as_time(whole_number(timing, 2))
        if end is not None and (took := as_milliseconds(duration)) is not None:
            yield end - took, end


def _meta_object(value: Any) -> dict[str, Any] | None:
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if not isinstance(value, str):
        return None
    value = value.strip()
    try:
        raw = value.encode("utf-8", "replace") if value.startswith("{") else bytes.fromhex(value)
        facts, _ = decode(raw)
    except ValueError:
        return None
    return facts if isinstance(facts, dict) else None


def _title(value: Any) -> str | None:
    title = title_line(as_text(value) or "")
    return title if title and title.casefold() != _UNNAMED else None


def _first(db: Foreign, sql: str, *values: Any) -> Any:
    """The first column of the first row, if there is one."""
    rows = db.rows(sql, values)
    return rows[0][0] if rows else None


def read_blob(db: Foreign, blob_id: str) -> bytes | None:
    query = "SELECT data FROM blobs WHERE id = ? AND length(data) <= ?"
    data = _first(db, query, blob_id, _LARGEST_BLOB)
    if isinstance(data, str):
        return data.encode("utf-8", "replace")
    return data if isinstance(data, bytes) else None


def _children_below(db: Foreign, blob_id: str) -> list[str]:
    """The children of a blob, if it is a root itself."""
    # Nearly all are JSON, as one byte shows; those are not fetched.
    if _first(db, "SELECT hex(substr(data, 1, 1)) FROM blobs WHERE id = ?", blob_id) == "7B":
        return []
    data = read_blob(db, blob_id)
    return child_ids(data) if data and _message(data) is None else []


def _message(data: bytes) -> dict[str, Any] | None:
    if data[:1] == b"{":
        return _role_and_content(data)
    others = []
    for number, inner in fields(data):
        if not isinstance(inner, bytes):
            continue
        if number == _MESSAGE:
            message = _role_and_content(inner)
            if message is not None:
                return message
        else:
            others.append(inner)
    return next(filter(None, map(_role_and_content, others)), None)


def _role_and_content(data: bytes) -> dict[str, Any] | None:
    if data[:1] != b"{":
        return None
    try:
        value, _ = decode(data)
    except ValueError:
        return None
    return value if isinstance(value, dict) and as_text(value.get("role")) else None


# -- turns: all that was said, also what the model no longer sees
# They are protobuf, and become messages as the chat keeps them for its model. Field numbers are
# those of Cursor's `agent.v1`.

_AGENT, _SHELL_TURN = 1, 2  # kinds of turns
_ASSISTANT, _CALL, _THINKING = 1, 2, 3  # kinds of steps
_CALL_ID, _CALL_STARTED, _CALL_ENDED = 57, 59, 60
_SHELL, _EDIT, _MCP = 1, 12, 15
_SUCCESS = 1
_DENIED = {_SHELL: (4, 7)}  # fields of a result that mean that a person refused
_DEEPEST_TEXT = 6


class _Tool(NamedTuple):
    name: str
    arguments: dict[int, str]


_TOOLS = {
    _SHELL: _Tool("Shell", {1: "command", 2: "working_directory", 15: "description"}),
    3: _Tool("Delete", {1: "path"}),
    4: _Tool("Glob", {1: "target_directory", 2: "glob_pattern"}),
    5: _Tool("Grep", {1: "pattern", 2: "path", 3: "glob"}),
    8: _Tool("Read", {1: "path"}),
    9: _Tool("TodoWrite", {}),
    _EDIT: _Tool("Edit", {1: "path", 6: "contents"}),
    13: _Tool("LS", {1: "path"}),
    14: _Tool("ReadLints", {}),
    _MCP: _Tool("CallMcpTool", {1: "name", 4: "server", 5: "tool"}),
    16: _Tool("SemanticSearch", {1: "query"}),
    17: _Tool("CreatePlan", {1: "plan"}),
    18: _Tool("WebSearch", {1: "search_term"}),
    19: _Tool("Task", {1: "description", 2: "prompt"}),
    23: _Tool("AskQuestion", {}),
    24: _Tool("Fetch", {1: "url"}),
    37: _Tool("WebFetch", {1: "url"}),
}
_OUTPUTS = {_SHELL: (5, 6)}  # fields of a success that are the output
_EXIT_CODE, _EXECUTION_TIME, _BEFORE, _AFTER = 3, 7, 6, 7


def read_turn(db: Foreign, value: bytes, name: str) -> list[dict[str, Any]]:
    """The messages of a turn; `name` makes ids for calls without one."""
    data = resolve(db, value)
    shell = member(data, _SHELL_TURN)
    if shell is not None:
        return [*_shell_turn(db, shell, name)]
    agent = member(data, _AGENT) or b""
    asked = _asked(db, agent)
    messages = []
    if asked.text:
        role = "system" if asked.simulated else "user"
        said = _with_role(role, {"type": "text", "text": asked.text})
        messages.append(_timed(said, asked.started))
    for number, step in enumerate(members(agent, 2)):
        messages += _step(resolve(db, step), f"{name}-{number}")
    return messages


def read_prompt(db: Foreign, value: bytes) -> str:
    """What a person asked in a turn; empty if nobody did."""
    asked = _asked(db, member(resolve(db, value), _AGENT) or b"")
    return "" if asked.simulated else asked.text


class _Asked(NamedTuple):
    text: str
    simulated: bool  # the agent told itself
    started: int | None


def _asked(db: Foreign, turn: bytes) -> _Asked:
    message = resolve(db, member(turn, 1) or b"")
    said = text_of(message, 1)
    if not said and (elsewhere := member(message, 18)):
        said = resolve(db, elsewhere).decode("utf-8", "replace")
    return _Asked(said.strip(), bool(whole_number(message, 5)), whole_number(message, 25))


def _with_role(role: str, *content: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "content": list(content)}


def _timed(message: dict[str, Any], started: int | None) -> dict[str, Any]:
    return message | ({"timestamp": started} if as_time(started) is not None else {})


def _step(step: bytes, name: str) -> Iterator[dict[str, Any]]:
    for kind, value in fields(step):
        if not isinstance(value, bytes):
            continue
        if kind == _ASSISTANT:
            said = _with_role("assistant", {"type": "text", "text": text_of(value, 1)})
            yield _timed(said, whole_number(value, 2))
        elif kind == _THINKING:
            thought = _with_role("assistant", {"type": "reasoning", "text": text_of(value, 1)})
            yield _timed(thought, whole_number(value, 3))
        elif kind == _CALL:
            yield _call(value, name)


def _call(call: bytes, name: str) -> dict[str, Any]:
    """A call with its result."""
    values = [(n, v) for n, v in fields(call) if isinstance(v, bytes) and n != _CALL_ID]
    number, value = values[0] if values else (0, b"")
    tool = _TOOLS.get(number, _Tool(f"tool-{number}", {}))
    args, result = member(value, 1) or b"", member(value, 2)
    call_id = text_of(call, _CALL_ID) or name
    given: dict[str, Any] = {
        key: said for field_, key in tool.arguments.items() if (said := text_of(args, field_))
    }
    if not tool.arguments and (texts := _texts(args)):
        given["text"] = "\n".join(texts)
    content = [{"type": "tool-call", "toolCallId": call_id, "toolName": tool.name, "args": given}]
    if result is not None:
        if number == _EDIT:
            _add_change(given, member(result, _SUCCESS) or b"")
        started, ended = whole_number(call, _CALL_STARTED), whole_number(call, _CALL_ENDED)
        took = as_milliseconds(ended - started) if started and ended else None
        content.append(_result(number, result, call_id, took, set(given.values())))
    return _timed(_with_role("assistant", *content), whole_number(call, _CALL_STARTED))


def _add_change(given: dict[str, Any], success: bytes) -> None:
    """The texts of a file before and after an edit."""
    before, after = member(success, _BEFORE), member(success, _AFTER)
    if after is not None:
        given.pop("contents", None)
        given["old_string"] = (before or b"").decode("utf-8", "replace")
        given["new_string"] = after.decode("utf-8", "replace")


def _result(
    number: int, result: bytes, call_id: str, took: int | None, known: set[str]
) -> dict[str, Any]:
    outcomes = [(kind, value) for kind, value in fields(result) if isinstance(value, bytes)]
    kind, value = outcomes[0] if outcomes else (_SUCCESS, b"")
    shown = _OUTPUTS.get(number, ())
    texts = [text_of(value, one) for one in shown] if kind <= 2 and shown else []
    if number != _EDIT or kind != _SUCCESS:
        texts = [one for one in texts if one.strip()] or _texts(value)
    output = "\n".join(one for one in texts if one not in known)
    failed = kind != _SUCCESS or (number == _SHELL and bool(whole_number(value, _EXIT_CODE)))
    block = {"type": "tool-result", "toolCallId": call_id, "result": output, "isError": failed}
    if kind in _DENIED.get(number, ()):
        block["isDenied"] = True
    if took is None and number == _SHELL:
        took = as_milliseconds(whole_number(value, _EXECUTION_TIME))
    return block | ({"durationMs": took} if took is not None else {})


def _shell_turn(db: Foreign, shell: bytes, name: str) -> Iterator[dict[str, Any]]:
    """A command that a person ran."""
    command = text_of(resolve(db, member(shell, 1) or b""), 1).strip()
    output = resolve(db, member(shell, 2) or b"")
    given = {"command": command}
    call = {"type": "tool-call", "toolCallId": name, "toolName": "Shell", "args": given}
    texts = [one for one in (text_of(output, 1), text_of(output, 2)) if one.strip()]
    result = {"type": "tool-result", "toolCallId": name, "result": "\n".join(texts),
              "isError": bool(whole_number(output, 3))}  # fmt: skip
    if command:
        yield _with_role("assistant", call, result)


def _texts(data: bytes, depth: int = 0) -> list[str]:
    """All readable texts in a message of unknown type."""
    texts: list[str] = []
    for _, value in fields(data):
        if not isinstance(value, bytes) or not value:
            continue
        inner = _texts(value, depth + 1) if depth < _DEEPEST_TEXT and _is_message(value) else []
        if inner:
            texts += inner
        elif (said := _readable(value)) is not None:
            texts.append(said)
    return texts


def _is_message(value: bytes) -> bool:
    """Whether bytes can only be fields: text starts with other bytes, or ends in the middle."""
    size = 0
    for _, one in fields(value):
        size += len(one) if isinstance(one, bytes) else 1
    return _readable(value) is None and size > 0


def _readable(value: bytes) -> str | None:
    try:
        said = value.decode()
    except UnicodeDecodeError:
        return None
    if any(ord(letter) < 32 and letter not in "\t\n\r\x1b" for letter in said):
        return None
    return readable(said)[0]
