"""Where secrets stand in raw records: JSON as an agent wrote it, which must stay JSON."""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence

from sess_redaction import engine
from sess_redaction.names import PASSWORD, means_secret
from sess_redaction.occurrences import Occurrences
from sess_redaction.redactor import Rule, is_secret_member

_LEAST = 6  # characters of a string that may hold a secret of its own
STRING = re.compile(r'"([^"\\]*+(?:\\.[^"\\]*+)*+)"(\s*+:\s*+)?', re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_MEANT = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_HALF = "\ufffd"  # stands for half a character

Span = tuple[int, int]
SIGN = "*"
SHORTEST = 4  # bytes; the archive takes fewer stars for what was there


class Search:
    """Finds secrets by the built-in rules and the user's, and again what is known already."""

    def __init__(self, rules: Sequence[Rule] = ()) -> None:
        self._rules = rules
        self.known: Occurrences | None = None  # what was found, to find it again

    def in_text(self, text: str) -> list[Span]:
        found = engine.find(text, self._rules)
        if self.known is not None:
            for begin, end, kind in found:
                self.known.add(kind, text[begin:end])
            found += self.known.find(text)
        return [(begin, end) for begin, end, _ in found]

    def in_json(self, text: str) -> list[Span]:
        """What is found in the text as it stands, in each string, and by the names of members."""
        outer = self.in_text(text)
        spans: list[Span] = []
        name, after_name, at = "", -1, 0
        for string in STRING.finditer(text):
            begin, end = string.span(1)
            while at < len(outer) and outer[at][1] <= begin:
                at += 1
            inner = [*_within(outer, at, begin, end)]
            if end - begin >= _LEAST:
                own = name if after_name == string.start() and string[2] is None else ""
                inner += self._in_string(string[1], begin, own)
            if string[2] is not None:
                name, after_name = string[1], string.end()
            if inner:
                spans += whole_escapes(string[1], begin, inner)
        return spans

    def _in_string(self, text: str, begin: int, name: str) -> list[Span]:
        if name and means_secret(name) and is_secret_member(name, _decoded(text)):
            if self.known is not None:
                self.known.add(PASSWORD, _decoded(text))
            return [(begin, begin + len(text))]
        plain, place = unescaped(text)
        return [(begin + place(first), begin + place(last)) for first, last in self.in_text(plain)]


def unescaped(text: str) -> tuple[str, Callable[[int], int]]:
    """A string as it is meant, and where each of its characters is in what is written."""
    pieces, plain, written = list[str](), [0], [0]  # the ends of escapes
    for one in _ESCAPE.finditer(text) if "\\" in text else ():
        before = text[written[-1] : one.start()]
        pieces += before, _meant(one)
        plain.append(plain[-1] + len(before) + 1)
        written.append(one.end())

    def place(at: int) -> int:
        last = bisect_right(plain, at) - 1
        return written[last] + at - plain[last]

    return "".join((*pieces, text[written[-1] :])), place


def _meant(escape: re.Match[str]) -> str:
    if escape[1] is None:
        return _MEANT.get(escape[2], escape[2])
    character = chr(int(escape[1], 16))
    return _HALF if "\ud800" <= character <= "\udfff" else character


def _decoded(text: str) -> str:
    return str(json.loads(f'"{text}"', strict=False)) if "\\" in text else text


def covered(text: str, spans: Iterable[Span]) -> str:
    """The text with stars instead, as many as there were bytes."""
    pieces: list[str] = []
    done = 0
    for begin, end in joined(spans):
        size = sum(map(_size, text[begin:end]))
        if size >= SHORTEST:
            pieces += (text[done:begin], SIGN * size)
            done = end
    return "".join((*pieces, text[done:])) if pieces else text


def _size(character: str) -> int:
    """In UTF-8; a byte that is none was decoded as half a surrogate pair."""
    return 1 if "\udc80" <= character <= "\udcff" else len(character.encode("utf-8", "replace"))


def joined(spans: Iterable[Span]) -> list[Span]:
    """In order, each as far as those reach that overlap it."""
    whole: list[Span] = []
    for begin, end in sorted(spans):
        if whole and begin <= whole[-1][1]:
            whole[-1] = whole[-1][0], max(whole[-1][1], end)
        else:
            whole.append((begin, end))
    return whole


def _within(spans: list[Span], at: int, begin: int, end: int) -> Iterator[Span]:
    """The parts that lie between two places of the spans from number `at` on."""
    while at < len(spans) and spans[at][0] < end:
        yield max(spans[at][0], begin), min(spans[at][1], end)
        at += 1


def whole_escapes(text: str, begin: int, spans: list[Span]) -> Iterator[Span]:
    """Extended so that no escape sequence of a string is cut in two."""
    if "\\" not in text:
        yield from spans
        return
    escapes = [(begin + one.start(), begin + one.end()) for one in _ESCAPE.finditer(text)]
    for first, last in spans:
        before = escapes[max(0, bisect_left(escapes, (first,)) - 1)]
        after = escapes[max(0, bisect_left(escapes, (last,)) - 1)]
        yield (
            before[0] if before[0] < first < before[1] else first,
            after[1] if after[0] < last < after[1] else last,
        )
