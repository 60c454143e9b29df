"""Values whose names mark them as secret: `DB_PASSWORD=...`, `"apiKey": "..."`, `--token ...`.

In code, most of these are not secrets but variables, types, calls or placeholders.
"""

from __future__ import annotations

import re

_WORDS = (
    r"passw(?:or)?d|passwd|pwd|passphrase|passcode|secret(?:[_-]?access)?(?:[_-]?key)?|token"
    r"|(?:api|access|private|account|signing|encryption|auth|master)[_-]?key|credentials?|_auth"
)
_TAIL = (
    r"(?:[_-]?\d{1,3}|[_-](?:value|prod|production|dev|staging|test|live|base64|b64|string|key))"
)
# A type annotation may come between (`token: str = "..."`), and quotes are often escaped.
_COLOUR = r"(?:\x1b\[[0-9;]*m){0,3}"
EXPRESSION = (
    rf"(?i:(?:{_WORDS}){_TAIL}?)[\\\"'`\]]{{0,5}}"
    r"(?:[ \t]{0,8}:[ \t]{0,4}[A-Za-z][\w.|\[\]]{0,30}[ \t]{0,4}=[ \t]{0,4}"
    rf"|{_COLOUR}[ \t]{{0,8}}(?::=|=>|={{1,3}}|:){_COLOUR}[ \t]{{0,8}}{_COLOUR})"
    r"([\\\"'`]{1,4}[^\\\"'`\n$%<{(\[]{4}|[^\s\"'`\\,;(){}<>\[\]$%]{4})"
)
OPTION = rf"--[a-z-]*(?i:{_WORDS}) {{1,2}}([\"']?[^\s\"'`\\,;(){{}}<>\[\]$%-][^\s\"'`\\;]{{3,}})"
_NAME = re.compile(r"(?:\x1b\[[0-9;]*m|\\[nrt])?([\w.-]{0,60})\Z", re.ASCII)
_KIND = re.compile(r"(?i:(passw|pwd|passphrase|passcode)|(token)|(secret)|(key)|(cred|auth))")
_FIRST_WORD = re.compile(rf"(?i:{_WORDS})")
_QUOTES = re.compile(r"\\*[\"'`]")
_UNQUOTED = re.compile(r"[^\s\x1b\"'`\\,;<>(){}\[\]&|=]*={0,2}")
_SHELL = re.compile(r"[^\s\x1b\"'`\\;<>&]*")
_LONGEST = 300  # characters of a value to examine
_ENVIRONMENT = re.compile(r"[A-Z][A-Z0-9_]*\Z")
_DOTTED = re.compile(r"[A-Za-z_$][\w$]*(?:(?:\.|::|->)[A-Za-z_$][\w$]*)+[!?]?\Z", re.ASCII)
_PATH = re.compile(r"(?:~|\.{1,2}|[A-Za-z]:)?[/\\][\w./\\~@-]*\Z", re.ASCII)
_DIGIT = re.compile(r"\d", re.ASCII)
_SYMBOL = re.compile(r"[!@#^*+]")
_BLANK = re.compile(r"\s")
_LETTERS = re.compile(r"[A-Za-z_./:-]+\Z")
_PLACEHOLDER = re.compile(
    r"[$<{%*\[(]|(.)\1+\Z|\.\.|(?i:x{3,}|\*{3,}|your|my[_-]|change|replace|insert|enter|example"
    r"|placeholder|dummy|redacted|process\.env|os\.environ|os\.getenv|getenv|env[.:\[]|env\(|secrets\."
    r"|(?:none|null|nil|true|false|undefined|string|str|bool|int|number|any|object|optional|required"
    r"|password|passwd|pass|token|secret|todo|tbd|hidden|masked|empty|unset|default|bytes)\Z)"
)
_PLACEHOLDER_WITHIN = re.compile(
    r"\.\.\.|…|(?i:x{5,}|example|placeholder|redacted|your[_-]|\*{4,}|<|\$\{|\{\{)"
)
_STEMS = re.compile(r"(?i:pass|token|secret|key|cred|auth|pwd)")


def judge(text: str, found: re.Match[str]) -> tuple[str, tuple[int, int]] | None:
    """The kind and the span of the value, if it looks like a real secret."""
    name, flag = _name_before(text, found)
    if name is None:
        return None
    begin = found.start(1)
    loud = flag or (_ENVIRONMENT.match(name) is not None and text[begin - 1] == "=")
    quote = _QUOTES.match(text, begin)
    if quote is not None:
        begin = quote.end()
        end = text.find(quote[0], begin, begin + _LONGEST)
        if end < 0 or "\n" in text[begin:end]:
            return None
    else:
        characters = _SHELL if loud else _UNQUOTED
        end = _end(characters, text, begin, begin + _LONGEST)
        if text[end : end + 1] in ("(", "[", "{") and not loud:
            return None
    if not _is_secret(name, text[begin:end], quoted=quote is not None, loud=loud):
        return None
    # Only a masked value is read to its end: a text may repeat such names without a space.
    return kind_of(name), (begin, end if quote else _end(characters, text, end, len(text)))


def _end(characters: re.Pattern[str], text: str, begin: int, limit: int) -> int:
    found = characters.match(text, begin, limit)
    return found.end() if found else begin


def judge_option(_text: str, found: re.Match[str]) -> tuple[str, tuple[int, int]] | None:
    """`--token abc`; but `--password options` is prose."""
    name, _, _ = found[0].partition(" ")
    begin, end = found.span(1)
    value = found[1].lstrip("\"'")
    quoted = value != found[1]
    if not quoted and _LETTERS.match(value):
        return None
    if not _is_secret(name, value, quoted=True, loud=True):
        return None
    return kind_of(name), (begin + quoted, end)


def kind_of(name: str) -> str:
    kinds = [*_KIND.finditer(name)]
    last = kinds[-1].lastindex if kinds else 3
    if "secret" in name.lower() or last is None:
        return "secret"
    return {1: "password", 2: "token", 3: "secret", 4: "API key", 5: "credential"}[last]


def names_secret(name: str) -> bool:
    """Whether an object's member with this name may hold a secret."""
    return len(name) < 100 and re.search(rf"(?i:(?:{_WORDS}){_TAIL}?)\Z", name) is not None


def is_secret_value(name: str, value: str) -> bool:
    return "\n" not in value and _is_secret(name, value, quoted=True, loud=False)


def is_placeholder(value: str) -> bool:
    """Not a real secret: a variable, a blank to fill in, a mask, the name of a type."""
    return (
        _PLACEHOLDER.match(value) is not None or _PLACEHOLDER_WITHIN.search(value[:80]) is not None
    )


def _name_before(text: str, found: re.Match[str]) -> tuple[str | None, bool]:
    """The whole name, and whether it is an option or a URL parameter: `--token`, `?token=`."""
    at = found.start()
    before = _NAME.search(text[max(at - 60, 0) : at])
    prefix = before[1] if before else ""
    word = _FIRST_WORD.match(text, at)
    tail = re.match(r"[\w-]*", text[word.end() : found.start(1)]) if word else None
    name = prefix + (word[0] if word else "") + (tail[0] if tail else "")
    start = at - len(prefix)
    if "[redacted" in text[max(start - 30, 0) : start]:
        return None, False
    flag = prefix.startswith("--") or text[start - 1 : start] in ("?", "&")
    return name.lstrip("-."), flag


def _is_secret(name: str, value: str, *, quoted: bool, loud: bool) -> bool:
    if len(value) < 4 or is_placeholder(value) or "://" in value:
        return False
    password = _KIND.search(name)
    is_password = password is not None and password.lastindex == 1
    if _BLANK.search(value):
        # Usually the words of a message: `password: "Enter your password"`.
        return "passphrase" in name.lower() and value.count(" ") > 2
    digits = len(_DIGIT.findall(value))
    if digits == len(value):
        return is_password and (quoted or loud)
    if _PATH.match(value) and ("." in value or len(value) < 40):
        return False
    if _LETTERS.match(value):
        if _STEMS.search(value) and len(value) < 40:
            return False
        return (is_password and (quoted or loud) and "." not in value) or len(value) >= 24
    if not quoted and not loud:
        if _DOTTED.match(value) or not (digits or _SYMBOL.search(value)):
            return False
        return len(value) >= 6 and not (_STEMS.search(value) and len(value) < 20)
    return len(value) >= 6 and (digits > 0 or is_password or len(value) >= 16)
