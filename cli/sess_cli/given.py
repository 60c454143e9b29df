"""What agents were given from the index: a line of JSON each, for `sess log --given`.

The words that were given are not repeated here.
"""

from __future__ import annotations

import os

from sess_cli.logfile import LogFile
from sess_common import times

LOG = LogFile("given.jsonl", most_bytes=2 << 20, line_bytes=300)
_BYTES_PER_TOKEN = 3
latest, entries = LOG.latest, LOG.entries


def log(
    door: str, what: str, text: str, *, seconds: float, found: bool, about: list[str] | None = None
) -> None:
    """Note an answer; one that cannot be noted is given all the same.

    `door`: mcp, hook. `about`: what should not be told twice.
    """
    size = len(text.encode("utf-8", "replace"))
    LOG.append(
        {
            "ts": times.iso(times.now_ms()),
            "door": door,
            "what": what,
            "found": found,
            "tokens": -(-size // _BYTES_PER_TOKEN),
            "ms": round(seconds * 1000),
            "project": os.getcwd(),
            "process": os.getpid(),
            **({"about": about} if about else {}),
        }
    )
