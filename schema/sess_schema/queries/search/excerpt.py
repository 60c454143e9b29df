"""The excerpt of a text that best shows why it was found."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from sess_common.classes import TYPE_CHECKING, dataclass, later

if TYPE_CHECKING:
    from sess_schema.queries.search.terms import Leaf, Span

_MOST_PLACES = 40  # per term; the best window is nearly always among the first
_FAR = 1000  # white space beyond this does not matter
_SPACES = later(r"\s+")


@dataclass(frozen=True, slots=True)
class Excerpt:
    """One line of text and the matches in it."""

    text: str
    spans: tuple[Span, ...] = ()
    field: int | None = None  # the index of the text it is from
    offsets: tuple[Span, ...] = ()  # of the matches in that text, the first ones
    start: int = 0  # the position of the first match shown, in that text


def best(texts: Sequence[str], leaves: Sequence[Leaf], width: int) -> Excerpt:
    """About `width` characters from where the most different terms are close together."""
    chosen: tuple[int, int, int, list[Span]] | None = None
    for field, text in enumerate(texts):
        marked = sorted(
            (span, number)
            for number, leaf in enumerate(leaves)
            for span in islice(leaf.places(text), _MOST_PLACES)
        )
        score, start = _densest(marked, width)
        if score and (chosen is None or score > chosen[0]):
            chosen = score, field, start, [span for span, _ in marked]
            if score == len(leaves):
                break
    if chosen is None:
        # Found by a mark or an accent: a tool's output is more useful than its input.
        answer = next((text for text in reversed(texts) if text.strip()), "")
        return Excerpt(_cut(answer, 0, [], width)[0])
    _, field, start, spans = chosen
    line, moved = _cut(texts[field], max(0, start - width // 4), spans, width)
    return Excerpt(line, moved, field, tuple(spans), start)


def _densest(marked: Sequence[tuple[Span, int]], width: int) -> tuple[int, int]:
    """(number of different terms, start) of the best window."""
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


def _cut(text: str, start: int, spans: Sequence[Span], width: int) -> tuple[str, tuple[Span, ...]]:
    """One line from `start` on, with spans adjusted as white space shrinks."""
    stop = min(len(text), start + width)
    if start and (space := _SPACES.search(text, start, start + min(20, width // 8))):
        start = space.end()
    line = "…" if start else ""
    moved: list[Span] = []
    at = start
    for begin, whole in _merged(spans, start, stop):
        end = min(whole, begin + 2 * width)  # a match may be a megabyte long
        line += _one_line(text[at:begin])
        shown = _one_line(text[begin:end])
        moved.append((len(line), len(line) + len(shown)))
        line += shown
        at = end
        if end < whole:
            break
    stop = max(stop, at)
    line += _one_line(text[at:stop])
    lead = len(line) - len(line.lstrip())
    rest = text[stop : stop + _FAR] if len(text) > stop else ""
    line = line.strip()
    inside = [(max(0, b - lead), min(len(line), e - lead)) for b, e in moved]
    line += "…" if rest.strip() or len(text) > stop + _FAR else ""
    return line, tuple((b, e) for b, e in inside if b < e)


def _one_line(text: str) -> str:
    return _SPACES.sub(" ", text) if not text.isprintable() or "  " in text else text


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
