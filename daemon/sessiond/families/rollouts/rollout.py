"""Parses each line of a rollout into one record."""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import Any

import orjson

from sess_schema import labels
from sessiond.families.rollouts.calls import Outcomes
from sessiond.families.rollouts.items import mirrored, read_item, read_mirror, read_notice
from sessiond.families.rollouts.prompts import joined
from sessiond.families.rollouts.threads import read_meta
from sessiond.sourcekit.base import Event, Record, Retire, SessionSpec, Usage
from sessiond.sourcekit.values import (
    OPAQUE,
    as_count,
    as_dict,
    as_list,
    as_text,
    as_time,
    cost_at,
    is_uuid,
    strings,
    without_empty,
)

_SILENT = frozenset(
    {
        *("inter_agent_communication_metadata", "retained_context", "security_risk_score"),
        *("state", "world_state"),
    }
)
_TURN_STARTS = frozenset({"task_started", "turn_started"})
_MIRRORS = 8  # messages that may appear as events before the first one appears as an item


class RolloutParser:
    """Reads the records of one file in order, and keeps what it needs between them in `state`."""

    def __init__(self, spec: SessionSpec, state: dict[str, Any]) -> None:
        self._thread = spec.native_id
        self._has_meta = state.get("begun") is True  # the file's own metadata was read
        last_ts = state.get("ts")
        self._last_ts: int | None = last_ts if isinstance(last_ts, int) else None
        self._model = as_text(state.get("model"))
        self._goal = as_text(state.get("goal"))
        self._has_items = state.get("items") is True  # messages appear as items, not only as events
        self._encrypted = state.get("encrypted") is True  # the last reasoning item has no text
        self._mirrors = [*filter(as_text, as_list(state.get("mirrors")))]
        self._identity = Identity(spec.native_id, as_dict(state.get("identity")))
        self._tokens = Tokens(as_dict(state.get("tokens")))
        self._outcomes = Outcomes(state)

    def state(self) -> dict[str, Any]:
        return without_empty(
            begun=self._has_meta,
            ts=self._last_ts,
            model=self._model,
            goal=self._goal,
            items=self._has_items,
            encrypted=self._encrypted,
            mirrors=list(self._mirrors),
            identity=self._identity.state(),
            tokens=self._tokens.state(),
            **self._outcomes.state(),
        )

    def parse(self, value: dict[str, Any]) -> Record:
        kind, payload, place = _unwrapped(value)
        record = Record(as_text(payload.get("type")) or kind)
        if kind == "session_meta":
            record.kind = kind
        self._read_time(record, value, payload)
        if kind == "session_meta":
            self._read_meta(record, payload)
            return record
        turn = as_text(payload.get("turn_id"))
        if turn and (kind == "turn_context" or as_text(payload.get("type")) in _TURN_STARTS):
            self._identity.enter_turn(turn)
        self._read(record, kind, payload, place)
        own = as_text(payload.get("id")) or as_text(payload.get("call_id"))
        record.native_id = self._identity.name(
            kind, payload, repeatable=bool(record.events) and not own
        )
        self._retire_mirrors(record, kind, payload)
        return record

    def _read_time(self, record: Record, value: dict[str, Any], payload: dict[str, Any]) -> None:
        written = value.get("timestamp")
        record.ts = as_time(written if written is not None else payload.get("timestamp"))
        if record.ts is not None:
            self._last_ts = record.ts
            return
        if written is not None:
            record.warnings.append("bad timestamp")
        if self._last_ts is not None:
            record.ts, record.ts_from = self._last_ts, "previous"

    def _read(self, record: Record, kind: str, payload: dict[str, Any], place: str) -> None:
        if kind == "response_item":
            read_item(record, payload, place, self._outcomes)
            self._encrypted = record.kind == "reasoning" and not record.events
        elif kind == "event_msg":
            self._read_event(record, payload)
        elif kind == "turn_context":
            record.cwd = as_text(payload.get("cwd"))
            record.model = self._model = as_text(payload.get("model")) or self._model
            record.mode = _mode(payload)
        elif kind == "compacted":
            record.say("system", "Conversation compacted", labels.COMPACT)
            text = as_text(payload.get("message"))
            if text:
                record.events.append(Event("summary", text, label=labels.COMPACT))
        elif kind == "token_usage_record":
            record.usage = self._tokens.record(payload, self._model)
        elif kind == "realtime_item":
            text = as_text(payload.get("text"))  # what was spoken; messages repeat what matters
            if text:
                record.events.append(Event("system", text, label="speech"))
        elif kind == "inter_agent_communication":
            text = joined(payload.get("content")) or as_text(payload.get("message"))
            if text:
                record.events.append(Event("system", text, label="agent_message"))
        elif kind not in _SILENT:
            text = "\n".join(strings(payload, OPAQUE)).strip()
            if text:
                record.events.append(Event("system", text, label=kind))
            record.warnings.append("record of an unknown type")

    def _read_event(self, record: Record, payload: dict[str, Any]) -> None:
        kind = as_text(payload.get("type"))
        if kind == "token_count":
            record.usage = self._tokens.total(payload, self._identity, self._model)
        elif kind == "thread_goal_updated":
            goal = as_text(as_dict(payload.get("goal")).get("objective"))
            if goal and goal != self._goal:
                record.events.append(Event("system", goal, label=labels.GOAL))
            self._goal = goal
        elif kind in _TURN_STARTS:
            self._outcomes.begin_turn()
            self._tokens.note_window(payload)
        elif kind == "thread_settings_applied":
            settings = as_dict(payload.get("thread_settings"))
            self._model = as_text(settings.get("model")) or self._model
        elif mirror := mirrored(payload):
            if not self._has_items or (mirror == "thinking" and self._encrypted):
                read_mirror(record, payload, mirror)
        else:
            read_notice(record, payload, self._thread, self._outcomes)

    def _read_meta(self, record: Record, payload: dict[str, Any]) -> None:
        """The first is the file's own; later ones were copied from other threads."""
        meta = read_meta(payload)
        if meta.thread:
            self._identity.enter_thread(meta.thread)
        if self._has_meta:
            return
        self._has_meta = True
        self._tokens.note_provider(meta.provider)
        if meta.inherits:
            self._tokens.inherit()
        git = as_dict(payload.get("git"))
        record.cwd, record.git_branch = as_text(payload.get("cwd")), as_text(git.get("branch"))
        record.version = as_text(payload.get("cli_version"))

    def _retire_mirrors(self, record: Record, kind: str, payload: dict[str, Any]) -> None:
        """Most messages are written twice: as events they count only if there are no items."""
        if self._has_items:
            return
        if record.kind == "message" and record.role in ("user", "assistant"):
            self._has_items = True
            record.retires += [Retire(native_id=mirror) for mirror in self._mirrors]
            self._mirrors = []
        elif kind == "event_msg" and mirrored(payload) and record.events:
            self._mirrors = [*self._mirrors, record.native_id or ""][-_MIRRORS:]


def _mode(context: dict[str, Any]) -> str | None:
    """`plan`, or else when it asks for approval."""
    chosen = context.get("collaboration_mode")
    mode = as_text(as_dict(chosen).get("mode")) or as_text(chosen)
    return mode if mode == "plan" else as_text(context.get("approval_policy"))


def _unwrapped(value: dict[str, Any]) -> tuple[str, dict[str, Any], str]:
    """(type, payload, pointer to the payload); the first releases wrote no envelope."""
    kind, payload = as_text(value.get("type")), value.get("payload")
    if kind and isinstance(payload, dict):
        return kind, payload, "/payload"
    if kind == "token_usage_record":
        return kind, value, ""
    if "payload" in value:
        return kind or "unknown", {}, "/payload"
    state = as_text(value.get("record_type"))
    if state:
        return state, value, ""
    if kind is None and "role" not in value:
        return ("session_meta" if "id" in value else "unknown"), value, ""
    return "response_item", value, ""


# -- ids for records that have none: the same in every copy, whatever timestamp the copy has
# A fork starts with its parent's lines under new timestamps; a subagent's fork omits most of them.
# So the id of a record depends on its turn and its content, not on its neighbours. In logs without
# turn ids it depends on everything before the record.

_REMEMBERED = 128  # digests of a turn's records, to number repeats


def digest(*fields: bytes) -> str:
    return blake2b(b"\0".join(fields), digest_size=12).hexdigest()


class Identity:
    """Gives ids to the records of one file, in order."""

    def __init__(self, thread: str, state: dict[str, Any]) -> None:
        self._origin = as_text(state.get("origin")) or thread
        self._turn = as_text(state.get("turn")) or ""
        self._chain = as_text(state.get("chain")) or ""
        self._counts = {
            key: count
            for key, count in as_dict(state.get("said")).items()
            if isinstance(count, int)
        }

    def state(self) -> dict[str, Any]:
        return without_empty(
            origin=self._origin,
            turn=self._turn,
            chain=self._chain,
            said=dict(self._counts),
        )

    @property
    def scope(self) -> str:
        """Where ids must be unique: the turn if its id is a UUID, else the thread it started in."""
        return self._turn if is_uuid(self._turn) else self._origin

    @property
    def turn(self) -> str:
        return self._turn

    def enter_thread(self, thread: str) -> None:
        """Called when the lines that follow were first written in `thread`."""
        if thread != self._origin:
            self._origin, self._turn, self._chain, self._counts = thread, "", "", {}

    def enter_turn(self, turn: str) -> None:
        if turn != self._turn:
            self._turn, self._counts = turn, {}

    def name(self, kind: str, payload: Any, *, repeatable: bool) -> str:
        """The id of the next record; `repeatable` if another record may have the same content."""
        fields = (kind.encode("utf-8", "replace"), _encoded(payload))
        if not self._turn:
            self._chain = digest(self._chain.encode(), *fields)
            return f"{self.scope}:{self._chain}"
        hashed = digest(self._turn.encode("utf-8", "replace"), *fields)
        return f"{self.scope}:{hashed}{self._repeat(hashed) if repeatable else ''}"

    def _repeat(self, hashed: str) -> str:
        key = hashed[:10]
        count = self._counts.pop(key, 0)
        self._counts[key] = count + 1
        if len(self._counts) > _REMEMBERED:
            del self._counts[next(iter(self._counts))]
        return f".{count}" if count else ""


def _encoded(payload: Any) -> bytes:
    try:
        return orjson.dumps(payload)
    except TypeError:  # a number or string that only the lenient decoder accepts
        return json.dumps(payload).encode()


# -- tokens: running totals, which are repeated, and which forks continue

_FIELDS = (
    *("input_tokens", "cached_input_tokens", "cache_write_input_tokens", "output_tokens"),
    "reasoning_output_tokens",
)
_PRICED = 4  # the last one is part of the output
Counts = list[int]


class Tokens:
    """Converts running totals into the usage of each response."""

    def __init__(self, state: dict[str, Any]) -> None:
        self._inherits = state.get("inherits") is True
        self._total = _kept(state.get("total"))
        self._counted = _kept(state.get("counted"))  # from a total, not yet in a record
        self._recorded = state.get("recorded") is True  # each response has a record
        self._window = as_count(state.get("window"))  # the model's context size
        self._provider = as_text(state.get("provider"))  # where it runs

    def state(self) -> dict[str, Any]:
        return without_empty(
            inherits=self._inherits,
            total=self._total,
            counted=self._counted,
            recorded=self._recorded,
            window=self._window,
            provider=self._provider,
        )

    def inherit(self) -> None:
        """Called when the first total includes the usage of another thread."""
        self._inherits = True

    def note_provider(self, provider: str | None) -> None:
        """Take who runs the model."""
        self._provider = provider

    def note_window(self, facts: dict[str, Any]) -> None:
        """Take the size of the model's context window, if `facts` has it."""
        self._window = as_count(facts.get("model_context_window")) or self._window

    def total(self, payload: dict[str, Any], identity: Identity, model: str | None) -> Usage | None:
        """The usage that a `token_count` adds."""
        info = as_dict(payload.get("info"))
        self.note_window(info)
        total, last = _counts(info.get("total_token_usage")), _counts(info.get("last_token_usage"))
        if total is None and last is None:
            return None
        added = self._added(total, last)
        if total is not None:
            self._total = total
        if self._recorded or not any(added):
            return None
        self._counted = added
        key = f"{identity.turn} {(total or last or [])[:_PRICED]}".encode("utf-8", "replace")
        return self._usage(f"{identity.scope}:{digest(key)}", model, added)

    def record(self, payload: dict[str, Any], model: str | None) -> Usage | None:
        """The usage of a `token_usage_record`, unless a total already counted it."""
        response, used = as_text(payload.get("response_id")), _counts(payload.get("usage"))
        if response is None or used is None:
            return None
        counted, self._counted, self._recorded = self._counted, None, True
        if not any(used) or (counted and counted[:_PRICED] == used[:_PRICED]):
            return None
        return self._usage(response, model, used)

    def _added(self, total: Counts | None, last: Counts | None) -> Counts:
        if total is None:
            return last or [0] * len(_FIELDS)
        if self._total is None:
            return last if last is not None and self._inherits else total
        added = [now - before for now, before in zip(total, self._total, strict=True)]
        if min(added) < 0:  # it was reset
            return last if last is not None else total
        return added

    def _usage(self, key: str, model: str | None, counts: Counts) -> Usage:
        entered, cached, written, output, reasoning = counts
        return Usage(
            message_id=key,
            request_id=key,
            model=model,
            input_tokens=max(0, entered - cached - written),
            output_tokens=output,
            cache_write_tokens=written,
            cache_read_tokens=cached,
            cost_usd=cost_at(self._provider),
            context_window=self._window or None,
            reasoning_tokens=min(reasoning, output),
        )


def _counts(value: Any) -> Counts | None:
    return [as_count(value.get(name)) for name in _FIELDS] if isinstance(value, dict) else None


def _kept(value: Any) -> Counts | None:
    """Counts from a state; earlier releases kept no count of reasoning."""
    if not isinstance(value, list) or len(value) not in (_PRICED, len(_FIELDS)):
        return None
    return [as_count(count) for count in (*value, 0)][: len(_FIELDS)]
