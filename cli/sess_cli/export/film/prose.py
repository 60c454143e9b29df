"""Markdown as terminal rows: markup becomes colours, words are wrapped."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from sess_cli.export.film import rows
from sess_cli.export.film.frames import Look, Row
from sess_cli.render import layout

WIDEST = 100  # cells of a comfortable line
_MOST = 24_000  # characters; a film shows far less of an answer
_FENCE = re.compile(r"\s{0,3}(`{3,}|~{3,})\s*([\w+#.-]*)")
_HEADING = re.compile(r" {0,3}#{1,6}\s+(.*)")
_BULLET = re.compile(r"(\s*)[-*+]\s+(?:\[([ xX])\]\s+)?(.*)")
_NUMBERED = re.compile(r"(\s*)(\d{1,4}[.)])\s+(.*)")
_QUOTE = re.compile(r"\s{0,3}>\s?(.*)")
_RULE = re.compile(r"\s{0,3}([-*_])(?:\s*\1){2,}\s*")
_TABLE_RULE = re.compile(r"\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*")
_INLINE = re.compile(
    r"(?P<code>(?P<ticks>`{1,3})(?P<inside>[^`]+)(?P=ticks))"
    r"|\*\*(?P<bold>[^*\s](?:[^*]*[^*\s])?)\*\*"
    r"|(?<![\w*])\*(?P<italic>[^*\s](?:[^*]*[^*\s])?)\*(?![\w*])"
    r"|~~(?P<strike>[^~]+)~~"
    r"|!?\[(?P<text>[^\]\[]+)\]\([^()\s]{1,500}(?:\s[^()]{0,200})?\)"
)
_TEXT = Look()
_HEAD = Look("accent", bold=True)
_BLOCK = Look("teal")
_MARK = Look("accent")


def rows_of(text: str, room: int) -> list[Row]:
    """Rows that fit, without consecutive, leading or trailing empty ones."""
    found: list[Row] = []
    for line in _lines(text[:_MOST].split("\n"), min(room, WIDEST), room):
        if line or (found and found[-1]):
            found.append(line)
    while found and not found[-1]:
        found.pop()
    return found


def inline(text: str, usual: Look = _TEXT) -> Row:
    """Bold, italic, struck, code and links of one line."""
    text = rows.harmless(text)
    runs: list[tuple[str, Look]] = []
    at = 0
    for found in _INLINE.finditer(text):
        runs.append((text[at : found.start()], usual))
        at = found.end()
        if found["code"]:
            runs.append((found["inside"], replace(usual, fg="peach")))
        elif found["bold"]:
            runs.append((_unmarked(found["bold"]), replace(usual, bold=True)))
        elif found["italic"]:
            runs.append((found["italic"], replace(usual, italic=True)))
        elif found["strike"]:
            runs.append((found["strike"], replace(usual, strike=True)))
        else:
            runs.append((found["text"], replace(usual, fg="blue", underline=True)))
    runs.append((text[at:], usual))
    return rows.row(*runs)


def _unmarked(text: str) -> str:
    return text.replace("`", "")


def _lines(lines: list[str], room: int, widest: int) -> Iterator[Row]:
    fence, at = "", 0
    while at < len(lines):
        line = lines[at]
        at += 1
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not mark[2]:
                fence = ""
                yield ()
            else:
                yield rows.cut(rows.row(("│ ", rows.DIM), (rows.harmless(line), _BLOCK)), widest)
        elif mark:
            fence = mark[1]
            yield ()
        elif "|" in line and at < len(lines) and "-" in lines[at] and _is_rule(lines[at]):
            end = at + 1
            while end < len(lines) and "|" in lines[end]:
                end += 1
            yield from _table([line, *lines[at + 1 : end]], widest)
            at = end
        else:
            yield from _line(line, room)


def _is_rule(line: str) -> bool:
    return len(line) < 1000 and _TABLE_RULE.fullmatch(line) is not None


def _line(line: str, room: int) -> Iterator[Row]:
    if heading := _HEADING.fullmatch(line):
        yield ()
        yield from rows.wrap(inline(heading[1].rstrip(" #"), _HEAD), room)
    elif _RULE.fullmatch(line):
        yield rows.row(("─" * room, rows.DIM))
    elif bullet := _BULLET.fullmatch(line):
        done = bullet[2] in ("x", "X")
        box = "• " if bullet[2] is None else "✓ " if done else "□ "
        yield from _hanging(bullet[1], box, bullet[3], room)
    elif numbered := _NUMBERED.fullmatch(line):
        yield from _hanging(numbered[1], numbered[2] + " ", numbered[3], room)
    elif quote := _QUOTE.fullmatch(line):
        bar = rows.row(("│ ", rows.DIM))
        yield from rows.wrap((*bar, *inline(quote[1], Look("dim", italic=True))), room, bar)
    else:
        yield from rows.wrap(inline(line.rstrip()), room)


def _hanging(lead: str, mark: str, text: str, room: int) -> Iterator[Row]:
    lead = lead.expandtabs(4)[: room // 3]
    indent = rows.row((lead + " " * len(mark), _TEXT))
    yield from rows.wrap((*rows.row((lead, _TEXT), (mark, _MARK)), *inline(text)), room, indent)


def _table(lines: list[str], room: int) -> Iterator[Row]:
    """Columns as wide as their widest cell, if they fit."""
    cells = [[*map(inline, line.strip().strip("|").split("|"))] for line in lines]
    cells = [[_trimmed(cell) for cell in line] for line in cells]
    count = max(map(len, cells))
    widths = [
        max((rows.width(line[n]) for line in cells if n < len(line)), default=0)
        for n in range(count)
    ]
    fair = max(6, (room - 3 * count) // count)
    if sum(widths) + 3 * count > room:
        widths = [min(one, fair) for one in widths]
    for number, line in enumerate(cells):
        runs: list[tuple[str, Look]] = []
        for n, cell in enumerate(line):
            shown = rows.padded(rows.cut(cell, widths[n]), widths[n], _TEXT)
            runs += [
                *((text, replace(look, bold=True)) if number == 0 else (text, look)
                  for text, look in shown),
                (" │ " if n < count - 1 else "", rows.DIM),
            ]  # fmt: skip
        yield rows.cut(rows.row(*runs), room)
        if number == 0:
            yield rows.cut(rows.row(("─┼─".join("─" * one for one in widths), rows.DIM)), room)


def _trimmed(cell: Row) -> Row:
    if not cell:
        return cell
    first, last = cell[0], cell[-1]
    cell = ((first[0].lstrip(), first[1]), *cell[1:])
    last = cell[-1]
    return rows.row(*cell[:-1], (last[0].rstrip(), last[1]))


def height(text: str) -> int:
    """The number of lines of a text, for counts of what is not shown."""
    return text.count("\n") + 1 if text else 0


def first_line(text: str, room: int) -> str:
    """The start of a text, on one line."""
    for line in text[: 4 * _MOST].split("\n"):
        if words := rows.one_line(line):
            return layout.cut(words, room)
    return ""
