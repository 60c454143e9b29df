"""How far a value extends, whatever its characters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from sess_redaction.names import reads_as_words

Span = tuple[int, int]
Secret = tuple[int, int, str]  # begin, end, kind
Secrets = Iterator[Secret]

MASK = re.compile(r"\[redacted: [A-Za-z ]{1,30}\]")

_QUOTE = re.compile(r"\\*[\"'`]")
_TRIPLE = re.compile(r"\\{0,3}(\"\"\"|''')")
_RAW = re.compile(r"r(#{1,3})\"")  # of Rust
# A shell writes a blank inside a word with a backslash.
_BLANK = re.compile(r"(?<!\\) |[^\S ]|\x1b")
# What may follow the quote that ends a value; anything else belongs to the same word.
_AFTER_QUOTE = re.compile(r"\Z|[\s\x1b,;:)\]}>/&|.+*\\<]")
_AFTER_TICK = re.compile(_AFTER_QUOTE.pattern + r"|[\"'?!]")
_OTHER_CLOSES = re.compile(r"\\*[\"'`](?:\Z|[\s,;:)\]}])")  # in which it is
_AFTER_WORD = re.compile(r"\Z|[\s\x1b;&|)\]},\\]")
# A quote inside quotes, after the first of its signs: `''`, `'"'"'`, `'\\''`.
_GOES_ON = re.compile(r"\"'\"'|'\"'\"|\\''|'|\"")
# The quote ends a string of JSON in which the value is.
_GOES_ON_AROUND = re.compile(r"\"(?:,[ ]?\"[\w-]{1,40}\":|[}\]]{0,4}\s*\Z)")
_JUST_OPENED = re.compile(r"[ (\[{,=:](\\*[\"'`])\Z")
_WORD_GOES_ON = re.compile(r"'\\''|'\"'\"'|\"'\"'\"")
_TICKED = re.compile(r"(?<!`)(?:``)*`\Z")
_LINE_END = re.compile(r"[\r\n]")
# An escaped line break ends a value only before what looks like a new line: `\n` may be part of it.
_ESCAPED_BREAK = re.compile(
    r"\\{1,8}(?:r\\{1,8})?n(?=\\+[nrtu\"']|\Z|[\"'](?:\Z|[\s,;:)\]}\\\"'])|[+-]?[ \t]*(?:export )?([A-Za-z_][\w.-]{1,60})\\*[\"']?[ \t]*[=:]|-----|[$%#>] )"
)
_CLOSING_TAG = re.compile(r"</[A-Za-z][\w:.-]{0,60}>")
_BEFORE = 400  # characters of the line that are looked through for an open quote
_HEREDOC = re.compile(
    r"<<[-~]?[ \t]*\\{0,3}[\"']?([A-Za-z_]\w{0,40})\\{0,3}[\"']?(?=[\s);])[^\n]{0,200}\n"
)
_BLOCK = re.compile(r"[|>][-+]?\d?[ \t]*(?:#[^\n]*)?\r?\n")
# Before a line in the output of `cat -n`, `grep -n` and `diff`.
_MARGIN = re.compile(r"(?:[ \t]{0,8}\d{1,6}(?:→|\t|:|[ ]?\|[ ]?)|[+-](?![+-]{2}))?")
_SEQUENCE_END = re.compile(r"(?:\x1b\[[0-9;]*m|\\[nrt])\Z")
_NEAR = 2_048  # characters in which a sign that ends a value is looked for
_MOST_QUOTES = 40  # of a value


class Extent(NamedTuple):
    begin: int
    end: int
    quoted: bool


class Extents:
    """Remembers where runs end, so that a text of many names is read once."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._runs: dict[str, Span] = {}  # by kind of end: the last run
        self._looked: tuple[int, str | None] = (-1, None)  # the last place, and the quote around it

    def value(
        self, at: int, *, name: int, stops: str = "", plain: bool = False, shell: bool = False
    ) -> Extent:
        """The value that begins at `at` and whose name begins at `name`.

        `stops`: characters that end it besides white space. `plain`: a quote is part of it.
        `shell`: what follows its quote without a blank belongs to the same word.
        """
        text = self.text
        triple = _TRIPLE.match(text, at)
        if triple is not None:
            end = text.find(triple[1], triple.end())
            if end >= 0:
                return Extent(triple.end(), end, quoted=True)
        raw = _RAW.match(text, at)
        if raw is not None:
            end = text.find(f'"{raw[1]}', raw.end(), self.line_end(at))
            if end >= 0:
                return Extent(raw.end(), end, quoted=True)
        quote = None if plain else _QUOTE.match(text, at)
        if quote is not None and not self._is_lone(quote) and not self._is_literal(quote, name):
            return self._in_quotes(quote, _AFTER_WORD if shell else _AFTER_QUOTE)
        return Extent(at, self._unquoted(at, name, stops), quoted=False)

    def _is_lone(self, quote: re.Match[str]) -> bool:
        if quote[0][-1] != "`":
            return False
        end = self._closing(quote.end(), len(quote[0]) - 1, "`")
        return end is None or _AFTER_TICK.match(self.text, end + len(quote[0])) is None

    def _is_literal(self, quote: re.Match[str], name: int) -> bool:
        """A quote that a shell takes as it is, by a backslash: `--password \\"a`."""
        return (
            len(quote[0]) > 1
            and self.text[name - 1 : name] not in ("'", '"', "\\")
            and self._open_quote(name) is None
        )

    def beyond_ticks(self, value: Extent) -> Extent:
        """PowerShell writes a quote inside quotes with a tick before it."""
        end: int | None = value.end
        mark = self.text[value.begin - 1]
        last = value.end
        for _ in range(_MOST_QUOTES):
            if end is None or mark != '"' or not _TICKED.search(self.text, value.begin, end):
                break
            last = end
            end = self._closing(end + 1, 0, mark)
        return value._replace(end=last if end is None else end)

    def several_lines(self, at: int) -> Span | None:
        """The lines of a here-document or of a YAML block that begins at `at`."""
        found = _HEREDOC.match(self.text, at)
        if found is not None:
            end = re.compile(rf"^.{{0,12}}?{found[1]}\b", re.MULTILINE).search(
                self.text, found.end()
            )
            if end is not None or found[1].isupper():
                return found.end(), end.start() if end else len(self.text)
        found = _BLOCK.match(self.text, at)
        return self._block(at, found.end()) if found is not None else None

    def opens_quote(self, at: int) -> bool:
        """Whether a quote begins right before this place: the value reaches to its end."""
        return self.text[at - 1 : at] in ("'", '"', "`") and self._open_quote(at) is not None

    def rest(self, at: int, name: int) -> int:
        """The end of the line, or of the quote in which it is."""
        line = self.line_end(at)
        opened = self._open_quote(name)
        closing = self._end_of_word(at, opened) if opened else None
        end = line if closing is None else min(line, closing)
        for broken in _ESCAPED_BREAK.finditer(self.text, at, end):
            if not broken[1] or reads_as_words(broken[1]):
                return broken.start()
        return end

    def _end_of_word(self, at: int, opened: str) -> int | None:
        """Where the quote is closed, and not only to write a quote."""
        depth = len(opened) - 1
        closing = self._closing(at, depth, opened[-1])
        while closing is not None and (again := _WORD_GOES_ON.match(self.text, closing + depth)):
            closing = self._closing(again.end(), depth, opened[-1])
        return closing

    def line_end(self, at: int) -> int:
        return self._run("line", _LINE_END, at)

    def _block(self, at: int, first: int) -> Span | None:
        """The lines that are further to the right than the one with the name."""
        text = self.text
        start = text.rfind("\n", 0, at) + 1
        margin = _MARGIN.match(text, start)
        numbered = margin is not None and margin.end() > start
        above = _indent(text, margin.end() if margin else start)
        end = first
        while end < len(text):
            stop = text.find("\n", end)
            stop = len(text) if stop < 0 else stop
            inner = _MARGIN.match(text, end, stop) if numbered else None
            begin = inner.end() if inner else end
            if text[begin:stop].strip() and _indent(text, begin) <= above:
                break
            end = min(stop + 1, len(text))
        while end > first and text[end - 1] in "\r\n":
            end -= 1
        return (first, end) if end > first else None

    def _in_quotes(self, quote: re.Match[str], after_it: re.Pattern[str]) -> Extent:
        text, begin = self.text, quote.end()
        depth, mark = len(quote[0]) - 1, quote[0][-1]
        end = self._closing(begin, depth, mark)
        line = self.line_end(begin)
        for _ in range(_MOST_QUOTES):
            if end is None or end >= line:
                break
            after = end + depth + 1
            again = _GOES_ON.match(text, after)
            if again is not None and again[0].strip("\"'\\") == "" and again[0][-1] == mark:
                further = self._closing(again.end(), depth, mark)
                if len(again[0]) == 1 and (further is None or _GOES_ON_AROUND.match(text, after)):
                    return Extent(begin, end, quoted=True)  # of what is around it
                end = further
                continue
            if mark == "`" or after_it.match(text, after):
                return Extent(begin, end, quoted=True)
            # `'it''s'`, `'don'"'"'t'`: the word goes on.
            further = self._closing(after, depth, mark)
            if further is None or further >= line:
                stop = self._run("blank", _BLANK, after)
                return Extent(begin, max(stop, after), quoted=True)
            end = further
        return Extent(begin, line, quoted=True)

    def _closing(self, begin: int, depth: int, mark: str) -> int | None:
        """Where the next quote with so many backslashes before it is, the first of these."""
        text, at = self.text, begin
        line = self.line_end(begin)
        escaped = None
        while True:
            found = text.find(mark, at, line)
            if found < 0:
                return escaped
            if mark == "'" and text.startswith("\"'\"'", found + 1):
                at = found + 5
                continue
            shell = depth == 0 and mark == "'" and text.startswith("\\''", found + 1)
            if shell and text.find(mark, found + 4, line) >= 0:
                at = found + 4
                continue
            slashes = found
            while slashes > begin and text[slashes - 1] == "\\":
                slashes -= 1
            count = found - slashes
            doubled = depth == 0 and count and mark == "'" and text[found + 1 : found + 2] == "'"
            if doubled and not _AFTER_WORD.match(text, found + 2):
                at = found + 2  # `'\\''` and `\\''`: the value goes on in any language
                continue
            if count % (2 * (depth + 1)) == depth:
                return found - depth
            if escaped is None and depth == 0 and _AFTER_WORD.match(text, found + 1):
                escaped = found  # where backslashes mean nothing: 'C:\'
            at = found + 1

    def _unquoted(self, at: int, name: int, stops: str) -> int:
        whole = self._run("blank", _BLANK, at)
        end = self._ended(at, min(whole, at + _NEAR), name, stops)
        return whole if end == at + _NEAR else end

    def _ended(self, at: int, end: int, name: int, stops: str) -> int:
        """Where it ends before the next white space, if it does."""
        text = self.text
        masked = text.rfind("[redacted: ", at, end + 1) if text[end : end + 1] == " " else -1
        while masked >= 0 and (mask := MASK.match(text, masked)) is not None:
            end = self._run("blank", _BLANK, mask.end())
            masked = text.rfind("[redacted: ", mask.end(), end + 1)
        for stop in stops:
            found = text.find(stop, at, end)
            end = found if found >= 0 else end
        opened = self._open_quote(name)
        if opened is not None:
            closing = self._end_of_word(at, opened)
            if closing is not None and closing < end:
                after = closing + len(opened)
                if _AFTER_QUOTE.match(text, after) or _OTHER_CLOSES.match(text, after):
                    end = closing
        if "\\" in text[at:end]:
            for broken in _ESCAPED_BREAK.finditer(text, at, end + 60):
                if broken.start() < end and (not broken[1] or reads_as_words(broken[1])):
                    end = broken.start()
                    break
        if "</" in text[at:end] and "<" in text[max(name - _BEFORE, 0) : name]:
            tag = _CLOSING_TAG.search(text, at, end + 60)
            end = tag.start() if tag is not None and tag.start() < end else end
        return end

    def _open_quote(self, at: int) -> str | None:
        """The quote, with its backslashes, in which this place of the line is."""
        text = self.text
        just = _JUST_OPENED.search(text, max(at - 6, 0), at)
        if just is not None:
            return just[1]
        start = max(text.rfind("\n", max(at - _BEFORE, 0), at) + 1, at - _BEFORE)
        opened: str | None = None
        first = start
        if start <= self._looked[0] <= at:
            first, opened = self._looked  # a long line is looked through once
        for found in _QUOTE.finditer(text, first, at):
            if found.start() > 0 and text[found.start() - 1] == "\\":
                continue
            if opened is None:
                before = text[found.start() - 1 : found.start()] if found.start() > start else ""
                if not before.isalnum():  # an apostrophe
                    opened = found[0]
            elif opened == found[0]:
                opened = None
        self._looked = at, opened
        return opened

    def _run(self, kind: str, ends: re.Pattern[str], at: int) -> int:
        known = self._runs.get(kind)
        if known is not None and known[0] <= at <= known[1]:
            return known[1]
        found = ends.search(self.text, at)
        end = found.start() if found else len(self.text)
        self._runs[kind] = (at, end)
        return end


def ends_sequence(text: str, at: int) -> bool:
    """After a colour or an escaped line break, whose last letter does not belong to what follows."""
    return _SEQUENCE_END.search(text, max(at - 24, 0), at) is not None


def _indent(text: str, at: int) -> int:
    end = at
    while text[end : end + 1] in (" ", "\t"):
        end += 1
    return end - at
