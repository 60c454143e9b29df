"""The context window of models, in tokens."""

from __future__ import annotations

DEFAULT_WINDOW = 200_000
LARGE_WINDOW = 1_000_000
# By model name; the first match wins.
_WINDOWS = (
    ("[1m]", LARGE_WINDOW),
    ("-1m", LARGE_WINDOW),
    ("gemini", LARGE_WINDOW),
    ("gpt-4.1", LARGE_WINDOW),
    ("gpt-5", 400_000),
    ("gpt-4o", 128_000),
)


def window_of(model: str, peak: int = 0) -> int:
    """The window of a model; the large one if a prompt does not fit the small one."""
    name = model.lower()
    size = next((size for part, size in _WINDOWS if part in name), DEFAULT_WINDOW)
    return size if peak <= size else max(LARGE_WINDOW, peak)
