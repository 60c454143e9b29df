"""Crush: the databases of its projects, each with its sessions; a registry lists them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sess_schema import kinds, labels
from sessiond.families.in_tables import InTables
from sessiond.sourcekit import disk
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
from sessiond.sourcekit.disk import KeptFile
from sessiond.sourcekit.folders import absolute
from sessiond.sourcekit.toolbox import Toolbox
from sessiond.sourcekit.values import (
    as_count,
    as_dict,
    as_list,
    as_milliseconds,
    as_text,
    as_time,
    decoded,
)

if TYPE_CHECKING:
    from sessiond.sourcekit.foreign import Foreign

_FOLDER, _REGISTRY = ".crush", "projects.json"
_LARGEST_REGISTRY = 4 << 20


class CrushSource(InTables):
    agent = "crush"
    title = "Crush"
    database = "crush.db"
    variables = ("CRUSH_GLOBAL_DATA", "XDG_DATA_HOME")
    reads = (
        "Sessions with their messages in the database of each project that Crush has registered."
        " Crush keeps the tokens of the last response of a session only, and the cost of them all."
    )
    leaves = (
        ("the tables files and read_files", "copies of edited files"),
        ("projects of versions without a registry", "name their folders in config.toml"),
    )
    known_from = SOURCE_CODE

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._registered = KeptFile(_registered_in, _LARGEST_REGISTRY)

    def places(self) -> list[str]:
        return list(self.projects())

    def projects(self) -> Mapping[str, str]:
        """The folder of each project by the folder of its data, as registered."""
        return self._registered.of(os.path.join(self._global_data(), _REGISTRY))

    def layout(self, foreign: Foreign) -> Layout:
        folder = os.path.dirname(foreign.path)
        real = {disk.real(data): path for data, path in self.projects().items()}
        above, name = os.path.split(folder)
        return CrushTables(real.get(folder) or (above if name == _FOLDER else None))

    def _global_data(self) -> str:
        data = self.folders.local() if self.platform == "win32" else self.folders.data_home()
        return self.moved("CRUSH_GLOBAL_DATA") or os.path.join(data, "crush")


def _registered_in(data: bytes) -> dict[str, str]:
    folders = {}
    for project in map(as_dict, as_list(as_dict(decoded(data)).get("projects"))):
        folder, kept = absolute(project.get("path")), absolute(project.get("data_dir"))
        if folder:
            folders[kept or os.path.join(folder, _FOLDER)] = folder
    return folders


# -- the tables; times are in seconds

_MESSAGES = "messages"
_USAGE = "usage"  # key of what the session row says
_UNNAMED = frozenset({"Untitled Session", "New Session", "New Agent Session", "Generate a title"})
_STARTED_BY = "$$"  # in the id of a subagent's session, between a message and its call
_TITLES = "title-"  # sessions in which older versions had titles made
_HEAD = ("updated_at", "title", "prompt_tokens", "completion_tokens", "cost")
_BY_REGISTRY = 5


class CrushTables(Layout):
    def __init__(self, project: str | None) -> None:
        self._project = project
        # Of the session that is read:
        self._facts: dict[str, Any] = {}
        self._callers: dict[str, str] = {}  # the answer whose calls a message of results answers
        self._model: str | None = None

    def tables(self, db: Foreign) -> Sequence[Table]:
        return [Table(_MESSAGES, "session_id")] if db.has_table(_MESSAGES) else []

    def heads(self, db: Foreign) -> Iterable[tuple[str, Any]]:
        if not db.has_table("sessions"):
            return
        for name, *mark in db.rows(f"SELECT id, {', '.join(_HEAD)} FROM sessions"):
            if not str(name).startswith(_TITLES):
                yield name, mark

    def whole(self, db: Foreign, conversation: str) -> Conversation | None:
        names = ("parent_session_id", "created_at", *_HEAD)
        rows = db.rows(f"SELECT {', '.join(names)} FROM sessions WHERE id = ?", (conversation,))
        if not rows:
            return None
        facts = self._facts = dict(zip(names, rows[0], strict=True))
        self._model = self._last_model(db, conversation)
        parent = as_text(facts["parent_session_id"])
        message, started_by, call = conversation.partition(_STARTED_BY)
        title = as_text(facts["title"])
        return Conversation(
            SessionSpec(
                conversation,
                kind="subagent" if parent else "main",
                parent=parent,
                call_id=f"{message}/{call}" if parent and started_by else None,
                title=None if title in _UNNAMED else title,
                resume=() if parent else ("crush", "--session", conversation),
            ),
            project=self._project,
            project_rank=_BY_REGISTRY if self._project else 0,
            created_at=as_time(facts["created_at"]),
            updated_at=as_time(facts["updated_at"]),
        )

    @staticmethod
    def _last_model(db: Foreign, conversation: str) -> str | None:
        rows = db.rows(
            f"SELECT model FROM {_MESSAGES} WHERE session_id = ? AND role = 'assistant'"
            " AND model <> '' ORDER BY created_at DESC, rowid DESC LIMIT 1",
            (conversation,),
        )
        return as_text(rows[0][0]) if rows else None

    def listing(self, db: Foreign, conversation: str) -> list[Listed]:
        self._callers = {}
        listed, answer = [], ""
        for name, role, changed in db.rows(
            f"SELECT id, role, updated_at FROM {_MESSAGES}"
            " WHERE session_id = ? AND typeof(id) = 'text' ORDER BY created_at, rowid",
            (conversation,),
        ):
            if role == "assistant":
                answer = name
            self._callers[name] = answer
            listed.append(Listed(name, (changed, answer), as_time(changed)))
        if listed and any(self._facts[name] for name in _HEAD[2:]):
            listed.append(Listed(_USAGE, tuple(self._facts[name] for name in _HEAD[2:])))
        return listed

    def fetch(
        self, db: Foreign, conversation: str, keys: Sequence[str]
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        columns = ["id", "role", "parts", "model", "created_at"]
        columns += [n for n in ("provider", "is_summary_message") if db.has(_MESSAGES, n)]
        query = f"SELECT {', '.join(columns)} FROM {_MESSAGES} WHERE id = ?"
        for row in db.many(query, [key for key in keys if key != _USAGE]):
            value = dict(zip(columns, row, strict=True))
            parts = decoded(value["parts"])
            if parts is None:
                parts = value["parts"] if isinstance(value["parts"], str) else []
            yield value["id"], {**value, "parts": parts, "caller": self._callers[value["id"]]}
        if _USAGE in keys:
            spent = {name: self._facts[name] for name in _HEAD[2:]}
            spent["cost"] = self._own_cost(db, conversation)
            yield _USAGE, {"usage": spent, "id": f"{conversation} {_USAGE}", "model": self._model}

    def _own_cost(self, db: Foreign, conversation: str) -> float:
        """Without that of subagents, which is added to their parent's."""
        rows = db.rows(
            "SELECT total(cost) FROM sessions WHERE parent_session_id = ? AND id NOT GLOB ?",
            (conversation, _TITLES + "*"),
        )
        cost = self._facts["cost"]
        return max(0.0, cost - rows[0][0]) if isinstance(cost, (int, float)) else 0.0

    def record(self, value: dict[str, Any]) -> Record:
        if "usage" not in value:
            return read_message(value)
        spent = value["usage"]
        record = Record("usage", native_id=value["id"], ts=as_time(self._facts["updated_at"]))
        record.model = as_text(value["model"])
        record.usage = Usage(
            message_id=value["id"],
            model=record.model,
            input_tokens=as_count(spent["prompt_tokens"]),
            output_tokens=as_count(spent["completion_tokens"]),
            cost_usd=round(spent["cost"], 9) if 0 <= spent["cost"] < 1e6 else None,
        )
        return record


# -- messages: typed parts of what was said, of calls and of their results

_TOOLS = Toolbox(
    {
        kinds.SHELL: ("bash", "job_output", "job_kill"),
        kinds.READ: ("view",),
        kinds.WRITE: ("write", "download"),
        kinds.EDIT: ("edit", "multiedit", "hashline_edit"),
        kinds.SEARCH: ("ls", "glob", "grep", "sourcegraph", "references", "lsp_references"),
        kinds.FETCH: ("fetch", "agentic_fetch", "web_fetch", "web_search"),
        kinds.AGENT: ("agent",),
        kinds.PLAN: ("todos", "exit_plan_mode"),
        kinds.QUESTION: ("ask_user", "ask_user_questions"),
    }
)
_REFUSED = re.compile(
    r"\A(?:User denied permission|permission denied|Error: user cancelled assistant tool calling"
    r"|Tool execution canceled)"
    r"|Command was aborted before completion",
    re.IGNORECASE,
)
_EXIT = re.compile(r"^Exit code ([1-9]\d*)\s*(?:<cwd>[^\n]*</cwd>\s*)?\Z", re.MULTILINE)
_ENDING = 4000  # characters that tell how a command ended
_CONTINUED = "The previous session was interrupted because it got too long"


def read_message(value: dict[str, Any]) -> Record:
    role = as_text(value.get("role"))
    record = Record(role or "other", role=role, native_id=as_text(value.get("id")))
    record.ts = as_time(value.get("created_at"))
    record.model = as_text(value.get("model")) if role == "assistant" else None
    parts = list(_parts(value.get("parts"), record))
    if role == "user":
        _read_prompt(record, parts)
    else:
        is_summary = value.get("is_summary_message") in (1, True)
        for pointer, kind, data in parts:
            _read_part(record, value, pointer, kind, data, is_summary=is_summary)
    if role not in ("user", "assistant", "tool", "system"):
        record.warnings.append("message without a known role")
    return record


def _parts(parts: Any, record: Record) -> Iterator[tuple[str, str, dict[str, Any]]]:
    if isinstance(parts, str):
        record.warnings.append("parts are not JSON")
    for number, part in enumerate(as_list(parts)):
        if isinstance(part, dict):
            kind, data = as_text(part.get("type")) or "", as_dict(part.get("data"))
            yield f"/parts/{number}/data", kind, data
        else:
            record.warnings.append(f"part {number} is not an object")


def _read_prompt(record: Record, parts: list[tuple[str, str, dict[str, Any]]]) -> None:
    typed, added, images = list[str](), list[Event](), 0
    for _, kind, data in parts:
        if kind == "text":
            text = (as_text(data.get("text")) or "").strip()
            if data.get("hidden") is True or text.startswith(_CONTINUED):
                added.append(Event("system", text, label=labels.CONTEXT))
            else:
                typed.append(text)
        elif kind == "shell_command":
            added.append(Event("user", as_text(data.get("command")) or "", label=labels.BASH))
            if output := as_text(data.get("output")):
                added.append(Event("system", output, label=labels.BASH_OUTPUT))
        elif kind == "image_url" or (kind == "binary" and _is_image(data.get("MIMEType"))):
            images += 1
        elif kind not in ("binary", "finish"):
            record.warnings.append(f"part of an unknown type: {kind}")
    text = "\n".join(filter(None, typed))
    if text or images:
        record.events.append(Event("user", text, images=images))
    record.events += added


def _read_part(
    record: Record,
    value: dict[str, Any],
    pointer: str,
    kind: str,
    data: dict[str, Any],
    *,
    is_summary: bool,
) -> None:
    if kind == "text":
        if text := (as_text(data.get("text")) or "").strip():
            record.events.append(_said(record.role, text, is_summary=is_summary))
    elif kind == "reasoning":
        record.say("thinking", data.get("thinking"))
    elif kind == "tool_call":
        tool, given = as_text(data.get("name")), decoded(data.get("input"))
        call = _scoped(record.native_id, data.get("id"))
        event = _TOOLS.call(tool, data.get("input") if given is None else given, call, None)
        event.pointer = f"{pointer}/input"
        record.events.append(event)
    elif kind == "tool_result":
        record.results += _result(data, pointer, value.get("caller"))
    elif kind == "finish":
        record.events += _end(data)
    elif kind not in ("binary", "image_url"):
        record.warnings.append(f"part of an unknown type: {kind}")


def _said(role: str | None, text: str, *, is_summary: bool) -> Event:
    if is_summary:
        return Event("summary", text, label=labels.COMPACT)
    if role == "assistant":
        return Event("assistant", text)
    return Event("system", text, label=labels.CONTEXT)


def _scoped(message: Any, call: Any) -> str | None:
    """Some models number their calls anew in each answer."""
    return f"{message}/{call}" if as_text(call) and as_text(message) else None


def _result(data: dict[str, Any], pointer: str, caller: Any) -> list[Result]:
    call = _scoped(caller, data.get("tool_call_id"))
    if call is None:
        return []
    output = as_text(data.get("content")) or ""
    facts = as_dict(decoded(data.get("metadata")))
    status = "ok"
    if _REFUSED.search(output[-_ENDING:]):
        status = "denied"
    elif data.get("is_error") is True or _EXIT.search(output[-_ENDING:]):
        status = "error"
    first, last = as_time(facts.get("start_time")), as_time(facts.get("end_time"))
    took = as_milliseconds(last - first) if first is not None and last is not None else None
    images = int(_is_image(data.get("mime_type")))
    return [Result(call, output, status, took, images, pointer=f"{pointer}/content")]


def _end(data: dict[str, Any]) -> list[Event]:
    """How an answer ended, if not as it should."""
    reason = data.get("reason")
    said = (as_text(data.get(name)) for name in ("message", "details"))
    text = ": ".join(filter(None, said))
    if reason == "canceled":
        return [Event("system", text or "canceled", label=labels.INTERRUPTED)]
    if reason == "error":
        return [Event("system", text or "error", label=labels.API_ERROR)]
    if reason == "content_filter":
        return [Event("system", text or "refused", label=labels.API_REFUSAL)]
    return []


def _is_image(kind: Any) -> bool:
    return (as_text(kind) or "").startswith("image/")


SOURCE = CrushSource
