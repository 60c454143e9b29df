"""Logs of entries that form a tree: a header, messages, and changes of settings and titles.

Branches stay in the log, in the order in which they were written. A fork copies entries with their
ids and times into another log.
"""

from __future__ import annotations

import os
from typing import Any

import orjson

from sessiond.sourcekit.values import as_dict, as_text


def header_of(head: bytes) -> dict[str, Any]:
    """The header: the first line, or the second after a title."""
    for line in head.split(b"\n")[:2]:
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if as_dict(value).get("type") == "session":
            return as_dict(value)
    return {}


def session_of(path: str, head: bytes) -> tuple[str, dict[str, Any]]:
    """The id of a session, from its header or else its file's name, and the header."""
    header = header_of(head)
    stem = os.path.basename(path).removesuffix(".jsonl")
    return as_text(header.get("id")) or stem.rpartition("_")[2], header
