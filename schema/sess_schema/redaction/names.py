"""Names that mean a secret: `DB_PASSWORD`, `apiKey`, `client-key-data`."""

from __future__ import annotations

import re
from functools import lru_cache

_KEYS = (
    "api|access|account|admin|aes|anon|app|auth|cipher|client|consumer|cookie|(?:de|en)cryption|deploy|fernet|hmac|integration"
    "|jwt|licen[cs]e|logged[_-]?in|master|nonce|private|rsa|secure[_-]?auth|service[_-]?role|shared|signing"
    "|ssh|storage|subscription|unseal|vault|webhook"
)
WORDS = (
    r"passwor[dt]|passwd|pwd?|passphrase|passcode|mot de passe|contrase(?:ñ|\\+u00f1)a|pass"
    r"|secret_?string|secret(?:[._-]?access)?(?:[ ._-]?key)?(?:[_-]?base)?|token"
    rf"|(?:{_KEYS})[ ._-]?key|(?:secure[_-]?auth|auth|logged[_-]?in|nonce)[_-]?salt"
    r"|credentials?|creds|_auth|(?:git(?:hub|lab)?|gh|gl|azure|ado|azdo|docker)[_-]pat|psk|mnemonic|(?:seed|recovery)[_-]?phrase"
)
TAIL = (
    r"(?:[_-]?\d{1,3}|[_-](?:value|prod|production|dev|staging|test|live|base64|b64|string|key|data"
    r"|plain|raw|new|old|env|main|default))"
)
_WHOLE = re.compile(rf"(?i:(?:{WORDS}){TAIL}?)\Z")
# Alone these are ordinary words: `pass: 12`, `Pat`.
_COMPOUND = re.compile(
    r"(?:[_-]|[a-z])(?i:pass|psk)\Z|(?:[_.-](?i:pw)|[a-z]P[wW])\Z|\A(?:pass|PASS|psk|pw|PW)\Z"
)
_WORDS_ENDING_SO = re.compile(
    r"(?i)(?:by|get|com|sur|tres|over|under|im|en|band|low|high|all)pass\Z"
)
_PHRASE = re.compile(r"(?i:phrase|mnemonic)")
_KIND = re.compile(
    r"(?i:(passw|pwd?|pass|contrase|passphrase|passcode|psk|phrase|mnemonic)|(token|pat\Z)|(secret|salt)|(key)"
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


def is_password(name: str) -> bool:
    return kind_of(name) == PASSWORD


def is_phrase(name: str) -> bool:
    """Its value may consist of ordinary words."""
    return _PHRASE.search(name) is not None
