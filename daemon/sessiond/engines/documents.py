"""Files that their agent rewrites whole: reads what changed in each conversation.

A document is a source; each conversation in it is another source (`document#conversation`), written
record by record like those of databases. The file itself is archived as last read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import apsw

from sessiond.engines.known_rows import GONE, KnownRows
from sessiond.engines.slices import hash64
from sessiond.engines.steps import (
    ChangeConversation,
    Fail,
    Finish,
    ReplaceDocument,
    Step,
    Vanish,
)
from sessiond.reading import tail
from sessiond.reading.survey import Candidate
from sessiond.reading.tail import Stat
from sessiond.reading.tracked import Tracked
from sessiond.sourcekit.base import Conversation, NotReady, SessionSpec

LARGEST = 256 << 20


def read_document(file: Candidate, source: Tracked, index: apsw.Connection) -> Iterator[Step]:
    """Yield a step for each changed conversation, then the final steps."""
    assert file.source.documents is not None
    try:
        data, stat = _whole(file.path)
    except FileNotFoundError:
        if source.id is not None:
            yield Vanish(file, source)
        return
    except tail.Unreadable as error:
        yield Fail(file, source, str(error))
        return
    known = KnownRows(index, source)
    try:
        seen = set[str]()
        for conversation in file.source.documents.conversations(file.path, data):
            native_id = conversation.spec.native_id
            seen.add(native_id)
            reduce(conversation, known, _prefix(native_id))
            yield ChangeConversation(file, source, conversation)
        for change in _lost(known, seen) if source.id else ():
            yield ChangeConversation(file, source, change)
    except NotReady as error:  # it is being written; the index keeps the last state
        yield Fail(file, source, str(error))
        return
    except apsw.Error:  # of the index
        raise
    except Exception as error:
        yield Fail(file, source, f"{type(error).__name__}: {error}", crashed=True)
        return
    yield ReplaceDocument(file, source, data)
    yield Finish(file, source, stat)


def _whole(path: str) -> tuple[bytes, Stat]:
    fd = tail.open_regular(path)
    try:
        stat = Stat.of(os.fstat(fd))
        if stat.size > LARGEST:
            raise tail.Unreadable(f"is larger than {LARGEST >> 20} MiB")
        data = bytearray()
        while piece := tail.read_at(fd, 1 << 20, len(data)):
            data += piece
        if Stat.of(os.fstat(fd)) != stat:
            raise tail.Unreadable("changed while it was read")
    except OSError as error:
        raise tail.Unreadable((error.strerror or str(error)).lower()) from error
    finally:
        os.close(fd)
    return bytes(data), stat


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
        item.key, item.digest = key, hash64(item.raw)
        old = before.pop(key, None)
        if old is None or old.digest != item.digest or old.place == GONE:
            changed.append(item)
    conversation.items, conversation.order = changed, list(order)
    conversation.times = {prefix + key: ts for key, ts in conversation.times.items()}
    conversation.removed = [key for key, old in before.items() if old.place != GONE]


def _lost(known: KnownRows, seen: set[str]) -> Iterator[Conversation]:
    """Conversations that are no longer in the document; the index keeps them."""
    for native_id in known.conversations():
        if native_id not in seen:
            rows = known.under(_prefix(native_id))
            yield Conversation(SessionSpec(native_id), gone=True, removed=list(rows))


def _prefix(native_id: str) -> str:
    return f"{native_id}/"
