"""The sums of one group."""

from __future__ import annotations

from collections.abc import Sequence
from operator import add

from sess_common.classes import TYPE_CHECKING, dataclass, field
from sess_schema.ids import SessionId

if TYPE_CHECKING:
    from typing import Any


@dataclass(slots=True)
class Tally:
    """The sums of one group; integers are exact."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_write_tokens: int = 0
    cache_write_1h_tokens: int = 0
    cache_read_tokens: int = 0
    cost_nano: int = 0
    unpriced: int = 0  # responses without a known price, excluded from cost totals
    requests: int = 0
    saved_nano: int = 0  # by the cache
    placeholders: int = 0  # responses whose final output count was never logged
    placeholder_chars: int = 0
    reasoning_tokens: int = 0  # part of output_tokens
    prompts: int = 0
    tool_calls: int = 0
    tool_errors: int = 0  # failed
    tool_denied: int = 0  # refused by a person or a rule, not counted as failed
    sessions: set[SessionId] = field(default_factory=set)  # their roots

    def add(self, other: Tally) -> None:
        for name in NAMES:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.sessions |= other.sessions

    @property
    def tokens(self) -> int:
        written = self.cache_write_tokens + self.cache_read_tokens
        return self.input_tokens + self.output_tokens + written


USAGE = (
    "input_tokens", "output_tokens", "cache_write_tokens", "cache_write_1h_tokens",
    "cache_read_tokens", "cost_nano", "unpriced", "requests", "saved_nano", "placeholders",
    "placeholder_chars", "reasoning_tokens",
)  # fmt: skip
EVENTS = ("prompts", "tool_calls", "tool_errors", "tool_denied")
NAMES = (*USAGE, *EVENTS)
_NOTHING = (0,) * len(NAMES)


class Sum:
    """A tally in the making: there are very many rows to add."""

    __slots__ = ("counts", "sessions")

    def __init__(self) -> None:
        self.counts: Sequence[int] = _NOTHING
        self.sessions = set[SessionId]()

    def add(self, counts: Sequence[int], root: SessionId | None) -> None:
        """`root`: the session to count, if it counts."""
        self.counts = [*map(add, self.counts, counts)]
        if root is not None:
            self.sessions.add(root)

    def include(self, other: Sum) -> None:
        self.counts = [*map(add, self.counts, other.counts)]
        self.sessions |= other.sessions

    def tally(self) -> Tally:
        counts: dict[str, Any] = dict(zip(NAMES, self.counts, strict=True))
        return Tally(**counts, sessions=self.sessions)
