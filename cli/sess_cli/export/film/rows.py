"""A film: rows of coloured text over time; foreign text and Markdown as such rows.

Foreign text is escaped, measured in cells, cut and wrapped. Renderers need only this.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from sess_cli.export import ansi
from sess_cli.render import layout
from sess_common.escape import safe

# The name of a theme colour, a terminal colour number, or (red, green, blue).
Colour = str | int | tuple[int, int, int]
_LONGEST = 4000  # characters of one line: many screens wide
_TAB = 4
_WORDS = re.compile(r"\s+|\S+")
WIDEST_PROSE = 100  # cells of a comfortable line
_MOST_MARKDOWN = 24_000  # characters; a film shows far less of an answer
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


@dataclass(frozen=True, slots=True)
class Look:
    """The style of a run of text."""

    fg: Colour = "text"
    bg: Colour | None = None
    bold: bool = False
    italic: bool = False
    dim: bool = False
    underline: bool = False
    strike: bool = False
    inverse: bool = False
    half: int = 0  # of a row of letters twice as large: 1 upper, 2 lower


Row = tuple[tuple[str, Look], ...]
EMPTY: Row = ()
DIM = Look("dim")
_TEXT_LOOK = Look()
_HEADING_LOOK = Look("accent", bold=True)
_CODE_LOOK = Look("teal")
_MARK_LOOK = Look("accent")


@dataclass(frozen=True, slots=True)
class Frame:
    """The whole screen from one moment until the next frame."""

    at: int  # milliseconds from the start
    rows: tuple[Row, ...]  # top to bottom, no row wider than the screen


@dataclass(frozen=True, slots=True)
class Chapter:
    at: int
    title: str


@dataclass(frozen=True, slots=True)
class Caption:
    at: int
    end: int
    text: str


@dataclass(slots=True)
class Film:
    columns: int
    lines: int
    duration: int
    title: str
    chapters: list[Chapter]
    frames: Callable[[], Iterator[Frame]]  # may be called repeatedly
    captions: list[Caption] = field(default_factory=list)


# -- rows of foreign text


def harmless(text: str) -> str:
    """Foreign text on one line, with every character visible."""
    return safe(text[:_LONGEST]).replace("\n", " ").expandtabs(_TAB)


def one_line(text: str) -> str:
    """The same, with runs of whitespace as one space."""
    return " ".join(harmless(text).split())


def row(*runs: tuple[str, Look]) -> Row:
    return tuple(run for run in runs if run[0])


def width(line: Row) -> int:
    return sum(layout.cells(text) for text, _ in line)


def large(lines: Iterable[Row]) -> Iterator[Row]:
    """The rows in letters twice as large: each is two rows, the halves of its letters."""
    for line in lines:
        for half in (1, 2):
            yield tuple((text, replace(look, half=half)) for text, look in line)


def half_of(line: Row) -> int:
    return line[0][1].half if line else 0


def breadth(line: Row) -> int:
    """The cells that a row takes on the screen."""
    return width(line) * (2 if half_of(line) else 1)


def led(line: Row, lead: int, room: int) -> Row:
    """A row that begins after `lead` cells."""
    if not line:
        return line
    half = half_of(line)
    scale = 2 if half else 1
    return cut(row((" " * (lead // scale), Look(half=half)), *line), room // scale)


def plain(line: Row) -> str:
    return "".join(text for text, _ in line)


def cut(line: Row, room: int) -> Row:
    """The start of a row that fits, with an ellipsis if something is cut."""
    if width(line) <= room:
        return line
    kept: list[tuple[str, Look]] = []
    left = max(room, 1)
    for text, look in line:
        taken = layout.cells(text)
        if taken < left:
            kept.append((text, look))
            left -= taken
        else:
            # One cell more than fits, so that the ellipsis appears even if the run ends here.
            kept.append((layout.cut(text + " ", left), look))
            break
    return tuple(kept)


def padded(line: Row, room: int, look: Look) -> Row:
    missing = room - width(line)
    return (*line, (" " * missing, look)) if missing > 0 else line


def wrap(line: Row, room: int, indent: Row = EMPTY) -> Iterator[Row]:
    """A row wrapped into rows that fit; `indent` precedes all but the first."""
    if width(line) <= room:
        yield line
        return
    current: list[tuple[str, Look]] = []
    used = start = 0
    for text, look in line:
        for word in _WORDS.findall(text):
            size = layout.cells(word)
            if used + size > room and used > start:
                yield _joined(current)
                current, used = [*indent], width(indent)
                start = used
                if word.isspace():
                    continue
            while used + size > room:
                head = _head(word, room - used)
                yield _joined([*current, (head, look)])
                current, used = [*indent], width(indent)
                start = used
                word = word[len(head) :]  # noqa: PLW2901
                size = layout.cells(word)
            current.append((word, look))
            used += size
    if used > start:
        yield _joined(current)


def _head(word: str, room: int) -> str:
    """As much of a word as fits, but at least one character, to make progress."""
    return layout.cut(word, room + 1)[:-1] or word[0]


def _joined(runs: Iterable[tuple[str, Look]]) -> Row:
    """Merge neighbouring runs of the same look, so that equal rows compare equal."""
    merged: list[tuple[str, Look]] = []
    for text, look in runs:
        if merged and merged[-1][1] == look:
            merged[-1] = (merged[-1][0] + text, look)
        else:
            merged.append((text, look))
    while merged and merged[-1][1].bg is None:
        text, look = merged.pop()
        if text.rstrip():
            merged.append((text.rstrip(), look))
            break
    return tuple(merged)


def coloured(line: str, usual: Look) -> Row:
    """A line of a terminal's output as the terminal would show it."""
    runs = []
    for text, style in ansi.runs(line[:_LONGEST]):
        fg = usual.fg if style.fg is None else style.fg
        look = Look(
            fg, style.bg, style.bold, style.italic, style.dim, style.underline, style.strike,
            style.inverse,
        )  # fmt: skip
        runs.append((harmless(text), look))
    return _joined(runs)


# -- Markdown: its marks become colours


def markdown_rows(text: str, room: int) -> list[Row]:
    """Rows that fit, without consecutive, leading or trailing empty ones."""
    drawn: list[Row] = []
    for line in _markdown_lines(text[:_MOST_MARKDOWN].split("\n"), min(room, WIDEST_PROSE), room):
        if line or (drawn and drawn[-1]):
            drawn.append(line)
    while drawn and not drawn[-1]:
        drawn.pop()
    return drawn


def inline_markdown(text: str, usual: Look = _TEXT_LOOK) -> Row:
    """Bold, italic, struck, code and links of one line."""
    text = harmless(text)
    runs: list[tuple[str, Look]] = []
    at = 0
    for mark in _INLINE.finditer(text):
        runs.append((text[at : mark.start()], usual))
        at = mark.end()
        if mark["code"]:
            runs.append((mark["inside"], replace(usual, fg="peach")))
        elif mark["bold"]:
            runs.append((mark["bold"].replace("`", ""), replace(usual, bold=True)))
        elif mark["italic"]:
            runs.append((mark["italic"], replace(usual, italic=True)))
        elif mark["strike"]:
            runs.append((mark["strike"], replace(usual, strike=True)))
        else:
            runs.append((mark["text"], replace(usual, fg="blue", underline=True)))
    runs.append((text[at:], usual))
    return row(*runs)


def _markdown_lines(lines: list[str], room: int, widest: int) -> Iterator[Row]:
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
                yield cut(row(("│ ", DIM), (harmless(line), _CODE_LOOK)), widest)
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
            yield from _markdown_line(line, room)


def _is_rule(line: str) -> bool:
    return len(line) < 1000 and _TABLE_RULE.fullmatch(line) is not None


def _markdown_line(line: str, room: int) -> Iterator[Row]:
    if heading := _HEADING.fullmatch(line):
        yield ()
        yield from wrap(inline_markdown(heading[1].rstrip(" #"), _HEADING_LOOK), room)
    elif _RULE.fullmatch(line):
        yield row(("─" * room, DIM))
    elif bullet := _BULLET.fullmatch(line):
        done = bullet[2] in ("x", "X")
        box = "• " if bullet[2] is None else "✓ " if done else "□ "
        yield from _hanging(bullet[1], box, bullet[3], room)
    elif numbered := _NUMBERED.fullmatch(line):
        yield from _hanging(numbered[1], numbered[2] + " ", numbered[3], room)
    elif quote := _QUOTE.fullmatch(line):
        bar = row(("│ ", DIM))
        yield from wrap((*bar, *inline_markdown(quote[1], Look("dim", italic=True))), room, bar)
    else:
        yield from wrap(inline_markdown(line.rstrip()), room)


def _hanging(lead: str, mark: str, text: str, room: int) -> Iterator[Row]:
    lead = lead.expandtabs(4)[: room // 3]
    indent = row((lead + " " * len(mark), _TEXT_LOOK))
    yield from wrap(
        (*row((lead, _TEXT_LOOK), (mark, _MARK_LOOK)), *inline_markdown(text)), room, indent
    )


def _table(lines: list[str], room: int) -> Iterator[Row]:
    """Columns as wide as their widest cell, if they fit."""
    cells = [[*map(inline_markdown, line.strip().strip("|").split("|"))] for line in lines]
    cells = [[_trimmed(cell) for cell in line] for line in cells]
    count = max(map(len, cells))
    widths = [
        max((width(line[n]) for line in cells if n < len(line)), default=0) for n in range(count)
    ]
    fair = max(6, (room - 3 * count) // count)
    if sum(widths) + 3 * count > room:
        widths = [min(size, fair) for size in widths]
    for number, line in enumerate(cells):
        runs: list[tuple[str, Look]] = []
        for n, cell in enumerate(line):
            shown = padded(cut(cell, widths[n]), widths[n], _TEXT_LOOK)
            runs += [
                *((text, replace(look, bold=True)) if number == 0 else (text, look)
                  for text, look in shown),
                (" │ " if n < count - 1 else "", DIM),
            ]  # fmt: skip
        yield cut(row(*runs), room)
        if number == 0:
            yield cut(row(("─┼─".join("─" * size for size in widths), DIM)), room)


def _trimmed(cell: Row) -> Row:
    """Without spaces at its ends."""
    if not cell:
        return cell
    (text, look), *others = cell
    *before, (end, last_look) = (text.lstrip(), look), *others
    return row(*before, (end.rstrip(), last_look))


def line_count(text: str) -> int:
    """The number of lines of a text, for counts of what is not shown."""
    return text.count("\n") + 1 if text else 0


def first_line(text: str, room: int) -> str:
    """The start of a text, on one line."""
    for line in text[: 4 * _MOST_MARKDOWN].split("\n"):
        if words := one_line(line):
            return layout.cut(words, room)
    return ""
