"""What the oracle says about a session."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Tokens:
    input: int = 0
    cache_write: int = 0
    cache_read: int = 0
    output: int = 0

    def add(self, other: Tokens) -> None:
        self.input += other.input
        self.cache_write += other.cache_write
        self.cache_read += other.cache_read
        self.output += other.output


@dataclass
class Session:
    """Numbers of what a session shows; tokens of the responses that it had first."""

    id: str
    prompts: int = 0
    calls: int = 0
    failed: int = 0  # denied ones included
    start: str | None = None  # UTC, to the millisecond
    end: str | None = None
    title: str | None = None  # None: nothing names it
    tokens: Tokens = field(default_factory=Tokens)
    shared: bool = False  # another session has some of its responses, too

    def date(self, moment: str | None) -> None:
        if moment is None:
            return
        self.start = moment if self.start is None else min(self.start, moment)
        self.end = moment if self.end is None else max(self.end, moment)
