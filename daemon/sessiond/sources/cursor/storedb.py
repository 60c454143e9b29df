"""Reads a chat of cursor-agent: a `store.db` of content-addressed blobs, with a `meta.json`.

The caller opens the connection and handles its errors: busy, not a database, or gone.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from sess_common.decode import decode
from sessiond.sourcekit.editors import folder_of
from sessiond.sourcekit.files import small_json
from sessiond.sourcekit.foreign import Foreign
from sessiond.sourcekit.titles import title_line
from sessiond.sourcekit.values import as_milliseconds, as_text, as_time
from sessiond.sources.cursor.protobuf import fields, member, members, text, whole_number

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
    found: list[str] = []
    for data in members(root, _CHILD):
        if len(data) == _ID_LENGTH:
            found.append(data.hex())
            if len(found) == _MOST_IDS:
                break
    return found


def message_ids(db: Foreign, root_id: str, seen: Collection[str] = frozenset()) -> list[str]:
    """The messages below a root, in order. Equal messages have equal ids, so ids may repeat.

    Missing and unknown blobs are listed too, for the reader to decide. Those in `seen` are
    messages and are not opened.
    """
    found: list[str] = []
    roots = {root_id}
    ways = [iter(child_ids(read_blob(db, root_id) or b""))]
    while ways and len(found) < _MOST_IDS:
        child = next(ways[-1], None)
        if child is None:
            ways.pop()
            continue
        inner = [] if child in seen or child in roots else _children_below(db, child)
        if inner and len(ways) < _DEEPEST:
            roots.add(child)
            ways.append(iter(inner))
        elif child not in roots:
            found.append(child)
    return found


def read_message(db: Foreign, blob_id: str) -> dict[str, Any] | None:
    """The role and content in a blob, which is JSON or protobuf around JSON."""
    data = read_blob(db, blob_id)
    return _message(data) if data else None


def has_role(db: Foreign, blob_id: str, role: str) -> bool:
    """Whether a blob is a message of a role, by its first bytes."""
    head = _first(db, f"SELECT substr(data, 1, {_HEAD}) FROM blobs WHERE id = ?", blob_id)
    head = head.encode("utf-8", "replace") if isinstance(head, str) else head
    found = _ROLE.search(head) if isinstance(head, bytes) else None
    return found is not None and found[1].decode() == role


def read_root(db: Foreign, root_id: str) -> Root:
    """What a root says beside its list of messages."""
    data = read_blob(db, root_id) or b""
    archives = members(data, _ARCHIVE) or members(data, _LAST_ARCHIVE)
    summary = member(data, _SUMMARY)
    return Root(
        turns=members(data, _TURN)[:_MOST_IDS],
        archives=[_archive(resolve(db, one)) for one in archives],
        summary=text(resolve(db, summary), 1).strip() if summary else "",
        summarized=bool(archives or summary or whole_number(data, _SUMMARIES)),
        timings=[*_timings(data)],
        folder=folder_of(text(data, _WORKSPACE)) if member(data, _WORKSPACE) else None,
        branch=as_text(text(data, _BRANCH).strip()),
    )


def resolve(db: Foreign, value: bytes) -> bytes:
    """The blob that a value names by its id, or the value itself."""
    named = read_blob(db, value.hex()) if len(value) == _ID_LENGTH else None
    return value if named is None else named


def _archive(data: bytes) -> Archive:
    messages = [one.hex() for one in members(data, 1) if len(one) == _ID_LENGTH]
    shown = member(data, 4)
    return Archive(messages, text(data, 2).strip(), shown.hex() if shown else None)


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
