"""What JSON output consists of: one shape for each kind of object. docs/json.md describes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from sess_schema import times


class Said(Protocol):
    """An event as the index has it, or without its secrets."""

    @property
    def ts(self) -> int | None: ...
    @property
    def type(self) -> str: ...
    @property
    def label(self) -> str | None: ...
    @property
    def tool(self) -> str | None: ...
    @property
    def summary(self) -> str | None: ...
    @property
    def output(self) -> str: ...
    @property
    def status(self) -> str | None: ...
    @property
    def unjoined(self) -> str | None: ...
    @property
    def call_kind(self) -> str | None: ...
    @property
    def duration_ms(self) -> int | None: ...
    @property
    def text(self) -> str: ...


def event(
    said: Said,
    given: Any,
    *,
    key: str,
    images: int,
    files: Sequence[Mapping[str, str]] = (),
    subagent: str | None = None,
    copied_from: str | None = None,
) -> dict[str, Any]:
    """One event; `given` is the input of a call as the agent wrote it."""
    called = said.type == "tool_use"
    return {
        "event": key,
        "ts": times.iso(said.ts),
        "type": said.type,
        "label": said.label,
        "tool": said.tool,
        "kind": said.call_kind,
        "summary": said.summary or None,
        "input": given if called else None,
        "output": said.output if called else None,
        "status": said.status,
        "unjoined": said.unjoined,
        "duration_ms": said.duration_ms,
        "text": said.text,
        "files": [*files],
        "images": images,
        "subagent": subagent,
        "copied_from": copied_from,
    }
