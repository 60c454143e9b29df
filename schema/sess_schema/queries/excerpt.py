"""The stretch of a text that shows best why it was found."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sess_schema.queries.language import Term

_MOST_PLACES = 40  # per term; the best window is nearly always among the first
_SPACES = re.compile(r"\s+")
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Excerpt:
    """One line of text and the places in it that matched."""

    text: str
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class Needle:
    """How one term looks in a text."""

    start: str  # lower case; every match begins with it
    pattern: re.Pattern[str]


def needle(term: Term) -> Needle:
    words = term.text.split()
    # Between the words of a phrase the index sees no underscore either.
    body = _as_typed(words) if term.verified else r"[\W_]+".join(map(re.escape, words))
    before = "" if term.verified else r"(?<![^\W_])"
    after = "" if term.verified or term.prefix else r"(?![^\W_])"
    rest = r"\w*" if term.prefix else ""
    return Needle(words[0].lower(), re.compile(before + body + rest + after, re.IGNORECASE))


def _as_typed(words: Sequence[str]) -> str:
    return r"\s+".join(map(re.escape, words))


def occurs(term: Term, texts: Sequence[str]) -> bool:
    """Whether a term stands in one of the texts as it was typed, whatever the case."""
    words = term.text.lower().split()
    if len(words) == 1:
        return any(words[0] in text.lower() for text in texts)
    pattern = re.compile(_as_typed(words), re.IGNORECASE)
    return any(words[0] in text.lower() and pattern.search(text) for text in texts)


def places(text: str, what: Needle) -> list[Span]:
    """Where a needle is in a text. Finding its first word as plain text first is fast in
    megabytes of output; the pattern alone would take ten times as long."""
    low = text.lower()
    if len(low) != len(text):  # a few letters grow when lowered, and the places would be wrong
        return [m.span() for _, m in zip(range(_MOST_PLACES), what.pattern.finditer(text))]  # noqa: B905
    found: list[Span] = []
    at = low.find(what.start)
    while at >= 0 and len(found) < _MOST_PLACES:
        match = what.pattern.match(text, at)
        if match:
            found.append(match.span())
        at = low.find(what.start, match.end() if match and match.end() > at else at + 1)
    return found


def best(texts: Sequence[str], needles: Sequence[Needle], width: int) -> Excerpt:
    """About `width` characters from the text and the place with the most different terms."""
    chosen: tuple[int, str, int, list[Span]] | None = None
    for text in texts:
        marked = sorted(
            (span, number) for number, one in enumerate(needles) for span in places(text, one)
        )
        score, start = _densest(marked, width)
        if score and (chosen is None or score > chosen[0]):
            chosen = score, text, start, [span for span, _ in marked]
            if score == len(needles):
                break
    if chosen is None:
        # Found by a mark or an accent: what a tool answered tells more than what it was asked.
        return _cut(next((text for text in reversed(texts) if text.strip()), ""), 0, [], width)
    _, text, start, spans = chosen
    return _cut(text, max(0, start - width // 4), spans, width)


def _densest(marked: Sequence[tuple[Span, int]], width: int) -> tuple[int, int]:
    """(different terms, start) of the best window."""
    top, start, left = 0, 0, 0
    inside: dict[int, int] = {}
    for (begin, end), number in marked:
        inside[number] = inside.get(number, 0) + 1
        while end - marked[left][0][0] > width * 3 // 4 and marked[left][0][0] < begin:
            gone = marked[left][1]
            inside[gone] -= 1
            if not inside[gone]:
                del inside[gone]
            left += 1
        if len(inside) > top:
            top, start = len(inside), marked[left][0][0]
    return top, start


def _cut(text: str, start: int, spans: Sequence[Span], width: int) -> Excerpt:
    """One line from `start` on, with its spans moved along as white space shrinks."""
    stop = min(len(text), start + width)
    if start and (space := _SPACES.search(text, start, start + min(20, width // 8))):
        start = space.end()
    line = "…" if start else ""
    moved: list[Span] = []
    at = start
    for begin, end in _merged(spans, start, stop):
        line += _SPACES.sub(" ", text[at:begin])
        shown = _SPACES.sub(" ", text[begin:end])
        moved.append((len(line), len(line) + len(shown)))
        line += shown
        at = end
    stop = max(stop, at)
    line += _SPACES.sub(" ", text[at:stop])
    lead = len(line) - len(line.lstrip())
    line = line.strip() + ("…" if text[stop:].strip() else "")
    return Excerpt(line, tuple((begin - lead, end - lead) for begin, end in moved))


def _merged(spans: Sequence[Span], start: int, stop: int) -> list[Span]:
    merged: list[Span] = []
    for begin, end in sorted(spans):
        if begin < start or begin >= stop:
            continue
        if merged and begin < merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((begin, end))
    return merged
