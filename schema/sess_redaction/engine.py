"""Every secret in a text: what each rule finds by itself, joined where they overlap.

RE2 screens the text for places where a rule may apply, all rules at once and in linear time; without
it `re` does, more slowly. Only these places are looked at closely. Every rule sees the text as it
was, so none can hide a secret from another; only the net, the last, sees what the others found.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import accumulate
from typing import Any

from sess_redaction import assignments, contexts, net, values, wraps
from sess_redaction.extents import MASK, Extents, Secret, ends_sequence
from sess_redaction.screens import compiled
from sess_redaction.shapes import SHAPES, Shape

Search = Callable[..., Any]
EDITION = 9  # increased when the rules find more, so that sites are drawn again

# Bytes searched at a time: a secret may begin inside another one that has no end, and searching
# for that end again after each match would take quadratic time.
_WINDOW = 32_768
_OVERLAP = 1_024
_COLOUR = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])?")
# What precedes lines in the output of `cat -n`, `grep -n` and `diff`, in quotations, comments and logs.
_MARGIN = re.compile(
    r"^(?:\d{4}-\d\d-\d\d[T ][\d:.,]{5,18}(?:Z|[+-]\d\d:?\d\d)?[ \t](?:\[?[A-Z]{3,8}\]?:?[ \t]|[\w.-]{1,40} {1,20}\| )?"
    r"|\^?[0-9a-f]{7,40} (?:[\w./-]{1,100} +)?\([^()\n]{1,60} \d{4}-\d\d-\d\d [\d:]{8} [+-]\d{4} +\d{1,6}\) ?"
    r"|(?:[ \t]{0,8}\d{1,6}(?:→|\t|:(?!\d)|[ ]?\|[ ]?)|[\w./][\w./-]{0,100}:\d{1,6}:|[\w./-]{0,100}\.\w{1,12}-\d{1,6}-)(?:[+-](?![+-]{2}) ?)?"
    r"|[\w./-]{0,100}[./][\w-]{1,20}:(?! [^ ]|[\d/:])|[\w./-]{0,100}\.(?:env|ya?ml|json|toml|ini|cfg|conf|py|[jt]sx?|sh|md|txt|sql|csv|log|xml)(?:\.\w{1,12})?:(?![\d/:])|--(?!-) ?"
    r"|[+-](?![+-]{2}) ?|(?:> ?)+|[ \t]{0,20}(?:#|//|\*|--) ?"
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S{1,60} \S{1,60}: |[\w.-]{1,40} {1,20}\| "
    r"|\[\d{4}-\d\d-\d\d[T ][\d:.,+-]{5,24}Z?\][ \t](?:[\w.]{1,30}:?[ \t])?)",
    re.MULTILINE,
)
# A notebook has each line in a string of its own.
_ESCAPE = re.compile(
    r"('\\''|\\n\",\r?\n[ \t]*\"|\\(?:[\"\\/nrt`$]|'(?!\\'')|x1b|u[0-9a-fA-F]{4}))"
)
_ESCAPES = re.compile(
    r"\\[\"\\nrt`']|\\x1b|\\u[0-9a-fA-F]{4}"
)  # what hides the lines and quotes of a text
_MOST_CHARACTERS = 10_000
_MOST_LAYERS = 3
_ENTITY = re.compile(r"(&(?:lt|gt|amp|quot|apos|#39|#x27|#34|#x22);)")
_ENTITIES = {
    "&lt;": "<", "&gt;": ">", "&amp;": "&", "&quot;": '"', "&#34;": '"', "&#x22;": '"', "&apos;": "'", "&#39;": "'", "&#x27;": "'",
}  # fmt: skip
_WRITTEN = ((b"\\n", b"\n"), (b"\\t", b"\t"), (b"\\r", b"\r"), (b'\\"', b'"'))
_CODED = re.compile(_ENTITY.pattern.encode())
_BY_PREFIX = [shape for shape in SHAPES if not shape.sign]
_BACK = 60
_DEEP = 4_096  # characters
_AHEAD = 100
_NARROW = 24
_ABOVE, _BELOW = 400, 1_200  # characters around a place that are read without their margins
_MORE = re.compile(r"[\w+/=-]*", re.ASCII)
_WORD = re.compile(r"[\w+/=.$-]{1,400}", re.ASCII)
_IN_BASE64 = re.compile(r"[A-Za-z0-9+/]{60}\Z")
_IN_WORD = re.compile(r"[\w-]", re.ASCII)


def find(text: str, own: Iterable[tuple[str, re.Pattern[str]]] = ()) -> list[Secret]:
    """The secrets in order; none overlaps another. `own` are the user's rules."""
    encoded = text.encode("utf-8", "surrogatepass")
    found: list[Secret] = []
    places: list[int] = []
    hits = Hits(encoded)
    if hits.after(0) >= 0:
        found += _in_lines(text, places, hits)
    if "\n" in text:
        found += _unwrapped(text, found)
    if "\\" in text and (
        not all(_is_for_net(text, place) for place in places) or wraps.may_be_escaped(text)
    ):
        found += _unescaped(text)
    if "&" in text and _ENTITY.search(text) is not None:
        found += _without_entities(text)
    if own:
        found += _by_rules(text, own)
    if "\x1b" in text:
        found += _through(text, _COLOUR, own)
    found = joined(text, found) if found else found
    caught = net.find(text, places, found) if places else []
    if "\n" in text:
        caught = [wraps.longer(text, secret) for secret in caught]
    return joined(text, found + caught) if caught else found


def may_hold(record: bytes) -> bool:
    """Whether a record of JSON may hold what the built-in rules find: if not, nobody need decode it."""
    if b"\\" in record:
        if b"\\u" in record or b"\\\\\\" in record:
            return True  # characters and layers that are not read here
        for escape, character in _WRITTEN:
            record = record.replace(escape, character)
    return Hits(record).after(0) >= 0 or (b"&" in record and _CODED.search(record) is not None)


def _in_lines(text: str, places: list[int], hits: Hits | None = None) -> Iterator[Secret]:
    """What the built-in rules find, also where each line has something before it."""
    yield from _in(text, places, hits)
    for begin, end in _with_margins(text, places):
        for first, last, kind in _through(text[begin:end], _MARGIN, ()):
            yield begin + first, begin + last, kind


def _unwrapped(text: str, found: Iterable[Secret]) -> list[Secret]:
    """What goes on in the next line, because a terminal, a shell or a box broke it."""
    more = [longer for secret in found if (longer := wraps.longer(text, secret)) != secret]
    for begin, end in wraps.regions(text):
        more += wraps.spanning(text, begin, [*_through(text[begin:end], wraps.JOINT, ())])
    return more


def _is_for_net(text: str, place: int) -> bool:
    """No other rule applies to a name that no value may follow."""
    return assignments.NAME.match(text, place) is not None and not _valued().match(text, place)


def _with_margins(text: str, places: list[int]) -> list[tuple[int, int]]:
    """The lines around these places, if theirs begins as one of a listing, a diff or a comment."""
    around: list[tuple[int, int]] = []
    for place in places:
        if around and place < around[-1][1] - _BELOW // 2:
            continue
        line = text.rfind("\n", max(place - _ABOVE, 0), place) + 1
        if (not line and place > _ABOVE) or _MARGIN.match(text, line) is None:
            continue
        if _is_for_net(text, place):
            continue
        begin = text.find("\n", line - _ABOVE, line) + 1 if line > _ABOVE else 0
        end = text.find("\n", line + _BELOW)
        end = len(text) if end < 0 else min(end, line + 2 * _BELOW)
        if around and begin <= around[-1][1]:
            around[-1] = around[-1][0], end
        else:
            around.append((begin, end))
    return around


def _in(text: str, places: list[int], hits: Hits | None = None) -> Iterator[Secret]:
    """`places` is told of each place where a rule may apply."""
    hits = Hits(text.encode("utf-8", "surrogatepass")) if hits is None else hits
    encoded = hits.encoded
    plain = len(encoded) == len(text)
    extents = Extents(text)
    begin = end = 0  # of what reaches furthest so far
    at = passed = 0  # the same place in the text and in its bytes
    place = hits.after(0)
    while place >= 0:
        at = place if plain else at + _length(encoded[passed:place])
        passed = place
        places.append(at)
        for found in _at(text, at, extents):
            if found[1] > end:
                begin, end, _ = found
            yield found
        following = place + 1
        if begin <= at < end - _DEEP:
            # A long secret is not read again from each place in it.
            skipped = text[at : end - _DEEP].encode("utf-8", "surrogatepass")
            following = place + len(skipped)
        place = hits.after(following)


def _length(encoded: bytes) -> int:
    return len(encoded.decode("utf-8", "surrogatepass"))


def _at(text: str, at: int, extents: Extents) -> Iterator[Secret]:
    word = assignments.NAME.match(text, at)
    if word is not None:
        yield from assignments.find(text, word, extents)
    if word is None or _IN_WORD.match(text, word.end()) is not None:
        yield from _shaped(text, at)
    signs = _contexts().match(text, at)
    if signs is None or signs.lastindex is None:
        return
    for context, sign in zip(contexts.CONTEXTS, signs.groups(), strict=True):
        match = context.look(text, at) if sign is not None else None
        if match is not None:
            yield from context.judge(text, match, extents)


def _by_rules(text: str, own: Iterable[tuple[str, re.Pattern[str]]]) -> Iterator[Secret]:
    for kind, pattern in own:
        for match in pattern.finditer(text):
            begin, end = match.span(1 if pattern.groups and match[1] is not None else 0)
            if end > begin:
                yield begin, end, kind


def _shaped(text: str, at: int) -> Iterator[Secret]:
    begins = _begins_word(text, at)
    match = _shapes().match(text, at) if begins else None
    if match is not None:
        yield from _whole(text, match, _BY_PREFIX[(match.lastindex or 1) - 1])
    more = _MORE.match(text, match.end()) if match is not None else None
    if begins and (more is None or wraps.JOINT.match(text, more.end()) is not None):
        yield from _broken(text, at, whole=match is not None)
    sign = _signs().match(text, at)
    if sign is not None:
        shape, expression = _by_sign()[(sign.lastindex or 1) - 1]
        match = expression.search(text, max(at - _BACK, 0), at + _AHEAD)
        if match is not None and _begins_word(text, match.start()):
            yield from _whole(text, match, shape)


def _whole(text: str, match: re.Match[str], shape: Shape) -> Iterator[Secret]:
    begin, end = match.span()
    more = _MORE.match(text, end)
    end = more.end() if more is not None and text[end - 1] != "." else end
    secret = text[begin:end]
    if shape.with_digit and (not any(c.isdigit() for c in secret) or values.is_placeholder(secret)):
        return
    yield begin, end, shape.kind


def _broken(text: str, at: int, *, whole: bool) -> Iterator[Secret]:
    """A shape that goes on in the next line."""
    first = _WORD.match(text, at)
    joint = wraps.JOINT.match(text, first.end()) if first is not None else None
    if first is None or joint is None:
        return
    start = text.rfind("\n", max(at - _AHEAD, 0), at) + 1
    rest = _WORD.match(text, joint.end())
    if rest is None or first.end() - start < _NARROW:
        return
    if whole and not any(map(str.isdigit, rest[0])):
        return  # the next line begins with a word
    match = _shapes().match(first[0] + rest[0])
    if match is not None and match.end() > len(first[0]):
        for _, end, kind in _whole(match.string, match, _BY_PREFIX[(match.lastindex or 1) - 1]):
            yield at, at + end + len(joint[0]), kind


def _begins_word(text: str, at: int) -> bool:
    """Even right after the `m` of a colour or the `n` of an escaped newline."""
    if text[at - 1 : at] in ("+", "/") and _IN_BASE64.search(text, max(at - 80, 0), at):
        return False  # of an image
    if not at or not (text[at - 1].isascii() and text[at - 1].isalnum()):
        return True
    return ends_sequence(text, at)


def _through(
    text: str, ignored: re.Pattern[str], own: Iterable[tuple[str, re.Pattern[str]]]
) -> Iterator[Secret]:
    """What is found when some characters are taken out, where it is in the whole text."""
    pieces, kept = [], 0
    starts, origins = [0], [0]
    for match in ignored.finditer(text):
        pieces.append(text[kept : match.start()])
        kept = match.end()
        starts.append(starts[-1] + len(pieces[-1]))
        origins.append(kept)
    pieces.append(text[kept:])
    plain = "".join(pieces)
    found = [
        *(_in_lines(plain, []) if ignored is _COLOUR else _in(plain, [])),
        *_by_rules(plain, own),
    ]
    for begin, end, kind in found:
        yield _origin(begin, starts, origins), _origin(end - 1, starts, origins) + 1, kind


def _unescaped(text: str) -> Iterator[Secret]:
    """What is found when JSON in it is read as the text that it stands for, and JSON in that again."""
    layers: list[tuple[list[str], list[str]]] = []
    while len(layers) < _MOST_LAYERS and _ESCAPES.search(text) is not None:
        pieces = _ESCAPE.split(text)
        read = _read(pieces, _CHARACTERS)
        text = "".join(read)
        layers.append((read, pieces))
        found = [*_in_lines(text, [])]
        found += _unwrapped(text, found)
        if "\x1b" in text:
            found += _through(text, _COLOUR, ())
        if found:
            places = [(_starts(one), _starts(other)) for one, other in reversed(layers)]
            for begin, end, kind in found:
                span = begin, end
                for layer in places:
                    span = _origin(span[0], *layer), _origin(span[1], *layer)
                yield *span, kind


def _without_entities(text: str) -> Iterator[Secret]:
    """What is found in the text that HTML or XML stands for."""
    pieces = _ENTITY.split(text)
    read = _read(pieces, _ENTITIES)
    found = [*_in_lines("".join(read), [])]
    if found:
        starts, origins = _starts(read), _starts(pieces)
        for begin, end, kind in found:
            yield _origin(begin, starts, origins), _origin(end, starts, origins), kind


def _read(pieces: list[str], characters: Mapping[str, str]) -> list[str]:
    """With a character instead of every second piece, which is an escape."""
    read = pieces.copy()
    read[1::2] = map(characters.__getitem__, pieces[1::2])
    return read


def _starts(pieces: list[str]) -> list[int]:
    return [0, *accumulate(map(len, pieces))]


class _Characters(dict[str, str]):
    """By escape, as they are met."""

    def __missing__(self, escape: str) -> str:
        if escape[0] == "'":
            character = "'"  # how a shell writes it inside its own quotes
        elif escape[1] in "ux":
            character = chr(int(f"0x{escape[2:]}", 0))
        else:
            character = {"n": "\n", "r": "\r", "t": "\t"}.get(escape[1], escape[1])
        if len(self) < _MOST_CHARACTERS:
            self[escape] = character
        return character


_CHARACTERS = _Characters()


def _origin(at: int, starts: list[int], origins: list[int]) -> int:
    piece = bisect_right(starts, at) - 1
    return origins[piece] + at - starts[piece]


def _with_masks(secret: Secret, starts: list[int], ends: list[int]) -> Secret:
    """Extended so that no part of a mask of an earlier pass is left."""
    begin, end, kind = secret
    first, last = bisect_right(ends, begin), bisect_left(starts, end)
    if first >= last:
        return secret
    return min(begin, starts[first]), max(end, ends[last - 1]), kind


def joined(text: str, found: list[Secret]) -> list[Secret]:
    """In order; what overlaps is one."""
    if "[redacted: " in text:
        masks = [mask.span() for mask in MASK.finditer(text)]
        starts, ends = [begin for begin, _ in masks], [end for _, end in masks]
        found = [_with_masks(secret, starts, ends) for secret in found]
    found.sort(key=lambda secret: (secret[0], -secret[1]))
    whole: list[Secret] = []
    for begin, end, kind in found:
        if whole and begin < whole[-1][1]:
            first = whole[-1]
            whole[-1] = (first[0], max(first[1], end), first[2])
        else:
            whole.append((begin, end, kind))
    return [secret for secret in whole if not values.is_masked(text[slice(*secret[:2])])]


# -- the screen


def expressions() -> list[list[str]]:
    """What is looked for together."""
    return [
        [assignments.SCREEN, net.SCREEN],
        [shape.screened for shape in SHAPES],
        [context.sign for context in contexts.CONTEXTS],
    ]


@lru_cache(maxsize=1)
def _shapes() -> re.Pattern[str]:
    """All that begin in a known way; the number of the group tells which."""
    each = (f"({_ungrouped(shape.expression)})" for shape in _BY_PREFIX)
    return re.compile("|".join(each), re.ASCII)


@lru_cache(maxsize=1)
def _contexts() -> re.Pattern[str]:
    """Matches everywhere; the groups that took part are the contexts whose signs are there."""
    signs = (f"(?:(?=({_ungrouped(context.sign)})))?" for context in contexts.CONTEXTS)
    return re.compile("".join(signs), re.ASCII)


@lru_cache(maxsize=1)
def _valued() -> re.Pattern[str]:
    """A name that a value may follow."""
    return re.compile(assignments.SCREEN)


@lru_cache(maxsize=1)
def _signs() -> re.Pattern[str]:
    return re.compile("|".join(f"({shape.sign})" for shape in SHAPES if shape.sign), re.ASCII)


@lru_cache(maxsize=1)
def _by_sign() -> list[tuple[Shape, re.Pattern[str]]]:
    return [(shape, re.compile(shape.expression, re.ASCII)) for shape in SHAPES if shape.sign]


class Hits:
    """Where in a text a rule may apply, in order.

    All expressions in one would have more states than RE2 keeps: it would make them again and again.
    """

    def __init__(self, encoded: bytes) -> None:
        self.encoded = encoded
        self._next = [-1] * len(_screens())  # of each screen; the size of the text if there is none

    def after(self, at: int) -> int:
        """The first at this place or behind it; -1 if there is none."""
        size = len(self.encoded)
        for number, search in enumerate(_screens()):
            if self._next[number] < at:
                self._next[number] = _first(search, self.encoded, at)
        first = min(self._next)
        return first if first < size else -1


def _first(search: Search, text: bytes, at: int) -> int:
    size = len(text)
    while True:
        found = search(text, at, at + _WINDOW)
        if found is not None:
            return int(found.start())
        if at + _WINDOW >= size:
            return size
        at += _WINDOW - _OVERLAP


@lru_cache(maxsize=1)
def _screens() -> list[Search]:
    return [
        compiled("|".join(f"(?:{_ungrouped(one)})" for one in group).encode()).search
        for group in expressions()
    ]


def _ungrouped(expression: str) -> str:
    return re.sub(r"(?<!\\)\((?!\?)", "(?:", expression)
