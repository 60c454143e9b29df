"""Parses each line of a rollout into one record."""

from __future__ import annotations

from typing import Any

from sess_schema import labels
from sessiond.families.rollouts.head import read_meta
from sessiond.families.rollouts.identity import Identity
from sessiond.families.rollouts.items import read_item
from sessiond.families.rollouts.notices import mirrored, read_mirror, read_notice
from sessiond.families.rollouts.outcomes import Outcomes
from sessiond.families.rollouts.prompts import joined
from sessiond.families.rollouts.tokens import Tokens
from sessiond.sourcekit.base import Event, Record, Retire, SessionSpec
from sessiond.sourcekit.values import OPAQUE, as_dict, as_text, as_time, strings

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
        mirrors = state.get("mirrors")
        self._mirrors = [*filter(as_text, mirrors)] if isinstance(mirrors, list) else []
        self._identity = Identity(spec.native_id, as_dict(state.get("identity")))
        self._tokens = Tokens(as_dict(state.get("tokens")))
        self._outcomes = Outcomes(state)

    def state(self) -> dict[str, Any]:
        kept = {
            "begun": self._has_meta,
            "ts": self._last_ts,
            "model": self._model,
            "goal": self._goal,
            "items": self._has_items,
            "encrypted": self._encrypted,
            "mirrors": list(self._mirrors),
            "identity": self._identity.state(),
            "tokens": self._tokens.state(),
            **self._outcomes.state(),
        }
        return {name: value for name, value in kept.items() if value}

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
            record.events.append(Event("system", "Conversation compacted", label=labels.COMPACT))
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
