"""Values that a sentence or a table gives to a name: "the password is ...", `| TOKEN | ... |`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sess_redaction import blanks, literals, names, values
from sess_redaction.extents import Extents, Span

_SAID = re.compile(
    r"[\"'`*]{0,3}(?: (?:is|ist|est|es):? | (?:from|to) (?=[\"'`])| \([a-z ]{0,20}[:=]? ?(?=[\"'`])| (?=`)|[ \t]{0,8}[|│┃][ \t]{1,8}|[ \t]{1,8}\|)(?=\S)"
)
# `password for bob: ...`, "the password was changed to ..."
_FOR = re.compile(
    r"(?i:(?: (?:is|was|has|been|generated|created|set)){0,4} for) [^\s:]{1,80}: (?=[^\s\"'`])"
    r"|(?: (?:is|was|has been))?(?: (?:set|changed|reset|updated|rotated))? (?:from|to) (?=[^\s\"'`$])"
    r"| has the value (?=[^\s\"'`$])| (?:you|we|I) [a-z]{2,12}(?: [a-z]{2,8})?: (?=[^\s\"'`$])| [-–—] (?=[^\s\"'`$]{6})(?!\d+[\])])"
)
_FIRST_CELL = re.compile(r"^[ \t]*[|│┃][ \t`*\"']{0,6}\Z", re.MULTILINE)
_BAR = re.compile(r"[|│┃]")
_IS_VERB = re.compile(r"(?i:pass)\Z")
_WORD = re.compile(r" ([^\s\"'`]+)")
_INDENT = re.compile(r"(?:^|(?<=\n)|(?<=\\n)|(?<=[\"']))[ \t]{0,8}\Z")
_COLUMN = re.compile(r",(?=[^\s,])")
_ENVIRONMENT = re.compile(r"[A-Z][A-Z0-9_.]*(?:(?<=TF_VAR_)\w+)?\Z")
_AS_USER = re.compile(
    r"(?:s?[:=]|s? are) {0,2}([\w.@+-]{1,60})(?: ?/ ?|:)(?=\S)"
)  # `credentials: admin / ...`


# On a line of its own, in a block or not.
_FENCED = re.compile(
    r"[:*]{0,3}[ \t]{0,4}\r?\n(?:[ \t]*\r?\n)?[ \t]{0,12}"
    r"(?:```[\w-]{0,20}[ \t]*\r?\n[ \t]{0,8}(?=\S+[ \t]*\r?\n[ \t]*```)|(?=`[^`\n]+`[ \t]*(?:[\r\n]|\Z)))"
)
_ASIDE = re.compile(r"(?:[ \t]{2,40}|\t)(?=\S)")
_LAST = re.compile(r"[ \t]*(?:[\r\n]|\Z|\\{0,3}[\"'`])")


def fenced(text: str, end: int, name: str, extents: Extents) -> Span | None:
    """The only word of a block of code, or a line in ticks, below the name that ends at `end`."""
    found = _FENCED.match(text, end)
    if found is None:
        return None
    value = extents.value(found.end(), name=found.end(), plain="```" in found[0])
    said = text[value.begin : value.end]
    return (value.begin, value.end) if values.loud(name, said) else None


def find(text: str, start: int, end: int, name: str, extents: Extents) -> Iterator[Span]:
    """The name is at `start`, and ends at `end`."""
    found = _FOR.match(text, end)
    if found is not None:
        value = extents.value(found.end(), name=start)
        said = text[value.begin : value.end].rstrip(".,;:!?)")
        variable = said.isalpha() and said.isupper()
        if not variable and not _IS_VERB.match(name) and values.is_said(name, said):
            yield value.begin, value.end
        return
    found = _SAID.match(text, end)
    if found is not None:
        yield from _said(text, start, found, name, extents)
        return
    found = _COLUMN.match(text, end)
    if (
        found is not None
        and _ENVIRONMENT.match(name)
        and _INDENT.search(text, max(start - 10, 0), start)
    ):
        value = extents.value(found.end(), name=start)
        end = value.end if value.quoted else extents.rest(value.begin, start)
        if values.loud(name, text[value.begin : end]):
            yield value.begin, end
        return
    found = _ASIDE.match(text, end)
    if found is not None and _INDENT.search(text, max(start - 10, 0), start):
        value = extents.value(found.end(), name=start)
        last = _LAST.match(text, value.end) is not None
        if last and values.is_said(name, text[value.begin : value.end]):
            yield value.begin, value.end
        return
    found = _WORD.match(text, end)
    if found is not None and not _IS_VERB.match(name) and values.is_random(found[1]):
        value = extents.value(found.start(1), name=start)
        yield value.begin, value.end


def _said(
    text: str, start: int, found: re.Match[str], name: str, extents: Extents
) -> Iterator[Span]:
    in_table = _BAR.search(found[0]) is not None
    if _IS_VERB.match(name) and not in_table:
        return
    value = extents.value(found.end(), name=start)
    if value.quoted:
        whole = blanks.beyond_quotes(text, value, found.end(), start, extents)
        if whole is not None:
            yield found.end(), whole
        elif values.is_said(name, text[value.begin : value.end]):
            yield value.begin, value.end
        yield from literals.changed(text, value.end, name, extents)
        return
    end = extents.rest(value.begin, start)
    cell = _BAR.search(text, value.begin, end) if in_table else None
    whole = blanks.end_of(text, value.begin, cell.start() if cell else end)
    if whole is not None:
        yield value.begin, whole
        return
    said = text[value.begin : value.end].rstrip(",;:")
    if values.bare(name, said, alone=False, literal=True) or (
        in_table and _FIRST_CELL.search(text, max(start - 12, 0), start) and values.loud(name, said)
    ):
        yield value.begin, value.end


def credentials(text: str, at: int, start: int, name: str, extents: Extents) -> Span | None:
    """`credentials: admin / ...`."""
    user = _AS_USER.match(text, at) if names.kind_of(name) == "credential" else None
    if user is None:
        return None
    said = user[1]
    if " " not in user[0].rstrip()[-3:] and not values.reads_as_words(said):
        return None  # a slash in the value
    value = extents.value(user.end(), name=start)
    said = text[value.begin : value.end]
    return (value.begin, value.end) if values.bare(name, said, alone=False) else None
