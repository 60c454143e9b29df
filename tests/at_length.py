"""How much the randomised tests do: a little in `make test`, a lot in `make faults`.

SESSIOND_FAULTS=SEED chooses the long form, and every random choice follows from the seed. What a
long run did is added up from the notes that its tests leave in the folder SESSIOND_TALLY.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

SEED = int(os.environ.get("SESSIOND_FAULTS") or 0)
AT_LENGTH = "SESSIOND_FAULTS" in os.environ


def amount(short: int, long: int) -> int:
    return long if AT_LENGTH else short


def seeds(short: int, long: int) -> range:
    """For `parametrize`: the name of a test that fails says which seed to try again."""
    return range(SEED, SEED + amount(short, long))


def spread(total: int, most: int) -> list[int]:
    """At most `most` numbers from 1 to `total`, evenly spread, from where the seed says."""
    if total <= most:
        return [*range(1, total + 1)]
    return sorted({1 + (SEED + number * total // most) % total for number in range(most)})


def count(what: str, times: int = 1) -> None:
    """Note that something was done: `kills`, `faults`, `cases`. One word."""
    _note(f"{what} {int(times)}")


def peak(kilobytes: int, command: str) -> None:
    """Note the most memory that a command used."""
    _note(f"memory {kilobytes} {command}")


def _note(line: str) -> None:
    folder = os.environ.get("SESSIOND_TALLY")
    if folder:
        with open(Path(folder) / str(os.getpid()), "a", encoding="utf-8") as file:
            file.write(" ".join(line.split()) + "\n")


def added_up(folder: Path) -> tuple[Counter[str], dict[str, int]]:
    """What was done how often, and the peak memory of each command in kilobytes."""
    done: Counter[str] = Counter()
    memory: dict[str, int] = {}
    for path in folder.iterdir():
        for line in path.read_text("utf-8").splitlines():
            what, number, *rest = line.split(" ", 2)
            if what == "memory":
                memory[rest[0]] = max(memory.get(rest[0], 0), int(number))
            else:
                done[what] += int(number)
    return done, memory
