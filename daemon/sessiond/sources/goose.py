"""Goose: its database of sessions."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sess_schema import kinds, labels
from sess_schema.edits import Edit
from sessiond.families.in_tables import InTables
from sessiond.sourcekit.base import (
    SOURCE_CODE,
    Conversation,
    Event,
    Layout,
    Listed,
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
    as_dollars,
    as_list,
    as_text,
    as_time,
    content_blocks,
    decoded,
    result_text,
    strings,
)

if TYPE_CHECKING:
    from sessiond.sourcekit.foreign import Foreign


class GooseSource(InTables):
    agent = "goose"
    title = "Goose"
    database = "sessions.db"
    variables = ("GOOSE_PATH_ROOT", "XDG_DATA_HOME")
    reads = (
        "Sessions with their messages in sessions.db, and what each request used where it keeps a"
        " ledger; before that, the sum of a session."
    )
    leaves = (("*.jsonl", "the files of versions before 1.10, which Goose imports itself"),)
    known_from = SOURCE_CODE

    def places(self) -> list[str]:
        if moved := self.moved("GOOSE_PATH_ROOT"):
            return [os.path.join(moved, "data", "sessions")]
        if self.platform == "win32":
            data = os.path.join(self.folders.roaming(), "Block", "goose", "data")
            return [os.path.join(data, "sessions")]
        places = [os.path.join(self.folders.data_home(), "goose", "sessions")]
        if self.platform == "darwin":
            data = os.path.join(self.folders.application_data(), "Block.block.goose")
            places.append(os.path.join(data, "sessions"))
        return places

    def layout(self, foreign: Foreign) -> Layout:  # noqa: ARG002 - each version is alike
        return GooseTables()


# -- the tables: sessions, messages, and a ledger of what requests used
# A compaction marks what only the model or only a person sees. Older versions delete all messages
# of a session for it and write them again: they get new rowids, but keep their ids.

_MESSAGES, _LEDGER = "messages", "usage_ledger"
_USAGE, _TOTAL = "usage:", "usage:total"
_TOKENS = ("input", "output", "cache_read", "cache_write")
_FACTS = (
    *("id", "name", "description", "session_type", "working_dir", "created_at", "updated_at"),
    *("provider_name", "model_config_json", "goose_mode", "parent_session_id", "accumulated_cost"),
    *(f"accumulated_{name}_tokens" for name in _TOKENS),
)
_UNNAMED = frozenset({"", "CLI Session", "New session", "New Chat", "ACP Session", "Session"})
_COMPACTED = "Your context was compacted"
_CARRIED = "carried_forward"  # what was used before there was a ledger
_BY_SESSION = 5


class GooseTables(Layout):
    def __init__(self) -> None:
        # Of the session that is read:
        self._rows: dict[str, int] = {}  # by key
        self._facts: dict[str, Any] = {}
        self._model: str | None = None

    def tables(self, db: Foreign) -> Sequence[Table]:
        names = (_MESSAGES, _LEDGER)
        return [Table(name, "session_id") for name in names if db.has_table(name)]

    def heads(self, db: Foreign) -> Iterable[tuple[str, Any]]:
        if not db.has_table("sessions"):
            return
        columns = [
            name for name in ("updated_at", "name", *_FACTS[-5:]) if db.has("sessions", name)
        ]
        for name, *mark in db.rows(f"SELECT id, {', '.join(columns)} FROM sessions"):
            yield name, mark

    def whole(self, db: Foreign, conversation: str) -> Conversation | None:
        columns = [name for name in _FACTS if db.has("sessions", name)]
        rows = db.rows(f"SELECT {', '.join(columns)} FROM sessions WHERE id = ?", (conversation,))
        if not rows:
            return None
        facts = self._facts = dict(zip(columns, rows[0], strict=True))
        self._model = as_text(as_dict(decoded(facts.get("model_config_json"))).get("model_name"))
        parent = as_text(facts.get("parent_session_id"))
        is_subagent = bool(parent) or facts.get("session_type") == "sub_agent"
        title = as_text(facts.get("name")) or as_text(facts.get("description")) or ""
        resume = ("goose", "session", "--resume", "--session-id", conversation)
        return Conversation(
            SessionSpec(
                conversation,
                kind="subagent" if is_subagent else "main",
                parent=parent,
                call_id=starting_call(db, parent, conversation) if parent else None,
                title=None if title in _UNNAMED else title,
                resume=() if is_subagent else resume,
            ),
            project=as_text(facts.get("working_dir")),
            project_rank=_BY_SESSION,
            mode=as_text(facts.get("goose_mode")),
            model=self._model,
            created_at=as_time(facts.get("created_at")),
            updated_at=as_time(facts.get("updated_at")),
        )

    def listing(self, db: Foreign, conversation: str) -> list[Listed]:
        self._rows = {}
        places = []
        metadata = "metadata_json" if db.has(_MESSAGES, "metadata_json") else "NULL"
        name = "message_id" if db.has(_MESSAGES, "message_id") else "NULL"
        for row, given, made, *mark in db.rows(
            f"SELECT id, {name}, created_timestamp, octet_length(content_json), {metadata}"
            f" FROM {_MESSAGES} WHERE session_id = ? ORDER BY created_timestamp, id",
            (conversation,),
        ):
            key = as_text(given) or f"message {made}"
            while key in self._rows:  # pieces of one answer share an id
                key += "'"
            self._rows[key] = row
            places.append((as_time(made) or 0, 0, row, Listed(key, (made, *mark), as_time(made))))
        ledger = self._ledger(db, conversation)
        for row, made in ledger:
            self._rows[f"{_USAGE}{row}"] = row
            listed = Listed(f"{_USAGE}{row}", (made,), as_time(made))
            places.append((as_time(made) or 0, 1, row, listed))
        if not ledger and any(self._facts.get(f"accumulated_{name}_tokens") for name in _TOKENS):
            sums = tuple(self._facts.get(name) for name in _FACTS[-5:])
            places.append((1 << 62, 1, 0, Listed(_TOTAL, sums)))
        return [listed for *_, listed in sorted(places, key=lambda one: one[:3])]

    @staticmethod
    def _ledger(db: Foreign, conversation: str) -> list[tuple[int, Any]]:
        if not db.has_table(_LEDGER):
            return []
        query = f"SELECT id, created_timestamp FROM {_LEDGER} WHERE session_id = ? ORDER BY id"
        return [(row, made) for row, made in db.rows(query, (conversation,))]

    def fetch(
        self, db: Foreign, conversation: str, keys: Sequence[str]
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        for key in keys:
            if key == _TOTAL:
                yield key, self._total(conversation)
            elif key.startswith(_USAGE):
                yield from ((key, value) for value in self._used(db, conversation, key))
            else:
                yield from ((key, value) for value in self._message(db, conversation, key))

    def _message(self, db: Foreign, conversation: str, key: str) -> Iterator[dict[str, Any]]:
        names = [
            name
            for name in ("message_id", "role", "content_json", "created_timestamp", "metadata_json")
            if db.has(_MESSAGES, name)
        ]
        for row in db.rows(
            f"SELECT {', '.join(names)} FROM {_MESSAGES} WHERE id = ?", (self._rows[key],)
        ):
            stored = dict(zip(names, row, strict=True))
            value = {
                "id": key if as_text(stored.get("message_id")) else f"{conversation} {key}",
                "role": stored.get("role"),
                "created": stored.get("created_timestamp"),
                "content": _content(stored.get("content_json")),
                "metadata": decoded(stored.get("metadata_json")),
            }
            if place := self._place(db, conversation, self._rows[key], value):
                value["compaction"] = place
            yield value

    @staticmethod
    def _place(db: Foreign, conversation: str, row: int, value: dict[str, Any]) -> str | None:
        """What a text of the user's role is in a compaction, if it belongs to one."""
        if value["role"] != "user" or "toolResponse" in repr(value["content"])[:200]:
            return None
        near = f"SELECT content_json FROM {_MESSAGES} WHERE session_id = ?1 AND id {{}} LIMIT 1"
        after = db.rows(near.format("> ?2 ORDER BY id"), (conversation, row))
        if after and _COMPACTED in str(after[0][0]):
            return SUMMARY
        before = db.rows(near.format("< ?2 ORDER BY id DESC"), (conversation, row))
        if not before or _COMPACTED not in str(before[0][0]):
            return None
        earlier = db.rows(
            f"SELECT 1 FROM {_MESSAGES} o JOIN {_MESSAGES} m ON m.id = ?2 WHERE o.session_id = ?1"
            " AND o.id < m.id AND o.role = 'user' AND o.content_json = m.content_json"
            " AND coalesce(json_extract(iif(json_valid(o.metadata_json), o.metadata_json, '{}'),"
            " '$.userVisible'), 1) LIMIT 1",
            (conversation, row),
        )
        return AGAIN if earlier else None

    def _used(self, db: Foreign, conversation: str, key: str) -> Iterator[dict[str, Any]]:
        columns = [
            name
            for name in ("created_timestamp", "model", "cost", "cost_source", "is_compaction")
            if db.has(_LEDGER, name)
        ]
        columns += [f"{name}_tokens" for name in _TOKENS if db.has(_LEDGER, f"{name}_tokens")]
        row = self._rows[key]
        for stored in db.rows(f"SELECT {', '.join(columns)} FROM {_LEDGER} WHERE id = ?", (row,)):
            value = dict(zip(columns, stored, strict=True))
            first = db.rows(f"SELECT min(id) FROM {_LEDGER} WHERE session_id = ?", (conversation,))[
                0
            ][0]
            # It replaces the sum of the time before the ledger.
            is_total = value.get("cost_source") == _CARRIED and first == row
            yield {"id": f"{conversation} {_TOTAL if is_total else key}", "usage": value}

    def _total(self, conversation: str) -> dict[str, Any]:
        facts = {
            f"{name}_tokens": self._facts.get(f"accumulated_{name}_tokens") for name in _TOKENS
        }
        facts["cost"] = self._facts.get("accumulated_cost")
        facts["created_timestamp"] = self._facts.get("updated_at")
        return {"id": f"{conversation} {_TOTAL}", "usage": facts}

    def record(self, value: dict[str, Any]) -> Record:
        if "usage" not in value:
            return read_message(value)
        record = Record("usage", native_id=value["id"])
        spent = as_dict(value["usage"])
        record.ts = as_time(spent.get("created_timestamp"))
        record.model = as_text(spent.get("model")) or self._model
        record.usage = _usage(spent, record)
        return record


def _usage(spent: dict[str, Any], record: Record) -> Usage | None:
    given, said, read, written = (as_count(spent.get(f"{name}_tokens")) for name in _TOKENS)
    if not any((given, said, read, written)):
        return None
    return Usage(
        message_id=record.native_id,
        model=record.model,
        # Input includes what came from the cache, except for some providers.
        input_tokens=given - read - written if given >= read + written else given,
        output_tokens=said,
        cache_write_tokens=written,
        cache_read_tokens=read,
        cost_usd=as_dollars(spent.get("cost")),
    )


def _content(text: Any) -> Any:
    """What is not JSON is kept as text."""
    value = decoded(text)
    return str(text) if value is None and text is not None else value


# -- messages

SUMMARY, AGAIN = "summary", "again"  # a summary for the model; a prompt that is repeated for it
_REFUSED = re.compile(
    r"The user has declined to run this tool|tool call was skipped in goose chat mode"
    r"|Interrupted by the user|denied by (?:the )?user|Tool call was cancelled",
    re.IGNORECASE,
)
_REQUESTS = ("toolRequest", "frontendToolRequest")
_SILENT = frozenset({"redactedThinking", "toolConfirmationRequest", "image", "document"})
_OUTCOME = 4000  # characters that tell why a call was refused


def read_message(value: dict[str, Any]) -> Record:
    role = as_text(value.get("role"))
    record = Record(role or "other", role=role, native_id=as_text(value.get("id")))
    record.ts = as_time(value.get("created"))
    seen = as_dict(value.get("metadata"))
    for_person, for_model = (
        seen.get("userVisible") is not False,
        seen.get("agentVisible") is not False,
    )
    blocks = list(_joined(content_blocks(value.get("content"), "/content", record.warnings)))
    images = sum(block.get("type") == "image" for _, block in blocks)
    texts = [
        text
        for _, block in blocks
        if block.get("type") == "text" and (text := (as_text(block.get("text")) or "").strip())
    ]
    if role == "user" and (texts or images):
        _read_prompt(
            record, "\n".join(texts), images, value.get("compaction"), (for_person, for_model)
        )
    for pointer, block in blocks:
        _read_block(record, pointer, block, spoken=for_person)
    if role not in ("user", "assistant"):
        record.warnings.append("message without a known role")
    return record


def _joined(blocks: Iterator[tuple[str, dict[str, Any]]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Thoughts arrive as one block for each token."""
    thought, place = list[str](), ""
    for pointer, block in blocks:
        if block.get("type") in ("thinking", "reasoning"):
            text = block.get("thinking", block.get("text"))
            thought.append(text if isinstance(text, str) else "")
            place = place or pointer
            continue
        if thought:
            yield place, {"type": "thinking", "text": "".join(thought)}
            thought, place = [], ""
        yield pointer, block
    if thought:
        yield place, {"type": "thinking", "text": "".join(thought)}


def _read_prompt(
    record: Record, text: str, images: int, place: Any, seen_by: tuple[bool, bool]
) -> None:
    for_person, for_model = seen_by
    if place == SUMMARY:
        record.events.append(Event("summary", text, label=labels.COMPACT))
    elif not for_person and not for_model:
        pass  # repeated after a compaction
    elif place == AGAIN or not for_person:
        record.events.append(Event("system", text, label=labels.CONTEXT))
    else:
        record.events.append(Event("user", text, images=images))


def _read_block(record: Record, pointer: str, block: dict[str, Any], *, spoken: bool) -> None:
    kind = as_text(block.get("type"))
    if kind == "text":
        text = (as_text(block.get("text")) or "").strip()
        if text and record.role != "user":
            injected = Event("system", text, label=labels.CONTEXT)
            record.events.append(Event("assistant", text) if spoken else injected)
    elif kind == "thinking":
        record.say("thinking", block["text"])
    elif kind in _REQUESTS:
        record.events.append(call_event(block, pointer))
    elif kind == "toolResponse":
        record.results += _result(block, pointer)
    elif kind == "systemNotification":
        if notice := as_text(block.get("msg")):
            record.events.append(Event("system", notice, label="notification"))
    elif kind == "actionRequired":
        if asked := as_text(as_dict(block.get("data")).get("message")):
            record.events.append(Event("system", asked, label="question"))
    elif kind == "error":
        record.say("system", block.get("message"), labels.API_ERROR)
    elif kind == "conversationCompacted":
        record.say("system", "Conversation compacted", labels.COMPACT)
    elif kind not in _SILENT:
        record.warnings.append(f"content of an unknown type: {kind}")


def _result(block: dict[str, Any], pointer: str) -> list[Result]:
    call, outcome = as_text(block.get("id")), as_dict(block.get("toolResult"))
    if call is None:
        return []
    value = outcome.get("value")
    content = value.get("content") if isinstance(value, dict) else value
    output, images = result_text(_for_model(content))
    if outcome.get("status") == "error":
        output = as_text(outcome.get("error")) or output
    facts = as_dict(as_dict(value).get("structuredContent"))
    code = facts.get("exit_code")
    failed = (
        outcome.get("status") == "error"
        or as_dict(value).get("isError") is True
        or (isinstance(code, int) and not isinstance(code, bool) and code != 0)
        or facts.get("timed_out") is True
    )
    status = "error" if failed else "ok"
    if _REFUSED.search(output[:_OUTCOME]):
        status = "denied"
    return [Result(call, output, status, images=images, pointer=f"{pointer}/toolResult")]


def _for_model(content: Any) -> Any:
    """Without what repeats a result for people."""
    if not isinstance(content, list):
        return content
    shown = [item for item in content if _audience(item) != ["user"]]
    return shown or content


def _audience(item: Any) -> Any:
    return as_dict(as_dict(item).get("annotations")).get("audience")


# -- calls; older versions put the name of the extension before that of a tool

_TOOLS = Toolbox(
    {
        kinds.SHELL: ("shell", "bash", "execute_code", "execute", "automation_script"),
        kinds.READ: ("read", "read_file", "read_image", "read_resource", "pdf_tool", "docx_tool"),
        kinds.WRITE: ("write",),
        kinds.EDIT: ("edit", "text_editor"),
        kinds.SEARCH: ("tree", "list", "glob", "ripgrep", "analyze", "search_files"),
        kinds.FETCH: ("web_fetch", "web_scrape", "web_search", "fetch"),
        kinds.AGENT: (
            "delegate",
            "execute_task",
            "create_task",
            "subagent",
            "subagent_execute_task",
        ),
        kinds.PLAN: ("todo_write", "todo_read"),
    }
)
_OWN = frozenset({"developer", "platform", "todo", "subagent", "dynamic_task", "summon"})
_EDITOR = "text_editor"


def call_event(block: dict[str, Any], pointer: str) -> Event:
    """A call that waits for its result, unless the model wrote one that is none."""
    asked, call_id = as_dict(block.get("toolCall")), as_text(block.get("id"))
    value = as_dict(asked.get("value"))
    tool, given = as_text(value.get("name")), value.get("arguments")
    kind, edits = kind_of(tool, as_dict(given)), _edits(tool, as_dict(given))
    described = _TOOLS.describe(_plain(tool), given, kind, edits)
    event = event_of(described, tool, given, call_id, f"{pointer}/toolCall/value/arguments")
    if asked.get("status") == "error":
        event.tool = tool or "invalid"
        event.status, event.output = "error", as_text(asked.get("error")) or ""
    return event


def _plain(tool: str | None) -> str:
    """The name without its extension."""
    return (tool or "").rpartition("__")[2]


def kind_of(tool: str | None, given: dict[str, Any]) -> str:
    extension, _, name = (tool or "").rpartition("__")
    if name == _EDITOR:
        command = given.get("command")
        if command in ("view", None):
            return kinds.READ
        return kinds.WRITE if command == "write" else kinds.EDIT
    kind = _TOOLS.kind(name)
    if name == "write" and extension == "todo":
        return kinds.PLAN
    if kind == kinds.OTHER and extension and extension not in _OWN:
        return kinds.MCP
    return kind


def _edits(tool: str | None, given: dict[str, Any]) -> tuple[Edit, ...]:
    path, before, after = (as_text(given.get(name)) for name in ("path", "before", "after"))
    if path and _plain(tool) == "edit" and (before or after):
        return (Edit(path, before or "", after or ""),)
    if path and _plain(tool) == _EDITOR and given.get("command") == "insert":
        return (Edit(path, "", as_text(given.get("new_str")) or ""),)
    return ()


def starting_call(db: Foreign, parent: str, child: str) -> str | None:
    """The id of the call in the parent session, if one is certain."""
    first = db.rows(
        "SELECT content_json FROM messages WHERE session_id = ? AND role = 'user'"
        " ORDER BY created_timestamp, id LIMIT 1",
        (child,),
    )
    said = "\n".join(strings(_blocks(first[0][0]))) if first else ""
    calls = []
    for (content,) in db.rows(
        "SELECT content_json FROM messages WHERE session_id = ? AND role = 'assistant'"
        " AND content_json LIKE '%toolRequest%'",
        (parent,),
    ):
        for block in _blocks(content):
            value = as_dict(as_dict(as_dict(block).get("toolCall")).get("value"))
            tool, given = as_text(value.get("name")), as_dict(value.get("arguments"))
            call_id = as_text(as_dict(block).get("id"))
            if call_id and kind_of(tool, given) == kinds.AGENT and _is_given(given, said):
                calls.append(call_id)
    return calls[0] if len(calls) == 1 else None


def _is_given(given: dict[str, Any], said: str) -> bool:
    tasks = [as_text(given.get(name)) for name in ("instructions", "prompt", "task")]
    return any(task and task.strip() in said for task in tasks)


def _blocks(content: Any) -> list[Any]:
    return as_list(decoded(content))


SOURCE = GooseSource
