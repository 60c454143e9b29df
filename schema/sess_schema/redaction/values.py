"""Whether a value is a secret, or only code, a variable, a blank to fill in, or prose."""

from __future__ import annotations

import re
from functools import lru_cache

from sess_schema.redaction import names

_LONGEST = 400  # characters to judge by
_MASKS = re.compile(r"(?:\[redacted: [A-Za-z ]{1,30}\]|[\s\"'`,;)\]}\\])*\Z")
_PHRASE_BLANKS = 2
_FEW_WORDS = 3
_SHORTEST, _SHORTEST_PASSWORD = 6, 4
_LONG = 16
_LONG_WORD, _LONG_NAME = 24, 40

# -- variables and blanks to fill in: the whole value must be one
_FILL_IN = re.compile(
    r"(?:(?i:bearer|basic|token)\s+)?(?:"
    r"\$\{[^{}]*\}|\$\{\{.*\}\}|\{\{.*\}\}|\$\([^()]*\)|\$[A-Za-z_]\w*|\$\d\Z"
    r"|<[A-Za-z/][\w .:/|'-]*>|%\(?\w+\)?s|%[sdv]|%[A-Za-z_]\w*%|#\{[^{}]*\}|\{[\w.!:]*\}|@\w+@"
    r"|\[[A-Za-z][\w .-]*\]|`[\w $./-]*`|[-_/:.\s])+\Z"
)
_VARIABLE = re.compile(r"\$([A-Za-z_]\w*)")
_BLANK = re.compile(
    r"(?:[*•●.…_x-]{3,}|X{3,}|(.)\1{2,}|\W{1,3})\Z"
    r"|\A.{0,8}(?:\.{3}|…|\*{4,}|x{6,}|X{6,}).{0,6}\Z"
)
_COMMAND = re.compile(
    r"\$\((?:[a-z_][\w./-]*(?:[\s)]|\Z)|<|\$|\")|`[a-z][a-z./_-]*`?\Z|\$\{\{?[A-Za-z_ ]+[}:\s]|<\([a-z]+(?:\s|\Z)"
)
_NOTHING = re.compile(
    r"(?i:none|null|nil|true|false|undefined|string|str|text|bool(?:ean)?|int(?:eger)?|number|any|object"
    r"|optional|required|password|passwd|pass|token|secret|todo|tbd|hidden|masked|empty|unset"
    r"|default|bytes|yes|no|n/a|unknown|varchar|char|secretstr|changeme|change[_-]me|change[_-]?this)\Z"
)
_TO_FILL_IN = re.compile(
    r"(?i)(?:\b|_)(?:your?|my|example|placeholder|dummy|change|replace|insert|enter|sample|fake|test"
    r"|todo|redacted|some|here|foo|bar|baz|mock|demo)(?:\b|_|\d)"
)
_WORDS_ONLY = re.compile(r"[A-Za-z]+(?:[-_ ./:]+[A-Za-z]+)*[-_]?\d{0,3}[!.]?\Z")

# -- code
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
# Digits that belong to a word, as in `oauth2_token` and `sha256Key`.
_WORDS_WITH_DIGITS = re.compile(
    r"(?<![^\W_])(?i:(?:sha|md|base|oauth|ec|utf|http|ed|rsa|hs|rs|aes|ipv|log|uint|int|float|str|arg|py|web"
    r"|auth|sql|tls|win)\d{1,5}|s3|k8s|x509|v\d|p12|i18n|[iuf](?:8|16|32|64)|d3|b64|l10n|a11y)(?=[A-Z_.]|\Z)"
)
_NAME = r"[A-Za-z_$][\w$]*+"
_CHAIN = rf"{_NAME}(?:(?:\.|::|->|\?\.|!\.){_NAME})*"
_CODE = re.compile(
    rf"[!~&*(\[{{-]{{0,3}}{_CHAIN}[!?.]{{0,2}}"
    r"(?:[)\]},;:.\"'`]*\Z"
    r"|(?:\(|\[|\{|<|\|\||&&|==|!=|\?|\+|,|\)\.?|\]\.?|/|=>|=)"
    rf"(?:{_NAME}|\d++(?![A-Za-z])|[\"'][\w .:/-]*+[\"']?+|[.,:;=()\[\]{{}}<>&|!?+*/`-])*+\Z)"
)
_NO_CODE = re.compile(r"=[.,:;)\]}]|;\w")  # `a=.b;7` is no expression
_TUPLE = re.compile(r"[(\[{]{1,2}[rbuf]?[\"'][\w.:@-]*[\"']?[,)\]}:]*\Z")
_PAIRS = {"(": ")", "[": "]", "{": "}"}
_VOWEL = re.compile(r"(?i)[aeiouy]")
_RUNS = re.compile(r"[A-Za-z_$][\w$]*")
_DOTTED_CALL = re.compile(
    rf"{_NAME}(?:(?:\.|::|->){_NAME})+[\[(]|{_NAME}\(\)|(?:process\.env|os\.environ|env|secrets|var|config)\."
)
_NUMBER = re.compile(r"[-+~]?[\d.,:/xX%_-]+[kKmMgGsB]{0,2}[.,;)]*\Z")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,15}://[\w.-]")
_PATH = re.compile(r"(?:~|\.{1,2}|[A-Za-z]:)?[/\\][\w./\\~@-]*\Z", re.ASCII)
_FILE = re.compile(r"[\w./-]+\.(?:json|pem|key|txt|ya?ml|toml|env|crt|p12|py|[jt]sx?|go|rs)\Z")
_STEMS = re.compile(r"(?i:pass|token|secret|key|cred|auth|pwd)")
_LETTERS = re.compile(r"[A-Za-z_./:-]+\Z")
_TRAILING = "\"'`,;)]}."
_EMPHASIS = "*`"


def is_masked(value: str) -> bool:
    """Nothing is left of it but masks."""
    return "[redacted: " in value and _MASKS.match(value) is not None


def is_placeholder(value: str) -> bool:
    """A variable, a blank to fill in, a mask, the name of a type."""
    value = value[:_LONGEST]
    return (
        is_masked(value)
        or _NOTHING.match(value) is not None
        or (_FILL_IN.match(value) is not None and all(map(_is_word, _VARIABLE.findall(value))))
        or _BLANK.match(value) is not None
        or (_WORDS_ONLY.match(value) is not None and _TO_FILL_IN.search(value) is not None)
    )


def quoted(name: str, value: str) -> bool:
    """A value in quotes, or a member of an object."""
    value = value[:_LONGEST]
    if len(value) < _SHORTEST_PASSWORD or is_placeholder(value):
        return False
    if any(c.isspace() for c in value):
        return _is_phrase(name, value)
    password = names.is_password(name)
    if _ADDRESS.match(value) or _is_path(value):
        return False
    if value.isdecimal():
        return password
    if _LETTERS.match(value):
        if _STEMS.search(value) and len(value) < _LONG_NAME and reads_as_words(value):
            return False
        return (password and "." not in value) or len(value) >= _LONG_WORD
    if password:
        return True
    symbols = any(not c.isalnum() and c not in "_-./: " for c in value)
    digits = any(c.isdigit() for c in value)
    return len(value) >= _SHORTEST and (digits or symbols or len(value) >= _LONG)


def loud(name: str, value: str) -> bool:
    """A value in a place that holds no code: `DB_PASSWORD=...`, `--password ...`, `?token=...`."""
    value = value[:_LONGEST]
    if len(value) < _SHORTEST_PASSWORD or is_placeholder(value) or _COMMAND.match(value):
        return False
    if _DOTTED_CALL.match(value) and _is_code(value):
        return False
    return quoted(name, value)


def bare(name: str, value: str, *, alone: bool) -> bool:
    """A value without quotes, which in code is a variable or an expression.

    `alone`: nothing else is on its line, as in YAML and properties files.
    """
    value = value[:_LONGEST].strip(_EMPHASIS)
    if is_placeholder(value) or _COMMAND.match(value):
        return False
    core = value.rstrip(_TRAILING)
    password = names.is_password(name)
    if len(core) < (_SHORTEST_PASSWORD if password else _SHORTEST) or is_placeholder(core):
        return False
    if _NUMBER.match(value):
        return password and alone and core.isdecimal()
    if _ADDRESS.match(value) or _is_path(core):
        return False
    if _WORDS_ONLY.match(core) and _LETTERS.match(core) and reads_as_words(core):
        return False
    if alone and password and core.isalpha() and core.islower() and len(core) >= _SHORTEST:
        return _STEMS.search(core) is None
    return not _is_code(value)


def _is_phrase(name: str, value: str) -> bool:
    """Usually the words of a message: `password: "Enter your password"`."""
    words = value.split()
    if names.is_phrase(name):
        return len(words) > _PHRASE_BLANKS and not value.endswith((".", "?", ":"))
    return len(words) <= _FEW_WORDS and any(
        len(word) >= _SHORTEST
        and any(c.isdigit() for c in word)
        and any(c.isalpha() for c in word)
        and not is_placeholder(word)
        and not _is_code(word)
        and not _NUMBER.match(word)
        for word in words
    )


def _is_path(value: str) -> bool:
    if _FILE.match(value):
        return reads_as_words(value)
    if _PATH.match(value) is None or not ("." in value or len(value) < _LONG_NAME):
        return False
    return reads_as_words(value)


def reads_as_words(value: str) -> bool:
    runs = _RUNS.findall(value)
    letters = sum(map(len, runs))
    if letters < _SHORTEST or len(runs) >= _FEW_WORDS:
        # Pieces of a random text are short.
        parts = sum(len(_PARTS.findall(run)) for run in runs)
        if 2 * letters < 5 * parts or letters < _FEW_WORDS * len(runs):
            return False
    return all(map(_is_word, runs))


def _is_code(value: str) -> bool:
    if _TUPLE.match(value) is not None:
        return True
    if _CODE.match(value) is None or _NO_CODE.search(value) is not None:
        return False
    return _is_nested(value) and reads_as_words(value)


def _is_nested(value: str) -> bool:
    """Brackets are closed in order; what is open may go on after the white space."""
    opened: list[str] = []
    for c in value.rstrip(_TRAILING + ":"):
        if c in _PAIRS:
            opened.append(_PAIRS[c])
        elif c in ")]}" and (not opened or opened.pop() != c):
            return False
    return True


@lru_cache(maxsize=4096)
def _is_word(run: str) -> bool:
    """An identifier a person would choose: `newPassword2`, not `xK2mPq9wLz`."""
    known = _WORDS_WITH_DIGITS.sub("", run.strip("_$"))
    stem = known.rstrip("0123456789")
    if len(known) - len(stem) > 3 or "$" in known:
        return False
    if any(c.isdigit() for c in stem):
        return False
    parts = _PARTS.findall(stem)
    least = 3 if len(parts) > 2 else 2.5
    if len(stem) > 3 and (_VOWEL.search(stem) is None or sum(map(len, parts)) < least * len(parts)):
        return False
    if len(stem) < len(known) and len(known) >= _SHORTEST and _STEMS.search(known) is None:
        return stem[:1].isupper() or "_" in stem  # `hunter2` is a password, `Part2` a class
    return True
