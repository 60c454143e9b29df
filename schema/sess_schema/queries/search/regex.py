"""Regular expressions over a gigabyte of text: cheap necessary conditions first.

Python's engine decides what matches and where. It is slow and can be made to run forever, so a text
reaches it only if it contains a literal from the expression (SQLite's LIKE), and if RE2, which is
fast and linear, matches a relaxed form of the expression (screen.py). Both are derived from the
parsed expression and never reject a text that Python would accept.
"""

from __future__ import annotations

import re
import signal
import threading
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser as sre  # type: ignore[attr-defined]
from typing import Any

from sess_common.classes import dataclass
from sess_common.errors import SessError
from sess_schema.queries.search.screen import Screen, screen
from sess_schema.queries.search.terms import Matching, Span, like_anywhere, like_literal

_FLAGS = re.compile(r"\(\?[aiLmsux]+\)")  # only valid at the start
_PATIENCE = 2.0  # seconds for one match in one text
_LITERAL_ENOUGH = 3
# ASCII letters that a letter outside ASCII equals when case is ignored.
_AMBIGUOUS = "iks"


@dataclass(frozen=True, slots=True)
class Regex:
    """A regular expression as one term of a query."""

    text: str
    pattern: re.Pattern[str]
    like: str | None
    screen: Screen | None
    match: str | None = None
    exact: bool = False
    enough: str | None = None

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
    """Python's engine can take years over an expression like (a+)+b. The alarm only works in the
    main thread; regular expressions are not searched for elsewhere."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "SIGALRM"):
        yield
        return

    def late(*_: object) -> None:
        raise SessError(
            f'the regular expression takes too long: "{text}"',
            hint="avoid nested repetition: write a+ instead of (a+)+",
        )

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, _PATIENCE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def regex(text: str, matching: Matching) -> Regex:
    """Compile an expression as typed; `^` and `$` match at line boundaries."""
    flags = re.MULTILINE | (re.NOFLAG if matching.case else re.IGNORECASE)
    source = text
    if matching.whole:
        start = _FLAGS.match(text)
        begin, rest = (start[0], text[start.end() :]) if start else ("", text)
        source = rf"{begin}(?<!\w)(?:{rest}" + "\n" * ("x" in begin) + r")(?!\w)"
    try:
        with warnings.catch_warnings():  # about what a later Python may change
            warnings.simplefilter("ignore")
            re.compile(text, flags)  # so that an error refers to what was typed
            pattern = re.compile(source, flags)
            tree = sre.parse(source, flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise SessError(
            f'invalid regular expression: "{text}": {error}',
            hint="put a backslash before ( ) [ ] { } . * + ? | ^ $ to match them literally",
        ) from error
    return Regex(text, pattern, _like(tree), screen(tree))


def _like(tree: Any) -> str | None:
    """The LIKE pattern for the longest run of literal characters in every match."""
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
