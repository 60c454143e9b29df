"""Names that mean a secret: `DB_PASSWORD`, `apiKey`, `client-key-data`."""

from __future__ import annotations

import re
from functools import lru_cache

_KEYS = (
    "api|access|account|admin|aes|anon|app|auth|cipher|client|consumer|cookie|crypto|enc|(?:de|en)cryption|deploy|fernet|hmac|integration"
    "|jwt|licen[cs]e|logged[_-]?in|master|nonce|private|rsa|secure[_-]?auth|service[_-]?role|shared|signing"
    "|ssh|storage|subscription|unseal|vault|webhook"
    "|openai|anthropic|claude|gemini|groq|mistral|stripe|sendgrid|mailgun|mapbox|algolia|datadog|pusher|aws|nuget|sas"
)
# Also the names of other things: only a value that no one would write means a secret.
_SEVERAL = "(?-i:(?:API_KEY|TOKEN|PASSWORD|SECRET)S)"
_WEAK = "(?-i:[A-Z0-9]_(?:KEY|PAT))|bearer"
WORDS = (
    rf"{_SEVERAL}|"
    r"pass[_-]?wor[dt]|passwd|pwd?|pass[_-]?phrase|passcode|kennwort|wachtwoord|senha|пароль|密码|密碼|パスワード|비밀번호|mot de passe|contrase(?:ñ|\\+u00f1)a|pass"
    r"|secret_?string|secret(?:[._-]?access)?(?:[ ._-]?key)?(?:[ ._-]?base)?|token"
    rf"|(?:{_KEYS})[ ._-]?key|(?:secure[_-]?auth|auth|logged[_-]?in|nonce)[_-]?salt"
    r"|credentials?|creds|_auth|(?:git(?:hub|lab)?|gh|gl|azure|ado|azdo|docker)[_-]pat|psk|mnemonic|(?:seed|recovery)[_-]?phrase"
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
_PHRASE = re.compile(r"(?i:phrase|mnemonic)")
_KIND = re.compile(
    r"(?i:(pass|pwd?|contrase|kennw|wachtw|senha|пароль|密|パス|비밀|psk|phrase|mnemonic)|(token|bearer|pat\Z)|(secret|salt)|(key)"
    r"|(cred|auth))"
)
_LONGEST = 100
PASSWORD = "password"  # noqa: S105 - a kind of secret


def means_secret(name: str) -> bool:
    """Whether the value that has this name may be a secret."""
    return len(name) <= _LONGEST and _WHOLE.search(name) is not None and is_no_word(name)


@lru_cache(maxsize=1024)
def is_no_word(name: str) -> bool:
    """Whether a name that ends as one of a secret is not just an ordinary word."""
    if name[-1:].isdigit():
        name = name.rstrip("0123456789")
    if name[-5:].lower() == "_auth":
        return len(name) == len("_auth")  # of npm; `SERVER_AUTH` is none
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


def is_password(name: str) -> bool:
    return kind_of(name) == PASSWORD


def is_phrase(name: str) -> bool:
    """Its value may consist of ordinary words."""
    return _PHRASE.search(name) is not None
