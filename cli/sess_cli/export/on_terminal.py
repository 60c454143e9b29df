"""An export that is printed to a terminal: what could control it is escaped."""

from __future__ import annotations

import codecs
import io
from typing import Any, BinaryIO

from sess_cli.output import inert
from sess_common.escape import safe


class Escaping(io.RawIOBase):
    """A terminal that gets no control characters but line breaks and tabs."""

    def __init__(self, out: BinaryIO, *, json: bool) -> None:
        self._out = out
        self._made = _inert_lines if json else safe
        self._rest = codecs.getincrementaldecoder("utf-8")("replace")

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._out.write(self._made(self._rest.decode(bytes(data))).encode())
        return len(data)


def _inert_lines(text: str) -> str:
    return "\n".join(map(inert, text.split("\n")))
