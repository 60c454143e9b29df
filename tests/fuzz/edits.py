"""Changes of an input: of its bytes, of a value in its JSON, or of both with another input."""

from __future__ import annotations

import json

import orjson
from hypothesis import strategies as st
from tests import golden_damage as damage

TOKENS = (
    b'"', b"\\", b"\\u0000", b"\\ud800", b"\n", b"\r\n", b"\0", b"{", b"}", b"[", b"]", b",", b":",
    b"null", b"true", b"-1", b"1e999", b"99999999999999999999", b"\xff", b"\xed\xa0\x80", b"<",
    b">", b"<script>", b"&", b"`", b"```", b"~~~", b"|", b"](", b"javascript:", b"\x1b[31m",
    b"\x1b]0;",
    b"\xe2\x80\xae", b"\xef\xbb\xbf", b"(", b")", b" OR ", b"-", b"*", b"password=", b"token: ",
    b"Bearer ", b"@", b"://", b"=", b"'", b"/home/demo", b"#", b"$",
    b"2026-02-30T25:61:61Z", b"1970",
)  # fmt: skip
EDIT = st.tuples(st.integers(0, 7), st.integers(0, 1 << 16), st.integers(0, 1 << 16))
EDITS = st.lists(EDIT, max_size=6)


def changed(data: bytes, edits: list[tuple[int, int, int]], others: list[bytes]) -> bytes:
    for kind, at, what in edits:
        data = _CHANGES[kind](data, at, what, others)
    return data


def _at(data, at):
    return at % (len(data) + 1)


def _flip(data, at, what, _others):
    if not data:
        return data
    at %= len(data)
    return data[:at] + bytes([data[at] ^ 1 << what % 8]) + data[at + 1 :]


def _insert(data, at, what, _others):
    at = _at(data, at)
    return data[:at] + TOKENS[what % len(TOKENS)] + data[at:]


def _delete(data, at, what, _others):
    at = _at(data, at)
    return data[:at] + data[at + 1 + what % 40 :]


def _repeat(data, at, what, _others):
    at = _at(data, at)
    piece = data[at : at + 1 + what % 200]
    return data[:at] + piece * (1 + what % 5) + data[at:]


def _cross(data, at, what, others):
    other = others[what % len(others)]
    return data[: _at(data, at)] + other[_at(other, what) :]


def _wrong_value(data, at, what, _others):
    return _in_json(data, at, lambda raw, path: damage.replaced(raw, path, _wrong(what)))


def _wrong(what):
    return damage.WRONG[what % len(damage.WRONG)]


def _other_value(data, at, what, _others):
    """A value of one field in the place of another."""

    def change(raw, path):
        value = orjson.loads(raw)
        every = [one for one, _ in damage.paths(value)]
        taken = value
        for key in every[what % len(every)]:
            taken = taken[key]
        return damage.replaced(raw, path, taken)

    return _in_json(data, at, change)


def _in_json(data, at, change):
    """Change a value in one line, or in the whole if it is one document."""
    first, lines = data[:1], data[1:].split(b"\n")
    for place, raw in ((None, data[1:]), (at % len(lines), lines[at % len(lines)])):
        try:
            value = orjson.loads(raw)
        except orjson.JSONDecodeError:
            continue
        every = [path for path, _ in damage.paths(value)]
        if not every:
            continue
        made = json.dumps(change(raw, every[at % len(every)])).encode()
        if place is None:
            return first + made
        lines[place] = made
        return first + b"\n".join(lines)
    return data


_CHANGES = (
    _flip, _insert, _delete, _repeat, _cross, _wrong_value, _other_value, _wrong_value,
)  # fmt: skip
