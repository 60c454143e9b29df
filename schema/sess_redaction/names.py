"""Names that mean a secret: `DB_PASSWORD`, `apiKey`; and words, of which other names are made.

`words.txt` has the words that many programs and their documentation share. Names of variables, types
and functions consist of such words; the letters of a random secret never do, however they fall.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

_KEYS = (
    "api|access|account|admin|aes|anon|app|auth|cipher|client|consumer|cookie|crypto|enc|(?:de|en)cryption|deploy|fernet|hmac|integration"
    "|jwt|licen[cs]e|logged[_-]?in|master|nonce|private|rsa|secure[_-]?auth|service[_-]?role|shared|signing"
    "|ssh|storage|subscription|unseal|vault|webhook"
    "|openai|anthropic|claude|gemini|groq|mistral|stripe|sendgrid|mailgun|mapbox|algolia|datadog|pusher|aws|nuget|sas"
)
# Also the names of other things: only a value that no one would write means a secret.
_SEVERAL = "(?-i:(?:API_KEY|TOKEN|PASSWORD|SECRET)S)"
_WEAK = "(?-i:[A-Z0-9]_(?:KEY|PAT|AUTH|SIGNING|SEED|SALT|PEPPER))|bearer"
WORDS = (
    rf"{_SEVERAL}|"
    r"pass[_-]?wor[dt]|passwd|pwd?|pass[_-]?phrase|passcode|kennwort|wachtwoord|senha|пароль|密码|密碼|パスワード|비밀번호|mot de passe|contrase(?:ñ|\\+u00f1)a|pass"
    r"|secret_?string|secret[ _]?id|secret(?:[._-]?access)?(?:[ ._-]?key)?(?:[ ._-]?base)?|token"
    rf"|(?:{_KEYS})[ ._-]?key|(?:secure[_-]?auth|auth|logged[_-]?in|nonce)[_-]?salt"
    r"|credentials?|creds|_auth|(?:git(?:hub|lab)?|gh|gl|azure|ado|azdo|docker)[_-]pat|x(?:-[a-z0-9]{1,20}){1,3}-(?:key|auth)|psk|mnemonic|(?:seed|recovery)[_-]?phrase"
    rf"|(?:hash|password)[_-]?salt|erlang[_-]?cookie|phpsessid|jsessionid|connect\.sid|{_WEAK}"
)
TAIL = (
    r"(?:[_-]?\d{1,3}|[_-](?:value|prod|production|dev|staging|test|live|base64|b64|string|key|data"
    r"|plain|raw|new|old|env|main|default))"
)
_WHOLE = re.compile(rf"(?i:(?:{WORDS}){TAIL}?)\Z")
# Alone these are ordinary words: `pass: 12`, `Pat`.
_COMPOUND = re.compile(
    r"(?:[_.-]|[A-Za-z])(?i:pass|psk)\Z|(?:[_.-](?i:pw)|[a-z]P[wW]|(?i:root|db|user|admin|bind)(?i:pw))\Z|\A(?:pass|PASS|psk|pw|PW)\Z"
)
_WORDS_ENDING_SO = re.compile(
    r"(?i)(?:by|get|com|sur|tres|over|under|im|en|band|low|high|all)pass\Z"
)
_IS_WEAK = re.compile(rf"(?i:{_SEVERAL}|{_WEAK})\Z")
_CERTAIN = re.compile(
    rf"(?i:(?:{_KEYS}|secret)[ ._-]?key|(?:git(?:hub|lab)?|gh|gl|azure|ado|azdo|docker)[_-]pat)\Z"
)
_SHORT_ENDS = ("_AUTH", "_SIGNING", "_SEED", "_SALT", "_PEPPER")
_SHORT_RANDOM, _LONG_RANDOM = 8, 14
_PHRASE = re.compile(r"(?i:phrase|mnemonic)")
_KIND = re.compile(
    r"(?i:(pass|pwd?|contrase|kennw|wachtw|senha|пароль|密|パス|비밀|psk|phrase|mnemonic)|(token|bearer|pat\Z)|(secret|salt)|(key)"
    r"|(cred|auth))"
)
_LONGEST = 100
_IN_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")
_LONGEST_BEFORE = 60  # characters of a name before its last word
PASSWORD = "password"  # noqa: S105 - a kind of secret


@lru_cache(maxsize=4096)
def means_secret(name: str) -> bool:
    """Whether the value that has this name may be a secret."""
    return len(name) <= _LONGEST and _WHOLE.search(name) is not None and is_no_word(name)


@lru_cache(maxsize=1024)
def is_no_word(name: str) -> bool:
    """Whether a name that ends as one of a secret is not just an ordinary word."""
    if name[-1:].isdigit():
        name = name.rstrip("0123456789")
    if name[-5:].lower() == "_auth":
        return len(name) == len("_auth") or name.isupper()  # of npm, or weak
    if not name.lower().endswith(("pass", "psk", "pw")):
        return True
    return _COMPOUND.search(name) is not None and _WORDS_ENDING_SO.search(name) is None


@lru_cache(maxsize=1024)
def kind_of(name: str) -> str:
    if "secret" in name.lower():
        return "secret"
    kinds = [*_KIND.finditer(name)]
    last = kinds[-1].lastindex if kinds else 3
    return {1: PASSWORD, 2: "token", 3: "secret", 4: "API key", 5: "credential"}[last or 3]


@lru_cache(maxsize=1024)
def is_weak(name: str) -> bool:
    """Whether it as often means something else: `CACHE_KEY`."""
    return _IS_WEAK.search(name) is not None and _CERTAIN.search(name) is None


def least_of(name: str) -> int:
    """How many random characters what has such a name must have at least, if it is a weak one."""
    return _SHORT_RANDOM if name.endswith(_SHORT_ENDS) else _LONG_RANDOM


def is_password(name: str) -> bool:
    return kind_of(name) == PASSWORD


def is_phrase(name: str) -> bool:
    """Its value may consist of ordinary words."""
    return _PHRASE.search(name) is not None


def beginning(text: str, at: int) -> int:
    """Where the name begins whose last word is at `at`."""
    start, least = at, max(at - _LONGEST_BEFORE, 0)
    while start > least and text[start - 1] in _IN_NAME:
        start -= 1
    if text[start - 1 : start] == "\\" and text[start] in "nrt":
        start += 1  # of an escaped line break
    return start


# -- words that people use in code and prose, unlike random letters

_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_ENDINGS = ("s", "d", "ed", "es", "er", "ing", "ly")
_SHORTEST_WORD, _SHORTEST_STEM = 3, 4
_LONGEST_WORD = 30
_LEAST_KNOWN = 0.6  # of the letters: the rest are abbreviations and names
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
    return known >= _LEAST_KNOWN * letters > 0


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
    if not _SHORTEST_WORD <= len(part) <= _LONGEST_WORD:
        return False
    part = part.lower()
    vocabulary = _vocabulary()
    if part in vocabulary:
        return True
    for ending in _ENDINGS:
        stem = part.removesuffix(ending)
        if len(part) > len(stem) >= _SHORTEST_STEM and (
            stem in vocabulary or stem + "e" in vocabulary
        ):
            return True
    cuts = range(_SHORTEST_WORD, len(part) - _SHORTEST_WORD + 1)
    return any(part[:cut] in vocabulary and part[cut:] in vocabulary for cut in cuts)


@lru_cache(maxsize=1)
def _vocabulary() -> frozenset[str]:
    return frozenset(Path(__file__).with_name("words.txt").read_text("ascii").split())
