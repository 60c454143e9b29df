"""Whether a text is made of words that people use in code and prose, not of random letters.

`words.txt` has the words that many programs and their documentation share. Names of variables, types
and functions consist of such words; the letters of a random secret never do, however they fall.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_ENDINGS = ("s", "d", "ed", "es", "er", "ing", "ly")
_SHORTEST, _SHORTEST_STEM = 3, 4
_LONGEST = 30
_MOST = 0.6  # of the letters: the rest are abbreviations and names
_RUNS = re.compile(r"[A-Za-z_$][\w$]*|\d[A-Za-z0-9_]*", re.ASCII)
# Digits that belong to a word, as in `oauth2_token` and `sha256Key`.
_WITH_DIGITS = re.compile(
    r"(?<![^\W_])(?i:(?:sha|md|base|oauth|ec|utf|http|ed|rsa|hs|rs|aes|ipv|log|uint|int|float|str|arg|py|web"
    r"|auth|sql|tls|win|latin|fts|pkcs)\d{1,5}|s3|k8s|x509|v\d|p12|i18n|[iuf](?:8|16|32|64)|d3|b64|l10n|a11y)(?=[A-Z_.]|\Z)"
)
_STEMS = re.compile(
    r"(?i:pass|token|secret|cred|auth|pwd|(?:api|access|private|public|ssh)key)|(?<![a-z])key|Key|(?<![A-Z])KEY"
)  # but no `monkey`
_MOST_DIGITS = 3
_MOST_OF_CLASS = 2  # digits
_LONG_NUMBER = 7
_ODD_LENGTH = 6


def reads_as_words(text: str) -> bool:
    """Most letters belong to words, and digits only end a name: `new_password2`."""
    known = letters = 0
    for run in _RUNS.findall(text):
        of_run = _measured(run)
        if of_run is None:
            return False
        known += of_run[0]
        letters += of_run[1]
    return known >= _MOST * letters > 0


def without_terms(text: str) -> str:
    """Without what ends in digits by its nature, such as `sha256`."""
    return _WITH_DIGITS.sub("", text)


def names_a_secret(text: str) -> bool:
    """As the name of a field does: `access_token`."""
    return _STEMS.search(text) is not None


@lru_cache(maxsize=8192)
def _measured(run: str) -> tuple[int, int] | None:
    """How many letters belong to words, and how many there are; None if no one would choose it."""
    known = without_terms(run.strip("_$"))
    stem = known.rstrip("0123456789")
    digits = len(known) - len(stem)
    if (
        digits > (_MOST_DIGITS if stem else _LONG_NUMBER)
        or "$" in known
        or any(c.isdigit() for c in stem)
    ):
        return None
    ordinary = (
        names_a_secret(known) or (stem[:1].isupper() and digits <= _MOST_OF_CLASS) or "_" in stem
    )
    if digits and stem and len(known) >= _ODD_LENGTH and not ordinary:
        return None  # `hunter2` is a password, `Part2` a class
    parts = _PARTS.findall(stem)
    return sum(len(part) for part in parts if is_word(part)), sum(map(len, parts))


def is_word(part: str) -> bool:
    """A word, also with an ending, or two words in one: `filenames`."""
    if not _SHORTEST <= len(part) <= _LONGEST:
        return False
    part = part.lower()
    known = _vocabulary()
    if part in known:
        return True
    for ending in _ENDINGS:
        stem = part.removesuffix(ending)
        if len(part) > len(stem) >= _SHORTEST_STEM and (stem in known or stem + "e" in known):
            return True
    cuts = range(_SHORTEST, len(part) - _SHORTEST + 1)
    return any(part[:cut] in known and part[cut:] in known for cut in cuts)


@lru_cache(maxsize=1)
def _vocabulary() -> frozenset[str]:
    return frozenset(Path(__file__).with_name("words.txt").read_text("ascii").split())
