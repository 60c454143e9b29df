"""Values of several words, and of quotes among other signs, that no quotes hold together."""

from __future__ import annotations

import re

from sess_schema.redaction import values
from sess_schema.redaction.extents import Extents

LONGEST_LINE = 400  # characters in which the end of a value is looked for
_BLANKS = re.compile(r"[ \t]\S")
_WORDS = re.compile(r"\S+")
_SHORTEST_WORD = 4
_NEXT_PAIR = re.compile(r"[A-Za-z_]\w*=")
_MOST_AFTER = 2
_MOST_FIRST = 3
_SHORTEST_PIECES, _MOST_PIECES = 8, 5
_ODD = re.compile(r"[A-Za-z]\d|\d[A-Za-z]|[a-z][A-Z]|[bcdfghjklmnpqrstvwxzBCDFGHJKLMNPQRSTVWXZ]{4}")
_MORE_THAN_QUOTED = re.compile(r"([\"'`])(?:(?!\1)\S)*\1[^\s,;:)\]}]\S{2,}\Z")


def end_of(text: str, begin: int, end: int) -> int | None:
    """Where a value with blanks in it ends, if it has any: after its last unreadable word."""
    end = min(end, begin + LONGEST_LINE)
    if not _BLANKS.search(text, begin, end):
        return None
    last, words, random = None, 0, 0
    first = text[begin:end].split(None, _MOST_FIRST)[:_MOST_FIRST]
    if not any(values.is_random(word, _SHORTEST_WORD) for word in first):
        return end if _is_unreadable(text[begin:end]) else None
    for word in _WORDS.finditer(text, begin, end):
        if word[0] in ("#", "//", "&&", "||", "|", ";") or (last and _NEXT_PAIR.match(word[0])):
            end = word.start() - 1
            break
        words += len(word[0]) >= _SHORTEST_WORD
        if values.is_random(word[0], _SHORTEST_WORD):
            random += 1
            if 2 * random >= words:
                last = word.end()
    after = text[last:end].split() if last is not None else []
    if len(after) <= _MOST_AFTER and not any(map(values.reads_as_words, after)):
        return last if not after else end
    return last


def _is_unreadable(value: str) -> bool:
    """Several short pieces, none of which is a word."""
    pieces = value.split()
    return (
        len(value) >= _SHORTEST_PIECES
        and len(pieces) <= _MOST_PIECES
        and all(map(str.isalnum, pieces))
        and _ODD.search(value) is not None
        and not any(values.reads_as_words(piece) for piece in pieces)
    )


def beyond_quotes(text: str, at: int, name: int, extents: Extents) -> int | None:
    """Where a value ends of which a pair of quotes is only the beginning: `"a"b$7x`."""
    whole = text[at : min(extents.rest(at, name), at + LONGEST_LINE)].rstrip()
    if _MORE_THAN_QUOTED.match(whole) is None or not values.is_random(whole):
        return None
    return at + len(whole)
