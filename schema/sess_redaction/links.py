"""What ties a run of characters to a name that means a secret, or to another name."""

from __future__ import annotations

import re

from sess_redaction import names
from sess_redaction.extents import Span

_NEAR = 80  # characters before a run
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
    label = _LABEL.search(text, max(at - _NEAR, 0), at)
    return label is not None and _GENERAL.match(label[1]) is not None


def has_other_name(text: str, at: int, name: Span) -> bool:
    """Whether the run at this place belongs to something else: `commit 3f2a...`, `"user_id": "..."`."""
    first = max(at - _NEAR, 0)
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
