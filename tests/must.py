"""What a test knows to be there, although its type says that it can be missing."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def must(value: T | None) -> T:
    """The value: where there is none, the test fails here and not on some later line."""
    assert value is not None
    return value
