"""Where a value ends that quotes hold together, or several words without: literals, and what is around them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sess_redaction import values
from sess_redaction.extents import Extent, Extents, Span
from sess_redaction.names import is_word, reads_as_words

# Literals further on in the same statement: `getenv("A") || "..."`, `(\n    "...")`.
_FURTHER = re.compile(
    r"(?:(?:\|\||\?\?|\bor|[?:+])[ \t]{1,4}|(?:[Ff]rom|new|of|[Ss]tring|Str|[Ss]ecret|bytes|decode)\("
    r"|\b(?:get_?env|env|get|fetch|config)\(\\{0,3}[\"'][\w.-]{1,60}\\{0,3}[\"'],[ \t]{0,4}"
    r"|\b(?:default|value|fallback)[ \t]?=[ \t]?)(?=\\{0,3}[bruf]{0,2}[\"'`])"
)
# Any argument of a call, which is more often the words of a message or the name of something.
_ARGUMENT = re.compile(r"(?:\w\(|,)[ \t]{0,4}(?=\\{0,3}[bu]?[\"'])")
_OPENED = re.compile(r"\([ \t]{0,4}\r?\n[ \t]{0,40}(?=[bruf]{0,2}[\"'])")
_MOST_FURTHER = 4
_SIGNED = re.compile(r"[A-Za-z][!@#$&*]\d{2,}|[A-Za-z]\d{2,}[!@#$&*]")
_RANGE = re.compile(r"\[\^?[^\]\s]{0,20}?(?:[aA]-[zZ]|0-9)")  # of a regular expression
_HOST = re.compile(r"[a-z][\w.-]*:\d{2,5}\Z")
_MIXED = tuple(map(re.compile, ("[a-z]", "[A-Z]", "[0-9]")))
_SHORTEST = 6
_OF_MESSAGES = re.compile(r"%[sdrx(]|\{\w*\}|\\[wdsWDSnrtb]|\)\?|[\w%]: ")
# Of a literal; also a tag or an anchor of YAML, and the length that PHP writes.
PREFIX = re.compile(
    r"(?:[@$bruf]{1,2}|\\{1,3}\$|(?:!!?|&)[\w:/.-]{0,30}[ \t]|string\(\d{1,6}\)[ \t])(?=\\{0,3}[\"'])"
)
LIST = re.compile(r"\[\s{0,20}(?=\\{0,3}[\"'])")
_NEXT = re.compile(r"\s{0,20},\s{0,20}(?=\\{0,3}[\"'])")
_BECAME = re.compile(r"\\{0,3}[\"'`][ \t]{1,4}(?:->|→|to)[ \t]{1,4}(?=\\{0,3}[\"'`])")
_MOST_LISTED = 50
_QUOTES = re.compile(r"[\"'`]")


def literal_at(
    text: str, at: int, name: str, extents: Extents, *, phrase: bool = True, sure: bool = False
) -> Iterator[Span]:
    """The value must be a literal, quoted or, as the value of a sibling, not.

    `phrase`: it may consist of words. `sure`: it must look like a secret by itself.
    """
    prefix = PREFIX.match(text, at)
    value = extents.value(prefix.end() if prefix else at, name=at)
    end = None if value.quoted else end_of_words(text, at, extents.rest(at, at))
    if end is not None:
        yield value.begin, end
        return
    said = text[value.begin : value.end]
    if sure and (_HOST.match(said) or not _is_no_message(name, said.strip("\\\"'"))):
        return
    message = not phrase and " " in said and reads_as_words(said)
    if values.quoted(name, said) and (not message or is_passphrase(said)):
        yield value.begin, value.end


def further_literals(text: str, at: int, name: str, extents: Extents) -> Iterator[Span]:
    opened = _OPENED.match(text, at)
    if opened is not None:
        yield from literal_at(text, opened.end(), name, extents)
    end = min(extents.line_end(at), at + LONGEST_LINE)
    if not _QUOTES.search(text, at, end):
        return
    for pattern in (_FURTHER, _ARGUMENT):
        yield from _literals_after(pattern, text, (at, end), name, extents)


def _literals_after(
    pattern: re.Pattern[str], text: str, span: Span, name: str, extents: Extents
) -> Iterator[Span]:
    at, end = span
    for _ in range(_MOST_FURTHER):
        match = pattern.search(text, at, end)
        if match is None:
            return
        prefix = PREFIX.match(text, match.end())
        value = extents.value(prefix.end() if prefix else match.end(), name=match.end())
        said = text[value.begin : value.end]
        if values.quoted(name, said) and (pattern is _FURTHER or _is_no_message(name, said)):
            yield value.begin, value.end
        at = value.end + 1


def _is_no_message(name: str, said: str) -> bool:
    if values.is_chosen(name, said) or is_passphrase(said) or _SIGNED.search(said):
        return True
    if len(said) < _SHORTEST or _RANGE.search(said) is not None:
        return False
    mixed = sum(kind.search(said) is not None for kind in _MIXED)
    readable = reads_as_words(said)
    if (mixed > 1 and is_noise(said)) or (mixed == len(_MIXED) and not readable):
        return True
    return " " not in said and not readable and _OF_MESSAGES.search(said) is None


def changed_literal(text: str, at: int, name: str, extents: Extents) -> Iterator[Span]:
    """What the literal that ends here became: `"..." -> "..."`."""
    match = _BECAME.match(text, at)
    if match is not None:
        yield from literal_at(text, match.end(), name, extents)


def listed_literals(text: str, at: int, name: str, extents: Extents) -> Iterator[Span]:
    for _ in range(_MOST_LISTED):
        value = extents.value(at, name=at)
        if values.quoted(name, text[value.begin : value.end]):
            yield value.begin, value.end
        quote = len(text[at : value.begin])
        following = _NEXT.match(text, value.end + quote)
        if following is None:
            return
        at = following.end()


# -- several words, and quotes among other signs, that no quotes hold together

LONGEST_LINE = 400  # characters in which the end of a value is looked for
_BLANKS = re.compile(r"[ \t]\S")
_WORDS = re.compile(r"(?:\\ |\S)+")
_SHORTEST_WORD = 4
_NEXT_PAIR = re.compile(r"([A-Za-z_]\w{2,})=")
_LINK = re.compile(
    r" (?:and|as|at|but|for|from|if|in|into|is|it|of|on|or|so|that|the|then|to|via|was|when|which|with) "
)
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


def end_of_words(text: str, begin: int, end: int, *, code: bool = True) -> int | None:
    """Where a value with blanks in it ends, if it has any: after its last unreadable word.

    `code`: operations may stand there, too.
    """
    end = _before_prose(text, begin, min(end, begin + LONGEST_LINE))
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
    if len(after) <= _MOST_AFTER and not any(map(reads_as_words, after)):
        return last if not after else end
    return last


def _before_prose(text: str, begin: int, end: int) -> int:
    """Where a sentence goes on after its first word, if that is long and no word itself."""
    link = _LINK.search(text, begin, end)
    if link is None or len(first := text[begin : link.start()]) < _SHORTEST_PIECES or " " in first:
        return end
    return end if reads_as_words(first) else link.start()


def _statement_end(text: str, begin: int, end: int) -> int:
    """Before a comment, another command or the next pair; such signs may be part of a random value."""
    for word in _WORDS.finditer(text, begin, end):
        pair = _NEXT_PAIR.match(word[0]) if word.start() > begin else None
        if pair is not None and reads_as_words(pair[1]):
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
        and not any(reads_as_words(piece) for piece in pieces)
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
