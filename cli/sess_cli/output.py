"""JSON lines on stdout, and text for spreadsheets."""

from __future__ import annotations

import sys

from sess_cli.terminal import Terminal
from sess_common.classes import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def json_line(value: Any) -> None:
    """Write one object and flush, so that the reader of a pipe need not wait for the rest."""
    import json  # loads in half the time of orjson

    line = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    if sys.stdout.isatty():  # a pipe gets the text as it is
        line = inert(line.decode()).encode()
    out = sys.stdout.buffer
    out.write(line + b"\n")
    out.flush()


def csv_text(text: str) -> str:
    """Foreign text for CSV: spreadsheets run formulas, terminals interpret escape sequences.

    A leading apostrophe makes it text in a spreadsheet.
    """
    return Terminal().text(f"'{text}" if text.startswith(_FORMULA) else text)


def inert(line: str) -> str:
    """The same JSON with all control characters escaped: encoders escape only some."""
    if line.isprintable():
        return line
    import json

    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in line)
