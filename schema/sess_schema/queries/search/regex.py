"""Regular expressions over a gigabyte of text: cheap necessary conditions first.

Python's own engine decides what matches and where. It is slow and can be made to run for ever, so
a text reaches it only when a literal part of the expression is in it (SQLite's LIKE), and when RE2,
which is fast and linear, finds a relaxed form of the expression. Both are made from the parsed
expression and never refuse a text that Python would accept.
"""

from __future__ import annotations

import re
import signal
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser as sre  # type: ignore[attr-defined]
from typing import Any

from sess_schema.errors import SessError
from sess_schema.queries.search.terms import Matching, Span, like_anywhere, like_literal

Screen = Callable[[bytes, int], Any]  # re2's search in a text, from a place on

_HIGH = r"\x{80}-\x{10FFFF}"
_ANY = "(?s:.)"
_ANYTHING = "(?s:.*)"
# What a class may hold: exact for ASCII, everything else let through.
_CATEGORIES = {
    op.CATEGORY_DIGIT: "0-9" + _HIGH,
    op.CATEGORY_NOT_DIGIT: r"\x00-/:-\x7f" + _HIGH,
    op.CATEGORY_SPACE: r"\t-\r\x1c-\x20" + _HIGH,
    op.CATEGORY_NOT_SPACE: r"\x00-\x08\x0e-\x1b!-\x7f" + _HIGH,
    op.CATEGORY_WORD: "0-9A-Za-z_" + _HIGH,
    op.CATEGORY_NOT_WORD: r"\x00-/:-@\[-\^`\{-\x7f" + _HIGH,
}
_FLAGS = re.compile(r"\(\?[aiLmsux]+\)")  # must stand in front
_PATIENCE = 2.0  # seconds for one match in one text
_MOST_REPEATS = 1000  # RE2's own limit
_LITERAL_ENOUGH = 3
# Letters that one outside ASCII equals when the case does not matter.
_AMBIGUOUS = "iks"
_WIDE = 300


@dataclass(frozen=True, slots=True)
class Regex:
    """A regular expression as one term of a query."""

    text: str
    pattern: re.Pattern[str]
    like: str | None
    screen: Screen | None
    match: str | None = None
    exact: bool = False

    def places(self, text: str) -> Iterator[Span]:
        matches = self.pattern.finditer(text)
        while True:
            with _deadline(self.text):
                found = next(matches, None)
            if found is None:
                return
            if found.end() > found.start():
                yield found.span()

    def explained(self) -> str:
        case = "" if self.pattern.flags & re.IGNORECASE else " (same case)"
        literal = f", in texts like {self.like}" if self.like else ""
        return f"regular expression: {self.text}{case}{literal}"


@contextmanager
def _deadline(text: str) -> Iterator[None]:
    """Python's engine can take years over an expression like (a+)+b. The alarm reaches it only in
    the main thread; elsewhere nobody searches so."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "SIGALRM"):
        yield
        return

    def late(*_: object) -> None:
        raise SessError(
            f'the regular expression takes too long: "{text}"',
            hint="repeat less inside what is repeated: (a+)+ is a+",
        )

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, _PATIENCE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def regex(text: str, matching: Matching) -> Regex:
    """Compile what somebody typed; `^` and `$` are the edges of lines."""
    flags = re.MULTILINE | (re.NOFLAG if matching.case else re.IGNORECASE)
    source = text
    if matching.whole:
        start = _FLAGS.match(text)
        begin, rest = (start[0], text[start.end() :]) if start else ("", text)
        source = rf"{begin}(?<!\w)(?:{rest}" + "\n" * ("x" in begin) + r")(?!\w)"
    try:
        with warnings.catch_warnings():  # of what a later Python may make of it
            warnings.simplefilter("ignore")
            re.compile(text, flags)  # so that a fault is told in what was typed
            pattern = re.compile(source, flags)
            tree = sre.parse(source, flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise SessError(
            f'no regular expression: "{text}": {error}',
            hint="a backslash before ( ) [ ] { } . * + ? | ^ $ makes them ordinary characters",
        ) from error
    return Regex(text, pattern, _like(tree), _screen(tree))


def literal_screen(text: str) -> Screen | None:
    """For a text in any case, where it has letters that LIKE cannot compare."""
    if text.isascii() or text.lower() == text.upper() or "\u0307" in text.lower():
        return None
    flags = re.IGNORECASE | re.MULTILINE
    return _screen(sre.parse(re.escape(text), flags))


def _screen(tree: Any) -> Screen | None:
    try:
        import re2  # noqa: PLC0415 - only when it is needed
    except ImportError:
        return None
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    try:
        relaxed = _relaxed(tree, tree.state.flags)
        search: Screen = re2.compile(relaxed.encode(), options).search
    except (re2.error, RecursionError):
        return None
    return search


def _relaxed(nodes: Iterable[Any], flags: int) -> str:
    return "".join(_relax(code, value, flags) for code, value in nodes)


def _relax(code: Any, value: Any, flags: int) -> str:
    if code is op.LITERAL:
        return _one_of([(op.LITERAL, value)], flags)
    if code is op.NOT_LITERAL:
        return _one_of([(op.NEGATE, None), (op.LITERAL, value)], flags)
    if code is op.IN:
        return _one_of(value, flags)
    if code is op.ANY:
        return _ANY if flags & re.DOTALL else "."
    if code is op.BRANCH:
        return f"(?:{'|'.join(_relaxed(branch, flags) for branch in value[1])})"
    if code is op.SUBPATTERN:
        _, added, removed, inner = value
        return f"(?:{_relaxed(inner, (flags | added) & ~removed)})"
    if code is op.ATOMIC_GROUP:
        return f"(?:{_relaxed(value, flags)})"
    if code in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
        least, most, inner = value
        top = "" if most > _MOST_REPEATS else str(most)
        return f"(?:{_relaxed(inner, flags)}){{{min(least, _MOST_REPEATS)},{top}}}"
    if code is op.AT:
        return {op.AT_BEGINNING: "(?m:^)", op.AT_END: "(?m:$)"}.get(value, "")
    if code in (op.ASSERT, op.ASSERT_NOT):
        return ""
    return _ANYTHING  # references to groups, and whatever comes


def _one_of(items: Iterable[Any], flags: int) -> str:
    ignore = flags & re.IGNORECASE
    parts, negated = "", False
    for code, value in items:
        if code is op.NEGATE:
            negated = True
        elif code is op.CATEGORY:
            if negated:
                return _ANY
            parts += _CATEGORIES[value]
        else:
            first, last = (value, value) if code is op.LITERAL else value
            parts += f"{_hex(first)}-{_hex(last)}"
            if ignore:
                parts += _other_cases(first, last)
    if negated:
        return _ANY if ignore else f"[^{parts}]"
    return f"[{parts}]"


def _other_cases(first: int, last: int) -> str:
    """Every character that may equal one of a range when the case does not matter."""
    if last > 0x7F:
        if last - first > _WIDE:
            return "A-Za-z" + _HIGH
        cases = {other for c in range(first, last + 1) for other in _cases().get(_key(c), ())}
        return "".join(map(_hex, sorted(cases)))
    letters = {chr(c).lower() for c in range(first, last + 1) if chr(c).isalpha()}
    both = "".join(_hex(ord(c)) + _hex(ord(c.upper())) for c in sorted(letters))
    return both + (_HIGH if letters & set(_AMBIGUOUS) else "")


def _key(code: int) -> str:
    return chr(code).upper().casefold().replace("\u0307", "")  # of the dotted capital I


@cache
def _cases() -> dict[str, list[int]]:
    """Characters by what they are without case: a little more than Python takes for equal."""
    found: dict[str, list[int]] = {}
    for code in range(0x20000):
        c = chr(code)
        if c.lower() != c.upper() or c.casefold() != c:
            found.setdefault(_key(code), []).append(code)
    return {key: codes for key, codes in found.items() if len(codes) > 1}


def _hex(code: int) -> str:
    return f"\\x{{{code:X}}}"


def _like(tree: Any) -> str | None:
    """The LIKE pattern of the longest run of literal characters that every match has."""
    runs: list[list[str]] = [[]]
    _collect(tree, tree.state.flags, runs)
    literal = max(runs, key=lambda run: sum(part != "_" for part in run))
    if sum(part not in "_%" for part in literal) < _LITERAL_ENOUGH:
        return None
    return like_anywhere("".join(literal))


def _collect(nodes: Iterable[Any], flags: int, runs: list[list[str]]) -> None:
    for code, value in nodes:
        if code is op.LITERAL:
            ambiguous = _AMBIGUOUS if flags & re.IGNORECASE else ""
            runs[-1].append(like_literal(chr(value), ambiguous))
        elif code in (op.IN, op.ANY, op.NOT_LITERAL):
            runs[-1].append("_")
        elif code is op.SUBPATTERN:
            _, added, removed, inner = value
            _collect(inner, (flags | added) & ~removed, runs)
        elif code in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT) and value[0]:
            runs.append([])
            _collect(value[2], flags, runs)
            runs.append([])
        elif code not in (op.AT, op.ASSERT, op.ASSERT_NOT):
            runs.append([])
