"""Words with which people correct an agent, and how sure a sign of it each is."""

from __future__ import annotations

import re
from typing import NamedTuple

PHRASES = {
    "no": 0.30,
    "actually": 0.35,
    "stop": 0.45,
    "undo": 0.55,
    "go back": 0.55,
    "wrong": 0.60,
    "revert": 0.60,
    "try again": 0.60,
    "i said": 0.60,
    "incorrect": 0.65,
    "didn't work": 0.65,
    "doesn't work": 0.65,
    "still failing": 0.70,
    "still broken": 0.75,
    "you broke": 0.80,
    "not what i meant": 0.85,
    "that's not right": 0.85,
    "don't do that": 0.85,
    "not what i asked": 0.90,
    "不行": 0.50,
    "没有用": 0.55,
    "停下": 0.55,
    "撤销": 0.60,
    "回退": 0.60,
    "重来": 0.65,
    "别这样": 0.70,
    "不对": 0.70,
    "错了": 0.75,
    "还是不行": 0.75,
    "不是这样": 0.80,
    "不是我要的": 0.90,
}


class Correction(NamedTuple):
    phrase: str
    weight: float


def correction(text: str) -> Correction | None:
    """The strongest sign in a text that somebody corrects an agent."""
    plain = " ".join(text.replace("\u2019", "'").casefold().split())
    found = [
        Correction(phrase, weight) for phrase, weight in PHRASES.items() if _says(plain, phrase)
    ]
    return max(found, key=lambda one: one.weight, default=None)


def _says(text: str, phrase: str) -> bool:
    """Latin words count only whole: `note` is no `no`."""
    if phrase not in text:
        return False
    return not phrase.isascii() or re.search(rf"\b{re.escape(phrase)}\b", text) is not None
