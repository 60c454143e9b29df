"""The runs of characters in a piece of text that could each be a value, to their natural ends."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from sess_redaction.words import reads_as_words


class Run(NamedTuple):
    begin: int
    end: int
    quoted: bool


# Besides blanks: escaped breaks and quotes, colours, entities, masks.
_SEPARATOR = re.compile(
    r"(?:\s|\\+(?:[nrt\"'`]|x1b\[[0-9;]*m|u001b\[[0-9;]*m|u00[0-9a-f]{2})|\x1b(?:\[[0-9;]*[A-Za-z])?"
    r"|&(?:quot|lt|gt|apos|#\w{2,4});|\[redacted: [A-Za-z ]{1,30}\])+"
)
_LEAST = 8  # characters that are looked at
_QUOTED = re.compile(r"(?<![A-Za-z0-9])([\"'`])((?:(?!\1).)+)\1(?![A-Za-z0-9])")
_LABEL = re.compile(r"[-/]{0,2}([A-Za-z_@$][\w.@$-]{0,40})(?:=>|:=|[:=])(?=[^\s=>:])")
_SHORT_LABEL = 3
_MOST_LABELS = 3
_PAIR = re.compile(r"(?:^|(?<=[^\w]))[A-Za-z_][\w.-]*=")
_COMMA = re.compile(r"[,;&]")
_CALL = re.compile(r"[\w.$@!&*]*[(\[{]")
_DIVIDES = re.compile(r"[(),;\[\]{}|<>]+")
_STRINGS = re.compile(r"[\"'`][,:;)\]}+]{1,3}[\"'`]")  # between two strings
_MARGIN = re.compile(r"\d{1,6}[→|]")
_OPENERS = "\"'`([{<*_~“‘«"
_ENDERS = "\"'`*_~.,;:?”’»…"
_CLOSES = {")": "(", "]": "[", "}": "{", ">": "<"}


def within(text: str, begin: int, end: int) -> Iterator[Run]:
    for first, last in _words(text, begin, end):
        literals = [*_QUOTED.finditer(text, first, last)]
        for literal in literals:
            yield Run(*literal.span(2), quoted=True)
        if not literals:
            pairs = len(_PAIR.findall(text, first, last)) > 1
            for member in _members(text, first, last, _COMMA if pairs else _STRINGS):
                yield from _bare(text, *member, paired=pairs)


def _words(text: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
    for separator in _SEPARATOR.finditer(text, begin, end):
        if separator.start() - begin >= _LEAST:
            yield begin, separator.start()
        begin = separator.end()
    if end - begin >= _LEAST:
        yield begin, end


def _members(
    text: str, begin: int, end: int, dividers: re.Pattern[str]
) -> Iterator[tuple[int, int]]:
    """Of `a=1,b=2` each pair, of `"a","b"` each string, otherwise all."""
    for divider in dividers.finditer(text, begin, end):
        yield begin, divider.start()
        begin = divider.end()
    yield begin, end


def _bare(text: str, begin: int, end: int, *, paired: bool) -> Iterator[Run]:
    margin = _MARGIN.match(text, begin, end)
    begin, end = _trimmed(text, margin.end() if margin else begin, end)
    for _ in range(_MOST_LABELS):
        label = _LABEL.match(text, begin, end)
        if label is None or not (paired or _is_label(label[1])):
            break
        begin, end = _trimmed(text, label.end(), end)
    quoted = text[begin - 1 : begin] in ("'", '"', "`") and text[end : end + 1] == text[begin - 1]
    call = _CALL.match(text, begin, end)
    if call is None or (call.end() > begin + 1 and not reads_as_words(call[0])):
        yield Run(begin, end, quoted)
        return
    for divider in _DIVIDES.finditer(text, begin, end):
        yield Run(*_trimmed(text, begin, divider.start()), quoted=False)
        begin = divider.end()
    yield Run(*_trimmed(text, begin, end), quoted=False)


def _is_label(said: str) -> bool:
    return said.isupper() or (len(said) <= _SHORT_LABEL and said.islower()) or reads_as_words(said)


def _trimmed(text: str, begin: int, end: int) -> tuple[int, int]:
    """Without the quotes and brackets around it, and the signs that end a sentence."""
    while begin < end and text[begin] in _OPENERS:
        begin += 1
    while end > begin:
        last = text[end - 1]
        opener = _CLOSES.get(last)
        opened = opener is None or text.count(last, begin, end) <= text.count(opener, begin, end)
        if opened and last not in _ENDERS:
            break
        end -= 1
    return begin, end
