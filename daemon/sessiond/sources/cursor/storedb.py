"""Reads a chat of cursor-agent: a `store.db` of content-addressed blobs, with a `meta.json`.

The caller opens the connection and handles its errors: busy, not a database, or gone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from sess_schema.decode import decode
from sessiond.engines.foreign import Foreign
from sessiond.sourcekit.editors import folder_of
from sessiond.sourcekit.files import small_json
from sessiond.sourcekit.values import as_text, as_time

_ID_LENGTH = 32
_LARGEST_META = 1 << 20
_LARGEST_BLOB = 64 << 20
_MOST_IDS = 100_000
_DEEPEST = 8
_LONGEST_TITLE = 200
_UNNAMED = "new agent"
_NO_MODEL = frozenset({"auto", "default"})

# Wire types of protobuf.
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT = 10
# Fields of a root and of a message.
_CHILD, _MESSAGE, _WORKSPACE = 1, 4, 9


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
    for number, data in _fields(root):
        if number == _CHILD and len(data) == _ID_LENGTH:
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
    ways = [iter(child_ids(_blob(db, root_id) or b""))]
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
    data = _blob(db, blob_id)
    return _message(data) if data else None


def folder_of_root(db: Foreign, root_id: str) -> str | None:
    """The folder that a root names, for chats without `meta.json`."""
    for number, data in _fields(_blob(db, root_id) or b""):
        if number == _WORKSPACE:
            return folder_of(data.decode("utf-8", "replace"))
    return None


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
    title = " ".join((as_text(value) or "")[: 10 * _LONGEST_TITLE].split())[:_LONGEST_TITLE]
    return title if title and title.casefold() != _UNNAMED else None


def _first(db: Foreign, sql: str, *values: Any) -> Any:
    """The first column of the first row, if there is one."""
    rows = db.rows(sql, values)
    return rows[0][0] if rows else None


def _blob(db: Foreign, blob_id: str) -> bytes | None:
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
    data = _blob(db, blob_id)
    return child_ids(data) if data and _message(data) is None else []


def _message(data: bytes) -> dict[str, Any] | None:
    if data[:1] == b"{":
        return _role_and_content(data)
    others = []
    for number, inner in _fields(data):
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


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The length-delimited fields of a protobuf message, up to the first invalid one."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        wire = tag & 7
        size = 0
        if wire == _VARINT:
            _, at = _varint(data, at)
        elif wire == _FIXED64:
            at += 8
        elif wire == _FIXED32:
            at += 4
        elif wire == _BYTES:
            size, at = _varint(data, at)
        else:
            return
        if tag < 8 or at + size > len(data):
            return
        if wire == _BYTES:
            yield tag >> 3, data[at : at + size]
            at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number and the position after it, which is past the end if there is no number."""
    number = shift = 0
    for place in range(at, min(at + _LONGEST_VARINT, len(data))):
        number |= (data[place] & 0x7F) << shift
        if data[place] < 0x80:
            return number, place + 1
        shift += 7
    return 0, len(data) + 1
