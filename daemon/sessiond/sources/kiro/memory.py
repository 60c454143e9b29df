"""What one record of a log needs of those before it."""

from __future__ import annotations

from typing import Any

from sessiond.sourcekit.base import Record, Retire, SessionSpec

_REMEMBERED = 200  # prompts that may be taken back
_CALLS = 32  # calls that were refused and wait for their result


class Memory:
    """Prompts, and calls that were refused."""

    def __init__(self, spec: SessionSpec, state: dict[str, Any]) -> None:
        self.spec = spec
        self._count: int = state.get("count", 0)
        self._prompts: list[list[Any]] = state.get("prompts", [])  # [position, id]
        self._refused: list[str] = state.get("refused", [])
        self.called_at: int | None = state.get("called_at")  # when the last call was written

    def state(self) -> dict[str, Any]:
        return {
            "count": self._count,
            "prompts": self._prompts,
            "refused": self._refused,
            "called_at": self.called_at,
        }

    def note(self, record: Record) -> None:
        if record.native_id and any(event.type == "user" for event in record.events):
            self._prompts = [*self._prompts, [self._count, record.native_id]][-_REMEMBERED:]
        self._count += 1

    @property
    def prompted(self) -> bool:
        return bool(self._prompts)

    def refuse(self, call_id: str) -> None:
        self._refused = [*self._refused, call_id][-_CALLS:]

    def was_refused(self, call_id: str) -> bool:
        return call_id in self._refused

    def back_to(self, native_id: str) -> Retire:
        """Take back a record and all after it; what is not a known prompt stays itself."""
        known = any(name == native_id for _, name in self._prompts)
        return Retire(native_id, onward=True, after=not known)

    def back_to_position(self, position: int) -> list[Retire]:
        """Take back all from the first prompt that is not before a position in the log."""
        for place, native_id in self._prompts:
            if place >= position:
                return [Retire(native_id, onward=True)]
        return []
