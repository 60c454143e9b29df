"""Values of several words, and of quotes among other signs, that no quotes hold together."""

from __future__ import annotations

import re

from sess_redaction import values
from sess_redaction.extents import Extent, Extents
from sess_redaction.words import is_word

LONGEST_LINE = 400  # characters in which the end of a value is looked for
_BLANKS = re.compile(r"[ \t]\S")
_WORDS = re.compile(r"(?:\\ |\S)+")
_SHORTEST_WORD = 4
_NEXT_PAIR = re.compile(r"([A-Za-z_]\w{2,})=")
_OPERATORS = frozenset(("#", "//", "&&", "||", "|", ";"))
_SIGN = re.compile(r"[^\w\s.,:;'\"-]|\d|\w;\w")
_LONG_PARTS = re.compile(r"[A-Z]?[a-z]{3,}(?<=\w{4})|[A-Z]{4,}")
# A call, a subscript or a tuple: `f(x, y)`, `a[0] or b`, `('a', 'b')`.
_CODE = re.compile(r"[A-Za-z_][\w.]*[(\[][\w.,:'\" =-]*[)\]][,;)]*(?: |\Z)|[(\[{]{1,2}[bruf]?[\"']")
_OPERATION = re.compile(
    r" (?:[=!<>]=|=>?) [\w(\[\"']| (?:[-+*/%]|or|and|if|in|is|not) [\w(\[]+(?:[ .,;)\]]|\Z)"
)
_PASSPHRASE = re.compile(r"(?:[A-Za-z]+ ){1,7}(?:\d|[A-Za-z]+\d\d)\d*[\\!$#@%&*?]{0,3}/?\s*\Z")
_OF_PROSE = re.compile(
    r"(?i)\b(?:at|least|most|than|is|of|in|on|line|page|for|to|by|version|length|min|max|minimum|maximum|step|up|and|the|has|with|from|type)\b"
)
_MOST_AFTER = 2
_MOST_FIRST = 3
_SHORTEST_PIECES, _MOST_PIECES = 8, 5
_ODD = re.compile(r"[A-Za-z]\d|\d[A-Za-z]|[a-z][A-Z]|[bcdfghjklmnpqrstvwxzBCDFGHJKLMNPQRSTVWXZ]{4}")
_GLUED = re.compile(r"[^\s,;:)\]}>]|[,;:][^\s,;:)\]}\"']")
_MORE_THAN_QUOTED = re.compile(r"([\"'`])(?:(?!\1)\S)*\1[^\s,;:)\]}]\S{2,}\Z")


def end_of(text: str, begin: int, end: int, *, code: bool = True) -> int | None:
    """Where a value with blanks in it ends, if it has any: after its last unreadable word.

    `code`: operations may stand there, too.
    """
    end = min(end, begin + LONGEST_LINE)
    if text[begin : begin + 1].isspace() or not _BLANKS.search(text, begin, end):
        return None
    if is_noise(text[begin:end], code=code):
        return end
    end = _statement_end(text, begin, end)
    value = text[begin:end]
    if is_noise(value, code=code) or is_passphrase(value) or _is_unreadable(value):
        return end
    last, words, random = None, 0, 0
    first = value.split(None, _MOST_FIRST)[:_MOST_FIRST]
    if not any(values.is_random(word, _SHORTEST_WORD) for word in first):
        return None
    for word in _WORDS.finditer(text, begin, end):
        words += len(word[0]) >= _SHORTEST_WORD
        if values.is_random(word[0], _SHORTEST_WORD):
            random += 1
            if 2 * random >= words:
                last = word.end()
    after = text[last:end].split() if last is not None else []
    if len(after) <= _MOST_AFTER and not any(map(values.reads_as_words, after)):
        return last if not after else end
    return last


def _statement_end(text: str, begin: int, end: int) -> int:
    """Before a comment, another command or the next pair; such signs may be part of a random value."""
    for word in _WORDS.finditer(text, begin, end):
        pair = _NEXT_PAIR.match(word[0]) if word.start() > begin else None
        if pair is not None and values.reads_as_words(pair[1]):
            return word.start() - 1
        first = word.start() == begin and word[0] not in ("#", "//")
        if (
            word[0] in _OPERATORS
            and not first
            and not is_noise(text[word.end() : end], _SHORTEST_WORD)
        ):
            return max(word.start() - 1, begin)
    return end


def is_noise(value: str, least: int = _SHORTEST_PIECES, *, code: bool = True) -> bool:
    """Signs and digits among letters that are no words."""
    said = value.strip()
    return (
        len(said) >= least
        and _SIGN.search(said) is not None
        and not any(map(is_word, _LONG_PARTS.findall(said)))
        and not values.is_placeholder(said)
        and _CODE.match(said) is None
        and (not code or _OPERATION.search(said) is None)
    )


def is_passphrase(value: str) -> bool:
    """`correct horse battery 99`, but no `at least 8`."""
    return _PASSPHRASE.match(value) is not None and _OF_PROSE.search(value) is None


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


def beyond_quotes(text: str, value: Extent, at: int, name: int, extents: Extents) -> int | None:
    """Where a value ends of which a pair of quotes is only the beginning: `"a"b$7x`."""
    end = min(extents.rest(at, name), at + LONGEST_LINE)
    whole = text[at:end].rstrip()
    if at + len(whole) <= value.end:
        return None
    goes_on = extents.opens_quote(name) or _GLUED.match(text, value.end + value.begin - at)
    if goes_on and is_noise(whole):
        return at + len(whole)
    if _MORE_THAN_QUOTED.match(whole) is None or not values.is_random(whole):
        return None
    return at + len(whole)
