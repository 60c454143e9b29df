"""Masks secrets and home directories in texts, and remembers what and where they were."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from sess_common import decode
from sess_common.errors import Exit, SessError
from sess_common.program import counted
from sess_redaction import engine, names, values
from sess_redaction.extents import MASK, Secret, ends_sequence
from sess_redaction.occurrences import Occurrences

HOME = "home path"  # a kind of secret
# How a text breaks and quotes a secret does not make it another one.
_AROUND = re.compile(r"\x1b\[[0-9;]*m|\\[nrt]|[\s\"'\\]")
# Every record has some, each of them once.
_ID = re.compile(
    r"(?:[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[\d.]{0,10}Z?)\Z"
)
_SHORT = 80  # characters
_MOST_SEARCHED = 500_000
_MOST_PASSES = 8
_MOST_LINES = 40  # lines of a member's value that may be one secret
_LONG_MEMBER = 16
_LONG_PIECE = 6


class Rule(NamedTuple):
    """A rule of the user: what matches is masked, or only its first group."""

    kind: str
    pattern: re.Pattern[str]


class Redactor:
    """Masks secrets and home directories, and counts the different ones."""

    def __init__(self, home: str | None = "~", rules: Sequence[Rule] = ()) -> None:
        self._masked: dict[str, str] = {}  # the kind of each, as it was first met
        self._spotless: set[int] = set()  # by hash: texts in which nothing is masked
        self._searched: dict[int, Sequence[Secret]] = {}  # by hash: what the rules found
        self._occurrences = Occurrences()
        self._version = 0
        self._learns = False
        self.learned: set[Hashable] = set()  # what was read to learn its secrets
        self._homes = Homes(home, self._found_home)
        self._rules = [*rules]
        self.place = ""  # where the next texts are from
        self.places: Counter[tuple[str, str]] | None = None  # kind and place, if they are wanted
        self._recent: dict[str, str] = {}  # secrets since `begin_event`, and their masks

    def __call__(self, text: str) -> str:
        if not self._learns and self._version != self._occurrences.version:
            self._version = self._occurrences.version
            self._spotless.clear()
        # Argument names and paths repeat often, and a text is a record's, an event's and an edit's.
        key = hash(text)
        if key in self._spotless:
            return text
        cleaned = self._without_secrets(text)
        if cleaned == text and len(self._spotless) < _MOST_SEARCHED:
            self._spotless.add(key)
        return cleaned

    @contextmanager
    def learning(self) -> Iterator[None]:
        """What is masked meanwhile is remembered, to mask it wherever it occurs, but not reported."""
        masked, places = self._masked.copy(), self.places
        self.places, self._learns = None, True
        try:
            yield
        finally:
            self._spotless.clear()  # what is known was not looked for
            self._masked, self.places, self._learns = masked, places, False

    def learn(self, records: Iterable[bytes]) -> None:
        """What is masked in these records, as agents wrote them, is masked wherever it occurs from then on."""
        with self.learning():
            for record in records:
                if not self.may_mask(record):
                    continue
                try:
                    self.value(decode.decode(record)[0])
                except (ValueError, RecursionError):
                    self(record.decode("utf-8", "backslashreplace"))

    def may_mask(self, record: bytes) -> bool:
        """Whether there is anything to learn from a record of JSON."""
        return bool(self._rules) or engine.may_hold(record)

    def named(self, name: str, value: str) -> str:
        """A value in an object: its name may mark it as a secret."""
        if names.means_secret(name) and is_secret_member(name, value):
            return self._mask(names.kind_of(name), value)
        return self(value)

    def repeated_in(self, record: str) -> set[str]:
        """What was found so far and occurs in a record, in any way of writing."""
        return self._occurrences.of(record)

    def value(self, value: Any, arguments: dict[str, str] | None = None) -> Any:
        """A value of JSON; `arguments` is told what became of texts that have names."""
        if isinstance(value, str):
            return self(value) if value else value
        if isinstance(value, dict):
            # `{"name": "DB_PASSWORD", "value": "..."}`
            label = value.get("name") or value.get("key")
            label = label if isinstance(label, str) else None
            return {
                self(name): self._member((name == "value" and label) or name, inner, arguments)
                for name, inner in value.items()
            }
        if isinstance(value, list):
            return [self.value(inner, arguments) for inner in value]
        return value

    def _member(self, name: str, value: Any, arguments: dict[str, str] | None) -> Any:
        """A value whose name may mark it as a secret."""
        if isinstance(value, str):
            cleaned = self.named(name, value)
            if arguments is not None:
                arguments[value] = cleaned
            return cleaned
        if isinstance(value, list):
            return [self._member(name, inner, arguments) for inner in value]
        return self.value(value, arguments)

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
        return f"{engine.EDITION} {[rule.pattern.pattern for rule in self._rules]}"

    @property
    def masked(self) -> Counter[str]:
        """How many different ones of each kind, however often each was met."""
        return Counter(self._masked.values())

    def report(self) -> str:
        """`2 API keys, 1 private key`; empty when nothing was masked."""
        ranked = sorted(self.masked.items(), key=lambda item: (-item[1], item[0]))
        return ", ".join(counted(count, name) for name, count in ranked)

    def _without_secrets(self, text: str) -> str:
        # A mask changes what is around it: again, until nothing more is found.
        for _ in range(_MOST_PASSES):
            before = text
            text = self._homes.shortened(before)
            if found := self._found(text):
                text = self._with_masks(text, found)
            if not self._learns and (again := self._occurrences.find(text)):
                text = self._with_masks(text, engine.joined(text, again))
            if text == before:
                break
        return text

    def _found(self, text: str) -> Sequence[Secret]:
        """What the rules find; one text is often a record, an event and a part of an edit."""
        if len(text) < _SHORT and not self._rules and _ID.match(text) is not None:
            return ()
        key = hash(text)
        found = self._searched.get(key)
        if found is None:
            found = engine.find(text, self._rules) or ()
            if len(self._searched) < _MOST_SEARCHED:
                self._searched[key] = found
        return found

    def _with_masks(self, text: str, found: Iterable[Secret]) -> str:
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
        self._occurrences.add(kind, secret)
        if self.places is not None:
            self.places[kind, self.place] += 1
        mask = f"[redacted: {kind}]"
        for line in secret.splitlines():
            if len(line.strip()) >= _LONG_PIECE and "[redacted: " not in line:
                self._recent[line.strip()] = mask
        return mask


def is_secret_member(name: str, value: str) -> bool:
    """Whether a value in an object is one, given that its name means a secret."""
    if "\n" not in value:
        return values.quoted(name, value)
    # Several lines are a text, unless each is as unreadable as a key.
    lines = value.strip().split("\n")
    return len(lines) <= _MOST_LINES and all(
        len(line) >= _LONG_MEMBER and " " not in line and values.quoted(name, line)
        for line in lines
    )


# -- the user's own rules: `[redact]` in config.toml, and `--redact`


def rules(patterns: Iterable[str]) -> list[Rule]:
    return [Rule("own rule", _compiled(pattern)) for pattern in patterns]


def configured_rules(path: Path) -> list[Rule]:
    """The rules in config.toml; none if there is no such file or section."""
    import tomllib  # 3 ms

    try:
        section = tomllib.loads(path.read_text("utf-8")).get("redact", {})
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise _wrong(path, str(error)) from error
    return rules(checked_patterns(path, section))


def checked_patterns(path: Path, section: Any) -> list[str]:
    """The patterns of the section `[redact]`."""
    if not isinstance(section, dict) or set(section) - {"patterns", "at_ingest"}:
        raise _wrong(path, "[redact] allows only patterns, at_ingest")
    if not isinstance(section.get("at_ingest", False), bool):
        raise _wrong(path, "redact.at_ingest must be true or false")
    patterns = section.get("patterns", [])
    if not isinstance(patterns, list) or not all(isinstance(pattern, str) for pattern in patterns):
        raise _wrong(path, "redact.patterns must be a list of regular expressions")
    for pattern in patterns:
        _compiled(pattern)
    return patterns


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        compiled = re.compile(pattern, re.MULTILINE)
    except re.error as error:
        raise SessError(
            f'invalid regular expression "{pattern}": {error}',
            hint="put a backslash before ( ) [ ] { } . * + ? | ^ $ to match them literally",
        ) from error
    if compiled.fullmatch("") is not None:
        raise SessError(
            f'the regular expression "{pattern}" matches nothing at all',
            hint="it must match at least one character",
        )
    return compiled


def _wrong(path: Path, why: str) -> SessError:
    return SessError(
        f'configuration "{path}": {why}',
        hint="for example: [redact] with patterns = ['ACME-[0-9]{6}']",
        code=Exit.USAGE,
    )


# -- home directories, which name their owners

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
_AUTHORITY = re.compile(r"://[^\s/~]*\Z")  # a mask is no host


class Homes:
    """Writes home directories as `~`; `found` is told whose. All stay if the own one is empty."""

    def __init__(self, home: str | None, found: Callable[[str], None]) -> None:
        self._stay = home == ""
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
        if self._stay:
            return text
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
    return ends_sequence(text, at)


def _is_in_address(found: re.Match[str]) -> bool:
    """As in `vscode-remote://wsl+debian/home/name`, or the same encoded with `%2F`."""
    text, at = found.string, found.start()
    return found[0][0] == "%" or _AUTHORITY.search(text, max(at - 200, 0), at) is not None
