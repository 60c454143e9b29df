"""Files that their agent rewrites whole: reads what changed in each conversation.

A document is a source; each conversation in it is another source (`document#conversation`), written
record by record like those of databases. The file itself is archived as last read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import apsw

from sess_schema import labels
from sess_schema.archive import hidden_bytes
from sessiond.engines import steps
from sessiond.reading import tail
from sessiond.reading.survey import Candidate
from sessiond.reading.tail import Stat
from sessiond.reading.tracked import Tracked
from sessiond.sourcekit.base import Conversation, Event, Item, NotReady, Record, SessionSpec
from sessiond.sourcekit.foreign import NO_PLACE, KnownRows, prefix_of

if TYPE_CHECKING:
    from sessiond.sourcekit.masking import Masker


# Of a document that is not read element by element; reading it takes four times as much memory.
LARGEST = 128 << 20
LARGEST_SEARCHED = 32 << 20  # for secrets, where they are masked
PIECE = 8 << 20  # bytes of a document that are in memory again when it is archived
MOST_BYTES, MOST_RECORDS = 4 << 20, 2048  # of a conversation that is handed over at once


_BLOCK = 1 << 20
# A whole string, the start of one that the buffer does not end, or a bracket.
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|"|[\[\]{}]', re.DOTALL)
_BLANK = b" \t\r\n,\xef\xbb\xbf"
_STEPS = {b"[": 1, b"{": 1, b"]": -1, b"}": -1}


def read_document(
    file: Candidate, source: Tracked, index: apsw.Connection, mask: Masker | None = None
) -> Iterator[steps.Step]:
    """Yield a step for each changed conversation, then the final steps.

    `mask` is for the archived file only: the writer masks conversations.
    """
    try:
        fd = tail.open_regular(file.path)
    except FileNotFoundError:
        if source.id is not None:
            yield steps.Vanish(file, source)
        return
    except tail.Unreadable as error:
        yield steps.Fail(file, source, str(error))
        return
    try:
        stat = Stat.of(os.fstat(fd))
        streams = file.agent.streams
        data = _whole(fd, stat) if not streams and stat.size <= PIECE else None
        contents = _elements(fd) if streams else _once(fd, stat) if data is None else (data,)
        yield from _changes(file, source, index, contents)
        pieces = _pieces(fd, stat) if data is None else ((0, data),)
        for offset, piece in pieces if mask is None else _masked(pieces, stat, mask):
            yield steps.ReplaceDocument(file, source, piece, offset)
        yield steps.Finish(file, source, stat)
    except (NotReady, tail.Unreadable) as error:  # being written; the index keeps the last state
        yield steps.Fail(file, source, str(error))
    except apsw.Error:  # of the index
        raise
    except Exception as error:
        yield steps.Fail(file, source, f"{type(error).__name__}: {error}", crashed=True)
    finally:
        os.close(fd)


def _changes(
    file: Candidate, source: Tracked, index: apsw.Connection, contents: Iterable[bytes]
) -> Iterator[steps.Step]:
    documents = file.agent.documents
    assert documents is not None
    known, is_new = KnownRows(index, source), source.id is None
    seen = set[str]()
    for data in contents:
        conversations = documents.conversations(file.path, data)
        del data
        for conversation in _released(conversations):
            native_id = conversation.spec.native_id
            seen.add(native_id)
            reduce(conversation, known, prefix_of(native_id))
            for piece in _handed_over(conversation):
                yield steps.ChangeConversation(file, source, piece)
    for change in _lost(known, seen) if not is_new else ():
        yield steps.ChangeConversation(file, source, change)


def _released(conversations: Iterator[Conversation]) -> Iterator[Conversation]:
    """Each conversation once the next is there: after the last, the reader holds no memory."""
    held = next(conversations, None)
    while held is not None:
        after = next(conversations, None)
        yield held
        held = after


def _handed_over(conversation: Conversation) -> Iterator[Conversation]:
    """A conversation in pieces, each of which is let go when it is written."""
    items = conversation.items
    few = len(items) <= MOST_RECORDS
    if few and sum(item.size for item in items) <= MOST_BYTES:
        yield conversation
        return
    items.reverse()
    removed = conversation.removed
    while items:
        piece, size = list[Item](), 0
        while items and len(piece) < MOST_RECORDS and size < MOST_BYTES:
            piece.append(items.pop())
            size += piece[-1].size
        yield replace(conversation, items=piece, removed=removed)
        removed = []


def _once(fd: int, stat: Stat) -> Iterator[bytes]:
    """A large document, which nobody holds but its reader."""
    yield _whole(fd, stat)


def _elements(fd: int) -> Iterator[bytes]:

    try:
        yield from array_elements(lambda length, offset: tail.read_at(fd, length, offset))
    except NotAnArray as error:
        raise NotReady(str(error)) from None


def _whole(fd: int, stat: Stat) -> bytes:
    if stat.size > LARGEST:
        raise tail.Unreadable(f"is larger than {LARGEST >> 20} MiB")
    return b"".join(piece for _, piece in _pieces(fd, stat))


def _pieces(fd: int, stat: Stat) -> Iterator[tuple[int, bytes]]:
    """(offset, bytes) of the file as of the stat; an empty one has one empty piece."""
    offset = 0
    try:
        while (piece := tail.read_at(fd, PIECE, offset)) or not offset:
            yield offset, piece
            if not piece:
                break
            offset += len(piece)
    except OSError as error:
        raise tail.Unreadable((error.strerror or str(error)).lower()) from error
    if Stat.of(os.fstat(fd)) != stat:
        raise tail.Unreadable("changed while it was read")


def _masked(
    pieces: Iterable[tuple[int, bytes]], stat: Stat, mask: Masker
) -> Iterator[tuple[int, bytes]]:
    """What is too large to be searched for secrets is hidden."""
    if stat.size > LARGEST_SEARCHED:
        for offset, piece in pieces:
            yield offset, hidden_bytes(piece)
    else:
        yield 0, mask.document(b"".join(piece for _, piece in pieces))


def reduce(conversation: Conversation, known: KnownRows, prefix: str) -> None:
    """Reduce a conversation that was read whole to what is new, changed or gone."""
    before = known.under(prefix)
    order: dict[str, None] = {}
    changed = []
    for item in conversation.items:
        key = prefix + item.key
        while key in order:  # a repeated id is still a separate record
            key += "'"
        order[key] = None
        line = item.line()
        item.key, item.digest, item.length = key, steps.hash64(line), len(line)
        if len(line) > tail.LONGEST_LINE and item.record is not None:
            item.record = oversize(item.record, len(line))
        del line
        old = before.pop(key, None)
        if old is None or old.digest != item.digest or old.place == NO_PLACE:
            changed.append(item)
    conversation.items, conversation.order = changed, list(order)
    conversation.times = {prefix + key: ts for key, ts in conversation.times.items()}
    conversation.removed = [key for key, old in before.items() if old.place != NO_PLACE]


def oversize(record: Record, length: int) -> Record:
    """What stands for a record that is too long to index; the archive has it."""
    reason = f"record of {length >> 20} MiB is archived but not searchable"
    return Record(
        "oversize",
        native_id=record.native_id,
        parent_id=record.parent_id,
        ts=record.ts,
        ts_from=record.ts_from,
        events=[Event("system", reason, label=labels.OVERSIZE)],
        warnings=[reason],
    )


def _lost(known: KnownRows, seen: set[str]) -> Iterator[Conversation]:
    """Conversations that are no longer in the document; the index keeps them."""
    for native_id in known.conversations():
        if native_id not in seen:
            rows = known.under(prefix_of(native_id))
            yield Conversation(SessionSpec(native_id), gone=True, removed=list(rows))


class NotAnArray(Exception):
    """The bytes are not an array of objects, or end before it does."""


def array_elements(read: Callable[[int, int], bytes]) -> Iterator[bytes]:
    """Each object or array in the outermost array. `read(length, offset)` gives bytes.

    Holds one element and one block in memory; numbers and strings between elements are ignored.
    """
    buffer, offset, scanned, depth = b"", 0, 0, 0
    start: int | None = None  # of the current element
    length = _BLOCK
    while more := read(length, offset):
        if depth == 0 and not buffer and more.strip(_BLANK)[:1] not in (b"[", b""):
            raise NotAnArray("does not start with [")
        offset += len(more)
        buffer += more
        length = _BLOCK
        for token in _TOKEN.finditer(buffer, scanned):
            text = token[0]
            if text == b'"':  # its end is in a later block; the longer it is, the more is read
                scanned, length = token.start(), max(_BLOCK, len(buffer) - token.start())
                break
            scanned = token.end()
            step = _STEPS.get(text)
            if step is None:
                continue
            depth += step
            if step == 1 and depth == 2:
                start = token.start()
            elif step == -1 and depth == 1 and start is not None:
                yield buffer[start : token.end()]
                start = None
            elif depth == 0:
                return
        else:
            scanned = len(buffer)
        kept = scanned if start is None else start
        buffer, scanned = buffer[kept:], scanned - kept
        start = None if start is None else 0
    raise NotAnArray("ends before its end")
