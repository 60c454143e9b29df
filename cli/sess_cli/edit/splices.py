"""Which bytes of a file stay, and which are replaced: lines of a log, elements of a document."""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from sess_cli.edit.links import Link
from sess_cli.edit.live import Piece
from sess_common.errors import SessError
from sess_schema.queries.transcripts import Record, Transcript

_LOOK = 4096
_DECODER = json.JSONDecoder()
_SPACE = " \t\r\n"


class Swap(NamedTuple):
    """Bytes of a file, and what stands there instead."""

    start: int
    end: int
    new: bytes = b""


def around(swaps: Iterable[Swap], size: int) -> list[Piece]:
    """The pieces of a file of this size with some of them swapped."""
    pieces: list[Piece] = []
    at = 0
    for start, end, new in sorted(swaps):
        if start > at:
            pieces.append((at, start))
        if new:
            pieces.append(new)
        at = max(at, end)
    if size > at:
        pieces.append((at, size))
    return pieces


def without_lines(fd: int, transcript: Transcript, gone: Iterable[int]) -> list[Swap]:
    """Records of a log taken out with their newlines. Several may be glued into one line."""
    cut = set(gone)
    by_line: dict[int, list[Record]] = defaultdict(list)
    for number in cut:
        by_line[transcript.at(number).line].append(transcript.at(number))
    together: dict[int, int] = defaultdict(int)
    for record in transcript.records:
        if record.line in by_line:
            together[record.line] += 1
    swaps = []
    for line, records in by_line.items():
        if len(records) == together[line]:
            first = min(record.offset for record in records)
            last = max(record.offset + record.length for record in records)
            swaps.append(Swap(_line_start(fd, first), _line_end(fd, last)))
        else:
            swaps += [Swap(record.offset, record.offset + record.length) for record in records]
    return swaps


def relinked(fd: int, transcript: Transcript, links: Iterable[Link]) -> list[Swap]:
    """New values for the members that name a record, and for nothing else."""
    swaps = []
    for link in links:
        record = transcript.at(link.number)
        raw = os.pread(fd, record.length, record.offset)
        start, end, new = _renamed(raw, link)
        swaps.append(Swap(record.offset + start, record.offset + end, new))
    return swaps


def _renamed(raw: bytes, link: Link) -> Swap:
    """Where a record names another one, and what must stand there instead."""
    name = link.member.rpartition(".")[2]
    new = json.dumps(link.new).encode()
    member = re.escape(json.dumps(name).encode())
    for match in re.finditer(member + rb'\s*:\s*("(?:[^"\\]|\\.)*")', raw):
        start, end = match.span(1)
        if json.loads(match[1]) == link.old:
            changed = raw[:start] + new + raw[end:]
            if _differ_only_in(raw, changed, link):
                return Swap(start, end, new)
    raise SessError(
        f"cannot relink record {link.number}: it does not name {link.about} in `{link.member}`",
        hint="nothing was changed; `--no-relink` shows what the cut would break",
    )


def _differ_only_in(raw: bytes, changed: bytes, link: Link) -> bool:
    try:
        before, after = json.loads(raw), json.loads(changed)
    except ValueError:
        return False
    *outer, name = link.member.split(".")
    holder = before
    for one in outer:
        holder = holder.get(one) if isinstance(holder, dict) else None
    if not isinstance(holder, dict) or holder.get(name) != link.old:
        return False
    holder[name] = link.new
    return bool(before == after)


def _line_start(fd: int, at: int) -> int:
    while at > 0:
        start = max(0, at - _LOOK)
        before = os.pread(fd, at - start, start)
        if (newline := before.rfind(b"\n")) >= 0:
            return start + newline + 1
        at = start
    return 0


def _line_end(fd: int, at: int) -> int:
    """Behind the newline, or the end of the file."""
    while piece := os.pread(fd, _LOOK, at):
        if (newline := piece.find(b"\n")) >= 0:
            return at + newline + 1
        at += len(piece)
    return at


class Element(NamedTuple):
    """An element of an array, with where it stands in the text."""

    value: Any
    start: int
    end: int
    array: int  # where its array starts
    place: int  # in the array, from 0


def without_elements(
    text: str,
    records: Sequence[Any],
    gone: Container[int],
    links: Iterable[Link] = (),
) -> list[Swap] | None:
    """Take out some of the records, by their places in `records`; None if one is no element.

    `links`: what records that stay must name instead, by their places from 1. None also if there is
    more than one document: later ones may count what the first has.
    """
    if not _is_one_value(text):
        return None
    for elements in _arrays(text):
        aligned = _aligned(elements, records)
        if all(place in aligned for place in range(len(records)) if place in gone):
            cut = [element for place, element in aligned.items() if place in gone]
            moved = [(aligned[one.number - 1], one) for one in links if one.number - 1 in aligned]
            return [*_swaps_of_elements(text, elements, cut), *_relinked_elements(text, moved)]
    return None


def _is_one_value(text: str) -> bool:
    _, end = _DECODER.raw_decode(text, _skip(text, 0))
    return not text[end:].strip(_SPACE)


def _relinked_elements(text: str, moved: list[tuple[Element, Link]]) -> Iterator[Swap]:
    starts = _octets(text, (element.start for element, _ in moved))
    for (element, link), at in zip(moved, starts, strict=True):
        start, end, new = _renamed(text[element.start : element.end].encode(), link)
        yield Swap(at + start, at + end, new)


def _aligned(elements: list[Element], records: Sequence[Any]) -> dict[int, Element]:
    """The element of each record. Both are in the same order; equal ones may occur twice."""
    aligned: dict[int, Element] = {}
    at = 0
    for place, record in enumerate(records):
        for later in range(at, len(elements)):
            if elements[later].value == record:
                aligned[place] = elements[later]
                at = later + 1
                break
    return aligned


def _swaps_of_elements(text: str, elements: list[Element], gone: list[Element]) -> list[Swap]:
    """Each element goes with the comma after it; the last ones with the comma before them."""
    cut = {element.place for element in gone}
    last_kept = max((element.place for element in elements if element.place not in cut), default=-1)
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
            waiting += [inner.start for inner in elements if isinstance(inner.value, dict | list)]
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
