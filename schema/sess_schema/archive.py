"""The raw bytes of every source, compressed with a checksum, and how to read records back.

Bytes that are lost for good are remembered through every repair until somebody accepts the loss
(`repair --accept-losses`). Secrets may have
been masked before they were archived (`redact.at_ingest`): a mask has as many bytes as what it
stands for, so that every offset stays what it is in the file.
"""

from __future__ import annotations

import json
import re
import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import apsw
import zstandard

from sess_common import decode
from sess_common.errors import Exit, SessError
from sess_schema.ids import SourceId

LIVE, PENDING = 0, -1  # chunks.retired: currently in the file; an unfinished last line
UNPLACED = -2  # of a loss: nobody knows of what
MASK_SIGN = "*"
SHORTEST_MASK = 4  # bytes; fewer stars are not taken for a mask
_MASK = re.compile(rb"\*{4,}|\A\*+|\*+\Z")  # the border of a piece may cut one
MASKS_FACT = "masked_at_ingest"
ACCEPTED_FACT = "accepted_losses"
LOST_FACT = "losses"  # those that nobody has accepted
_FILLED_AT_ONCE = 1 << 20
_KEPT = 6  # unpacked chunks of about a megabyte: a result is rarely far from its call
_MOST_KEPT = 8 << 20  # bytes; the line of a document may be one chunk of any size
_DEEPEST = 100  # levels of nesting that readers can handle

_local = threading.local()
met: list[Damaged] = []  # damage that this process met; `program` tells about it at the end
lost: list[str] = []  # files of which a repair could not bring back all, told there as well


class Damaged(SessError):
    """Archived bytes that are no longer what they were."""

    def __init__(self, what: str = "an archived record") -> None:
        super().__init__(
            f"{what} is damaged in the index",
            hint="`sess check` lists all damage, `sessiond repair` mends what it can",
            code=Exit.INDEX_UNUSABLE,
        )
        met.append(self)


class Chunk(NamedTuple):
    """A piece of a source; its bytes are read on demand."""

    id: int
    retired: int
    offset: int
    length: int
    source: int = 0

    @property
    def end(self) -> int:
        return self.offset + self.length


def pack(raw: bytes) -> bytes:
    if not hasattr(_local, "compressor"):  # one per thread: not thread-safe
        _local.compressor = zstandard.ZstdCompressor(level=3, write_checksum=True)
    return _local.compressor.compress(raw)  # type: ignore[no-any-return]


def unpack(packed: bytes) -> bytes:
    """The bytes as they were archived, or `Damaged`."""
    if not hasattr(_local, "decompressor"):
        _local.decompressor = zstandard.ZstdDecompressor()
    try:
        return _local.decompressor.decompress(packed)  # type: ignore[no-any-return]
    except (zstandard.ZstdError, MemoryError) as error:  # a damaged header may claim any size
        raise Damaged from error


def chunk_bytes(db: apsw.Connection, chunk: Chunk) -> bytes:
    packed = db.execute(
        "SELECT data FROM chunks WHERE id = ? AND offset = ? AND length = ?",
        (chunk.id, chunk.offset, chunk.length),
    ).get
    if packed is None:
        return _grown(db, chunk)
    raw = unpack(packed if isinstance(packed, bytes) else b"")
    if len(raw) != chunk.length:  # damage may have turned its checksum off
        raise Damaged
    return raw


def _grown(db: apsw.Connection, chunk: Chunk) -> bytes:
    """The bytes of a piece that has become part of a larger one since it was listed."""
    row = db.execute(
        "SELECT offset, length, data FROM chunks WHERE source_id = ? AND retired = ?"
        " AND offset <= ? ORDER BY offset DESC LIMIT 1",
        (chunk.source, max(chunk.retired, LIVE), chunk.offset),  # unfinished lines are finished
    ).fetchone()
    if row is None or row[0] + row[1] < chunk.end:
        raise Damaged
    raw = unpack(row[2])
    if len(raw) != row[1]:
        raise Damaged
    return raw[chunk.offset - row[0] : chunk.end - row[0]]


def source_bytes(db: apsw.Connection, source_id: SourceId) -> Iterator[bytes]:
    """The file as last read, chunk by chunk."""
    for chunk in current(db, source_id):
        yield chunk_bytes(db, chunk)


def laid_out(db: apsw.Connection, chunks: Iterable[Chunk]) -> Iterator[bytes]:
    """The bytes of a file, each at its place: where some are missing, there are blank lines."""
    at = 0
    for chunk in chunks:
        yield from _blank(chunk.offset - at)
        yield chunk_bytes(db, chunk)
        at = max(at, chunk.end)


def _blank(length: int) -> Iterator[bytes]:
    """What is cut off on both sides is no line together."""
    if length > 0:
        yield b"\n"
        for start in range(1, length - 1, _FILLED_AT_ONCE):
            yield b" " * min(_FILLED_AT_ONCE, length - 1 - start)
        yield b"\n" * (length > 1)


def current(db: apsw.Connection, source_id: SourceId) -> list[Chunk]:
    """The chunks of the file as last read, the unfinished last line included."""
    return [*chunks(db, source_id, LIVE), *chunks(db, source_id, PENDING)]


def earlier(db: apsw.Connection, source_id: SourceId) -> dict[int, list[Chunk]]:
    """The chunks of each earlier content of a rewritten file, by generation, newest first.

    A rewrite retires the chunks from the first byte that differs; those before it are shared.
    """
    contents: dict[int, list[Chunk]] = {}
    later = current(db, source_id)
    retired = db.execute(
        "SELECT DISTINCT retired FROM chunks WHERE source_id = ? AND retired > 0 ORDER BY 1 DESC",
        (source_id,),
    )
    for number in [int(generation) for (generation,) in retired]:
        left = chunks(db, source_id, number)
        shared = [chunk for chunk in later if chunk.end <= left[0].offset]
        later = contents[number - 1] = [*shared, *left]
    return contents


def chunks(db: apsw.Connection, source_id: SourceId, retired: int) -> list[Chunk]:
    return [
        Chunk(*row)
        for row in db.execute(
            "SELECT id, retired, offset, length, source_id FROM chunks"
            " WHERE source_id = ? AND retired = ?"
            " ORDER BY offset",
            (source_id, retired),
        )
    ]


# -- lost


class Loss(NamedTuple):
    """Bytes of a source, which is named by its path."""

    path: str
    retired: int
    offset: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.offset


Lost = dict[Loss, str]  # with what to say of it


def accepted_losses(db: apsw.Connection) -> set[Loss]:
    return {Loss(*loss) for loss in _fact(db, ACCEPTED_FACT)}


def losses(db: apsw.Connection, paths: Sequence[str] | None = None) -> Lost:
    """What a repair could not bring back, nobody has accepted, and no file has given back since.

    `paths`: of these sources only.
    """
    noted = _fact(db, LOST_FACT)
    if not noted:
        return {}
    accepted = accepted_losses(db)
    lost = {Loss(*loss): str(told) for *loss, told in noted if paths is None or loss[0] in paths}
    return {
        loss: told for loss, told in lost.items() if loss not in accepted and not _is_back(db, loss)
    }


def tell_losses(db: apsw.Connection) -> None:
    """Let the end of the command say that the index is not complete."""
    lost[:] = sorted({loss.path for loss in losses(db)})


def meet_losses(db: apsw.Connection, session: int) -> None:
    """What is lost of a session is missing in whatever is made of it."""
    if _fact(db, LOST_FACT):
        paths = [
            path
            for (path,) in db.execute(
                "SELECT s.path FROM session_sources m JOIN sources s ON s.id = m.source_id"
                " WHERE m.session_id = ?",
                (session,),
            )
        ]
        for loss in losses(db, paths):
            Damaged(loss.path)


def note_losses(db: apsw.Connection, more: Mapping[Loss, str]) -> None:
    """Remember them, too."""
    every = {**losses(db), **more}
    _keep_fact(db, LOST_FACT, [[*loss, told] for loss, told in sorted(every.items())])


def remember_losses(db: apsw.Connection, facts: Mapping[str, str]) -> None:
    """Take over what another index says of losses."""
    for name in (ACCEPTED_FACT, LOST_FACT):
        try:
            told = json.loads(facts.get(name, "[]"))
        except ValueError:
            continue  # damaged; the gaps themselves are found again
        if told:
            _keep_fact(db, name, told)


def _is_back(db: apsw.Connection, loss: Loss) -> bool:
    row = db.execute("SELECT id, part_of, state FROM sources WHERE path = ?", (loss.path,))
    source, whole, state = row.fetchone() or (None, None, None)
    if source is None or (loss.retired != LIVE and whole is None):
        return False
    if whole is not None:
        return bool(state == "live")  # it was read again as a whole
    there = db.execute(
        "SELECT sum(min(offset + length, ?3) - max(offset, ?2)) FROM chunks WHERE source_id = ?1"
        " AND retired = 0 AND offset < ?3 AND offset + length > ?2",
        (source, loss.offset, loss.end),
    ).get
    return bool(there == loss.size)


def _fact(db: apsw.Connection, name: str) -> list[Any]:
    stored = db.execute("SELECT value FROM facts WHERE name = ?", (name,)).get
    value: list[Any] = json.loads(stored or "[]")
    return value


def _keep_fact(db: apsw.Connection, name: str, value: list[Any]) -> None:
    db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, json.dumps(value)))


def accept_losses(db: apsw.Connection, more: Iterable[Loss]) -> None:
    """Remember more of them; what is left of the damaged pieces is dropped."""
    new = [*more]
    with db:
        for loss in new:
            db.execute(
                "DELETE FROM chunks WHERE retired = ? AND offset = ?"
                " AND source_id = (SELECT id FROM sources WHERE path = ?)",
                (loss.retired, loss.offset, loss.path),
            )
        _keep_fact(db, ACCEPTED_FACT, sorted(accepted_losses(db).union(new)))
        note_losses(db, {})


def is_accepted_loss(db: apsw.Connection, source: SourceId | None, offset: int) -> bool:
    """Whether the bytes at a place of the file as last read are known to be lost."""
    path = db.execute("SELECT path FROM sources WHERE id = ?", (source,)).get
    return any(
        loss.path == path and loss.retired == LIVE and loss.offset <= offset < loss.end
        for loss in accepted_losses(db)
    )


# -- masked


def note_masks(db: apsw.Connection) -> None:
    """From now on, what is archived may be masked."""
    if not has_masks(db):
        with db:
            db.execute("INSERT INTO facts VALUES (?, '')", (MASKS_FACT,))


def has_masks(db: apsw.Connection) -> bool:
    """Whether anything in this index may be masked."""
    return db.execute("SELECT 1 FROM facts WHERE name = ?", (MASKS_FACT,)).get is not None


def is_same(live: bytes, archived: bytes, *, masked: bool) -> bool:
    """Whether a file still has what was archived of it; masks are not compared."""
    if live == archived or not masked or len(live) != len(archived):
        return live == archived
    at = 0
    for mask in _MASK.finditer(archived):
        if live[at : mask.start()] != archived[at : mask.start()]:
            return False
        at = mask.end()
    return live[at:] == archived[at:]


def hidden_bytes(data: bytes) -> bytes:
    """As many bytes, of which only a newline at the end is left."""
    end = b"\n" if data.endswith(b"\n") else b""
    return MASK_SIGN.encode() * (len(data) - len(end)) + end


# -- records, as the agent wrote them


class RecordReader:
    """Reads single records; neighbours share one unpacked chunk."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self._chunks: OrderedDict[Chunk, bytes] = OrderedDict()
        self._places: dict[tuple[int, int], list[Chunk]] = {}
        self._last: tuple[tuple[int, ...], list[Any]] = ((), [])
        self.damaged: set[int] = set()  # chunks that could not be read

    def bytes_of(self, place: Sequence[int]) -> bytes:
        """`place`: source, retired, offset, length."""
        retired, offset, length = place[1:]
        source = SourceId(place[0])
        raw = self._bytes_at(source, retired, offset, length)
        if len(raw) < length and retired == LIVE:  # written since the pieces were listed
            self._places.pop((source, retired), None)
            raw = self._bytes_at(source, retired, offset, length)
        missing = len(raw) < length and retired == LIVE
        if missing and not is_accepted_loss(self._db, source, offset):
            raise Damaged
        return raw

    def _bytes_at(self, source: SourceId, retired: int, offset: int, length: int) -> bytes:
        slices = []
        for chunk in self._chunks_from(source, retired, offset):
            if chunk.offset >= offset + length:
                break
            if chunk.end > offset:
                raw = self._unpacked(chunk)
                slices.append(raw[max(0, offset - chunk.offset) : offset + length - chunk.offset])
        return slices[0] if len(slices) == 1 else b"".join(slices)

    def _chunks_from(self, source: SourceId, retired: int, offset: int) -> Iterator[Chunk]:
        """The chunk that has this place, and those after it."""
        if (source, retired) not in self._places:
            self._places[source, retired] = chunks(self._db, source, retired)
        places = self._places[source, retired]
        first = max(0, bisect_right(places, offset, key=attrgetter("offset")) - 1)
        for at in range(first, len(places)):
            yield places[at]

    def value(self, place: Sequence[int], pointer: str) -> Any:
        """The value in a record that a JSON pointer leads to, or None.

        Objects that several pointers, one per line, lead to are joined.
        """
        try:
            values = self._values(tuple(place))
        except Damaged:
            return None
        for value in values:
            places = (decode.at_pointer(value, place) for place in pointer.split("\n"))
            joined = _joined([unwrapped(place) for place in places])
            if joined is not None and not is_too_deep(joined):
                return joined
        return None

    def _values(self, place: tuple[int, ...]) -> list[Any]:
        if self._last[0] != place:
            raw = self.bytes_of(place).rstrip(b"\r\n")
            pieces = decode.split_line(raw)
            self._last = (place, [piece.value for piece in pieces if not piece.broken])
        return self._last[1]

    def _unpacked(self, chunk: Chunk) -> bytes:
        if chunk in self._chunks:
            self._chunks.move_to_end(chunk)
            return self._chunks[chunk]
        try:
            raw = self._chunks[chunk] = chunk_bytes(self._db, chunk)
        except Damaged:
            self.damaged.add(chunk.id)
            raise
        while len(self._chunks) > _KEPT or (
            len(self._chunks) > 1 and sum(map(len, self._chunks.values())) > _MOST_KEPT
        ):
            self._chunks.popitem(last=False)
        return raw


def is_too_deep(value: Any, left: int = _DEEPEST) -> bool:
    if isinstance(value, dict):
        return left == 0 or any(is_too_deep(inner, left - 1) for inner in value.values())
    if isinstance(value, list):
        return left == 0 or any(is_too_deep(inner, left - 1) for inner in value)
    return False


def _joined(values: Sequence[Any]) -> Any:
    """The first value; if it is an object, with what the other objects have under other names."""
    first, *others = values
    if not isinstance(first, dict):
        return first
    for other in others:
        known = {_bare(name) for name in first}
        if isinstance(other, dict):
            first = first | {k: v for k, v in other.items() if _bare(k) not in known}
    return first


def _bare(name: str) -> str:
    """One spelling for `target_file` and `targetFile`."""
    return name.replace("_", "").casefold()


def unwrapped(value: Any) -> Any:
    """Decodes arguments that some agents store as JSON in a string."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            return decode.decode(value.encode("utf-8", "replace"))[0]
        except ValueError:
            return value
    return value
