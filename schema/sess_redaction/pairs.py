"""A name and its value in two members: `{"value": "...", "name": "DB_PASSWORD"}`, `$ printenv TOKEN` and its output."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sess_redaction import names, values
from sess_redaction.extents import Extents, Span

Found = Iterator[tuple[int, int, str]]

SIGN = rf"(?i:name|key|variable)[\\\"']*[ \t]*(?:=>|[:=])[ \t]*[\\\"']*[\w./-]*(?i:{names.WORDS})"
NAMED = (
    r"(?i:name|key|variable)[\\\"']{0,6}[ \t]{0,4}(?:=>|[:=])[ \t]{0,4}[\\\"']{0,4}"
    rf"([\w./-]{{0,60}}?(?i:(?:{names.WORDS})(?:{names.TAIL})?))(?![\w-])"
)
PRINTS = rf"(?:printenv |echo [\"']?\$[{{]?)\w*(?i:{names.WORDS})"
PRINTED = (
    rf"(?:printenv |echo [\"']?\$\{{?)(\w{{0,60}}?(?i:(?:{names.WORDS})(?:{names.TAIL})?))"
    r"[}\"']{0,2}[ \t]*\r?\n[ \t]{0,8}(\S)"
)
# Other members may be between the two, but no other object or item.
_WITHIN = r"(?:(?![{}<>]|\n[ \t]{0,40}- )[\s\S])"
_VALUE = r"(?<![^\W_])\w{0,20}?(?i:value)\\{0,3}[\"']?[ \t]{0,4}(?:=>|[:=])[ \t]{0,4}"
_AFTER = re.compile(rf"(?=[\\\"', \t\r\n]){_WITHIN}{{0,160}}?{_VALUE}(?=\S)")
_BEFORE = re.compile(rf"{_VALUE}(?=\S)")
_BETWEEN = re.compile(rf"(?=[\\\"', \t\r\n}}]){_WITHIN}{{0,160}}\Z")
_FLOW = re.compile(r"\{[^{}\n]*\Z")
_ENDS = re.compile(r"[ \t]*(?:[\r\n]|\Z|\\{0,3}[\"'`])")
_NEAR = 600  # characters before the name
_MOST = 4
_LONG = 14


def find(text: str, found: re.Match[str], extents: Extents) -> Found:
    """`found` has the member that gives the name; the value is after or before it."""
    name = found[1]
    if not names.means_secret(name):
        return
    after = _AFTER.match(text, found.end())
    if after is not None:
        spans = [_value(text, after.end(), name, extents)]
    else:
        near = max(found.start() - _NEAR, 0)
        starts = [one.end() for one in _BEFORE.finditer(text, near, found.start())]
        spans = [_before(text, at, found.start(), name, extents) for at in starts[-_MOST:]]
    weak = names.is_weak(name)
    for span in spans:
        if span is not None and (not weak or values.is_random(text[slice(*span)], _LONG)):
            yield *span, names.kind_of(name)


def _before(text: str, at: int, named: int, name: str, extents: Extents) -> Span | None:
    span = _value(text, at, name, extents)
    if span is None or span[1] > named or _BETWEEN.match(text, span[1], named) is None:
        return None
    return span


def _value(text: str, at: int, name: str, extents: Extents) -> Span | None:
    in_braces = _FLOW.search(text, max(at - _NEAR, 0), at) is not None
    value = extents.value(at, name=at, stops=",}" if in_braces else "")
    said = (
        text[value.begin : value.end].rstrip(",")
        if not value.quoted
        else text[value.begin : value.end]
    )
    secret = values.quoted(name, said) if value.quoted else values.is_said(name, said)
    return (value.begin, value.begin + len(said)) if secret else None


def printed(text: str, found: re.Match[str], extents: Extents) -> Found:
    """The line below a command that shows a variable."""
    begin = found.start(2)
    end = extents.value(begin, name=found.start(), plain=True).end
    said = text[begin:end]
    alone = _ENDS.match(text, end) is not None
    if names.means_secret(found[1]) and alone and values.is_said(found[1], said):
        yield begin, end, names.kind_of(found[1])
