"""Damages an agent's files as crashes, other versions and hostile authors would."""

from __future__ import annotations

import dataclasses
import json
import random
import re
import types
import typing
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

import orjson

from sess_schema import edits
from sessiond.sourcekit import base

# A value of each other type, and values of the right type that nobody expects.
WRONG: tuple[Any, ...] = (
    *(None, True, -1, 0, 10**30, 1.5e308, "", "\ud800 \x00", "1e999", [], {}, [None], [[{}]]),
    {"type": {}, "text": [], "id": 7},
)
DEEP = 3000
_DATE = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:")
_NAMES = frozenset({"type", "kind", "role", "event", "method", "say", "ask"})

Path = tuple[Any, ...]


def paths(value: Any) -> Iterator[tuple[Path, str]]:
    """The place of every value inside a JSON value, and a name that equal fields share."""
    stack: list[tuple[Any, Path, str]] = [(value, (), "")]
    while stack:
        inner, path, name = stack.pop()
        if path:
            yield path, name
        pairs: Iterable[tuple[Any, Any]] = inner.items() if isinstance(inner, dict) else ()
        if isinstance(inner, list):
            pairs = ((at, one) for at, one in enumerate(inner))
        for key, one in pairs:
            kind = one.get("type") if isinstance(one, dict) else None
            step = f".{key}" if isinstance(inner, dict) else f"[{kind}]"
            stack.append((one, (*path, key), name + step))


def replaced(raw: bytes, path: Path, wrong: Any) -> Any:
    """A fresh value with one part replaced."""
    value = orjson.loads(raw)
    inner = value
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = wrong
    return value


def mapped(value: Any, change: Callable[[str, Any], Any], key: str = "") -> Any:
    """A value with every string and number in it changed."""
    if isinstance(value, dict):
        return {name: mapped(one, change, name) for name, one in value.items()}
    if isinstance(value, list):
        return [mapped(one, change, key) for one in value]
    return change(key, value)


def _dated(when: Any, number: Any) -> Callable[[str, Any], Any]:
    def change(_key: str, value: Any) -> Any:
        if isinstance(value, str) and _DATE.match(value):
            return when
        large = isinstance(value, int | float) and not isinstance(value, bool) and value > 1e9
        return number if large else value

    return change


def _named(key: str, value: Any) -> Any:
    return "mystery" if key in _NAMES and isinstance(value, str) else value


def _numbered(_key: str, value: Any) -> Any:
    return value if isinstance(value, bool) or not isinstance(value, int) else 10**25


def _swapped(_key: str, value: Any) -> Any:
    if isinstance(value, str):
        return len(value)
    return [value] if value is not None else {}


# By name: what happens to each record of a log, or to a document as a whole.
CHANGES: dict[str, Callable[[Any], Any]] = {
    "unknown types": lambda value: mapped(value, _named),
    "absurd numbers": lambda value: mapped(value, _numbered),
    "1970": lambda value: mapped(value, _dated("1970-01-01T00:00:00Z", 0)),
    "before time": lambda value: mapped(value, _dated("-0044-03-15T00:00:00Z", -(10**15))),
    "other types": lambda value: mapped(value, _swapped),
    "only a list": lambda value: [value],
    "only a word": lambda _value: "mystery",
}


def _noise(data: bytes, length: int) -> bytes:
    return random.Random(len(data)).randbytes(length)


_NESTED = b'{"type":' + b'[{"a":' * DEEP + b"1" + b"}]" * DEEP + b"}\n"
# Of any file.
BYTEWISE: dict[str, Callable[[bytes], bytes]] = {
    "truncated": lambda data: data[: len(data) * 3 // 5],
    "empty": lambda _data: b"",
    "rubbish": lambda data: _noise(data, 3000),
    "rubbish inside": lambda data: data[:90] + _noise(data, 200) + data[90:],
    "zeros at the end": lambda data: data + b"\0" * 4096,
    "deep": lambda data: _NESTED + data,
    "twice": lambda data: data + data,
}
NAMES = (*BYTEWISE, *CHANGES)


def damaged(name: str, data: bytes, kind: str) -> bytes:
    if name in BYTEWISE:
        return BYTEWISE[name](data)
    if kind == "transcript":
        return b"".join(_changed(line, CHANGES[name]) + b"\n" for line in data.splitlines())
    return _changed(data, CHANGES[name])


def _changed(raw: bytes, change: Callable[[Any], Any]) -> bytes:
    try:
        return _encoded(change(orjson.loads(raw)))
    except orjson.JSONDecodeError:
        return raw[::-1]


def _encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


# -- whether what a parser returns can be written


@cache
def _hints(kind: type) -> dict[str, Any]:
    scope = {**vars(base), **vars(edits)}
    return typing.get_type_hints(kind, scope)


def misfits(value: Any, hint: Any = None, where: str = "") -> Iterator[str]:
    """Fields whose value does not have the declared type; the index would refuse them."""
    if hint is None or (isinstance(hint, type) and dataclasses.is_dataclass(hint)):
        is_record = dataclasses.is_dataclass(value) and not isinstance(value, type)
        if is_record and (hint is None or isinstance(value, hint)):
            kind: type = type(value)
            for name, declared in _hints(kind).items():
                yield from misfits(getattr(value, name), declared, f"{where}.{name}")
        else:
            yield f"{where}: {value!r}"
        return
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        if all([*misfits(value, one, where)] for one in inner):
            yield f"{where}: {value!r}"
    elif origin in (list, tuple):
        if not isinstance(value, list | tuple):
            yield f"{where}: {value!r}"
        elif origin is list or inner[-1] is Ellipsis:
            for one in value:
                yield from misfits(one, inner[0], where)
    elif isinstance(hint, type):
        allowed: Any = (int, float) if hint is float else hint
        if not isinstance(value, allowed) or (hint in (int, float) and isinstance(value, bool)):
            yield f"{where}: {value!r}"
        elif hint is int and not -(1 << 63) <= value < 1 << 63:
            yield f"{where}: {value!r} is too large"
