"""`make faults`: everything at length, then what was done, counted, and whether it was enough.

    python -m tests.faults [SEED]

Every random choice follows from the seed, which is a new one each time unless it is given.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.at_length import added_up

TESTS = (
    "tests/faults",
    "tests/fuzz",
    "tests/daemon/writing/test_model.py",
    "tests/daemon/writing/test_order.py",
    "tests/daemon/ingest/test_masking.py",
    "tests/daemon/sources/cursor/test_live.py",
    "tests/daemon/sources/test_homes.py",
    "tests/daemon/sources/test_absurd_numbers.py",
    "tests/daemon/sources/test_damaged_homes.py",
    "tests/schema/test_upgrade.py",
)
FIGURES = (  # what the tests note, at least how often, and what it is
    ("kills", 500, "processes killed with kill -9"),
    ("faults", 300, "I/O faults injected"),
    ("cuts", 200, "power cuts"),
    ("damages", 1_000, "damaged indexes repaired"),
    ("cases", 5_000, "lives of files and orders of reading, compared with a model"),
    ("inputs", 100_000, "fuzz inputs"),
)
MOST_MEGABYTES = 350


def main() -> int:
    seed = sys.argv[1] if len(sys.argv) > 1 else str(int(time.time()))
    print(f"seed {seed}; every failure can be had again with", flush=True)
    print(f"  SESSIOND_FAULTS={seed} .venv/bin/pytest -m '' 'NAME OF THE TEST'", flush=True)
    with tempfile.TemporaryDirectory(prefix="sess-faults-") as folder:
        begun = time.monotonic()
        tests = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-n", "2", "-m", "", *TESTS],
            env=os.environ | {"SESSIOND_FAULTS": seed, "SESSIOND_TALLY": folder},
            check=False,
        )
        minutes = (time.monotonic() - begun) / 60
        enough = _report(Path(folder), minutes)
    return tests.returncode or int(not enough)


def _report(tally: Path, minutes: float) -> bool:
    """Print the figures; whether each is as large as promised."""
    done, memory = added_up(tally)
    enough = True
    print(f"\nin {minutes:.0f} minutes:")
    for what, least, meaning in FIGURES:
        short = done[what] < least
        print(f"{done[what]:>9,}  {meaning}" + (f": FEWER THAN {least:,}" if short else ""))
        enough = enough and not short
    print(f"{len(memory):>9,}  kinds of commands measured; those that needed most memory:")
    for command, kilobytes in sorted(memory.items(), key=lambda one: -one[1])[:3]:
        megabytes = kilobytes / 1024
        over = megabytes > MOST_MEGABYTES
        print(f"{megabytes:>6.0f} MB  {command}" + (": TOO MUCH MEMORY" if over else ""))
        enough = enough and not over
    return enough


if __name__ == "__main__":
    sys.exit(main())
