"""Secrets and private paths, taken out of a text."""

from __future__ import annotations

from collections import Counter


class Redactor:
    """Masks what nobody should share, and counts what it masked."""

    def __init__(self) -> None:
        self.masked: Counter[str] = Counter()

    def __call__(self, text: str) -> str:
        return text

    def report(self) -> str:
        """`2 API keys, 1 private key`; empty when nothing was masked."""
        return ", ".join(f"{count} {name}" for name, count in self.masked.most_common())
