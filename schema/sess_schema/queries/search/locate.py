"""Which file and line a match is about, where the event tells."""

from __future__ import annotations

import re

import apsw

from sess_schema.queries.search.engine import Hit

_NUMBERED = re.compile(r"\s*(\d{1,9})(?:→|\t)")  # as agents print a file they read
_NAMED = re.compile(
    r"([^\s:\"'`(\[]*[/.][^\s:\"'`(\[]*):(\d{1,9})(?::|\b)"
)  # path:12: as grep does
_FRAME = re.compile(r'File "([^"]+)", line (\d{1,9})')
_WINDOW = 500


def location(db: apsw.Connection, hit: Hit, texts: list[str]) -> tuple[str | None, int | None]:
    """(path, line) of the first match; the path alone where the call has just one."""
    paths = [
        path
        for (path,) in db.execute(
            "SELECT DISTINCT path FROM files WHERE event_id = ? ORDER BY path LIMIT 2", (hit.event,)
        )
    ]
    path = paths[0] if len(paths) == 1 else None
    if hit.snippet.field is None or not hit.snippet.offsets:
        return path, None
    line = _line(texts[hit.snippet.field], hit.snippet.offsets[0][0])
    if path and (numbered := _NUMBERED.match(line)):
        return path, int(numbered[1])
    if named := _FRAME.search(line) or _NAMED.search(line):
        return named[1], int(named[2])
    return path, None


def _line(text: str, at: int) -> str:
    """The line around a place, or what is near it where lines are endless."""
    begin = max(text.rfind("\n", 0, at) + 1, at - _WINDOW)
    end = text.find("\n", at)
    return text[begin : min(end if end >= 0 else len(text), at + _WINDOW)]
