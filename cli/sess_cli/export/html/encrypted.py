"""Pages that need a passphrase: AES-256-GCM, decrypted in the browser."""

from __future__ import annotations

import hashlib
import os
from base64 import b64encode
from typing import TYPE_CHECKING, BinaryIO

from sess_cli.export.html import chunks, page, shell
from sess_cli.export.html.combined import Combined
from sess_cli.export.story import Story
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


def require() -> type[AESGCM]:
    """The cipher, which the standard library does not have."""
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # an extra
    except ImportError:
        raise SessError(
            "--encrypt needs the cryptography package",
            hint="`pip install 'sessiond[encrypt]'`",
            code=Exit.PROGRAM_FAILED,
        ) from None
    return AESGCM


class Lock:
    """One key for one export, made from a passphrase; each page has a nonce of its own."""

    title = "Encrypted session"  # all that can be read without the passphrase

    def __init__(self, passphrase: str) -> None:
        self._salt = os.urandom(_SALT)
        given = passphrase.encode("utf-8", "replace")
        self._cipher = require()(hashlib.pbkdf2_hmac("sha256", given, self._salt, ROUNDS))

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


def write(story: Story | Combined, out: BinaryIO, lock: Lock, look: page.Look) -> None:
    """Everything is encrypted, the title included."""
    body = lock.body(story.title, "".join(page.body(story, look)))
    pieces = shell.document(lock.title, [body], level=look.level)
    out.writelines(piece.encode() for piece in pieces)
