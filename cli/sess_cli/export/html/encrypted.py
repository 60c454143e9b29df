"""A page that needs a passphrase: AES-256-GCM, decrypted in the browser."""

from __future__ import annotations

import hashlib
import os
from base64 import b64encode
from typing import TYPE_CHECKING, BinaryIO

from sess_cli.export.html import chunks, page, shell
from sess_cli.export.story import Story
from sess_schema.errors import Exit, SessError

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
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - an extra
    except ImportError:
        raise SessError(
            "--encrypt needs the cryptography package",
            hint="`pip install 'sessiond[encrypt]'`",
            code=Exit.PROGRAM_FAILED,
        ) from None
    return AESGCM


def write(story: Story, out: BinaryIO, passphrase: str, look: page.Look) -> None:
    """Everything about the session is encrypted, its title included."""
    content = "".join(page.body(story, look))
    title = story.title.replace("\0", "")
    sealed = seal(chunks.squeezed(f"{title}\0{content}"), passphrase)
    block = f'<script type="application/octet-stream" data-what="sealed">{sealed}</script>'
    pieces = shell.document("Encrypted session", [_FORM, block], level=look.level)
    out.writelines(piece.encode() for piece in pieces)


def seal(content: bytes, passphrase: str) -> str:
    """Rounds, salt, nonce and ciphertext, as the page's script reads them."""
    salt, nonce = os.urandom(_SALT), os.urandom(_NONCE)
    key = hashlib.pbkdf2_hmac("sha256", passphrase.encode("utf-8", "replace"), salt, ROUNDS)
    data = require()(key).encrypt(nonce, content, None)
    return " ".join([str(ROUNDS), *(b64encode(piece).decode() for piece in (salt, nonce, data))])
