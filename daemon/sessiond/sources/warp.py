"""Warp: the database of its terminal, which also has what its agent was asked."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from sess_schema import labels
from sessiond.families.in_tables import InTables
from sessiond.sourcekit.base import (
    SOURCE_CODE,
    Conversation,
    Event,
    Layout,
    Listed,
    Record,
    SessionSpec,
    Table,
    Usage,
)
from sessiond.sourcekit.values import as_count, as_dict, as_list, as_text, as_time, decoded

if TYPE_CHECKING:
    from sessiond.sourcekit.foreign import Foreign

_IN_TERMINAL = "tui"
_ON_LINUX = ("warp-terminal", "warp-terminal-preview", "warp-oss")
_ON_MAC = ("dev.warp.Warp-Stable", "dev.warp.Warp-Preview", "dev.warp.WarpOss")
_ON_WINDOWS = ("Warp", "WarpPreview", "WarpOss")
_GROUP = ("Library", "Group Containers", "2BBY89MBSN.dev.warp", "Library", "Application Support")


class WarpSource(InTables):
    agent = "warp"
    title = "Warp"
    database = "warp.sqlite"
    variables = ("XDG_STATE_HOME",)
    reads = (
        "Prompts, and the tokens and cost of each conversation. Where Warp keeps only the sum of"
        " the tokens of a model, it counts as input."
    )
    leaves = (
        ("the table agent_tasks", "answers and tool calls, in a format of Warp's service"),
        ("the tables blocks and commands", "what was run in the terminal, by anyone"),
        ("other tables", "windows, settings and sign-in data"),
    )
    known_from = SOURCE_CODE
    subscription = True

    def places(self) -> list[str]:
        if self.platform == "win32":
            local = os.path.join(self.folders.local(), "warp")
            return [os.path.join(local, name, "data") for name in _ON_WINDOWS]
        if self.platform == "darwin":
            group = os.path.join(self.folders.home(), *_GROUP)
            above = (group, self.folders.application_data())
            return [os.path.join(folder, name) for folder in above for name in _ON_MAC]
        return [os.path.join(self.folders.state_home(), name) for name in _ON_LINUX]

    def enters(self, directory: str) -> bool:
        return os.path.basename(directory) == _IN_TERMINAL

    def layout(self, foreign: Foreign) -> Layout:  # noqa: ARG002 - each version is alike
        return WarpTables()


# -- the tables: prompts, and the sums of each conversation
# Warp keeps the last 10,000 prompts and 200 conversations: either may be there without the other.

_PROMPTS, _CONVERSATIONS = "ai_queries", "agent_conversations"
_USAGE = "usage:"
_PROMPT = (
    *("exchange_id", "start_ts", "input", "working_directory", "output_status"),
    "model_id",
)
_SUMS = ("warp_tokens", "byok_tokens", "custom_endpoint_tokens")
_CHARGED = ("input", "output", "input_cache_write", "input_cache_read")
_ENDINGS = {"Cancelled": labels.INTERRUPTED, "Failed": labels.API_ERROR}
_BY_PROMPT = 5


class _Prompt(NamedTuple):
    key: str
    started: Any
    status: Any
    size: Any
    folder: Any
    model: Any


class WarpTables(Layout):
    def __init__(self) -> None:
        self._prompts: dict[str, list[_Prompt]] = {}  # by conversation
        # Of the conversation that is read:
        self._used: dict[str, dict[str, Any]] = {}  # by key
        self._proposed = False  # Warp asked on its own, to propose a change

    def tables(self, db: Foreign) -> Sequence[Table]:  # noqa: ARG002 - the heads have all rows
        return ()

    def heads(self, db: Foreign) -> Iterable[tuple[str, Any]]:
        """Of all prompts, as Warp has no index of them by conversation."""
        columns = (
            "exchange_id, start_ts, output_status, octet_length(input), working_directory, model_id"
        )
        self._prompts = {}
        for name, *row in self._selected(db, _PROMPTS, columns, "ORDER BY start_ts, id"):
            self._prompts.setdefault(name, []).append(_Prompt(*row))
        columns = "last_modified_at, octet_length(conversation_data)"
        about = {name: mark for name, *mark in self._selected(db, _CONVERSATIONS, columns)}
        for name in dict.fromkeys([*self._prompts, *about]):
            yield name, (self._prompts.get(name), about.get(name))

    @staticmethod
    def _selected(
        db: Foreign, table: str, columns: str, rest: str = "", given: Sequence[Any] = ()
    ) -> list[tuple[Any, ...]]:
        if not db.has_table(table):
            return []
        return db.rows(f"SELECT conversation_id, {columns} FROM {table} {rest}", given)

    def whole(self, db: Foreign, conversation: str) -> Conversation | None:
        prompts = self._prompts.get(conversation, [])
        summary = "summary" if db.has(_CONVERSATIONS, "summary") else "NULL"
        names = f"conversation_data, last_modified_at, {summary}"
        only = "WHERE conversation_id = ?"
        rows = self._selected(db, _CONVERSATIONS, names, only, (conversation,))
        if not prompts and not rows:
            return None
        data, modified, told = rows[0][1:] if rows else (None, None, None)
        facts, about = as_dict(decoded(data)), as_dict(decoded(told))
        times = [as_time(one.started) for one in prompts] or [as_time(modified)]
        folders = [folder for one in prompts if (folder := as_text(one.folder))]
        models = [model for one in prompts if (model := as_text(one.model))]
        parent = as_text(facts.get("parent_conversation_id"))
        self._proposed = about.get("is_unlisted_auto_code_diff") is True
        change = Conversation(
            SessionSpec(
                conversation,
                kind="subagent" if parent else "main",
                parent=parent,
                agent_type=as_text(facts.get("agent_name")),
                title=as_text(about.get("title")) or None,
            ),
            project=as_text(about.get("initial_working_directory")) or next(iter(folders), None),
            project_rank=_BY_PROMPT,
            model=next(reversed(models), None),
            created_at=times[0],
            updated_at=as_time(modified) or times[-1],
        )
        usage = as_dict(facts.get("conversation_usage_metadata"))
        if usage == self._source_usage(db, facts):
            usage = {}
        self._used = dict(_used(conversation, usage, change.model))
        return change

    def _source_usage(self, db: Foreign, facts: dict[str, Any]) -> dict[str, Any] | None:
        """What the conversation that this one was forked from used: a fork begins with it."""
        token = as_text(facts.get("forked_from_server_conversation_token"))
        if not token:
            return None
        rest = "WHERE instr(conversation_data, ?)"
        for _, data in self._selected(db, _CONVERSATIONS, "conversation_data", rest, (token,)):
            other = as_dict(decoded(data))
            if other.get("server_conversation_token") == token:
                return as_dict(other.get("conversation_usage_metadata"))
        return None

    def listing(self, db: Foreign, conversation: str) -> list[Listed]:  # noqa: ARG002
        prompts = [
            Listed(one.key, (one, self._proposed), as_time(one.started))
            for one in self._prompts.get(conversation, ())
        ]
        return prompts + [Listed(key, (repr(value),)) for key, value in self._used.items()]

    def fetch(
        self,
        db: Foreign,
        conversation: str,  # noqa: ARG002 - the id of an exchange is enough
        keys: Sequence[str],
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        for key in keys:
            if key.startswith(_USAGE):
                yield key, self._used[key]
                continue
            rest = "WHERE exchange_id = ?"
            for row in self._selected(db, _PROMPTS, ", ".join(_PROMPT), rest, (key,)):
                value = dict(zip(_PROMPT, row[1:], strict=True))
                value["input"] = decoded(value["input"])
                value["output_status"] = decoded(value["output_status"])
                value["proposed"] = self._proposed
                yield key, value

    def is_dropped(self, key: str) -> bool:
        return not (key.startswith(_USAGE) and self._used)

    def record(self, value: dict[str, Any]) -> Record:
        return _read_usage(value) if "usage_of" in value else _read_prompt(value)


def _read_prompt(value: dict[str, Any]) -> Record:
    record = Record(
        "prompt",
        native_id=as_text(value["exchange_id"]),
        role="user",
        ts=as_time(value["start_ts"]),
        cwd=as_text(value["working_directory"]),
    )
    given = value["input"]
    for one in given if isinstance(given, list) else [given]:
        query = as_dict(as_dict(one).get("Query"))
        text = (as_text(query.get("text")) or "").strip()
        images = 0
        for tag, inner in _context(query.get("context")):
            if tag == "Image":
                images += 1
            elif tag == "Git":
                record.git_branch = as_text(as_dict(inner).get("branch"))
        if not query:
            record.warnings.append("an input of an unknown type")
        elif value["proposed"]:
            record.events.append(Event("system", text, label=labels.CONTEXT))
        elif text or images:
            record.events.append(Event("user", text, images=images))
    ending = as_text(value["output_status"]) or ""
    if ending in _ENDINGS:
        record.events.append(Event("system", ending.lower(), label=_ENDINGS[ending]))
    return record


def _context(value: Any) -> Iterator[tuple[str, Any]]:
    """What was attached to a prompt: values tagged with their type."""
    for one in as_list(value):
        if isinstance(one, dict) and len(one) == 1:
            yield from one.items()


def _used(
    conversation: str, usage: dict[str, Any], model: str | None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """What the conversation used so far: by type of token if Warp has that, else by model."""
    by_model = [as_dict(one) for one in as_list(usage.get("token_usage"))]
    charged = as_dict(usage.get("total_charged_usage"))
    costs = [charged.get(name) for name in charged if name.endswith("_cost_in_cents")]
    cents = sum(map(_number, costs)) or _number(usage.get("total_provider_cost_in_cents"))
    counts = [as_count(charged.get(f"{name}_tokens")) for name in _CHARGED]
    sums = {as_text(one.get("model_id")): _sum(one) for one in by_model if _sum(one)}
    counts_by_model = {name: [total, 0, 0, 0] for name, total in sums.items()}
    most = max(sums, key=sums.__getitem__, default=model)
    if any(counts):  # of all models, so none is left for the others
        counts_by_model = {name: [0, 0, 0, 0] for name in sums} | {most: counts}
    total = sum(map(sum, counts_by_model.values()))
    for name, tokens in counts_by_model.items():
        key = f"{_USAGE}{name}"
        yield (
            key,
            {
                "usage_of": f"{conversation}/{key}",
                "model_id": name,
                "tokens": tokens,
                "cost_usd": cents / 100 * sum(tokens) / total,  # the cost has no models
                "searches": charged.get("web_search_count") if name == most else 0,
            },
        )


def _sum(one: dict[str, Any]) -> int:
    older = as_count(one.get("total_tokens"))
    return sum(as_count(one.get(name)) for name in _SUMS) or older


def _number(value: Any) -> float:
    return value if isinstance(value, (int, float)) and value > 0 else 0.0


def _read_usage(value: dict[str, Any]) -> Record:
    native_id, model = value["usage_of"], value["model_id"]
    given, said, written, read = value["tokens"]
    record = Record("usage", native_id=native_id, model=model)
    record.usage = Usage(native_id, None, model, None, given, said, written, 0, read)
    record.usage.cost_usd = value["cost_usd"] or None
    record.usage.web_searches = as_count(value["searches"])
    return record


SOURCE = WarpSource
