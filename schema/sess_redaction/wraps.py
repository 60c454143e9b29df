"""Words that a terminal, a shell or a box broke into several lines, and where these lines are.

Nothing says that a line goes on in the next one. But a line of a random word's characters alone, or one that begins
with many of them, is rarely anything else, if the line above is as long and ends with such characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sess_redaction.extents import Secret, Span
from sess_redaction.names import reads_as_words

_CHARACTERS = r"[A-Za-z0-9+/=._~%$@:!#^*&?-]"
_END = r"(?: {0,2}[│┃║|]|\\{1,3})?\r?"
_BEGINNING = r"[ \t]{0,24}(?:[│┃║|>] ?)?"
# What is between two parts of a word.
JOINT = re.compile(rf"(?<={_CHARACTERS}){_END}\n{_BEGINNING}(?={_CHARACTERS})")
_PIECE = re.compile(rf"\n{_BEGINNING}(?=[A-Za-z+/=._~%@-]{{0,24}}\d)([A-Za-z0-9+/=._~%@-]{{12,}})")
_ESCAPED = re.compile(rf"\\n(?:\\u250[23] ?)?{_BEGINNING}[A-Za-z0-9+/=._-]{{12}}")
_GOES_ON = re.compile(rf"{_BEGINNING}({_CHARACTERS}+)")
_ENDS_SO = re.compile(rf"{_CHARACTERS}{_END}\Z")
_ALONE = re.compile(rf"{_BEGINNING}[A-Za-z0-9+/=._~%@-]{{12,}}{_END}\Z")
# The password of an address whose host is in the next line.
_ADDRESS = re.compile(rf"://[\w.%-]*:[^\s/@]{{4,200}}?{_END}\n{_BEGINNING}[^\s/@]{{0,60}}@")
_ODD = re.compile(r"(?:[A-Za-z]\d|\d[A-Za-z]|[a-z][A-Z])")
_DATED = re.compile(r"\d{4}-\d\d-\d\d|\d+[.:/-]\d+[.:/-]")
_NAMED = re.compile(r"[A-Za-z_][\w.-]{0,80}(?:[=:][^\s=]| ?[=:]{1,2} )")
_NARROWEST = 24  # columns
_WIDEST = 400
_MOST_LINES = 80
_NEIGHBOURS = 3
_QUOTE = 2  # that follows the last part


def regions(text: str) -> Iterator[Span]:
    """Lines that are probably one, broken."""
    done = 0
    for piece in _PIECE.finditer(text):
        if piece.start() < done or not is_odd(piece[1]) or _NAMED.match(text, piece.start(1)):
            continue
        begin = _line_begin(text, piece.start())
        first, second = (begin, piece.start()), _line(text, piece.start() + 1)
        if not _goes_on(text, first, second):
            continue
        for _ in range(_MOST_LINES):
            above = _line_begin(text, begin - 1), begin - 1
            line = _line(text, begin)
            if begin <= done or not begin or not _goes_on(text, above, line):
                break
            if above[1] - above[0] != line[1] - line[0] and not _ALONE.match(text[slice(*line)]):
                break
            begin = above[0]
        done = _end(text, first, second)
        yield begin, done
    for address in _ADDRESS.finditer(text):
        yield address.start(), _line_end(text, address.end())


def _end(text: str, above: Span, line: Span) -> int:
    """Of the last line that the word goes on in: the first that is shorter, or begins with no part of it."""
    for _ in range(_MOST_LINES):
        shorter = line[1] - line[0] < above[1] - above[0] - _QUOTE
        if shorter or not _ALONE.match(text[slice(*line)]):
            break
        below = _line(text, line[1] + 1)
        if line[1] >= len(text) or not _goes_on(text, line, below):
            break
        above, line = line, below
    return line[1]


def may_be_escaped(text: str) -> bool:
    """Whether lines of JSON in a text may be parts of a word."""
    return "\\n" in text and _ESCAPED.search(text) is not None


def is_odd(run: str) -> bool:
    """As the characters of a key are, and not those of names, times and versions."""
    return _ODD.search(run) is not None and _DATED.match(run) is None and not reads_as_words(run)


def spanning(text: str, begin: int, found: list[Secret]) -> Iterator[Secret]:
    """Of what was found in a region that begins here, what is in more than one line, or ends with its line."""
    for first, last, kind in found:
        if "\n" in text[begin + first : begin + last] or JOINT.match(text, begin + last):
            yield begin + first, begin + last, kind


def longer(text: str, secret: Secret) -> Secret:
    """A secret at the end of the longest line around it, with what it goes on with in the next ones."""
    begin, end, kind = secret
    for _ in range(_MOST_LINES):
        end -= len(text[begin:end]) - len(text[begin:end].rstrip("\\"))
        if JOINT.match(text, end) is None or not _is_full(text, _line_begin(text, end)):
            break
        rest = _GOES_ON.match(text, text.find("\n", end) + 1)
        if rest is None or not is_odd(rest[1]) or _NAMED.match(text, rest.start(1)):
            break
        end = rest.end()
    return begin, max(end, secret[1]), kind


def _is_full(text: str, begin: int) -> bool:
    """Whether no line around it is longer."""
    size = _line_end(text, begin) - begin
    if not _NARROWEST <= size <= _WIDEST:
        return False
    at = begin
    for _ in range(_NEIGHBOURS):
        if not at:
            break
        at, end = _line_begin(text, at - 1), at - 1
        if end - at > size:
            return False
    at = begin
    for _ in range(_NEIGHBOURS + 1):
        end = _line_end(text, at)
        if end - at > size:
            return False
        if end >= len(text):
            break
        at = end + 1
    return True


def _goes_on(text: str, line: Span, below: Span) -> bool:
    size = line[1] - line[0]
    return (
        _NARROWEST <= size <= _WIDEST
        and below[1] - below[0] <= size + _QUOTE
        and _ENDS_SO.search(text, max(line[1] - 12, line[0]), line[1]) is not None
        and _GOES_ON.match(text, *below) is not None
    )


def _line_begin(text: str, end: int) -> int:
    """Of the line that ends here; no line is longer than what a terminal has."""
    return text.rfind("\n", max(end - _WIDEST - 1, 0), end) + 1 if end > 0 else 0


def _line_end(text: str, begin: int) -> int:
    end = text.find("\n", begin)
    return len(text) if end < 0 else end


def _line(text: str, begin: int) -> Span:
    return begin, _line_end(text, begin)
