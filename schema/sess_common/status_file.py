"""What the running writer tells about its work: a small file that it replaces every second."""

from __future__ import annotations

import json
import os

from sess_common.classes import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

# What readers wait by: a phase in words, else bytes.
DOING, DONE, TOTAL = "doing", "done_bytes", "total_bytes"


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The last facts written, or {}."""
    try:
        with open(path, encoding="utf-8") as file:
            facts = json.load(file)
    except (OSError, ValueError):
        return {}
    return facts if isinstance(facts, dict) else {}
