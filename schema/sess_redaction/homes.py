"""Home directories, which name their owners."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from urllib.parse import quote

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


class Homes:
    """Writes home directories as `~`; `found` is told whose."""

    def __init__(self, home: str | None, found: Callable[[str], None]) -> None:
        self._found = found
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

    def shortened(self, text: str) -> str:
        for sign, expression in self._own:
            if sign in text:
                text = expression.sub(self._own_home, text)
        if "/home/" in text or "Users" in text or "projects/-" in text:
            for sign, expression in _HOMES:
                if sign in text:
                    text = expression.sub(self._other_home, text)
        return text

    def _own_home(self, found: re.Match[str]) -> str:
        if _begins_path(found) or (self._own_is_telling and _is_in_address(found)):
            self._found("")
            return "~"
        return found[0]

    def _other_home(self, found: re.Match[str]) -> str:
        if found[1].lower() in _NOBODY or not _begins_path(found):
            return found[0]
        self._found(found[1].lower())
        return "~"


def _begins_path(found: re.Match[str]) -> bool:
    """Whether it is not inside a longer path or word, as in `https://example.org/home/page`."""
    text, at = found.string, found.start()
    before = text[at - 1 : at]
    if text[max(at - 2, 0) : at] == ":/":
        return False  # the user in `postgres://root:...`
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
