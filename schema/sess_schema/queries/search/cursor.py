"""Where a page of results ended, as text for the next request to pass back.

New events never appear in later pages: their ids are larger than `top`. They may shift scores, so
the events already returned from the current pool are listed, not counted.
"""

from __future__ import annotations

from sess_common.classes import asdict, dataclass
from sess_common.errors import SessError
from sess_schema.queries.search.newest import Position

_LONGEST = 1 << 20


@dataclass(frozen=True, slots=True)
class Cursor:
    query: int  # fingerprint: another query cannot continue from here
    now: int
    top: int
    below: Position | None = None  # where the current pool starts
    edge: Position | None = None  # where the first pool ended
    given: tuple[int, ...] = ()
    last: Position | None = None  # when sorted by time

    def encoded(self) -> str:
        import json  # few searches are paged
        import zlib
        from base64 import urlsafe_b64encode

        values = asdict(self)
        steps = sorted(self.given)
        values["given"] = [b - a for a, b in zip([0, *steps], steps, strict=False)]
        packed = zlib.compress(json.dumps(list(values.values())).encode(), 9)
        return urlsafe_b64encode(packed).decode().rstrip("=")


def _position(given: list[int | None] | None) -> Position | None:
    if given is None:
        return None
    ts, event = given
    return None if ts is None else int(ts), int(event or 0)


def decoded(text: str, query: int) -> Cursor:
    import binascii
    import json
    import zlib
    from base64 import urlsafe_b64decode

    try:
        raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
        packed = zlib.decompressobj().decompress(raw, _LONGEST)
        which, now, top, below, edge, steps, last = json.loads(packed)
        given, at = [], 0
        for step in steps:
            at += step
            given.append(at)
        cursor = Cursor(
            which, now, top, _position(below), _position(edge), tuple(given), _position(last)
        )
        _ = now + top + sum(given)
    except (ValueError, TypeError, binascii.Error, zlib.error) as error:
        raise SessError("invalid cursor", hint="use the one that the last page printed") from error
    if which != query:
        raise SessError(
            "the cursor belongs to another search",
            hint="use it with the same words and options",
        )
    return cursor
