"""How often to read a file that its program keeps rewriting."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from sessiond.reading.survey import Candidate
from sessiond.reading.tracked import WHOLES

SHORTEST, LONGEST = 0.3, 1.2  # seconds; new data must be searchable within two seconds


@dataclass(slots=True)
class _Read:
    at: float
    pause: float


class Pace:
    """The pause after each read doubles while the file has no new records."""

    def __init__(self) -> None:
        self._reads: dict[str, _Read] = {}

    def too_soon(self, path: str) -> float | None:
        """When to read again, if the last read was too recent."""
        last = self._reads.get(path)
        due = last.at + last.pause if last else 0.0
        return due if due > time.monotonic() else None

    def read(self, files: Iterable[Candidate], *, changed: bool) -> None:
        for file in files:
            if file.kind in WHOLES:
                last = self._reads.get(file.path)
                pause = min(LONGEST, last.pause * 2) if last and not changed else SHORTEST
                self._reads[file.path] = _Read(time.monotonic(), pause)

    def pause(self, path: str, otherwise: float) -> float:
        last = self._reads.get(path)
        return last.pause if last else otherwise
