"""Zed: the database of its agent's threads."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import zstandard

from sess_schema import kinds, labels
from sess_schema.edits import Edit
from sessiond.families.in_tables import InTables
from sessiond.sourcekit.base import (
    SOURCE_CODE,
    Conversation,
    Event,
    Item,
    Layout,
    NotReady,
    Record,
    Result,
    SessionSpec,
    Table,
    Usage,
)
from sessiond.sourcekit.toolbox import Toolbox, event_of
from sessiond.sourcekit.values import (
    as_count,
    as_dict,
    as_list,
    as_text,
    as_time,
    cost_at,
    decoded,
    strings,
)

if TYPE_CHECKING:
    from sessiond.sourcekit.foreign import Foreign

_FOLDER = "threads"


class ZedSource(InTables):
    agent = "zed"
    title = "Zed"
    database = "threads.db"
    variables = ("XDG_DATA_HOME",)
    reads = "Threads of Zed's own agent, in every format since 2025. Messages have no times."
    leaves = (
        ("conversations/", "text threads, which are documents of the editor"),
        ("threads-db.*.mdb", "threads of 2025 that Zed has copied into the database"),
        ("threads of other agents in Zed", "those agents keep them, and are read there"),
    )
    known_from = SOURCE_CODE

    def places(self) -> list[str]:
        if self.platform == "win32":
            return [os.path.join(self.folders.local(), "Zed", _FOLDER)]
        if self.platform == "darwin":
            return [os.path.join(self.folders.application_data(), "Zed", _FOLDER)]
        flatpak = os.path.join(self.folders.home(), ".var", "app", "dev.zed.Zed", "data")
        homes = (self.folders.data_home(), flatpak)
        return [os.path.join(home, "zed", _FOLDER) for home in homes]

    def layout(self, foreign: Foreign) -> Layout:  # noqa: ARG002 - each version is alike
        return ThreadTable()


# -- the table of threads: each is one value, which is replaced whole

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
    for message in as_list(facts.get("messages")):
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
    name = user.get("id") if isinstance(user, dict) else value.get("id")
    return str(name) if isinstance(name, (str, int)) and not isinstance(name, bool) else ""


_SPENT = ("cumulative_token_usage", "request_token_usage", "model")


def _used(facts: dict[str, Any]) -> Usage | None:
    """What the thread used: the sum, or where it is not kept, the last request of each prompt."""
    requests = facts.get("request_token_usage")
    listed = list(requests.values()) if isinstance(requests, dict) else requests
    counted = [_counts(one) for one in as_list(listed)]
    total = _counts(facts.get("cumulative_token_usage"))
    if not any(total):
        total = tuple(map(sum, zip(*counted, strict=True))) if counted else total
    if not any(total):
        return None
    given, said, written, read = total
    used = Usage(None, None, _model(facts), None, given, said, written, 0, read)
    used.cost_usd = cost_at(as_dict(facts.get("model")).get("provider"))
    return used


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


# -- messages: in the format of 2025 (roles and segments) and the one since (tagged values)

_TOOLS = Toolbox(
    {
        kinds.SHELL: ("terminal", "sandboxed_terminal", "bash"),
        kinds.READ: ("read_file", "open"),
        kinds.WRITE: ("write_file", "create_file", "save_file"),
        kinds.EDIT: ("edit_file", "streaming_edit_file", "edit_files", "find_replace_file"),
        kinds.SEARCH: ("grep", "find_path", "list_directory", "path_search", "diagnostics"),
        kinds.FETCH: ("fetch", "web_search"),
        kinds.AGENT: ("spawn_agent", "subagent", "spawn_subagent"),
        kinds.PLAN: ("update_plan", "exit_plan_mode"),
        kinds.QUESTION: ("ask_user",),
    }
)
_REFUSED = re.compile(
    r"Tool canceled by user|denied (?:permission|by (?:the )?user)|user (?:denied|stopped)"
    r"|\ACommand .{0,2000}? was interrupted",
    re.IGNORECASE | re.DOTALL,
)
_FAILED = re.compile(r"Command .{0,2000}?(?:failed with exit code|was killed)", re.DOTALL)
_OUTCOME = 4000  # characters that tell how a call ended
_PLACES = ("abs_path", "path", "name", "title", "url")


def read_message(value: dict[str, Any]) -> Record:
    tag, body = next(iter(value.items()), ("", None)) if len(value) == 1 else ("", None)
    if tag == "User":
        return _read_prompt(as_dict(body))
    if tag == "Agent":
        return _read_answer(as_dict(body))
    if tag == "Compaction":
        record = Record("compaction", role="system")
        text = "\n".join(strings(body)).strip()
        record.say("summary", text, labels.COMPACT)
        return record
    if tag == "message":  # "Resume": the model goes on where it stopped
        return Record("resume", role="user")
    return _read_older(value)


# -- since version 0.3.0


def _tagged(content: Any, record: Record) -> Iterator[tuple[int, str, Any]]:
    for number, piece in enumerate(as_list(content)):
        if isinstance(piece, dict) and len(piece) == 1:
            yield number, *next(iter(piece.items()))
        else:
            record.warnings.append(f"content element {number} is not a tagged value")


def _read_prompt(body: dict[str, Any]) -> Record:
    record = Record("user", role="user")
    typed, attached, images = list[str](), list[str](), 0
    for _, tag, inner in _tagged(body.get("content"), record):
        if tag == "Text":
            typed.append(as_text(inner) or "")
        elif tag == "Mention":
            fields = as_dict(inner)
            typed.append(_mention(fields.get("uri")))
            attached.append(as_text(fields.get("content")) or "")
        elif tag == "Image":
            images += 1
        else:
            record.warnings.append(f"content of an unknown type: {tag}")
    text = "".join(typed).strip()
    if text or images:
        record.events.append(Event("user", text, images=images))
    record.say("system", "\n".join(filter(None, attached)), labels.CONTEXT)
    return record


def _mention(uri: Any) -> str:
    """What a person sees of a mention: @ and the name of the file, symbol, thread ..."""
    inner = as_dict(next(iter(uri.values()), None)) if isinstance(uri, dict) and uri else {}
    named = next((text for name in _PLACES if (text := as_text(inner.get(name)))), None)
    return f"@{named or as_text(uri) or 'mention'}"


def _read_answer(body: dict[str, Any]) -> Record:
    record = Record("agent", role="assistant")
    results = dict(as_dict(body.get("tool_results")))
    for number, tag, inner in _tagged(body.get("content"), record):
        if tag == "Text":
            record.say("assistant", inner)
        elif tag == "Thinking":
            record.say("thinking", as_dict(inner).get("text"))
        elif tag == "ToolUse":
            call = as_dict(inner)
            result = results.pop(as_text(call.get("id")) or "", None)
            _add_call(record, call, result, f"/Agent/content/{number}/ToolUse/input")
        elif tag != "RedactedThinking":
            record.warnings.append(f"content of an unknown type: {tag}")
    _add_results(record, results)  # of calls that are no longer there
    return record


def _add_results(record: Record, results: Mapping[Any, Any]) -> None:
    for call_id, result in results.items():
        if call_id:
            output, images = _content(as_dict(result).get("content"))
            status = _status(as_dict(result), output)
            record.results.append(Result(call_id, output, status, images=images))


def _add_call(record: Record, call: dict[str, Any], result: Any, pointer: str) -> None:
    """A call with its result, if there is one."""
    tool, given, call_id = as_text(call.get("name")), call.get("input"), as_text(call.get("id"))
    output = as_dict(as_dict(result).get("output"))
    kind = _TOOLS.kind(tool)
    if kind == kinds.EDIT and as_dict(given).get("mode") in ("create", "overwrite"):
        kind = kinds.WRITE
    described = _TOOLS.describe(tool, given, kind, tuple(_edits(kind, given, output)))
    event = event_of(described, tool, given, call_id, pointer)
    if isinstance(result, dict):
        event.output, event.images = _content(result.get("content"))
        event.status = _status(result, event.output)
    record.events.append(event)
    child = as_text(output.get("session_id")) or as_text(output.get("subagent_session_id"))
    if child and call_id and kind == kinds.AGENT:
        record.link(child, call_id, home="")


def _edits(kind: str, given: Any, output: dict[str, Any]) -> Iterator[Edit]:
    """The diff that a finished edit recorded."""
    if kind not in (kinds.EDIT, kinds.WRITE):
        return
    path = as_text(as_dict(given).get("path")) or as_text(output.get("input_path"))
    diff, text = as_text(output.get("diff")), as_text(output.get("new_text"))
    if path and diff:
        yield Edit(path, patch=diff)
    elif path and text:
        yield Edit(path, as_text(output.get("old_text")) or "", text)


def _content(content: Any) -> tuple[str, int]:
    """The text of a result and its images: a string, a tagged value, or a list of these."""
    texts, images = list[str](), 0
    for piece in content if isinstance(content, list) else [content]:
        if isinstance(piece, str):
            texts.append(piece)
        elif isinstance(piece, dict) and "Image" in piece:
            images += 1
        else:
            texts += strings(piece, frozenset({"type"}))
    return "\n".join(texts), images


def _status(result: dict[str, Any], output: str) -> str:
    said = output[:_OUTCOME]
    if _REFUSED.search(said):
        return "denied"
    return "error" if result.get("is_error") is True or _FAILED.match(said) else "ok"


# -- before


def _read_older(value: dict[str, Any]) -> Record:
    role = as_text(value.get("role"))
    record = Record(role or "other", role=role)
    if role not in ("user", "assistant", "system"):
        record.warnings.append("message without a known role")
    for kind, text in _segments(value):
        if role != "user":
            spoken = "assistant" if role == "assistant" else "system"
            record.events.append(Event("thinking" if kind == "thinking" else spoken, text))
        elif value.get("is_hidden") is True:
            record.events.append(Event("system", text, label=labels.CONTEXT))
        else:
            record.events.append(Event("user", text))
    record.say("system", value.get("context"), labels.CONTEXT)
    results = {
        as_text(result.get("tool_use_id")): result
        for result in map(as_dict, as_list(value.get("tool_results")))
    }
    for number, call in enumerate(map(as_dict, as_list(value.get("tool_uses")))):
        result = results.pop(as_text(call.get("id")), None)
        _add_call(record, call, result, f"/tool_uses/{number}/input")
    _add_results(record, results)  # at first they were in the next prompt
    return record


def _segments(value: dict[str, Any]) -> Iterator[tuple[str | None, str]]:
    segments = value.get("segments")
    for segment in [value] if segments is None else map(as_dict, as_list(segments)):
        if text := (as_text(segment.get("text")) or "").strip():
            yield as_text(segment.get("type")), text


SOURCE = ZedSource
