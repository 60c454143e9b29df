"""What a hit is shown with: the file and line that it refers to, and the events next to it."""

from __future__ import annotations

import apsw

from sess_common.classes import TYPE_CHECKING, later
from sess_schema.queries.search.engine import Hit

if TYPE_CHECKING:
    from sess_schema.ids import EventId, SessionId
    from sess_schema.session import Entry, Reader

_NUMBERED = later(r"\s*(\d{1,9})(?:→|\t)")  # how agents print a file they read
_PLACES = later(  # path:12: as in grep output, and Python tracebacks
    r":(?P<line>\d{1,9})(?![\w.])|File \"(?P<frame>[^\"]+)\", line (?P<frame_line>\d{1,9})"
)
_PATH = later(r"[^\s:\"'`()\[\]]+$")
_FILE = later(
    r"[\w.+-]+\.(?:c|cc|cpp|cs|css|ex|exs|go|h|hpp|html|java|js|json|jsx|kt|lua|md|mjs|php|pl|py|pyi"
    r"|rb|rs|scala|sh|sql|svelte|swift|tf|toml|ts|tsx|txt|vue|xml|yaml|yml|zig)"
)
_WINDOW = 500
_SHOWN = 300  # characters of a neighbour


def location(db: apsw.Connection, hit: Hit, texts: list[str]) -> tuple[str | None, int | None]:
    """(path, line) of a tool call's first match; only the path if the call touched a single one."""
    if hit.type != "tool_use":
        return None, None
    paths = [
        path
        for (path,) in db.execute(
            "SELECT DISTINCT path FROM files WHERE event_id = ? ORDER BY path LIMIT 2", (hit.event,)
        )
    ]
    path = paths[0] if len(paths) == 1 else None
    if hit.snippet.field is None or not hit.snippet.offsets:
        return path, None
    line, at = _line(texts[hit.snippet.field], hit.snippet.start)
    if path and (numbered := _NUMBERED.match(line)):
        return path, int(numbered[1])
    return _named(line, at) or (path, None)


def _named(line: str, at: int) -> tuple[str, int] | None:
    """The file and line named last before a position, or else first after it."""
    named: tuple[str, int] | None = None
    for found in _PLACES.finditer(line):
        if named is not None and found.start() > at:
            break
        if found["frame"]:
            named = found["frame"], int(found["frame_line"])
            continue
        before = _PATH.search(line[max(0, found.start() - _WINDOW) : found.start()])
        if before and _is_file(before[0]):
            named = before[0], int(found["line"])
    return named


def _is_file(name: str) -> bool:
    """Not a host name followed by a port."""
    return not name.startswith("//") and (("/" in name) or _FILE.fullmatch(name) is not None)


def _line(text: str, at: int) -> tuple[str, int]:
    """The line around a position, cut near it if very long; and the position within it."""
    begin = max(text.rfind("\n", 0, at) + 1, at - _WINDOW)
    end = text.find("\n", at)
    return text[begin : min(end if end >= 0 else len(text), at + _WINDOW)], at - begin


class Neighbours:
    """The events just before and after an event; the order of each session is read once."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self._readers: dict[int, Reader] = {}

    def around(
        self, session: SessionId, event: EventId, before: int, after: int
    ) -> tuple[list[Entry], list[Entry]]:
        if session not in self._readers:
            from sess_schema.session import Reader  # few searches ask

            self._readers[session] = Reader(self._db, session)
        reader = self._readers[session]
        if not reader.holds(event):
            return [], []
        at = reader.order.index(event)
        return (
            reader.some(reader.order[max(0, at - before) : at], _SHOWN),
            reader.some(reader.order[at + 1 : at + 1 + after], _SHOWN),
        )

    @staticmethod
    def words(entry: Entry) -> str:
        """Its first words, or what it calls."""
        if not entry.text and entry.summary is not None:
            return entry.summary[:_SHOWN]
        return entry.text or entry.input
