"""The last rule, which knows no forms: near a name that means a secret, what looks like one is masked.

It applies where no other rule found something. What has a name of its own that means something else is
spared (`commit 3f2a...`, `user_id=...`), and in code whatever is no literal, unless it is random beyond doubt.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sess_redaction import casts, links, looks, nearby, runs
from sess_redaction.casts import Cast
from sess_redaction.extents import MASK, Span
from sess_redaction.runs import Run

Found = tuple[int, int, str]

# How much must speak for a secret: right at a name, in its neighbourhood, and where there is doubt.
_POINTED, _NEAR, _DOUBTFUL = 3, 6, 12
# What is assigned to a name without a blank, other rules have judged; with other signs it is part of a path or the like.
_GLUED_AFTER = re.compile(r"[\"'`\])]{0,2}(?:[:=][^\s>:=]|[/\\}@%]|\.(?!\w+\())\S*")
_GLUED_BEFORE = re.compile(r"[^\s|,;]+\Z")
_OF_HASHES = re.compile(
    r"(?i:commit|hash|sha-?\d|digest|checksum|integrity|md5|etag|fingerprint|revision|\bgit\b|merge|rebase|cherry|\bid\b)"
)
_CODE = re.compile(
    r"[\w\])]\(|[{};,(\[]\s*\Z|^\s*(?:def|return|if|elif|for|while|import|from|class|const|let|var|fn|func|function|public"
    r"|private|protected|static|struct|impl|async|await|@\w)\b|[=!]=|(?<!-)->|=>|::|^\s*(?:\w+ )?[\w.$\[\]\"']+ [-+|&:]?= |\w\[\w|\.\w+\.\w|</?\w+"
)


class _Region(NamedTuple):
    cast: Cast
    span: Span
    line: Span  # that it is part of
    members: bool  # only a member with a general name is looked for


def find(text: str, places: Iterable[int], found: list[Found]) -> list[Found]:
    """`places` are those of words that may end a name; `found` is what other rules did."""
    taken = sorted({(begin, end) for begin, end, _ in found} | _masks(text))
    named = (casts.at(text, place) for place in places)
    every = [one for one in named if one and not _overlap((one.begin, one.end), taken)]
    caught: list[Found] = []
    for strong in (True, False):
        for region in _regions(text, [one for one in every if one.strong is strong]):
            spans = (span for span in _caught(text, region) if not _overlap(span, taken))
            caught += ((*span, region.cast.kind) for span in spans)
    return caught


def _masks(text: str) -> set[Span]:
    return {mask.span() for mask in MASK.finditer(text)} if "[redacted: " in text else set()


def _regions(text: str, level: list[Cast]) -> Iterator[_Region]:
    """Where to look for the value of each name; what is between two names belongs to both, and to no other."""
    seen: set[Span] = set()
    before = 0
    for number, cast in enumerate(level):
        after = level[number + 1].begin if number + 1 < len(level) else len(text)
        line = nearby.line(text, cast.begin, cast.end)
        begin = max(line[0], before)
        glued = _GLUED_BEFORE.search(text, begin, cast.begin)
        yield _Region(cast, (begin, glued.start() if glued else cast.begin), line, members=False)
        glued = _GLUED_AFTER.match(text, cast.end, line[1])
        begin = glued.end() if glued else cast.end
        yield _Region(cast, (begin, min(line[1], after)), line, members=False)
        before = cast.end
        further = nearby.following(text, cast.end, line[1])
        if cast.strong:
            further += nearby.cells_below(text, cast.begin, cast.end)
            for span in nearby.siblings(text, cast.begin, cast.end):
                yield _Region(cast, span, span, members=True)
        for span in further:
            if span not in seen:
                seen.add(span)
                yield _Region(cast, span, span, members=False)


def _caught(text: str, region: _Region) -> Iterator[Span]:
    cast = region.cast
    for run in runs.within(text, *region.span):
        said = text[run.begin : run.end]
        evidence = looks.evidence(said)
        if evidence < _POINTED and cast.strong and looks.is_chosen(said):
            evidence = _POINTED
        if evidence < (_POINTED if cast.strong else _DOUBTFUL):
            continue
        if region.members and not links.has_general_name(text, run.begin):
            continue
        if evidence < _least(text, region, run):
            continue
        if looks.is_hash(said) and _OF_HASHES.search(text, *region.line):
            continue
        if not links.has_other_name(text, run.begin, (cast.begin, cast.end)):
            yield run.begin, run.end


def _least(text: str, region: _Region, run: Run) -> int:
    """The evidence that a run needs at its place."""
    cast = region.cast
    if not cast.strong or (not run.quoted and _is_code(text, region.line, run.begin)):
        return _DOUBTFUL
    name, span = (cast.begin, cast.end), (run.begin, run.end)
    pointed = region.members or links.is_pointed_at(text, name, region.line, span)
    return _POINTED if pointed else _NEAR


def _is_code(text: str, line: Span, at: int) -> bool:
    """Not inside a string of it."""
    said = text[slice(*line)]
    before = text[line[0] : at]
    return _CODE.search(said) is not None and not (before.count('"') % 2 or before.count("'") % 2)


def _overlap(span: Span, taken: list[Span]) -> bool:
    before = bisect_left(taken, (span[1],)) - 1
    return before >= 0 and taken[before][1] > span[0]
