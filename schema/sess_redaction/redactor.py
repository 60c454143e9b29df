"""Masks secrets and home directories in texts, and remembers what and where they were."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from sess_common.program import counted
from sess_redaction import engine, homes, names, values
from sess_redaction.extents import MASK
from sess_redaction.homes import HOME

# How a text breaks and quotes a secret does not make it another one.
_AROUND = re.compile(r"\x1b\[[0-9;]*m|\\[nrt]|[\s\"'\\]")
# Every record has some, each of them once.
_ID = re.compile(
    r"(?:[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[\d.]{0,10}Z?)\Z"
)
_SHORT = 80  # characters; shorter texts without secrets are remembered
_MOST_SHORT = 20_000
_MOST_PASSES = 8
_MOST_LINES = 40  # lines of a member's value that may be one secret
_LONG_MEMBER = 16
_LONG_PIECE = 6


@dataclass(slots=True, frozen=True)
class Rule:
    """A rule of the user: what matches is masked, or only its first group."""

    kind: str
    pattern: re.Pattern[str]


class Redactor:
    """Masks secrets and home directories, and counts the different ones."""

    def __init__(self, home: str | None = "~", rules: Sequence[Rule] = ()) -> None:
        self._masked: dict[str, str] = {}  # the kind of each, as it was first met
        self._spotless: set[str] = set()
        self._homes = homes.Homes(home, self._found_home)
        self._rules = [(rule.kind, rule.pattern) for rule in rules]
        self.place = ""  # where the next texts are from
        self.places: Counter[tuple[str, str]] | None = None  # kind and place, if they are wanted
        self._recent: dict[str, str] = {}  # secrets since `begin_event`, and their masks

    def __call__(self, text: str) -> str:
        # Argument names, paths and the like repeat often.
        short = len(text) < _SHORT
        if short and (text in self._spotless or (not self._rules and _ID.match(text))):
            return text
        cleaned = text
        # A mask changes what is around it: again, until nothing more is found.
        for _ in range(_MOST_PASSES):
            before = cleaned
            cleaned = self._without_secrets(self._homes.shortened(before))
            if cleaned == before:
                break
        if short and cleaned == text and len(self._spotless) < _MOST_SHORT:
            self._spotless.add(text)
        return cleaned

    def named(self, name: str, value: str) -> str:
        """A value in an object: its name may mark it as a secret."""
        if names.means_secret(name) and is_secret_member(name, value):
            return self._mask(names.kind_of(name), value)
        return self(value)

    def begin_event(self) -> None:
        self._recent.clear()

    def excerpt(self, text: str) -> str:
        """A part of texts of the event that are masked: it may lack what marks a secret in them."""
        text = self(text)
        for secret, mask in self._recent.items():
            text = text.replace(secret, mask)
        return text

    @property
    def identity(self) -> str:
        """Changes whenever other masks may come of the same texts."""
        return f"{engine.EDITION} {[pattern.pattern for _, pattern in self._rules]}"

    @property
    def masked(self) -> Counter[str]:
        """How many different ones of each kind, however often each was met."""
        return Counter(self._masked.values())

    def report(self) -> str:
        """`2 API keys, 1 private key`; empty when nothing was masked."""
        ranked = sorted(self.masked.items(), key=lambda one: (-one[1], one[0]))
        return ", ".join(counted(count, name) for name, count in ranked)

    def _without_secrets(self, text: str) -> str:
        found = engine.find(text, self._rules)
        if not found:
            return text
        pieces: list[str] = []
        done = 0
        for begin, end, kind in found:
            pieces += (text[done:begin], self._mask(kind, text[begin:end]))
            done = end
        pieces.append(text[done:])
        return "".join(pieces)

    def _found_home(self, user: str) -> None:
        self._masked[f"~{user}"] = HOME

    def _mask(self, kind: str, secret: str) -> str:
        bare = _AROUND.sub("", MASK.sub("", secret))
        if bare:
            self._masked.setdefault(bare, kind)
        if self.places is not None:
            self.places[kind, self.place] += 1
        mask = f"[redacted: {kind}]"
        for line in secret.splitlines():
            if len(line.strip()) >= _LONG_PIECE and "[redacted: " not in line:
                self._recent[line.strip()] = mask
        return mask


def is_secret_member(name: str, value: str) -> bool:
    if "\n" not in value:
        return values.quoted(name, value)
    # Several lines are a text, unless each is as unreadable as a key.
    lines = value.strip().split("\n")
    return len(lines) <= _MOST_LINES and all(
        len(line) >= _LONG_MEMBER and " " not in line and values.quoted(name, line)
        for line in lines
    )
