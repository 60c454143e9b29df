"""Masks secrets before anything is written (`redact.at_ingest`).

Raw bytes keep their length, and JSON stays JSON: a mask lies inside a string. What was found is
masked wherever it occurs in the rest of its log, and in the whole of a document or conversation. So
the same log always gives the same masks, wherever a read began or ended. What is too long to be
searched for secrets is masked as a whole.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import orjson

from sess_common import decode
from sess_redaction import Occurrences, find, is_secret_member, means_secret
from sess_redaction.names import PASSWORD
from sess_redaction.redactor import rules
from sess_schema import archive
from sess_schema.archive import hidden_bytes
from sess_schema.edits import Edit, Hunks
from sessiond.sourcekit.base import NOTHING, Conversation, Event, Record, Result, SessionSpec

LONGEST = 32 << 20  # bytes that are searched at once
_MOST_PASSES = 8
_MOST_LOGS = 64
_LEAST = 6  # characters of a string that may hold a secret of its own
_STRING = re.compile(r'"([^"\\]*+(?:\\.[^"\\]*+)*+)"(\s*+:\s*+)?', re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_MEANT = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_HALF = "\ufffd"  # stands for half a character

Span = tuple[int, int]


class Masker:
    """Replaces each secret by stars."""

    def __init__(self, patterns: Sequence[str] = ()) -> None:
        self.patterns = list(patterns)
        self._rules = rules(patterns)
        self._known: Occurrences | None = None  # what was found, to find it again
        self._logs: dict[str, Masker] = {}  # by path: those that are being written

    def remembering(self) -> Masker:
        """One that masks what it has found wherever it occurs from then on."""
        masker = Masker(self.patterns)
        masker._known = Occurrences()
        return masker

    def of_log(self, path: str, fd: int, offset: int) -> Masker:
        """One that has read a log up to there: what was found before is masked in what follows."""
        masker = self._logs.pop(path, None) if offset else None
        if masker is None:
            masker = self.remembering()
            for line in _lines_of(fd, offset):
                masker.raw(line)
        while len(self._logs) >= _MOST_LOGS:
            del self._logs[next(iter(self._logs))]
        self._logs[path] = masker
        return masker

    # -- bytes for the archive, which keep their length

    def raw(self, data: bytes) -> bytes:
        """One record, or a whole file."""
        if len(data) > LONGEST:
            return hidden_bytes(data)
        text = data.decode("utf-8", "surrogateescape")
        structured = _is_json(data)
        for _ in range(_MOST_PASSES):  # a mask changes what is around it
            before = text
            text = _covered(text, (self._in_json if structured else self._found)(text))
            if text == before:
                break
        masked = text.encode("utf-8", "surrogateescape")
        if structured and masked != data and not _is_json(masked):
            return hidden_bytes(data)
        return masked

    def lines(self, data: bytes) -> bytes:
        """Several records, one in each line."""
        return b"\n".join([self.raw(line) if line else line for line in data.split(b"\n")])

    def document(self, data: bytes) -> bytes:
        """A whole file; what is not text cannot be searched."""
        try:
            data.decode("utf-8")
        except UnicodeDecodeError:
            return hidden_bytes(data)
        masker = self.remembering()
        masker.raw(data)  # a secret may be named after it is used
        return masker.raw(data)

    def copy(self, fd: int) -> int:
        """A masked copy of an open file, without a name; what is too long is hidden."""
        with os.fdopen(os.dup(fd), "rb") as file, tempfile.TemporaryFile() as copy:
            file.seek(0)
            copy.write(self.remembering().raw(file.read(LONGEST)))
            while piece := file.read(1 << 20):
                copy.write(hidden_bytes(piece))
            copy.flush()
            return os.dup(copy.fileno())

    def _found(self, text: str) -> list[Span]:
        found = find(text, self._rules)
        if self._known is not None:
            for begin, end, kind in found:
                self._known.add(kind, text[begin:end])
            found += self._known.find(text)
        return [(begin, end) for begin, end, _ in found]

    def _in_json(self, text: str) -> list[Span]:
        """What is found in the text as it stands, in each string, and by the names of members."""
        outer = self._found(text)
        spans: list[Span] = []
        name, after_name, at = "", -1, 0
        for string in _STRING.finditer(text):
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
                spans += _whole_escapes(string[1], begin, inner)
        return spans

    def _in_string(self, text: str, begin: int, name: str) -> list[Span]:
        if name and means_secret(name) and is_secret_member(name, _decoded(text)):
            if self._known is not None:
                self._known.add(PASSWORD, _decoded(text))
            return [(begin, begin + len(text))]
        plain, place = _unescaped(text)
        return [(begin + place(first), begin + place(last)) for first, last in self._found(plain)]

    # -- what was made of them

    def text(self, text: str) -> str:
        if len(text) > LONGEST:
            return archive.MASK_SIGN * len(text)
        for _ in range(_MOST_PASSES):
            before = text
            text = _covered(text, self._found(text))
            if text == before:
                break
        return text

    def spec(self, spec: SessionSpec) -> SessionSpec:
        return replace(spec, title=self.text(spec.title)) if spec.title else spec

    def record(self, record: Record) -> None:
        """Mask whatever a parser found, in the record or elsewhere."""
        for event in record.events:
            self._event(event)
        for result in record.results:
            self._result(result)
        for title in record.titles:
            title.text = self.text(title.text)
        record.warnings[:] = map(self.text, record.warnings)

    def conversation(self, conversation: Conversation) -> None:
        masker = self.remembering()
        for item in conversation.items:
            if item.record is not None:
                masker.raw(item.line())
        conversation.spec = masker.spec(conversation.spec)
        for item in conversation.items:
            if item.record is not None:
                item.raw, item.value = masker.raw(item.line()), NOTHING
                masker.record(item.record)

    def _event(self, event: Event) -> None:
        event.text, event.input, event.output = map(
            self.text, (event.text, event.input, event.output)
        )
        if event.summary:
            event.summary = self.text(event.summary)
        event.files = tuple((self.text(path), action) for path, action in event.files)
        event.edits = tuple(map(self._edit, event.edits))

    def _result(self, result: Result) -> None:
        result.output = self.text(result.output)
        result.hunks = self._hunks(result.hunks)

    def _edit(self, edit: Edit) -> Edit:
        old, new, patch = (
            text if text is None else self.text(text) for text in (edit.old, edit.new, edit.patch)
        )
        return Edit(self.text(edit.path), old, new, patch, self._hunks(edit.hunks))

    def _hunks(self, hunks: Hunks) -> Hunks:
        return tuple({name: self._value(value) for name, value in one.items()} for one in hunks)

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        return [self._value(one) for one in value] if isinstance(value, list) else value


def _lines_of(fd: int, end: int) -> Iterator[bytes]:
    """Those of an open file before this place that are not too long to be searched."""
    with os.fdopen(os.dup(fd), "rb") as file:
        file.seek(0)
        while file.tell() < end and (line := file.readline(LONGEST)):
            yield line.rstrip(b"\n")


def _is_json(data: bytes) -> bool:
    if data.lstrip()[:1] not in (b"{", b"[", b'"'):
        return False
    if decode.is_crowded(data):  # too many values to build; strings are strings all the same
        return True
    try:
        orjson.loads(data)
    except orjson.JSONDecodeError:
        return False
    return True


def _unescaped(text: str) -> tuple[str, Callable[[int], int]]:
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


def _covered(text: str, spans: list[Span]) -> str:
    """The text with stars instead, as many as there were bytes."""
    pieces: list[str] = []
    done = 0
    for begin, end in _joined(spans):
        size = sum(map(_size, text[begin:end]))
        if size >= archive.SHORTEST_MASK:
            pieces += (text[done:begin], archive.MASK_SIGN * size)
            done = end
    return "".join((*pieces, text[done:])) if pieces else text


def _joined(spans: list[Span]) -> list[Span]:
    """In order, each as far as those reach that overlap it."""
    whole: list[Span] = []
    for begin, end in sorted(spans):
        if whole and begin <= whole[-1][1]:
            whole[-1] = whole[-1][0], max(whole[-1][1], end)
        else:
            whole.append((begin, end))
    return whole


def _size(character: str) -> int:
    """In UTF-8; a byte that is none was decoded as half a surrogate pair."""
    return 1 if "\udc80" <= character <= "\udcff" else len(character.encode("utf-8", "replace"))


def _within(spans: list[Span], at: int, begin: int, end: int) -> Iterator[Span]:
    """The parts that lie between two places of the spans from number `at` on."""
    while at < len(spans) and spans[at][0] < end:
        yield max(spans[at][0], begin), min(spans[at][1], end)
        at += 1


def _whole_escapes(text: str, begin: int, spans: list[Span]) -> Iterator[Span]:
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
