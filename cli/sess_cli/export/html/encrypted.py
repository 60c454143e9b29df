"""Pages that need a passphrase: AES-256-GCM, decrypted in the browser; and which are too weak.

Anybody may copy and attack such a page. What people choose most is refused; whether words were
picked at random cannot be told.
"""

from __future__ import annotations

import hashlib
import os
import re
from base64 import b64encode
from typing import TYPE_CHECKING

from sess_cli.export.html import chunks
from sess_common import installation
from sess_common.errors import Exit, SessError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

ROUNDS = 600_000
_SALT, _NONCE = 16, 12
_FORM = """\
<main class="sealed"><form id="unseal">
<h1>This session is encrypted</h1>
<label for="passphrase">Passphrase</label>
<input type="password" id="passphrase" autocomplete="off" required>
<button>Open</button>
<p id="refused" role="alert"></p>
<noscript><p>Decrypting it needs JavaScript.</p></noscript>
</form></main>
"""
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


def require_cipher() -> type[AESGCM]:
    """The cipher, which the standard library does not have."""
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # an extra
    except ImportError:
        raise SessError(
            "--encrypt needs the cryptography package",
            hint=f"`{installation.adding('encrypt')}`",
            code=Exit.PROGRAM_FAILED,
        ) from None
    return AESGCM


class Lock:
    """One key for one export, made from a passphrase; each page has a nonce of its own."""

    title = "Encrypted session"  # all that can be read without the passphrase

    def __init__(self, passphrase: str) -> None:
        self._salt = os.urandom(_SALT)
        given = passphrase.encode("utf-8", "replace")
        self._cipher = require_cipher()(hashlib.pbkdf2_hmac("sha256", given, self._salt, ROUNDS))

    def seal(self, content: bytes) -> str:
        """Rounds, salt, nonce and ciphertext, as the page's script reads them."""
        nonce = os.urandom(_NONCE)
        data = self._cipher.encrypt(nonce, content, None)
        pieces = (b64encode(piece).decode() for piece in (self._salt, nonce, data))
        return " ".join([str(ROUNDS), *pieces])

    def body(self, title: str, content: str) -> str:
        """A form that asks for the passphrase, and what it opens."""
        whole = chunks.squeezed(f"{title.replace(chr(0), '')}\0{content}")
        block = f'<script type="application/octet-stream" data-what="sealed">{self.seal(whole)}'
        return f"{_FORM}{block}</script>"


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
