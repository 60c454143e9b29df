"""Splits a JSON array that may be larger than memory into its elements, without decoding them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

_BLOCK = 1 << 20
# A whole string, the start of one that the buffer does not end, or a bracket.
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|"|[\[\]{}]', re.DOTALL)
_BLANK = b" \t\r\n,\xef\xbb\xbf"
_STEPS = {b"[": 1, b"{": 1, b"]": -1, b"}": -1}


class NotAnArray(Exception):
    """The bytes are not an array of objects, or end before it does."""


def elements(read: Callable[[int, int], bytes]) -> Iterator[bytes]:
    """Each object or array in the outermost array. `read(length, offset)` gives bytes.

    Holds one element and one block in memory; numbers and strings between elements are ignored.
    """
    buffer, offset, scanned, depth = b"", 0, 0, 0
    start: int | None = None  # of the current element
    wanted = _BLOCK
    while more := read(wanted, offset):
        if depth == 0 and not buffer and more.strip(_BLANK)[:1] not in (b"[", b""):
            raise NotAnArray("does not start with [")
        offset += len(more)
        buffer += more
        wanted = _BLOCK
        for token in _TOKEN.finditer(buffer, scanned):
            found = token[0]
            if found == b'"':  # its end is in a later block; the longer it is, the more is read
                scanned, wanted = token.start(), max(_BLOCK, len(buffer) - token.start())
                break
            scanned = token.end()
            step = _STEPS.get(found)
            if step is None:
                continue
            depth += step
            if step == 1 and depth == 2:
                start = token.start()
            elif step == -1 and depth == 1 and start is not None:
                yield buffer[start : token.end()]
                start = None
            elif depth == 0:
                return
        else:
            scanned = len(buffer)
        kept = scanned if start is None else start
        buffer, scanned = buffer[kept:], scanned - kept
        start = None if start is None else 0
    raise NotAnArray("ends before its end")
