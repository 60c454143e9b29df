"""Finds again, wherever it occurs, what a rule found once: agents read `.env` and then use the value.

Also as URLs, JSON, HTML and base64 write it, and broken by a narrow terminal. What people also write for other reasons
(`admin`, `localhost`, a short number) is not looked for: it would blank a page.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from urllib.parse import quote, quote_plus

from sess_redaction import looks, names, values
from sess_redaction.extents import MASK, Secret
from sess_redaction.screens import compiled

_LEAST = 8  # characters
_LEAST_LETTERS, _LEAST_DIGITS, _LEAST_PHRASE = 12, 9, 16
_SURE = 12  # characters: also inside of a longer word
_PIECE = 8
_LONGEST = 160  # characters that are compared; what goes on after them is masked with them
_LEAST_CODED = 10  # characters in base64 that depend on nothing but the secret
_MOST = 2_000  # secrets
_AROUND = "\"'`,;:()[]{}<>\\ \t"
_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\Z")
_LEAST_WORDS = 4
_ORDINARY = frozenset(
    (
        "a",
        "and",
        "at",
        "be",
        "for",
        "from",
        "have",
        "in",
        "is",
        "it",
        "not",
        "of",
        "on",
        "that",
        "the",
        "to",
        "with",
    )
)
# A line of a file, as searches and compilers name it.
_LOCATION = re.compile(r"[\w./~\\-]*\.[A-Za-z]\w{0,4}:\d+|[~.]{0,2}(?:/[\w.-]+){2,}/?\Z")
_PHRASE = re.compile(r"[A-Za-z]{2,}(?:[ ._-]+[A-Za-z]{2,}){2,}\Z")
# How a terminal, a shell or a box breaks a word.
BREAK = r"(?:[ \t]{0,80}[│┃║|]?[ \t]{0,8}\\{0,3}\r?\n[ \t]{0,20}(?:[│┃║|>+-][ \t]{0,8})?|\\[rn])"
_MARGINS = 400  # characters of what breaks it
_MORE = re.compile(r"[\w+/=.-]*", re.ASCII)
_BREAK = re.compile(BREAK)
_BREAK_BACKWARDS = re.compile(r"(?:[ \t]{0,8}[│┃║|>+-])?[ \t]{0,20}\n|[rn]\\")
# For screens, in bytes: where it begins, and from its end where it ends.
_BREAK_AFTER = rb"[ \t]*[|\x80-\xff]{0,3}[ \t]*\\*\r?\n|\\[rn]"
_BREAK_BEFORE = rb"[ \t]*[|>+\x80-\xff-]{0,3}[ \t]*\n|[rn]\\"
_DEEPEST = 16  # bytes around a piece that a screen compares
_MOST_DEEP = 16_000  # of all pieces of a screen
_TAIL = 30  # characters of it behind the end of the line
_BREAKING = frozenset(" \t│┃║|\\\r\n")
_BASE64 = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_")
_WORD = re.compile(r"[A-Za-z0-9]")


def is_telling(secret: str) -> bool:
    """Whether nobody would write it by chance, so that it means the same wherever it stands."""
    if len(secret) < _LEAST or values.is_placeholder(secret):
        return False
    if secret.isdecimal():
        return len(secret) >= _LEAST_DIGITS
    if _PHRASE.match(secret) is not None:
        said = secret.lower().split()
        few = len(said) < _LEAST_WORDS and " " in secret
        return len(secret) >= _LEAST_PHRASE and not few and not _ORDINARY.intersection(said)
    if _LOCATION.match(secret) is not None:
        return False
    random = looks.evidence(secret) or looks.is_password(secret) or values.is_random(secret)
    if not random and _UUID.match(secret) is None:
        return False
    if secret.isalpha() and secret[-1] >= "a":
        return looks.evidence(secret) > 0
    if names.reads_as_words(secret):
        return any(map(str.isdigit, secret)) and not secret.isalnum() and "_" not in secret
    return any(not c.isalpha() for c in secret) or len(secret) >= _LEAST_LETTERS


class Occurrences:
    """What was found so far, and where it occurs in other texts."""

    def __init__(self) -> None:
        self.version = 0  # of what is known
        self._known: set[str] = set()
        self._forms: dict[str, Form] = {}  # how each may be written
        self._forwards = Screen(_BREAK_AFTER)
        self._backwards = Screen(_BREAK_BEFORE)  # reads everything from its end

    def add(self, kind: str, found: str) -> None:
        """Remember what was found; of several lines or words, those that are secrets by themselves."""
        for line in MASK.sub("\n", found).splitlines():
            secret = line.strip(_AROUND)
            words = [secret] if _PHRASE.match(secret) is not None else secret.split()
            for one in words:
                word = one.strip(_AROUND)[:_LONGEST]
                if word in self._known or len(self._known) >= _MOST or not is_telling(word):
                    continue
                self._known.add(word)
                self._learn(kind, word)

    def _learn(self, kind: str, secret: str) -> None:
        for written in _forms(secret):
            self._add(Form(kind, written, goes_on=len(secret) == _LONGEST))
        for core in _coded(secret):
            self._add(Form(kind, core, coded=True))
        self.version += 1

    def _add(self, form: Form) -> None:
        if form.written in self._forms:
            return
        self._forms[form.written] = form
        for piece, rest in form.beginnings():
            self._forwards.add(piece, rest, form)
        self._backwards.add(*form.ending(), form)

    def find(self, text: str) -> list[Secret]:
        """Every place where one is written."""
        return [place for form in self._written_in(text) for place in form.places(text)]

    def of(self, text: str) -> set[str]:
        """What of all that is written in a text, in which way."""
        return {form.written for form in self._written_in(text) if any(form.places(text))}

    def _written_in(self, text: str) -> Iterable[Form]:
        """Those that may be; usually none."""
        if not self._known:
            return ()
        encoded = _bytes(text)
        forms = {form.written: form for form in self._forwards.forms_in(encoded)}
        if _may_break(text):
            forms |= {form.written: form for form in self._backwards.forms_in(encoded[::-1])}
        return forms.values()


class Screen:
    """Finds pieces of forms behind which the form goes on, to its end or to what breaks it."""

    def __init__(self, broken: bytes) -> None:
        self._broken = broken
        self._forms: dict[bytes, list[Form]] = {}  # by piece
        self._new: set[tuple[bytes, bytes]] = set()  # pieces that no search has, and their rests
        self._searches: list[tuple[set[tuple[bytes, bytes]], set[int], Callable[..., Any]]] = []

    def add(self, piece: bytes, rest: bytes, form: Form) -> None:
        self._forms.setdefault(piece, []).append(form)
        self._new.add((piece, rest))

    def forms_in(self, encoded: bytes) -> Iterator[Form]:
        """Those that may be; usually none."""
        if self._new:
            self._compile()
        for _, sizes, search in self._searches:
            match = search(encoded)
            while match is not None:
                begin = match.start()
                for size in sizes:
                    yield from self._forms.get(encoded[begin : begin + size], ())
                match = search(encoded, begin + 1)

    def _compile(self) -> None:
        """Join searches of about one size: then none is compiled more often than the sizes double."""
        pieces, self._new = self._new, set()
        while self._searches and len(self._searches[-1][0]) <= 2 * len(pieces):
            pieces |= self._searches.pop()[0]
        deep = min(_DEEPEST, _MOST_DEEP // len(pieces))
        each = {self._expression(piece, rest[:deep]) for piece, rest in pieces}
        sizes = {len(piece) for piece, _ in pieces}
        self._searches.append(
            (pieces, sizes, compiled(b"|".join(sorted(each)), by_byte=True).search)
        )

    def _expression(self, piece: bytes, rest: bytes) -> bytes:
        """Ordinary words are pieces of some secrets: what is behind them tells most of them apart."""
        behind = b""
        if b"\\" not in piece:  # it may itself begin what breaks
            for code in reversed(rest):
                behind = b"(?:%b|%b%b)" % (self._broken, re.escape(bytes((code,))), behind)
        return re.escape(piece) + behind


class Form:
    """One way in which a secret is written."""

    def __init__(
        self, kind: str, written: str, *, coded: bool = False, goes_on: bool = False
    ) -> None:
        self._kind = kind
        self.written = written
        self._coded = coded
        half = len(written) // 2
        middle = half - _PIECE // 2
        # One break leaves half of it whole, and several are far from each other.
        self.pieces: tuple[str, ...] = (written[:half], written[-half:])
        if half > _PIECE:
            self.pieces = (
                written[:_PIECE], written[middle : middle + _PIECE], written[-_PIECE:],
            )  # fmt: skip
        places = (0, middle if half > _PIECE else len(written) - half, len(written) - _PIECE)
        self._placed = [
            (offset, piece, _following(written, offset + len(piece), piece))
            for offset, piece in zip(places, self.pieces, strict=False)
        ]
        self._goes_on = goes_on or coded

    def beginnings(self) -> Iterator[tuple[bytes, bytes]]:
        """All pieces but the last, and what follows them."""
        for offset, piece, _ in self._placed[:-1]:
            yield _bytes(piece), _bytes(self.written[offset + len(piece) :])

    def ending(self) -> tuple[bytes, bytes]:
        """The last piece, and what is before it, read from the end."""
        offset, piece, _ = self._placed[-1]
        return _bytes(piece)[::-1], _bytes(self.written[:offset])[::-1]

    def places(self, text: str) -> Iterator[Secret]:
        for first, last in self._spans(text):
            begin, end = first, last
            if self._goes_on and (more := _MORE.match(text, end)) is not None:
                end = more.end()
            if self._coded:
                while begin and text[begin - 1] in _BASE64:
                    begin -= 1
            if len(self.written) >= _SURE or not _is_in_word(text, begin, end):
                yield begin, end, self._kind

    def _spans(self, text: str) -> list[tuple[int, int]]:
        """Where it is written in one, and where something breaks it."""
        size = len(self.written)
        spans = [(at, at + size) for at in _all_of(self.written, text)]
        if not _may_break(text):
            return spans
        for offset, piece, following in self._placed:
            for at in _all_of(piece, text):
                end = at + len(piece)
                if (following is None or text[end : end + 1] in following) and not any(
                    begin <= at < end for begin, end in spans
                ):
                    spans += self._broken(text, at, offset)
        return spans

    def _broken(self, text: str, at: int, offset: int) -> Iterator[tuple[int, int]]:
        """Around one of its pieces: what is before that may be broken, too."""
        if offset and text[at - 1 : at] != self.written[offset - 1]:
            before = text[max(at - _TAIL, 0) : at]
            if _BREAK_BACKWARDS.match(before[::-1]) is None:
                return
        last = at - offset
        least = max(last - (_MARGINS if offset else 0), 0)
        begin = text.rfind(self.written[0], least, last + 1)
        while begin >= 0:
            if (end := self._walked(text, begin)) is not None:
                yield begin, end
                return
            begin = text.rfind(self.written[0], least, begin)

    def _walked(self, text: str, at: int) -> int | None:
        """Where it ends that begins here, with or without breaks."""
        for number, character in enumerate(self.written):
            sign = text[at : at + 1]
            broken = _BREAK.match(text, at) if number and sign in _BREAKING else None
            if broken is not None and text[broken.end() : broken.end() + 1] == character:
                at = broken.end()
            elif sign != character:
                return None
            at += 1
        return at


def _may_break(text: str) -> bool:
    return "\n" in text or "\\" in text


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _following(written: str, end: int, piece: str) -> frozenset[str] | None:
    """What may follow a piece that ends there, if it goes on or is broken; None if anything."""
    if end >= len(written) or "\\" in piece or piece[-1] in _BREAKING:
        return None
    return _BREAKING | {written[end]}


def _all_of(piece: str, text: str) -> Iterator[int]:
    at = text.find(piece)
    while at >= 0:
        yield at
        at = text.find(piece, at + 1)


def _is_in_word(text: str, begin: int, end: int) -> bool:
    """Whether a longer word goes on before or after it."""
    before, first, last, after = (
        text[at : at + 1] for at in (max(begin - 1, 0), begin, end - 1, end)
    )
    return (begin > 0 and _WORD.match(before) is not None and _WORD.match(first) is not None) or (
        _WORD.match(last) is not None and _WORD.match(after) is not None
    )


def _forms(secret: str) -> list[str]:
    """As it is, and as URLs, JSON, HTML and shells write it."""
    in_json = json.dumps(secret, ensure_ascii=False)[1:-1]
    return [
        *dict.fromkeys((
            secret, in_json, json.dumps(secret)[1:-1], json.dumps(in_json, ensure_ascii=False)[1:-1],
            json.dumps(in_json)[1:-1],
            quote(secret, safe=""), quote(secret), quote_plus(secret), html.escape(secret),
            html.escape(secret, quote=False), secret.replace("'", "'\\''"), secret.encode("utf-8", "replace").hex(),
        ))
    ]  # fmt: skip


def _coded(secret: str) -> set[str]:
    """What of it is the same in base64 whatever stands before and after it."""
    raw = secret.encode("utf-8", "replace")
    cores = set[str]()
    for before in range(3):
        coded = base64.b64encode(b"\0" * before + raw).decode().rstrip("=")
        sure = (before + len(raw)) * 8 // 6  # the character after these shares its bits
        core = coded[(before * 8 + 5) // 6 : sure]
        if len(core) >= _LEAST_CODED:
            cores |= {core, core.replace("+", "-").replace("/", "_")}
    return cores
