"""Where the value of a name may stand: its line, the next one, the lines of a small block, the cells below."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sess_redaction.extents import Span

_BEFORE, _AFTER = 160, 240  # characters of its line
_MOST_SKIPPED = 2
_MOST_LINES = 4
_MOST_ROWS = 20
_LONGEST_ROW = 400
_LONGEST_WORD = 400
_BLANK = re.compile(r"\s|\\+[nr]")
_BREAK = re.compile(r"\r?\n|\r|(?:\\+r)?\\+n|\\+r")
# The line ends with the name, or with a sign after which something is to follow.
_LEADS_ON = re.compile(r"[^\w\n]{0,12}(?:\(\)[^\n]{0,60})?\Z|.*(?:[:({\[=>→]|\|)[ \t\"'`*]{0,4}\Z")
_OPENS = re.compile(r".*[({\[:][ \t\"']{0,3}\Z")
_CLOSES = re.compile(r"[ \t+>|]*[)}\]]")
_FENCE = re.compile(r"[ \t>+#|]*(?:```|~~~)\w*[ \t]*\Z")
_SAYS_SOMETHING = re.compile(r"[^\W_]")
_HEAD = re.compile(r"(?:^|[ ]{2,})\Z")
_NEXT_HEAD = re.compile(r"[ ]{2,}\S|[ \t]*(?:[\r\n]|\Z)")
# The name is what a member says: `"name": "db_password"`.
_SAID = re.compile(
    r"(?i:\b(?:name|key|field|id|label|title|variable|param(?:eter)?|prop(?:erty)?))[\"']?[ \t]{0,3}[:=][ \t]{0,3}[\"']?\Z"
)


def line(text: str, begin: int, end: int) -> Span:
    """As much of the line as is near to the name."""
    least = max(begin - _BEFORE, 0)
    real, escaped = text.rfind("\n", least, begin), text.rfind("\\n", least, begin)
    first = max(real + 1, escaped + 2 if escaped >= 0 else 0)
    if first < least:  # no word is cut in two
        blank = _BLANK.search(text, least, begin)
        first = blank.start() if blank is not None else begin
    return first, _end(text, end)


def following(text: str, end: int, last: int) -> list[Span]:
    """The lines to which the name that ends at `end` leads on, if its line ends so at `last`."""
    rest = text[end:last]
    if last >= len(text) or _LEADS_ON.match(rest) is None:
        return []
    lines: list[Span] = []
    skipped, at = 0, last
    most = _MOST_LINES if _OPENS.match(rest) else 1
    while len(lines) < most and skipped <= _MOST_SKIPPED:
        broken = _BREAK.match(text, at)
        if broken is None or broken.end() >= len(text):
            break
        begin, at = broken.end(), _end(text, broken.end())
        if _CLOSES.match(text, begin, at) and lines:
            break
        if _SAYS_SOMETHING.search(text, begin, at) is None or _FENCE.match(text[begin:at]):
            skipped += 1
        else:
            lines.append((begin, at))
    return lines


def siblings(text: str, begin: int, end: int) -> Iterator[Span]:
    """The lines above and below a member that says the name, as far as its object may reach."""
    if _SAID.search(text, max(begin - 24, 0), begin) is None:
        return
    first = text.rfind("\n", max(begin - _BEFORE, 0), begin)
    for _ in range(_MOST_LINES):
        if first < 0:
            break
        above = text.rfind("\n", max(first - _LONGEST_ROW, 0), first)
        if _SAYS_SOMETHING.search(text, above + 1, first) is None:
            break
        yield max(above + 1, first - _AFTER), first
        if _begins_object(text, above + 1, first):
            break
        first = above
    at = _end(text, end)
    for _ in range(_MOST_LINES):
        broken = _BREAK.match(text, at)
        if broken is None:
            break
        begin, at = broken.end(), _end(text, broken.end())
        if _CLOSES.match(text, begin, at) or text[begin:at].lstrip()[:2] == "- ":
            break
        yield begin, at


def _begins_object(text: str, begin: int, end: int) -> bool:
    said = text[begin:end].strip()
    return said[:2] == "- " or said[-1:] in ("{", "(", "[")


def cells_below(text: str, begin: int, end: int) -> Iterator[Span]:
    """Under a head that blanks set apart from others."""
    start = text.rfind("\n", max(begin - _LONGEST_ROW, 0), begin) + 1
    if not start and begin > _LONGEST_ROW:
        return
    if _HEAD.search(text, start, begin) is None or _NEXT_HEAD.match(text, end) is None:
        return
    if begin == start and text[end : end + 1] != " ":
        return
    at = text.find("\n", end, end + _LONGEST_ROW)
    for _ in range(_MOST_ROWS):
        if at < 0:
            return
        first, at = at + 1, text.find("\n", at + 1, at + _LONGEST_ROW)
        last = at if at >= 0 else min(len(text), first + _LONGEST_ROW)
        cell = first + begin - start
        if cell >= last or (cell > first and not text[cell - 1].isspace()):
            return
        stop = text.find("  ", cell, last)
        yield cell, stop if stop >= 0 else last


def _end(text: str, at: int) -> int:
    """Of the line, or as much of it as is near."""
    found = _BREAK.search(text, at, at + _AFTER)
    if found is not None or at + _AFTER >= len(text):
        return found.start() if found is not None else len(text)
    blank = _BLANK.search(text, at + _AFTER, at + _AFTER + _LONGEST_WORD)
    return blank.start() if blank is not None else max(text.rfind(" ", at, at + _AFTER), at)
