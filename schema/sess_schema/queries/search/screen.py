"""Regular expressions for RE2: fast and linear, over many texts at once.

RE2 gets a relaxed form of the parsed expression, which never rejects a text that Python would
accept. Where nothing had to be relaxed, most of its matches are Python's as well.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import accumulate, islice
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser as sre  # type: ignore[attr-defined]
from typing import Any

from sess_common.classes import dataclass

_HIGH = r"\x{80}-\x{10FFFF}"
_ANY = "(?s:.)"
_ANYTHING = "(?s:.*)"
# Character classes: exact for ASCII, everything else passes.
_CATEGORIES = {
    op.CATEGORY_DIGIT: "0-9" + _HIGH,
    op.CATEGORY_NOT_DIGIT: r"\x00-/:-\x7f" + _HIGH,
    op.CATEGORY_SPACE: r"\t-\r\x1c-\x20" + _HIGH,
    op.CATEGORY_NOT_SPACE: r"\x00-\x08\x0e-\x1b!-\x7f" + _HIGH,
    op.CATEGORY_WORD: "0-9A-Za-z_" + _HIGH,
    op.CATEGORY_NOT_WORD: r"\x00-/:-@\[-\^`\{-\x7f" + _HIGH,
}
_EDGES = {op.AT_BEGINNING: "(?m:^)", op.AT_END: "(?m:$)"}
_MOST_REPEATS = 1000  # RE2's limit
# Letters outside ASCII that equal an ASCII letter when case is ignored.
_TWINS = {"i": "\u0130\u0131", "k": "\u212a", "s": "\u017f"}
_WIDE = 300
_FEWEST, _MOST = 4, 128  # texts at once; the first hits should not wait for many
_BATCH = 1 << 18  # bytes; a batch this large needs no more texts


@dataclass(frozen=True, slots=True)
class Screen:
    """A test that every text with a match passes."""

    search: Callable[[bytes, int], Any]  # in a text, from a position on
    faithful: bool  # Python also finds what it finds inside a line of ASCII

    def __call__(self, text: bytes, at: int) -> Any:
        return self.search(text, at)

    def passed(self, rows: Iterator[Any]) -> Iterator[tuple[Any, bool]]:
        """The rows whose third column may match, and whether it is certain to. Calling RE2 costs
        more than running it, so it runs over many texts at once."""
        number = _FEWEST
        while batch := [*islice(rows, number)]:
            joined = b"\n".join([row[2] for row in batch])
            yield from self._passed(batch, joined)
            number = max(_FEWEST, number // 2) if len(joined) > _BATCH else min(2 * number, _MOST)

    def _passed(self, batch: list[Any], joined: bytes) -> Iterator[tuple[Any, bool]]:
        found = self.search(joined, 0)
        if not found:
            return
        ends = [*accumulate([len(row[2]) + 1 for row in batch])]
        while found:
            number = bisect_right(ends, found.start())
            yield batch[number], self.faithful and _in_a_line_of_ascii(found.group())
            at = ends[number]
            found = at < len(joined) and self.search(joined, at)


def _in_a_line_of_ascii(match: bytes) -> bool:
    """Only such a match lies within one text and is the same for RE2 and Python."""
    return match.isascii() and b"\n" not in match


def literal_screen(text: str) -> Screen | None:
    """For a text in any case, with letters that LIKE cannot compare."""
    if text.isascii() or text.lower() == text.upper() or "\u0307" in text.lower():
        return None
    flags = re.IGNORECASE | re.MULTILINE
    return screen(sre.parse(re.escape(text), flags))


def screen(tree: Any) -> Screen | None:
    """The screen for a parsed expression; None if RE2 is missing or cannot run it."""
    try:
        import re2  # rarely needed
    except ImportError:
        return None
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    relaxer = _Relaxer()
    try:
        relaxed = relaxer.all_of(tree, tree.state.flags)
        search = re2.compile(relaxed.encode(), options).search
    except (re2.error, RecursionError):
        return None
    return Screen(search, faithful=not relaxer.loose and tree.getwidth()[0] > 0)


class _Relaxer:
    """Writes an expression for RE2; `loose` once it accepts a line of ASCII that Python rejects."""

    def __init__(self) -> None:
        self.loose = False

    def all_of(self, nodes: Iterable[Any], flags: int) -> str:
        return "".join([self._one(code, value, flags) for code, value in nodes])

    def _one(self, code: Any, value: Any, flags: int) -> str:
        if code is op.LITERAL:
            return self._class([(op.LITERAL, value)], flags)
        if code is op.NOT_LITERAL:
            return self._class([(op.NEGATE, None), (op.LITERAL, value)], flags)
        if code is op.IN:
            return self._class(value, flags)
        if code is op.ANY:
            return _ANY if flags & re.DOTALL else "."
        if code is op.BRANCH:
            return f"(?:{'|'.join([self.all_of(branch, flags) for branch in value[1]])})"
        if code is op.SUBPATTERN:
            _, added, removed, inner = value
            return f"(?:{self.all_of(inner, (flags | added) & ~removed)})"
        if code in (op.MAX_REPEAT, op.MIN_REPEAT):
            return self._repeated(value, flags)
        if code is op.AT and value in _EDGES and flags & re.MULTILINE:
            return _EDGES[value]
        self.loose = True
        if code is op.ATOMIC_GROUP:
            return f"(?:{self.all_of(value, flags)})"
        if code is op.POSSESSIVE_REPEAT:
            return self._repeated(value, flags)
        if code is op.AT:
            return _EDGES.get(value, "")
        if code in (op.ASSERT, op.ASSERT_NOT):
            return ""
        return _ANYTHING  # group references, and any later additions

    def _repeated(self, value: Any, flags: int) -> str:
        least, most, inner = value
        top = "" if most > _MOST_REPEATS else str(most)
        if least > _MOST_REPEATS or (not top and most is not op.MAXREPEAT):
            self.loose = True
        return f"(?:{self.all_of(inner, flags)}){{{min(least, _MOST_REPEATS)},{top}}}"

    def _class(self, items: Iterable[Any], flags: int) -> str:
        ranges = others = ""
        negated = False
        for code, value in items:
            if code is op.NEGATE:
                negated = True
            elif code is op.CATEGORY:
                if negated:
                    return self._anything()
                self.loose |= bool(flags & re.ASCII)
                ranges += _CATEGORIES[value]
            else:
                first, last = (value, value) if code is op.LITERAL else value
                ranges += f"{_hex(first)}-{_hex(last)}"
                if flags & re.IGNORECASE:
                    others += self._other_cases(first, last)
        if negated:
            return self._anything() if others else f"[^{ranges}]"
        return f"[{ranges}{others}]"

    def _anything(self) -> str:
        self.loose = True
        return _ANY

    def _other_cases(self, first: int, last: int) -> str:
        """Every character that may equal one of a range when case is ignored."""
        if last > 0x7F:
            self.loose = True
            if last - first > _WIDE:
                return "A-Za-z" + _HIGH
            cases = {other for c in range(first, last + 1) for other in _cases().get(_key(c), ())}
            return "".join(map(_hex, sorted(cases)))
        letters = sorted({chr(c).lower() for c in range(first, last + 1) if chr(c).isalpha()})
        equal = "".join([c + c.upper() + _TWINS.get(c, "") for c in letters])
        return "".join([_hex(ord(c)) for c in equal])


def _key(code: int) -> str:
    return chr(code).upper().casefold().replace("\u0307", "")  # of the dotted capital I


@cache
def _cases() -> dict[str, list[int]]:
    """Characters by their caseless form: slightly more than Python considers equal."""
    found: dict[str, list[int]] = {}
    for code in range(0x20000):
        c = chr(code)
        if c.lower() != c.upper() or c.casefold() != c:
            found.setdefault(_key(code), []).append(code)
    return {key: codes for key, codes in found.items() if len(codes) > 1}


def _hex(code: int) -> str:
    return f"\\x{{{code:X}}}"
