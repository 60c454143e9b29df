"""Names apart from their values: the head of a column or block, another member, a command before its output."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sess_redaction import names, values
from sess_redaction.extents import Extents, Secrets, Span
from sess_redaction.names import reads_as_words

_RULE = re.compile(r"[ \t]*[|├┝╞┡]?[ \t:+|─━═┼╪╇-]*[-─━═]{2,}[ \t:+|─━═┼╪╇-]*[┤┥╡┩]?[ \t]*\Z")
_CSV_HEAD = re.compile(r"[\w.-]+(?:,[\w. -]+)+\Z", re.ASCII)
_TABBED_HEAD = re.compile(r"[\w.-]+(?:\t[\w. -]+)+\Z", re.ASCII)
_CSV_CELL = re.compile(r"\"((?:[^\"]|\"\")*)\"|[^,\r\n]*")
_CELL = re.compile(r"[^|│┃]*")
_TABBED_CELL = re.compile(r"[^\t\r\n]*")
_BAR = re.compile(r"[|│┃]")
_COMMA = re.compile(",")
_TAB = re.compile("\t")
_MOST_ROWS = 200
_LEAST = 4  # characters of a value in a manifest
_MOST_QUOTES = 8
_LONGEST_ROW = 4_000  # characters
_INSERT = re.compile(r"\(([^()]{1,1000})\)\s{0,20}(?i:values)\s{0,20}")
_ROW = re.compile(r",?\s{0,20}\(")
_MEMBER = re.compile(r"[ \t]{1,20}[\w.-]{1,100}:[ \t]{1,8}(?=[^\s|>])")
_MEMBERS = re.compile(r"^[ \t]{0,20}(?:data|stringData):[ \t]*\r?\n", re.MULTILINE)
_MANIFEST = 20_000  # characters
_NEXT_MANIFEST = ("\n---", "\nkind: ")


def last_column(text: str, match: re.Match[str], _extents: Extents) -> Secrets:
    yield from column(text, match.start(1), match[1])


def column(text: str, named: int, name: str) -> Secrets:
    """`| user | password |` or `user,password`: the same cell of each row below."""
    start = text.rfind("\n", max(named - _LONGEST_ROW, 0), named) + 1
    stop = _line_end(text, named)
    if stop - start > _LONGEST_ROW:
        return
    begun = max(text.rfind(quote, start, named) + 1 for quote in "\"'")
    quote = text[begun - 1] if begun > start else ""
    start = max(start, begun)
    head = text[start:stop]
    at = named - start
    if _BAR.search(head) is not None:
        bar, cells = _BAR, _CELL
        rule = _line_end(text, stop + 1)
        if not _RULE.match(text, stop + 1, rule - (text[rule - 1] == "\r")):
            return
        stop = rule
    elif _CSV_HEAD.match(head.strip()):
        bar, cells = _COMMA, _CSV_CELL
    elif _TABBED_HEAD.match(head.strip()):
        bar, cells = _TAB, _TABBED_CELL
    else:
        return
    number, count = len(bar.findall(head, 0, at)), len(bar.findall(head))
    for _ in range(_MOST_ROWS):
        begin, stop = stop + 1, _line_end(text, stop + 1)
        if begin >= len(text) or stop - begin > _LONGEST_ROW:
            return
        spans = _row(text, begin, stop, cells, count=count + 1, quote=quote)
        if spans is None:
            return
        first, last = spans[number]
        said = text[first:last].strip(" \t\r`")
        if names.means_secret(said) and reads_as_words(said) and not said[-1].isdigit():
            return  # another head
        if said and values.quoted(name, said):
            first = text.index(said, first)
            yield first, first + len(said), names.kind_of(name)


def _row(
    text: str, begin: int, end: int, cells: re.Pattern[str], *, count: int, quote: str
) -> list[tuple[int, int]] | None:
    """The cells of a row that has as many as the head; it may end with the quote around the table."""
    end -= text[end - 1] == "\r"
    for _ in range(_MOST_QUOTES):
        spans = [*_cells(text, begin, end, cells)]
        if len(spans) == count:
            return spans
        end = text.rfind(quote, begin, end) if quote else -1
        if end < 0:
            return None
    return None


def _cells(text: str, begin: int, end: int, cell: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    while begin <= end:
        match = cell.match(text, begin, end)
        if match is None:
            return
        yield match.span(1) if cell is _CSV_CELL and match[1] is not None else match.span()
        begin = match.end() + 1


def inserted(text: str, match: re.Match[str], extents: Extents) -> Secrets:
    """`INSERT INTO users (name, password) VALUES ('bob', '...')`."""
    columns = _INSERT.search(text, match.end(), match.end() + 200)
    if columns is None:
        return
    named = [one.strip(" \t\r\n`\"[]\\'") for one in columns[1].split(",")]
    if not any(map(names.means_secret, named)):
        return
    row = _ROW.match(text, columns.end())
    for _ in range(_MOST_ROWS):
        if row is None:
            return
        at = row.end()
        for name in named:
            while text[at : at + 1].isspace():
                at += 1
            value = extents.value(at, name=at, stops=",)")
            said = text[value.begin : value.end]
            if names.means_secret(name) and (values.quoted(name, said) if value.quoted else False):
                yield value.begin, value.end, names.kind_of(name)
            quote = value.begin - at
            at = value.end + quote
            if text[at : at + 1] != ",":
                break
            at += 1
        row = _ROW.match(text, at + 1)


def manifest(text: str, match: re.Match[str], extents: Extents) -> Secrets:
    """Every member of `data` and `stringData` in a Kubernetes secret."""
    begin = max(match.start() - _MANIFEST, 0)
    end = min(match.end() + _MANIFEST, len(text))
    begin = max(begin, *(text.rfind(mark, begin, match.start()) for mark in _NEXT_MANIFEST))
    ends = (text.find(mark, match.end(), end) for mark in _NEXT_MANIFEST)
    end = min((one for one in ends if one >= 0), default=end)
    for block in _MEMBERS.finditer(text, begin, end):
        at = block.end()
        while at < end and text[at : at + 1] in (" ", "\t"):
            stop = _line_end(text, at)
            member = _MEMBER.match(text, at, stop)
            if member is not None:
                value = extents.value(member.end(), name=at)
                last = value.end if value.quoted else stop
                said = text[value.begin : last].rstrip()
                if len(said) >= _LEAST and not values.is_placeholder(said):
                    yield value.begin, value.begin + len(said), "secret"
            at = stop + 1


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


# -- two members, `{"value": "...", "name": "DB_PASSWORD"}`; `$ printenv TOKEN` and its output

SIGN = rf"(?i:name|key|variable)[\\\"']*[ \t]*(?:=>|[:=])[ \t]*[\\\"']*[\w./-]*(?i:{names.WORDS})"
NAMED = (
    r"(?i:name|key|variable)[\\\"']{0,6}[ \t]{0,4}(?:=>|[:=])[ \t]{0,4}[\\\"']{0,4}"
    rf"([\w./-]{{0,60}}?(?i:(?:{names.WORDS})(?:{names.TAIL})?))(?![\w-])"
)
PRINTS = rf"(?:printenv |echo [\"']?\$[{{]?)\w*(?i:{names.WORDS})"
PRINTED = (
    rf"(?:printenv |echo [\"']?\$\{{?)(\w{{0,60}}?(?i:(?:{names.WORDS})(?:{names.TAIL})?))"
    r"[}\"']{0,2}[ \t]*\r?\n[ \t]{0,8}(\S)"
)
# Other members may be between the two, but no other object or item.
_WITHIN = r"(?:(?![{}<>]|\n[ \t]{0,40}- )[\s\S])"
_VALUE_MEMBER = r"(?<![^\W_])\w{0,20}?(?i:value)\\{0,3}[\"']?[ \t]{0,4}(?:=>|[:=])[ \t]{0,4}"
_AFTER = re.compile(rf"(?=[\\\"', \t\r\n]){_WITHIN}{{0,160}}?{_VALUE_MEMBER}(?=\S)")
_BEFORE = re.compile(rf"{_VALUE_MEMBER}(?=\S)")
_BETWEEN = re.compile(rf"(?=[\\\"', \t\r\n}}]){_WITHIN}{{0,160}}\Z")
_FLOW = re.compile(r"\{[^{}\n]*\Z")
_ENDS = re.compile(r"[ \t]*(?:[\r\n]|\Z|\\{0,3}[\"'`])")
_NEAR = 600  # characters before the name
_MOST_VALUES = 4


def find_pair(text: str, match: re.Match[str], extents: Extents) -> Secrets:
    """`match` has the member that gives the name; the value is after or before it."""
    name = match[1]
    if not names.means_secret(name):
        return
    after = _AFTER.match(text, match.end())
    if after is not None:
        spans = [_member_value(text, after.end(), name, extents)]
    else:
        near = max(match.start() - _NEAR, 0)
        starts = [one.end() for one in _BEFORE.finditer(text, near, match.start())]
        spans = [
            _value_before(text, at, match.start(), name, extents) for at in starts[-_MOST_VALUES:]
        ]
    weak = names.is_weak(name)
    for span in spans:
        if span is not None and (not weak or values.is_surely(name, text[slice(*span)])):
            yield *span, names.kind_of(name)


def _value_before(text: str, at: int, named: int, name: str, extents: Extents) -> Span | None:
    span = _member_value(text, at, name, extents)
    if span is None or span[1] > named or _BETWEEN.match(text, span[1], named) is None:
        return None
    return span


def _member_value(text: str, at: int, name: str, extents: Extents) -> Span | None:
    in_braces = _FLOW.search(text, max(at - _NEAR, 0), at) is not None
    value = extents.value(at, name=at, stops=",}" if in_braces else "")
    said = (
        text[value.begin : value.end].rstrip(",")
        if not value.quoted
        else text[value.begin : value.end]
    )
    secret = values.quoted(name, said) if value.quoted else values.is_said(name, said)
    return (value.begin, value.begin + len(said)) if secret else None


def printed(text: str, match: re.Match[str], extents: Extents) -> Secrets:
    """The line below a command that shows a variable."""
    begin = match.start(2)
    end = extents.value(begin, name=match.start(), plain=True).end
    said = text[begin:end]
    alone = _ENDS.match(text, end) is not None
    if names.means_secret(match[1]) and alone and values.is_said(match[1], said):
        yield begin, end, names.kind_of(match[1])
