"""What was typed so far, as a query: the last word may be incomplete."""

from __future__ import annotations

import re
import unicodedata

import apsw

from sess_schema.queries import fields
from sess_schema.queries.fields import Setting
from sess_schema.queries.filters import FIELDS

SHORTEST_BEGINNING = 3
_LAST = re.compile(r'[^\s"()]+$')
_WORD = re.compile(r"[^\W_]+$")  # as the index sees it: `src/ro` ends in a two-letter word
_FIELD = re.compile(r"-?([a-z]+):(.*)", re.DOTALL)
_GLOBS = ("tool", "branch")
_UNCASED = ("Lo", "Lm")  # letters of Chinese, Japanese, Korean and others


def begun(text: str) -> str:
    """The query with the last word as a prefix: `retry time` means `retry time*`."""
    if text.count('"') % 2:
        phrase = text.rpartition('"')[2]
        return f'{text}"*' if _extends(_last(phrase)) else text
    word = _last(text)
    if field := _FIELD.fullmatch(word):
        return f"{text}*" if field[1] in _GLOBS and field[2] else text
    return f"{text}*" if _extends(word) else text


def says_something(text: str) -> bool:
    """Whether there is more than the start of a phrase, an exclusion or a group."""
    return bool(text.strip(' "-('))


def unfinished_filter(db: apsw.Connection, text: str, setting: Setting) -> str:
    """A filter at the end without a valid value: `is:er` is not two words to search for."""
    word = _last(text)
    field = _FIELD.fullmatch(word)
    if field is None or field[1] not in FIELDS:
        return ""
    return "" if fields.fault(db, field[1], field[2], setting) is None else word


def short_word(text: str) -> str:
    """A last word too short to be a prefix: it should not empty the screen."""
    word = _WORD.search(text)
    if word is None or len(word[0]) >= SHORTEST_BEGINNING or _whole_when_short(word[0]):
        return ""
    return word[0]


def _whole_when_short(word: str) -> bool:
    """Scripts without capitals write most words in one or two characters."""
    return any(unicodedata.category(letter) in _UNCASED for letter in word)


def _last(text: str) -> str:
    found = _LAST.search(text)
    return found[0] if found else ""


def _extends(last: str) -> bool:
    if last.startswith("-") or last in ("AND", "OR"):
        return False
    word = _WORD.search(last)
    return word is not None and len(word[0]) >= SHORTEST_BEGINNING
