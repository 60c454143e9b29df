"""Which passphrases are too easy to guess for a page that anybody may copy and attack.

This finds what people choose most; it cannot tell whether words were picked at random.
"""

from __future__ import annotations

import re

_SHORTEST = 12
_LONG = 20  # from here on, one kind of characters is enough: words
_DIFFERENT = 7
_LEFT = 6  # characters that must remain without what is common
ENOUGH = (
    f"enough: five random words, or {_SHORTEST} characters that mix"
    " capital and small letters, digits and symbols"
)
_KINDS = (r"[^\W\d_A-Z]", r"[A-Z]", r"\d", r"[^\w\s]|_")
_LEET = str.maketrans("013457@$!", "oleastasi")
_COMMON = (
    "correct horse battery staple", "correcthorsebatterystaple", "passphrase", "password",
    "passwort", "passwd", "motdepasse", "contrasena", "kennwort", "geheim", "secret", "letmein",
    "welcome", "iloveyou", "trustno", "changeme", "default", "admin", "administrator", "root",
    "login", "master", "access", "monkey", "dragon", "football", "baseball", "superman", "batman",
    "princess", "sunshine", "shadow", "michael", "jordan", "starwars", "pokemon", "whatever",
    "hello", "world", "hunter", "claude", "codex", "sessiond", "session", "test",
    "qwertyuiop", "qwertzuiop", "azertyuiop", "asdfghjkl", "yxcvbnm", "zxcvbnm", "qwerty", "qwertz",
    "azerty", "asdf", "qazwsx", "abcdefghijklmnopqrstuvwxyz", "abcdefgh", "abcdef", "abcd", "abc",
    "01234567890", "0123456789", "1234567890", "9876543210", "12345678", "123456", "12345", "1234",
    "123", "321", "2wsx", "1qaz", "!@#$%^&*()", "!@#$",
)  # fmt: skip
_YEAR = re.compile(r"(?:19|20)\d\d")


def weakness(passphrase: str) -> str | None:
    """What is wrong with it, as in "the passphrase is empty"; None if nothing is."""
    length = len(passphrase.strip())
    if not length:
        return "is empty"
    if length < _SHORTEST:
        return f"is too short: {length} characters"
    if len(set(passphrase.casefold())) < _DIFFERENT or _repeats(passphrase.casefold()):
        return "repeats itself"
    if min(map(len, _uncommon(passphrase.casefold()))) < _LEFT:
        return "is a common one"
    kinds = sum(re.search(kind, passphrase) is not None for kind in _KINDS)
    if length < _LONG and kinds < 3:
        return f"has too few kinds of characters for its length of {length}"
    return None


def _repeats(text: str) -> bool:
    """Whether it is one piece again and again."""
    sizes = range(1, len(text) // 2 + 1)
    return any((text[:size] * len(text)).startswith(text) for size in sizes)


def _uncommon(text: str) -> tuple[str, str]:
    """What is left without what is common, also where digits and symbols stand for letters."""
    text = _YEAR.sub("", text)
    return _without_common(text), _without_common(text.translate(_LEET))


def _without_common(text: str) -> str:
    for common in _COMMON:
        text = text.replace(common, "")
    return re.sub(r"[\W_]", "", text)
