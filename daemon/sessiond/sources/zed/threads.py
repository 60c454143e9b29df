"""The table of threads: each is one value, which is replaced whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import zstandard

from sessiond.engines.tables import Layout, Table
from sessiond.sourcekit.base import Conversation, Item, NotReady, Record, SessionSpec, Usage
from sessiond.sourcekit.foreign import Foreign
from sessiond.sourcekit.values import as_count, as_dict, as_text, as_time, decoded
from sessiond.sources.zed.messages import read_message

_LARGEST = 256 << 20
_TOKENS = ("input", "output", "cache_creation_input", "cache_read_input")
_BY_COLUMN, _BY_SNAPSHOT = 5, 3


class ThreadTable(Layout):
    def tables(self, db: Foreign) -> Sequence[Table]:  # noqa: ARG002 - a thread has no other rows
        return ()

    def heads(self, db: Foreign) -> Iterable[tuple[str, Any]]:
        if not db.has_table("threads"):
            return
        for name, *mark in db.rows("SELECT id, updated_at, summary, length(data) FROM threads"):
            yield name, mark

    def whole(self, db: Foreign, conversation: str) -> Conversation | None:
        names = ["summary", "updated_at", "data_type", "data"]
        names += [name for name in _LATER if db.has("threads", name)]
        rows = db.rows(f"SELECT {', '.join(names)} FROM threads WHERE id = ?", (conversation,))
        if not rows:
            return None
        row = dict(zip(names, rows[0], strict=True))
        facts = _thread(row["data_type"], row["data"])
        if not isinstance(facts, dict):
            raise NotReady("a thread that cannot be decoded")
        parent = as_text(row.get("parent_id"))
        updated = as_time(row["updated_at"])
        tree = _worktree(facts)
        folder = _first_folder(row.get("folder_paths"), row.get("folder_paths_order"))
        change = Conversation(
            SessionSpec(
                conversation,
                kind="subagent" if parent else "main",
                parent=parent,
                title=as_text(row["summary"]),
            ),
            project=folder or as_text(tree.get("worktree_path")),
            project_rank=_BY_COLUMN if folder else _BY_SNAPSHOT,
            git_branch=as_text(as_dict(tree.get("git_state")).get("current_branch")),
            mode=as_text(facts.get("profile")),
            model=_model(facts),
            created_at=as_time(row.get("created_at")) or updated,
            updated_at=updated,
        )
        change.items = list(_items(conversation, facts))
        # Messages have no times: the first is as old as the thread, the last as new as its row.
        ends = [(change.items[:1], change.created_at), (change.items[1:][-1:], updated)]
        change.times = {item.key: at for items, at in ends for item in items if at is not None}
        return change


_LATER = ("parent_id", "folder_paths", "folder_paths_order", "created_at")


def _thread(kind: Any, data: Any) -> Any:
    if isinstance(data, str):
        data = data.encode("utf-8", "replace")
    if not isinstance(data, bytes):
        return None
    if kind != "zstd":
        return decoded(data)
    try:
        return decoded(zstandard.ZstdDecompressor().stream_reader(data).read(_LARGEST))
    except zstandard.ZstdError:
        return None


def _items(thread: str, facts: dict[str, Any]) -> Iterator[Item]:
    """Messages of an agent have no id: they are numbered after the prompt they follow."""
    prompt, number = "", 0
    messages = facts.get("messages")
    for message in messages if isinstance(messages, list) else ():
        value = message if isinstance(message, dict) else {"message": message}
        name = _id_of(value)
        prompt, number = (name, 0) if name else (prompt, number + 1)
        key = f"{prompt}+{number}" if number else prompt
        record = read_message(value)
        record.native_id = f"{thread}/{key}"
        yield Item(key, value=value, record=record)
    used = _used(facts)
    if used is not None:
        record = Record("usage", native_id=f"{thread}/usage")
        record.model = used.model
        used.message_id, record.usage = record.native_id, used
        yield Item("usage", value={name: facts.get(name) for name in _SPENT}, record=record)


def _id_of(value: dict[str, Any]) -> str:
    user = value.get("User")
    found = user.get("id") if isinstance(user, dict) else value.get("id")
    return str(found) if isinstance(found, (str, int)) and not isinstance(found, bool) else ""


_SPENT = ("cumulative_token_usage", "request_token_usage", "model")


def _used(facts: dict[str, Any]) -> Usage | None:
    """What the thread used: the sum, or where it is not kept, the last request of each prompt."""
    requests = facts.get("request_token_usage")
    listed = list(requests.values()) if isinstance(requests, dict) else requests
    counted = [_counts(one) for one in (listed if isinstance(listed, list) else ())]
    total = _counts(facts.get("cumulative_token_usage"))
    if not any(total):
        total = tuple(map(sum, zip(*counted, strict=True))) if counted else total
    if not any(total):
        return None
    given, said, written, read = total
    return Usage(None, None, _model(facts), None, given, said, written, 0, read)


def _counts(usage: Any) -> tuple[int, ...]:
    return tuple(as_count(as_dict(usage).get(f"{name}_tokens")) for name in _TOKENS)


def _model(facts: dict[str, Any]) -> str | None:
    return as_text(as_dict(facts.get("model")).get("model"))


def _worktree(facts: dict[str, Any]) -> dict[str, Any]:
    """The folder of the project when the thread began."""
    listed = as_dict(facts.get("initial_project_snapshot")).get("worktree_snapshots")
    return as_dict(listed[0]) if isinstance(listed, list) and listed else {}


def _first_folder(paths: Any, order: Any) -> str | None:
    """Paths are sorted, one per line; `order` has the number that each had for the person."""
    folders = (as_text(paths) or "").split("\n")
    ranks = (as_text(order) or "").split(",")
    if len(ranks) == len(folders) and "0" in ranks:
        return folders[ranks.index("0")] or None
    return folders[0] or None
