"""The last rule, which knows no forms: near a name that means a secret, what looks like one is masked.

It applies where no other rule found something. What has a name of its own that means something else is
spared (`commit 3f2a...`, `user_id=...`), and in code whatever is no literal, unless it is random beyond doubt.

A name is strong if it means a secret in any sentence (`password`, `apiKey`). It is faint if it is as often an
ordinary word (`token`, `secret`): near it only what is random beyond doubt is taken for one. Names of counts,
working directories and fields that only begin like one cast no net: `max_tokens`, `PWD`, `password_length`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sess_redaction import looks, names
from sess_redaction.extents import MASK, Secret, Span
from sess_redaction.looks import Run
from sess_redaction.names import without_terms

# -- names near which the net is cast

_LOGIN = "(?i:(?:log(?:ged|ging)?|sign(?:ed|ing)?)[ -]?in (?:with|using|as) )"
_SEVERAL = "pass(?:word|phrase|code)s|(?:api|access|secret|private)[ ._-]?keys"
_WORDS = rf"(?i:{_SEVERAL}|(?:{names.WORDS})(?:{names.TAIL})?)"
# For RE2: a word that means a secret and ends there.
SCREEN = rf"{_WORDS}(?:[^A-Za-z0-9_]|$)|{_LOGIN}"

_WORD = re.compile(rf"{_WORDS}(?![A-Za-z0-9_])|{_LOGIN}")
_GOES_ON = re.compile(r"-[A-Za-z0-9]|\.[A-Za-z0-9]+(?![\w(])")
_RANDOM = re.compile(r"\d[A-Za-z]|\d{3}")  # before the word, where other words of the name are
_SHORT = re.compile(r"(?i:pass|pwd?|psk)\Z")
_SET_APART = re.compile(
    r"(?:\A|[_.-])(?i:pass|pwd?|psk)\Z|\A[A-Z]+(?:PASS|PWD)\Z|(?:\A|[_.-])[a-z]{2,12}P(?:ass|wd?|sk)\Z"
)
_OF_WHOM = re.compile(
    r"(?i:\b(?:db|smtp|mail|email|root|admin|user|ftp|ssh|wifi|vpn|ldap|redis|mysql|postgres|sudo|login|bind) )\Z"
)
_ALONE = frozenset(("pass", "pw", "pwd", "oldpwd", "psk"))
_COUNTED = re.compile(
    r"(?i:(?:max|num|next|last|prev|first|cur|current|n|eos|bos|pad|unk|stop|special|lex|peek|end|start|sub|per"
    r"|csrf|xsrf|cancellation)[_-]?token)\Z"
)
_FAINT = re.compile(r"(?i:token|secret|credentials?|_auth|pass)\Z")
_QUALIFIED = re.compile(
    r"(?i:\b(?:api|access|auth|bot|refresh|deploy|private|client|session|webhook|signing|cookie|app|jwt|shared|vault|npm"
    r"|pypi|github|gitlab|slack|bearer|consul|oauth|service|personal|registry|secret) )\Z"
)


class Cast(NamedTuple):
    begin: int
    end: int
    strong: bool
    kind: str


def cast_at(text: str, place: int) -> Cast | None:
    """The name whose last word begins at this place, unless it casts no net."""
    word = _WORD.match(text, place)
    if word is None:
        return None
    if word[0][-1] == " ":
        return Cast(place, word.end(), strong=True, kind="password")
    begin, end = names.beginning(text, place), word.end()
    name = text[begin:end].lstrip("-.")
    if _GOES_ON.match(text, end) or names.is_weak(name) or _COUNTED.search(name):
        return None
    if name[-5:].lower() == "_auth" and not names.is_no_word(name):
        return None
    before = text[max(begin - 20, 0) : begin]
    if _SHORT.match(word[0]):
        known = _SET_APART.search(name) if name.lower() not in _ALONE or name == "PASS" else None
        if known is None and (name.lower() == "oldpwd" or _OF_WHOM.search(before) is None):
            return None
    if _RANDOM.search(without_terms(text[begin:place])) or before[-1:] in ("+", "$"):
        return None
    strong = _FAINT.match(name) is None or _OF_WHOM.search(before) is not None
    return Cast(begin, end, strong or _QUALIFIED.search(before) is not None, names.kind_of(name))


# -- where the value of a name may stand: its line, the next one, a small block, the cells below

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


def rest_of_line(text: str, begin: int, end: int) -> Span:
    """As much of the line as is near to the name."""
    least = max(begin - _BEFORE, 0)
    real, escaped = text.rfind("\n", least, begin), text.rfind("\\n", least, begin)
    first = max(real + 1, escaped + 2 if escaped >= 0 else 0)
    if first < least:  # no word is cut in two
        blank = _BLANK.search(text, least, begin)
        first = blank.start() if blank is not None else begin
    return first, _end(text, end)


def following_line(text: str, end: int, last: int) -> list[Span]:
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


# -- what ties a run of characters to a name that means a secret, or to another name

_NEAR_LINK = 80  # characters before a run
_LINKS = "is|was|will|be|now|the|new|one|old|to|into|set|changed|from|it|its|s|reads|says|value|here|following|below|currently"
_LINKS_BACK = "as|is|for|the|our|my|your|an?|new|old|it|this|that|was|to|be|in|place|of"
_FORWARD = re.compile(rf"[\W_]{{0,40}}(?:(?:{_LINKS})\b[\W_]{{0,8}}){{0,4}}\Z")
_BACK = re.compile(
    rf"[\W_]{{0,12}}(?:(?:{_LINKS_BACK})\b[\W_]{{0,4}}){{0,5}}(?:\w{{1,20}} ){{0,2}}\Z"
)
_AROUND = " \t\"'`*_.,;"
# What has a value of its own.
_THINGS = (
    r"ids?|u?uid|guid|user(?:name)?|account|hosts?|hostname|server|commit|sha\d*|hash(?:es)?|digest|checksum|integrity"
    r"|fingerprint|etag|version|rev(?:ision)?|ref|branch|tag|model|port|file(?:name)?|path|ur[li]|build|release|image|issue"
    r"|ticket|serial|e?-?mail|address|node|pod|container|instance|device|bucket|region|cluster|function|method|class|table"
    r"|module|package|field|column|date|time(?:stamp)?|name|title|colou?r|kid|nonce|cursor|signature|request|session|trace"
)
_THING = re.compile(rf"(?i:{_THINGS})\Z")
_LABEL = re.compile(
    r"([A-Za-z_$@][\w.$-]{0,60})([\"'`\]\\)*]{0,5})[ \t]{0,3}(=>|:=|[:=])([ \t]{0,3})[\"'`({\[\\bruf*&<]{0,5}\Z"
)
_WORD_BEFORE = re.compile(r"(?<![\w-])(--?)?([A-Za-z][\w-]{0,40})[ \t]{1,3}[\"'`(\[*\\]{0,3}\Z")
# Names that say nothing about their value.
_GENERAL = re.compile(
    r"(?i:(?:the|new|old|raw|plain|default|initial|current|actual|given|expected|my|our|your)?[_-]?"
    r"(?:val(?:ue)?s?|v|x|y|s|p|w|k|a|str(?:ing)?|text|plaintext|content|data|default|body|literal|fallback|example|initial"
    r"|expected|actual|result|res|ret|returns?|answer|input|args?|with|is|one|it|now|new|old|here|to|put|set|typed?|enter"
    r"|use|try|said|says|reads))\Z"
)
_COMPOUND = re.compile(r"[a-z][A-Z]|[A-Za-z][_.-][A-Za-z]")


def is_pointed_at(text: str, name: Span, line: Span, run: Span) -> bool:
    """Whether nothing is between the two but signs and words that link them."""
    if run[0] < name[1]:
        return _BACK.match(text[run[1] : name[0]]) is not None
    if _FORWARD.match(text[name[1] : run[0]]) is None:
        return False
    alone = text[slice(*line)].strip(_AROUND) == text[slice(*run)].strip(_AROUND)
    return alone or line[0] <= name[0] < line[1]


def has_general_name(text: str, at: int) -> bool:
    """`default: ...`"""
    label = _LABEL.search(text, max(at - _NEAR_LINK, 0), at)
    return label is not None and _GENERAL.match(label[1]) is not None


def has_other_name(text: str, at: int, name: Span) -> bool:
    """Whether the run at this place belongs to something else: `commit 3f2a...`, `"user_id": "..."`."""
    first = max(at - _NEAR_LINK, 0)
    label = _LABEL.search(text, first, at)
    if label is not None:
        said = label[1]
        if _is_at(label.span(1), name) or _GENERAL.match(said) or names.means_secret(said):
            return False
        # In a sentence any word may be before a colon.
        in_data = bool(label[2]) or not label[4] or label[3] != ":"
        return in_data or _COMPOUND.search(said) is not None or _THING.match(said) is not None
    before = _WORD_BEFORE.search(text, first, at)
    if before is None or _is_at(before.span(2), name):
        return False
    if before[1]:
        return _GENERAL.match(before[2]) is None and not names.means_secret(before[2])
    return _THING.match(before[2]) is not None


def _is_at(span: Span, name: Span) -> bool:
    return span[0] < name[1] and span[1] > name[0]


# -- the net

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


def find(text: str, places: Iterable[int], found: list[Secret]) -> list[Secret]:
    """`places` are those of words that may end a name; `found` is what other rules did."""
    taken = sorted({(begin, end) for begin, end, _ in found} | _masks(text))
    named = (cast_at(text, place) for place in places)
    every = [one for one in named if one and not _overlap((one.begin, one.end), taken)]
    caught: list[Secret] = []
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
        line = rest_of_line(text, cast.begin, cast.end)
        begin = max(line[0], before)
        glued = _GLUED_BEFORE.search(text, begin, cast.begin)
        yield _Region(cast, (begin, glued.start() if glued else cast.begin), line, members=False)
        glued = _GLUED_AFTER.match(text, cast.end, line[1])
        begin = glued.end() if glued else cast.end
        yield _Region(cast, (begin, min(line[1], after)), line, members=False)
        before = cast.end
        further = following_line(text, cast.end, line[1])
        if cast.strong:
            further += cells_below(text, cast.begin, cast.end)
            for span in siblings(text, cast.begin, cast.end):
                yield _Region(cast, span, span, members=True)
        for span in further:
            if span not in seen:
                seen.add(span)
                yield _Region(cast, span, span, members=False)


def _caught(text: str, region: _Region) -> Iterator[Span]:
    cast = region.cast
    for run in looks.runs_within(text, *region.span):
        said = text[run.begin : run.end]
        evidence = looks.evidence(said)
        if evidence < _POINTED and cast.strong and looks.is_chosen(said):
            evidence = _POINTED
        if evidence < (_POINTED if cast.strong else _DOUBTFUL):
            continue
        if region.members and not has_general_name(text, run.begin):
            continue
        if evidence < _least(text, region, run):
            continue
        if looks.is_hash(said) and _OF_HASHES.search(text, *region.line):
            continue
        if not has_other_name(text, run.begin, (cast.begin, cast.end)):
            yield run.begin, run.end


def _least(text: str, region: _Region, run: Run) -> int:
    """The evidence that a run needs at its place."""
    cast = region.cast
    if not cast.strong or (not run.quoted and _is_code(text, region.line, run.begin)):
        return _DOUBTFUL
    name, span = (cast.begin, cast.end), (run.begin, run.end)
    pointed = region.members or is_pointed_at(text, name, region.line, span)
    return _POINTED if pointed else _NEAR


def _is_code(text: str, line: Span, at: int) -> bool:
    """Not inside a string of it."""
    said = text[slice(*line)]
    before = text[line[0] : at]
    return _CODE.search(said) is not None and not (before.count('"') % 2 or before.count("'") % 2)


def _overlap(span: Span, taken: list[Span]) -> bool:
    before = bisect_left(taken, (span[1],)) - 1
    return before >= 0 and taken[before][1] > span[0]
