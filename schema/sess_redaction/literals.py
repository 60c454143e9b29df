"""String literals after a name that means a secret: one, several in a list, and those further on in a statement."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sess_redaction import blanks, values
from sess_redaction.extents import Extents, Span

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


def one(
    text: str, at: int, name: str, extents: Extents, *, phrase: bool = True, sure: bool = False
) -> Iterator[Span]:
    """The value must be a literal, quoted or, as the value of a sibling, not.

    `phrase`: it may consist of words. `sure`: it must look like a secret by itself.
    """
    prefix = PREFIX.match(text, at)
    value = extents.value(prefix.end() if prefix else at, name=at)
    end = None if value.quoted else blanks.end_of(text, at, extents.rest(at, at))
    if end is not None:
        yield value.begin, end
        return
    said = text[value.begin : value.end]
    if sure and (_HOST.match(said) or not _is_no_message(name, said.strip("\\\"'"))):
        return
    message = not phrase and " " in said and values.reads_as_words(said)
    if values.quoted(name, said) and (not message or blanks.is_passphrase(said)):
        yield value.begin, value.end


def further(text: str, at: int, name: str, extents: Extents) -> Iterator[Span]:
    opened = _OPENED.match(text, at)
    if opened is not None:
        yield from one(text, opened.end(), name, extents)
    end = min(extents.line_end(at), at + blanks.LONGEST_LINE)
    if not _QUOTES.search(text, at, end):
        return
    for pattern in (_FURTHER, _ARGUMENT):
        yield from _found(pattern, text, (at, end), name, extents)


def _found(
    pattern: re.Pattern[str], text: str, span: Span, name: str, extents: Extents
) -> Iterator[Span]:
    at, end = span
    for _ in range(_MOST_FURTHER):
        found = pattern.search(text, at, end)
        if found is None:
            return
        prefix = PREFIX.match(text, found.end())
        value = extents.value(prefix.end() if prefix else found.end(), name=found.end())
        said = text[value.begin : value.end]
        if values.quoted(name, said) and (pattern is _FURTHER or _is_no_message(name, said)):
            yield value.begin, value.end
        at = value.end + 1


def _is_no_message(name: str, said: str) -> bool:
    if values.is_chosen(name, said) or blanks.is_passphrase(said) or _SIGNED.search(said):
        return True
    if len(said) < _SHORTEST or _RANGE.search(said) is not None:
        return False
    mixed = sum(kind.search(said) is not None for kind in _MIXED)
    readable = values.reads_as_words(said)
    if (mixed > 1 and blanks.is_noise(said)) or (mixed == len(_MIXED) and not readable):
        return True
    return " " not in said and not readable and _OF_MESSAGES.search(said) is None


def changed(text: str, at: int, name: str, extents: Extents) -> Iterator[Span]:
    """What the literal that ends here became: `"..." -> "..."`."""
    found = _BECAME.match(text, at)
    if found is not None:
        yield from one(text, found.end(), name, extents)


def listed(text: str, at: int, name: str, extents: Extents) -> Iterator[Span]:
    for _ in range(_MOST_LISTED):
        value = extents.value(at, name=at)
        if values.quoted(name, text[value.begin : value.end]):
            yield value.begin, value.end
        quote = len(text[at : value.begin])
        following = _NEXT.match(text, value.end + quote)
        if following is None:
            return
        at = following.end()
