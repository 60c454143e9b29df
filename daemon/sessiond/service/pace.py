"""How often a file is looked at that its program rewrites all the time."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from sessiond.reading.survey import Candidate
from sessiond.reading.tracked import WHOLES

SHORTEST, LONGEST = 0.3, 1.2  # seconds; what is written last must be found two seconds later


@dataclass(slots=True)
class _Look:
    at: float
    pause: float


class Pace:
    """The pause after each look doubles while nothing but the noise of the program is found."""

    def __init__(self) -> None:
        self._looks: dict[str, _Look] = {}

    def too_soon(self, path: str) -> float | None:
        """When to look again, if the last look was only just now."""
        last = self._looks.get(path)
        due = last.at + last.pause if last else 0.0
        return due if due > time.monotonic() else None

    def read(self, files: Iterable[Candidate], *, changed: bool) -> None:
        for file in files:
            if file.kind in WHOLES:
                last = self._looks.get(file.path)
                pause = min(LONGEST, last.pause * 2) if last and not changed else SHORTEST
                self._looks[file.path] = _Look(time.monotonic(), pause)

    def pause(self, path: str, otherwise: float) -> float:
        last = self._looks.get(path)
        return last.pause if last else otherwise
