"""Where the records of a conversation stand in a JSON document: as elements of its arrays."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sess_cli.edit.pieces import Swap, other_parent

_DECODER = json.JSONDecoder()
_SPACE = " \t\r\n"


class Element(NamedTuple):
    """An element of an array, with where it stands in the text."""

    value: Any
    start: int
    end: int
    array: int  # where its array starts
    place: int  # in the array, from 0


def without(
    text: str,
    records: Sequence[Any],
    gone: Container[int],
    parents: Mapping[int, tuple[str | None, str | None]] | None = None,
) -> list[Swap] | None:
    """Take out some of the records, by their places in `records`; None if one is no element.

    `parents`: the old and the new parent of records that stay, by their places.
    """
    for elements in _arrays(text):
        found = _aligned(elements, records)
        if all(place in found for place in range(len(records)) if place in gone):
            cut = [element for place, element in found.items() if place in gone]
            moved = [
                (found[place], *ids) for place, ids in (parents or {}).items() if place in found
            ]
            return [*_swaps(text, elements, cut), *_relinked(text, moved)]
    return None


def _relinked(text: str, moved: list[tuple[Element, str | None, str | None]]) -> Iterator[Swap]:
    starts = _octets(text, (element.start for element, *_ in moved))
    for (element, old, parent), at in zip(moved, starts, strict=True):
        start, end, new = other_parent(text[element.start : element.end].encode(), old, parent)
        yield Swap(at + start, at + end, new)


def _aligned(elements: list[Element], records: Sequence[Any]) -> dict[int, Element]:
    """The element of each record. Both are in the same order; equal ones may occur twice."""
    found: dict[int, Element] = {}
    at = 0
    for place, record in enumerate(records):
        for later in range(at, len(elements)):
            if elements[later].value == record:
                found[place] = elements[later]
                at = later + 1
                break
    return found


def _swaps(text: str, elements: list[Element], gone: list[Element]) -> list[Swap]:
    """Each element goes with the comma after it; the last ones with the comma before them."""
    cut = {element.place for element in gone}
    last_kept = max((one.place for one in elements if one.place not in cut), default=-1)
    spans = []
    for element in gone:
        if element.place < last_kept:
            spans.append((element.start, elements[element.place + 1].start))
        elif last_kept >= 0:
            spans.append((elements[element.place - 1].end, element.end))
        else:
            after = elements[element.place + 1 : element.place + 2]
            spans.append((element.start, after[0].start if after else element.end))
    places = sorted({place for span in spans for place in span})
    octets = dict(zip(places, _octets(text, places), strict=True))
    return [Swap(octets[start], octets[end]) for start, end in spans]


def _octets(text: str, places: Iterable[int]) -> Iterator[int]:
    """How many bytes there are before each of these characters."""
    at = octets = 0
    for place in places:
        octets += len(text[at:place].encode())
        at = place
        yield octets


def _arrays(text: str) -> Iterator[list[Element]]:
    """The arrays of a document that have objects in them, the outermost first."""
    waiting = [_skip(text, 0)]
    while waiting:
        at = waiting.pop(0)
        if text[at] == "[":
            elements = [*_elements(text, at)]
            if any(isinstance(element.value, dict) for element in elements):
                yield elements
            waiting += [one.start for one in elements if isinstance(one.value, dict | list)]
        elif text[at] == "{":
            waiting += _values(text, at)


def _elements(text: str, array: int) -> Iterator[Element]:
    at = _skip(text, array + 1)
    place = 0
    while text[at] != "]":
        value, end = _DECODER.raw_decode(text, at)
        yield Element(value, at, end, array, place)
        place += 1
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)


def _values(text: str, at: int) -> Iterator[int]:
    """Where the arrays and objects in an object start."""
    at = _skip(text, at + 1)
    while text[at] != "}":
        _, at = _DECODER.raw_decode(text, at)
        at = _skip(text, _skip(text, at) + 1)  # the colon
        if text[at] in "[{":
            yield at
        _, at = _DECODER.raw_decode(text, at)
        at = _skip(text, at)
        if text[at] == ",":
            at = _skip(text, at + 1)


def _skip(text: str, at: int) -> int:
    while text[at] in _SPACE:
        at += 1
    return at
