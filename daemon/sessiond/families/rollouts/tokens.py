"""Token usage: running totals, which are repeated, and which forks continue."""

from __future__ import annotations

from typing import Any

from sessiond.families.rollouts.identity import Identity, digest
from sessiond.sourcekit.base import Usage
from sessiond.sourcekit.values import as_count, as_dict, as_text

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

    def state(self) -> dict[str, Any]:
        kept = {
            "inherits": self._inherits,
            "total": self._total,
            "counted": self._counted,
            "recorded": self._recorded,
            "window": self._window,
        }
        return {name: value for name, value in kept.items() if value}

    def inherit(self) -> None:
        """Called when the first total includes the usage of another thread."""
        self._inherits = True

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
            stop_reason=None,
            input_tokens=max(0, entered - cached - written),
            output_tokens=output,
            cache_write_tokens=written,
            cache_write_1h_tokens=0,
            cache_read_tokens=cached,
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
