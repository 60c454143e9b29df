"""What responses used. Codex writes running totals, again and again, and forks go on with them."""

from __future__ import annotations

from typing import Any

from sessiond.sourcekit.base import Usage
from sessiond.sourcekit.values import as_count, as_dict, as_text
from sessiond.sources.codex.identity import Identity, digest

_FIELDS = ("input_tokens", "cached_input_tokens", "cache_write_input_tokens", "output_tokens")
Counts = list[int]


class Tokens:
    """Turns totals into what each response added to them."""

    def __init__(self, state: dict[str, Any]) -> None:
        self._inherits = state.get("inherits") is True
        self._total = _kept(state.get("total"))
        self._counted = _kept(state.get("counted"))  # by a total, and by no record yet
        self._recorded = state.get("recorded") is True  # responses have records of their own
        self._window = as_count(state.get("window"))  # of the model

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
        """The first total includes what another thread used."""
        self._inherits = True

    def widen(self, told: dict[str, Any]) -> None:
        """Take the size of the model's context, where a record has it."""
        self._window = as_count(told.get("model_context_window")) or self._window

    def total(self, payload: dict[str, Any], identity: Identity, model: str | None) -> Usage | None:
        """Of a `token_count`."""
        info = as_dict(payload.get("info"))
        self.widen(info)
        total, last = _counts(info.get("total_token_usage")), _counts(info.get("last_token_usage"))
        if total is None and last is None:
            return None
        added = self._added(total, last)
        if total is not None:
            self._total = total
        if self._recorded or not any(added):
            return None
        self._counted = added
        key = f"{identity.turn} {total or last}".encode("utf-8", "replace")
        return self._usage(f"{identity.scope}:{digest(key)}", model, added)

    def record(self, payload: dict[str, Any], model: str | None) -> Usage | None:
        """Of a `token_usage_record`, unless a total before it told the same."""
        response, used = as_text(payload.get("response_id")), _counts(payload.get("usage"))
        if response is None or used is None:
            return None
        counted, self._counted, self._recorded = self._counted, None, True
        return self._usage(response, model, used) if used != counted and any(used) else None

    def _added(self, total: Counts | None, last: Counts | None) -> Counts:
        if total is None:
            return last or [0] * len(_FIELDS)
        if self._total is None:
            return last if last is not None and self._inherits else total
        added = [now - before for now, before in zip(total, self._total, strict=True)]
        if min(added) < 0:  # Codex began to count anew
            return last if last is not None else total
        return added

    def _usage(self, key: str, model: str | None, counts: Counts) -> Usage:
        entered, cached, written, output = counts
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
        )


def _counts(value: Any) -> Counts | None:
    return [as_count(value.get(name)) for name in _FIELDS] if isinstance(value, dict) else None


def _kept(value: Any) -> Counts | None:
    whole = isinstance(value, list) and len(value) == len(_FIELDS)
    return [as_count(count) for count in value] if whole else None
