"""Text with escape sequences as a terminal would show it: runs of one style."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from sess_common.escape import CONTROL, END, FINAL, INSIDE, PARAMETERS, STRING


@dataclass(slots=True, frozen=True)
class Style:
    """A colour is None (the default), a palette index (0 to 255), or (red, green, blue)."""

    fg: int | tuple[int, int, int] | None = None
    bg: int | tuple[int, int, int] | None = None
    bold: bool = False
    dim: bool = False
    italic: bool = False
    underline: bool = False
    strike: bool = False
    inverse: bool = False


PLAIN = Style()

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# Colours, and movement within a line. All other control sequences are dropped.
_KEPT = CONTROL + r"([0-9;:]{0,100})([mKCDG])|(\x08)"
_SPLIT = re.compile(_KEPT)
_COLOURS = re.compile(CONTROL + r"([0-9;:]{0,100})m")
# Within each alternative no two pieces match the same character, so matching never backtracks.
# Truncated sequences are dropped, too.
_DROPPED = re.compile(
    r"(?:(?!" + re.sub(r"\((?!\?)", "(?:", _KEPT) + r")(?:"
    f"{CONTROL}{PARAMETERS}{FINAL}?|{STRING}{INSIDE}{END}?"
    r"|\x1b[ -/]*[0-Z\\`-~]?"
    r"|[\x00-\x07\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x8f\x91-\x97\x99\x9a\x9c]"
    r"))+"
)
_LONGEST_MOVE = 80  # columns; a short sequence must not expand to a long text
_FLAGS: dict[str, dict[str, bool]] = {
    "1": {"bold": True}, "2": {"dim": True}, "3": {"italic": True}, "4": {"underline": True},
    "7": {"inverse": True}, "9": {"strike": True}, "21": {"underline": True},
    "22": {"bold": False, "dim": False}, "23": {"italic": False}, "24": {"underline": False},
    "27": {"inverse": False}, "29": {"strike": False},
}  # fmt: skip


def plain(text: str) -> str:
    """The text without styles; the only control characters left are newline and tab."""
    text = text.replace("\r\n", "\n")
    if not _CONTROL.search(text):
        return text
    return "".join(piece for piece, _ in _pieces(_DROPPED.sub("", text)))


def runs(text: str) -> Iterator[tuple[str, Style]]:
    """Runs of one style, after overwriting and erasing."""
    text = text.replace("\r\n", "\n")
    if not _CONTROL.search(text):
        if text:
            yield text, PLAIN
        return
    pending: list[str] = []
    current = PLAIN
    for piece, style in _pieces(_DROPPED.sub("", text)):
        if style != current and pending:
            yield "".join(pending), current
            pending.clear()
        current = style
        pending.append(piece)
    if pending:
        yield "".join(pending), current


def _pieces(text: str) -> Iterator[tuple[str, Style]]:
    if not _CONTROL.search(_COLOURS.sub("", text)):  # the cursor only moves on
        yield from _coloured(text, PLAIN)
        return
    line = _Line(PLAIN)
    for number, whole in enumerate(text.split("\n")):
        if number:
            yield "\n", line.style
            line = _Line(line.style)
        yield from line.write(whole.rstrip("\r"))


def _coloured(text: str, style: Style) -> Iterator[tuple[str, Style]]:
    parts = _COLOURS.split(text)
    for at in range(0, len(parts), 2):
        if at:
            style = _styled(style, parts[at - 1])
        if parts[at]:
            yield parts[at], style


class _Line:
    """One line of cells and a cursor."""

    def __init__(self, style: Style) -> None:
        self.style = style
        self._cells: list[tuple[str, Style]] = []
        self._column = 0

    def write(self, line: str) -> Iterator[tuple[str, Style]]:
        """The cells of the line after all overwriting."""
        if not _CONTROL.search(line):
            if line:
                yield line, self.style
            return
        for number, stretch in enumerate(line.split("\r")):
            if number:
                self._column = 0
            parts = _SPLIT.split(stretch)
            for at in range(0, len(parts), 4):
                if at:
                    self._obey(parts[at - 3], parts[at - 2])
                if parts[at]:
                    self._put(parts[at])
        yield from self._cells

    def _put(self, text: str) -> None:
        missing = self._column - len(self._cells)
        if missing > 0:
            self._cells += [(" ", PLAIN)] * missing
        style = self.style
        end = self._column + len(text)
        self._cells[self._column : end] = [(character, style) for character in text]
        self._column = end

    def _obey(self, numbers: str | None, what: str | None) -> None:
        if what == "m":
            self.style = _styled(self.style, numbers or "")
        elif what is None:
            self._column = max(self._column - 1, 0)
        elif what == "K":
            self._erase(numbers or "0")
        else:
            count = int(numbers) if numbers and numbers.isdigit() and len(numbers) < 6 else 1
            furthest = len(self._cells) + _LONGEST_MOVE
            to = {"C": self._column + (count or 1), "D": self._column - (count or 1)}
            self._column = min(max(to.get(what, count - 1), 0), furthest)

    def _erase(self, which: str) -> None:
        if which == "0":
            del self._cells[self._column :]
        elif which == "2":
            # Programs that erase a whole line then rewrite it from the start.
            self._cells.clear()
            self._column = 0


@lru_cache(maxsize=4096)
def _styled(style: Style, numbers: str) -> Style:
    codes = numbers.split(";")
    at = 0
    while at < len(codes):
        code, _, rest = codes[at].partition(":")
        code = code.lstrip("0")
        at += 1
        if code in ("38", "48"):
            if rest:
                colour = _colour(rest.split(":"))
            else:
                taken = 4 if codes[at : at + 1] == ["2"] else 2
                colour = _colour(codes[at : at + taken])
                at += taken
            if colour is not None:
                fore = code == "38"
                style = replace(style, fg=colour) if fore else replace(style, bg=colour)
        elif not code:
            style = PLAIN
        elif code == "4" and rest == "0":
            style = replace(style, underline=False)
        elif code in _FLAGS:
            style = replace(style, **_FLAGS[code])
        elif len(code) < 4 and code.isdigit():
            style = _ground(style, int(code))
    return style


def _ground(style: Style, code: int) -> Style:
    """One of the sixteen colours, or back to the default."""
    match code // 10, code % 10:
        case (3 | 4 | 9 | 10) as tens, ones if ones < 8:
            colour = ones + (8 if tens > 4 else 0)
            return replace(style, fg=colour) if tens in (3, 9) else replace(style, bg=colour)
        case 3, 9:
            return replace(style, fg=None)
        case 4, 9:
            return replace(style, bg=None)
    return style


def _colour(given: list[str]) -> int | tuple[int, int, int] | None:
    """`5, n` or `2, r, g, b`; in the colon form, a colour space may precede the red."""
    numbers = [int(code) if code.isdigit() and len(code) < 4 else 0 for code in given]
    if len(numbers) >= 2 and numbers[0] == 5 and numbers[1] < 256:
        return numbers[1]
    if len(numbers) >= 4 and numbers[0] == 2:
        red, green, blue = numbers[2:5] if len(numbers) > 4 else numbers[1:4]
        if max(red, green, blue) < 256:
            return red, green, blue
    return None
