"""Which file and line a match is about, where the event tells."""

from __future__ import annotations

import re

import apsw

from sess_schema.queries.search.engine import Hit

_NUMBERED = re.compile(r"\s*(\d{1,9})(?:→|\t)")  # as agents print a file they read
_FRAME = re.compile(r'File "([^"]+)", line (\d{1,9})')
_COLON = re.compile(r":(\d{1,9})(?![\w.])")  # path:12: as grep prints it
_PATH = re.compile(r"[^\s:\"'`()\[\]]+$")
_WINDOW = 500


def location(db: apsw.Connection, hit: Hit, texts: list[str]) -> tuple[str | None, int | None]:
    """(path, line) of a tool call's first match; the path alone where it has just one."""
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
    line = _line(texts[hit.snippet.field], hit.snippet.offsets[0][0])
    if path and (numbered := _NUMBERED.match(line)):
        return path, int(numbered[1])
    return _named(line) or (path, None)


def _named(line: str) -> tuple[str, int] | None:
    """A file and a line that a text names."""
    if frame := _FRAME.search(line):
        return frame[1], int(frame[2])
    for colon in _COLON.finditer(line):
        before = _PATH.search(line[max(0, colon.start() - _WINDOW) : colon.start()])
        if before and ("/" in before[0] or "." in before[0].strip(".")):
            return before[0], int(colon[1])
    return None


def _line(text: str, at: int) -> str:
    """The line around a place, or what is near it where lines are endless."""
    begin = max(text.rfind("\n", 0, at) + 1, at - _WINDOW)
    end = text.find("\n", at)
    return text[begin : min(end if end >= 0 else len(text), at + _WINDOW)]
