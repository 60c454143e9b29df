"""Expressions that only say where to look closely: RE2 reads them all at once and in linear time."""

from __future__ import annotations

import re
from typing import Any

_MEMORY = 64 << 20  # bytes that RE2 may use for its states; it takes only what it needs


def compiled(expression: bytes, *, by_byte: bool = False) -> Any:
    """Without RE2, `re` does it, more slowly, and always byte by byte."""
    try:
        import re2
    except ImportError:
        return re.compile(expression)
    options = re2.Options()
    options.max_mem = _MEMORY
    if by_byte:
        options.encoding = re2.Options.Encoding.LATIN1
    return re2.compile(expression, options)
