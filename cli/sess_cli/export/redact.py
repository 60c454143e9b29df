"""Remove secrets and private paths from text."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from sess_cli.export.assignments import is_secret_value, kind_of, names_secret
from sess_cli.export.secrets import PATTERNS, Found
from sess_cli.render import amounts

HOME = "home path"
# Account names of container images and services; they identify nobody.
_NOBODY = frozenset({
    "app", "circleci", "codespace", "default", "dev", "git", "gitpod", "jovyan", "linuxbrew",
    "me", "name", "node", "public", "runner", "shared", "ubuntu", "user", "username", "vscode",
    "you",
})  # fmt: skip
_USER = r"([^\W.-][\w.-]*)"
_WINDOWS_USER = (
    r"([^\W.-][^\\/:*?\"<>|\s]*(?: [^\\/:*?\"<>|\s]+){0,2}(?=\\)|[^\W.-][\w.-]*+(?!:[\\/]))"
)
# Each begins with its sign, which `re` finds quickly; what precedes it is checked afterwards.
_HOMES = (
    ("/home/", re.compile(rf"/home/{_USER}")),
    ("/mnt/", re.compile(rf"/mnt/[a-z]/Users/{_USER}")),
    ("/c/Users/", re.compile(rf"/c/Users/{_USER}")),
    ("/Users/", re.compile(rf"/Users/{_USER}")),
    (":\\", re.compile(rf"(?i:[a-z]):\\{{1,2}}Users\\{{1,2}}{_WINDOWS_USER}")),
    (":/Users", re.compile(rf"(?i:[a-z]):/Users/{_USER}")),
    ("projects/-", re.compile(r"(?<=projects/)-(?:home|Users)-([^\W_]+)(?![^\W_])")),
)
_WITHIN_NAME = frozenset("._~-")
# A colour or an escaped line break; its last letter does not belong to the path that follows.
_ENDS_SEQUENCE = re.compile(r"(?:\x1b\[[0-9;]*m|\\[nrt])\Z")
_AUTHORITY = re.compile(r"://[^\s/~]*\Z")  # a mask is no host
# How a text breaks and quotes a secret does not make it another one.
_AROUND = re.compile(r"\\[nrt]|[\s\"'\\]")
_SHORT = 80  # characters; shorter texts without secrets are remembered
_MOST_SHORT = 20_000
# Bytes searched at a time: a secret may begin inside another one that has no end, and searching
# for that end again after each match would take quadratic time.
_WINDOW = 32_768
_OVERLAP = 1_024
_MEMORY = 64 << 20  # bytes that RE2 may use for its states; it takes only what it needs


class Redactor:
    """Masks secrets and home directories, and counts the different ones."""

    def __init__(self, home: str | None = "~") -> None:
        self._masked: dict[str, str] = {}  # the kind of each, as it was first met
        self._screen = _screen()
        self._spotless: set[str] = set()
        self._own: list[tuple[str, re.Pattern[str]]] = []
        self._own_is_telling = False
        given = os.path.expanduser(home or "").rstrip("/\\")
        if len(given) > 1:
            self._own_is_telling = given.count("/") > 1  # `/root` occurs in many URLs
            for own in dict.fromkeys((given, os.path.realpath(given))):
                self._add_own(own)

    def _add_own(self, home: str) -> None:
        for written in (home, quote(home, safe="")):
            self._own.append((written, re.compile(rf"{re.escape(written)}(?![\w-]|\.\w)")))
        coded = re.sub(r"[^A-Za-z0-9]", "-", home)
        if coded.count("-") > 1:
            self._own.append((coded, re.compile(rf"{coded}(?!\w)")))

    def __call__(self, text: str) -> str:
        # Argument names, paths and the like repeat often.
        short = len(text) < _SHORT
        if short and text in self._spotless:
            return text
        cleaned = text
        for sign, expression in self._own:
            if sign in cleaned:
                cleaned = expression.sub(self._own_home, cleaned)
        if "/home/" in cleaned or "Users" in cleaned or "projects/-" in cleaned:
            for sign, expression in _HOMES:
                if sign in cleaned:
                    cleaned = expression.sub(self._other_home, cleaned)
        cleaned = self._without_secrets(cleaned)
        if short and cleaned == text and len(self._spotless) < _MOST_SHORT:
            self._spotless.add(text)
        return cleaned

    def named(self, name: str, value: str) -> str:
        """A value in an object: its name may mark it as a secret."""
        cleaned = self(value)
        if cleaned == value and names_secret(name) and is_secret_value(name, value):
            return self._mask(kind_of(name), value)
        return cleaned

    @property
    def masked(self) -> Counter[str]:
        """How many different ones of each kind, however often each was met."""
        return Counter(self._masked.values())

    def report(self) -> str:
        """`2 API keys, 1 private key`; empty when nothing was masked."""
        ranked = sorted(self.masked.items(), key=lambda one: (-one[1], one[0]))
        return ", ".join(amounts.plural(count, name) for name, count in ranked)

    def _without_secrets(self, text: str) -> str:
        encoded = text.encode("utf-8", "surrogatepass")
        place = self._screen(encoded, 0)
        if place < 0:
            return text
        pieces: list[str] = []
        done = at = passed = 0
        while place >= 0:
            at += len(encoded[passed:place].decode("utf-8", "surrogatepass"))
            found = _looked(text, at)
            rest = found.rest
            if found.name is not None:
                begin, rest = found.span
                pieces += (text[done:begin], self._mask(found.name, text[begin:rest]))
                done = rest
            passed = place + len(text[at:rest].encode("utf-8", "surrogatepass"))
            at = rest
            place = self._screen(encoded, passed)
        pieces.append(text[done:])
        return "".join(pieces)

    def _own_home(self, found: re.Match[str]) -> str:
        if _begins_path(found) or (self._own_is_telling and _is_in_address(found)):
            return self._shortened("")
        return found[0]

    def _other_home(self, found: re.Match[str]) -> str:
        if found[1].lower() in _NOBODY or not _begins_path(found):
            return found[0]
        return self._shortened(found[1].lower())

    def _shortened(self, user: str) -> str:
        self._masked[f"~{user}"] = HOME
        return "~"

    def _mask(self, name: str, secret: str) -> str:
        self._masked.setdefault(_AROUND.sub("", secret), name)
        return f"[redacted: {name}]"


def _begins_path(found: re.Match[str]) -> bool:
    """Whether it is not inside a longer path or word, as in `https://example.org/home/page`."""
    text, at = found.string, found.start()
    before = text[at - 1 : at]
    if before == "]":
        # A mask hides what preceded the path.
        return "[redacted: " not in text[max(at - 30, 0) : at]
    if not before.isalnum() and before not in _WITHIN_NAME:
        return True
    return _ENDS_SEQUENCE.search(text, max(at - 24, 0), at) is not None


def _is_in_address(found: re.Match[str]) -> bool:
    """As in `vscode-remote://wsl+debian/home/name`, or the same encoded with `%2F`."""
    text, at = found.string, found.start()
    return found[0][0] == "%" or _AUTHORITY.search(text, max(at - 200, 0), at) is not None


def _looked(text: str, at: int) -> Found:
    for pattern in PATTERNS:
        found = pattern.look(text, at)
        if found is not None:
            return found
    return Found(None, (at, at), at + 1)


@lru_cache(maxsize=1)
def _screen() -> Callable[[bytes, int], int]:
    """The start of the next candidate; -1 if there is none."""
    whole = "|".join(f"(?:{_ungrouped(one.expression)})" for one in PATTERNS).encode()
    try:
        import re2  # noqa: PLC0415
    except ImportError:
        compiled: Any = re.compile(whole)
    else:
        options = re2.Options()
        options.max_mem = _MEMORY
        compiled = re2.compile(whole, options)
    search = compiled.search

    def first(text: bytes, at: int) -> int:
        size = len(text)
        while True:
            found = search(text, at, at + _WINDOW)
            if found is not None:
                return int(found.start())
            if at + _WINDOW >= size:
                return -1
            at += _WINDOW - _OVERLAP

    return first


def _ungrouped(expression: str) -> str:
    return re.sub(r"(?<!\\)\((?!\?)", "(?:", expression)
