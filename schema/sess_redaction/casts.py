"""Names near which the net is cast, and how far each may be trusted.

A name is strong if it means a secret in any sentence (`password`, `apiKey`). It is faint if it is as often an
ordinary word (`token`, `secret`): near it only what is random beyond doubt is taken for one. Names of counts,
working directories and fields that only begin like one cast none: `max_tokens`, `PWD`, `password_length`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from sess_redaction import names
from sess_redaction.words import without_terms

_LOGIN = "(?i:(?:log(?:ged|ging)?|sign(?:ed|ing)?)[ -]?in (?:with|using|as) )"
_SEVERAL = "pass(?:word|phrase|code)s|(?:api|access|secret|private)[ ._-]?keys"
_WORDS = rf"(?i:{_SEVERAL}|(?:{names.WORDS})(?:{names.TAIL})?)"
# For RE2: a word that means a secret and ends there.
SCREEN = rf"{_WORDS}(?:[^A-Za-z0-9_]|$)|{_LOGIN}"

_WORD = re.compile(rf"{_WORDS}(?![A-Za-z0-9_])|{_LOGIN}")
_IN_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")
_LONGEST = 60
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


def at(text: str, place: int) -> Cast | None:
    """The name whose last word begins at this place, unless it casts no net."""
    word = _WORD.match(text, place)
    if word is None:
        return None
    if word[0][-1] == " ":
        return Cast(place, word.end(), strong=True, kind="password")
    begin, end = _beginning(text, place), word.end()
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


def _beginning(text: str, place: int) -> int:
    begin, least = place, max(place - _LONGEST, 0)
    while begin > least and text[begin - 1] in _IN_NAME:
        begin -= 1
    if text[begin - 1 : begin] == "\\" and text[begin] in "nrt":
        begin += 1  # of an escaped line break
    return begin
