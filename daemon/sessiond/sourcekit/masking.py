"""Masks secrets before anything is written (`redact.at_ingest`).

Raw bytes keep their length, and JSON stays JSON: a mask lies inside a string. What was found is
masked wherever it occurs in the rest of its log, and in the whole of a document or conversation. So
the same log always gives the same masks, wherever a read began or ended. What is too long to be
searched for secrets is masked as a whole.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import orjson

from sess_common import decode
from sess_redaction import Occurrences
from sess_redaction.raw import Search, Span, covered
from sess_redaction.redactor import rules
from sess_schema import archive
from sess_schema.archive import hidden_bytes
from sess_schema.edits import Edit, Hunks
from sessiond.sourcekit.base import NOTHING, Conversation, Event, Record, Result, SessionSpec

LONGEST = 32 << 20  # bytes that are searched at once
_MOST_PASSES = 8
_MOST_LOGS = 64


class Masker:
    """Replaces each secret by stars."""

    def __init__(self, patterns: Sequence[str] = ()) -> None:
        self.patterns = list(patterns)
        self._search = Search(rules(patterns))
        self._logs: dict[str, Masker] = {}  # by path: those that are being written

    def remembering(self) -> Masker:
        """One that masks what it has found wherever it occurs from then on."""
        masker = Masker(self.patterns)
        masker._search.known = Occurrences()
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
            text = covered(text, (self._search.in_json if structured else self._found)(text))
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
        return self._search.in_text(text)

    # -- what was made of them

    def text(self, text: str) -> str:
        if len(text) > LONGEST:
            return archive.MASK_SIGN * len(text)
        for _ in range(_MOST_PASSES):
            before = text
            text = covered(text, self._found(text))
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
