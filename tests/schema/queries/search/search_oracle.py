"""Search done again, slowly: what a query must find.

Nothing here asks the product how to compare. Texts are cut into words and looked through with
`in` and `find`, one event after the other.
"""

from __future__ import annotations

import random
import re
import unicodedata
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Self

import apsw
from tests.conftest import World
from tests.schema.queries.search.search_corpus import NOW, SHOP, TERMS, WORDS, Corpus

from sess_schema import marks
from sess_schema.connection import open_reader, open_writer
from sess_schema.queries.search import Hit, Search

COLUMNS = ("text", "input", "output")
_SPACES = re.compile(r"\s+")
_WORD = re.compile(r"[^\W_]+")


class Index:
    """The corpus in an index, asked both ways."""

    def __init__(self, folder: Path) -> None:
        self.corpus = Corpus(World(folder))
        self.corpus.write()
        with closing(open_writer(self.corpus.world.state / "index.db")) as db:
            for kind, value in ((marks.LABEL, "Review"), (marks.PIN, "")):
                db.execute(
                    "INSERT INTO own_marks (agent, native_id, home, kind, value, at)"
                    " SELECT agent, native_id, home, ?, ?, 0 FROM sessions WHERE native_id = ?",
                    (kind, value, SHOP),
                )
        self.db = open_reader(self.corpus.world.state / "index.db")
        self.rewritten = read_events(self.db, "retired > 0")
        self.events = read_events(self.db, "retired = 0")
        self.by_id = {event.id: event for event in self.events}
        self.texts = [
            text for event in self.events for text in event.columns if 0 < len(text) < 10_000
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.db.close()

    def search(self, text: str, **options) -> Search:
        return Search(text, limit=0, now=NOW, utc=True, **options)

    def hits(self, text: str, **options) -> list[Hit]:
        return [*self.search(text, **options).hits(self.db)]

    def found(self, text: str, **options) -> list[int]:
        return [hit.event for hit in self.hits(text, **options)]

    def check(self, ask: Ask, **options) -> None:
        """The events that brute force finds, no others, each once, and as many as are counted."""
        results = self.search(ask.text, **options).results(self.db)
        found = [ranked.event for ranked in results.ranked()]
        events = self.events + (self.rewritten if options.get("superseded") else [])
        right = ask.among(events)
        extra, missing = {*found} - right, right - {*found}
        wrong = [event.columns for event in events if event.id in extra or event.id in missing]
        assert not extra, (ask.text, options, wrong[:3])
        assert not missing, (ask.text, options, wrong[:3])
        assert len(found) == len(right), ask.text
        assert results.count() == len(right), ask.text


# -- the rows


@dataclass(eq=False)
class Event:
    """A row of `events` with its texts in the forms that are compared."""

    id: int
    row: dict
    columns: tuple[str, ...]

    def __getattr__(self, name: str):
        try:
            return self.row[name]
        except KeyError:
            raise AttributeError(name) from None

    @cached_property
    def lowered(self) -> list[str]:
        return [lower(text) for text in self.columns]

    @cached_property
    def flat(self) -> list[str]:
        return [_SPACES.sub(" ", text) for text in self.columns if text]

    @cached_property
    def flat_lowered(self) -> list[str]:
        return [lower(text) for text in self.flat]

    @cached_property
    def cut(self) -> list[str]:
        return [f"\0{chr(0).join(cut(text))}\0" for text in self.columns if text]


def rows(db: apsw.Connection, sql: str) -> list[dict]:
    found = db.execute(sql)
    names: list[str] = []
    made = []
    for row in found:
        names = names or [name for name, _ in found.get_description()]
        made.append(dict(zip(names, row, strict=True)))
    return made


def read_events(db: apsw.Connection, where: str) -> list[Event]:
    sql = f"SELECT id, {', '.join(COLUMNS)} FROM event_texts"
    texts = {row.pop("id"): tuple(row.values()) for row in rows(db, sql)}
    found = rows(db, f"SELECT * FROM events WHERE {where} ORDER BY id")
    return [Event(row["id"], row, texts[row["id"]]) for row in found]


# -- how texts are compared


def flat(text: str) -> str:
    return _SPACES.sub(" ", text).strip()


def fold(text: str) -> str:
    """Lower case without accents, composed or not."""
    apart = unicodedata.normalize("NFD", text)
    return "".join(c for c in apart if not "\u0300" <= c <= "\u036f").lower()


def cut(text: str) -> list[str]:
    return _WORD.findall(spaced(fold(text)))


def lower(text: str) -> str:
    return text.lower().replace("ς", "σ")


def uncased(c: str) -> bool:
    """A letter of a script without capitals: it parts words, as a space does."""
    return not c.isascii() and unicodedata.category(c) in ("Lo", "Lm")


def letter(c: str) -> bool:
    return c.isalnum() and not uncased(c)


def spaced(text: str) -> str:
    """Such letters inside a word part it; a whole word of them is a word between two others."""
    return text if text.isascii() else _WORD.sub(_parted, text)


def _parted(word: re.Match[str]) -> str:
    if all(map(uncased, word[0])):
        return word[0]
    return "".join(" " if uncased(c) else c for c in word[0])


@cache
def typed_words(text: str) -> list[str]:
    return cut(text)


@cache
def unspaced(text: str) -> bool:
    return any(map(uncased, text))


def in_a_row(event: Event, words: list[str], *, prefix: bool = False) -> bool:
    wanted = "\0" + "\0".join(words) + ("" if prefix else "\0")
    return any(wanted in column for column in event.cut)


def stands(text: str, wanted: str, *, prefix: bool) -> bool:
    """Whether `wanted` is in a text with no letter or digit where it would go on."""
    letters = unicodedata.normalize("NFC", wanted)  # an accent belongs to its letter
    at = text.find(wanted)
    while at >= 0:
        end = at + len(wanted)
        before = letters[0].isalnum() and letter(text[max(at - 1, 0) : at])
        after = letters[-1].isalnum() and letter(text[end : end + 1]) and not prefix
        if not before and not after:
            return True
        at = text.find(wanted, at + 1)
    return False


def words_stand(text: str, wanted: list[str], *, whole: bool, prefix: bool) -> bool:
    """Whether words follow each other with anything but letters and digits between them."""
    if not all(word in text for word in wanted):
        return False
    found = [*_WORD.finditer(spaced(text))]
    for at in range(len(found) - len(wanted) + 1):
        here = [one[0] for one in found[at : at + len(wanted)]]
        if prefix and here[-1].startswith(wanted[-1]):
            here[-1] = wanted[-1]
        beside = around(text, found[at].start(), found[at + len(wanted) - 1].end())
        if here == wanted and not (whole and re.search(r"\w", beside)):
            return True
    return False


def whole_word(text: str, wanted: str) -> bool:
    """As grep -w: nothing of a word beside it, whatever it is itself."""
    at = text.find(wanted)
    while at >= 0:
        if not re.search(r"\w", around(text, at, at + len(wanted))):
            return True
        at = text.find(wanted, at + 1)
    return False


def around(text: str, start: int, end: int) -> str:
    return text[max(start - 1, 0) : start] + text[end : end + 1]


# -- what is asked


@dataclass(frozen=True)
class Ask:
    """A query, and which events it means."""

    text: str
    holds: Callable[[Event], bool]

    def __and__(self, other: Ask) -> Ask:
        return Ask(f"{self.text} {other.text}", lambda e: self.holds(e) and other.holds(e))

    def __or__(self, other: Ask) -> Ask:
        return Ask(f"({self.text} OR {other.text})", lambda e: self.holds(e) or other.holds(e))

    def grouped(self) -> Ask:
        return Ask(f"({self.text})", self.holds)

    def among(self, events: list[Event]) -> set[int]:
        return {event.id for event in events if self.holds(event)}


def looks_like_a_hash(text: str) -> bool:
    first, *groups = text.lower().split("-")
    digits = set("0123456789")
    if not 6 <= len(first) <= 64 or set(text.lower()) - set("0123456789abcdef-"):
        return False
    if any(not 1 <= len(group) <= 12 for group in groups) or not set(text) & digits:
        return False
    long_number = len(first) > 6 and not set(first[:7]) - digits
    return long_number or bool(set(text.lower()) & set("abcdef"))


def term(text: str, *, quoted: bool = False, star: bool = False, **how) -> Ask:
    """A word, a quoted phrase, or something with punctuation."""
    query = (f'"{text}"' if quoted else text) + "*" * star
    prefix = star or (not quoted and not how.get("whole") and looks_like_a_hash(text))
    return Ask(query, lambda event: has(event, text, prefix=prefix, **how))


def has(event: Event, text: str, *, prefix=False, case=False, whole=False) -> bool:
    if is_plain(unicodedata.normalize("NFC", text)) and not case and not whole:
        return in_a_row(event, typed_words(text), prefix=prefix)
    texts = event.flat if case else event.flat_lowered
    wanted = flat(text) if case else lower(flat(text))
    if (
        text.lower() == "is_error"
        and (not case or text == "is_error")
        and event.status in ("error", "denied")
    ):
        return True
    return any(stands_in(one, wanted, whole=whole, prefix=prefix) for one in texts)


@cache
def is_plain(text: str) -> bool:
    return all(map(_WORD.fullmatch, text.split())) and not unspaced(text)


def stands_in(text: str, wanted: str, *, whole: bool = False, prefix: bool = False) -> bool:
    """Whether it is in a text as typed, where both have single spaces."""
    if is_plain(wanted):
        return words_stand(text, wanted.split(), whole=whole, prefix=prefix)
    if whole:
        return whole_word(text, wanted)
    if unspaced(wanted):  # anywhere
        return wanted in text
    return stands(text, wanted, prefix=prefix)


def occurs(text: str, wanted: str, *, prefix: bool = False) -> bool:
    """In any case, but with its accents."""
    return stands_in(lower(flat(text)), lower(flat(wanted)), prefix=prefix)


def is_place(text: str, span: tuple[int, int], wanted: str, *, prefix: bool = False) -> bool:
    """Whether a stretch of a text is what was typed, no less and no more."""
    start, end = span
    inner, wanted = lower(flat(text[start:end])), lower(flat(wanted))
    if is_plain(wanted):
        words, asked = _WORD.findall(inner), wanted.split()
        exact = inner[0].isalnum() and inner[-1].isalnum() and words[:-1] == asked[:-1]
        exact = exact and (words[-1] == asked[-1] or (prefix and words[-1].startswith(asked[-1])))
    else:
        rest = inner.removeprefix(wanted)
        exact = inner.startswith(wanted) and (not rest or (prefix and rest.isalnum()))
    return exact and occurs(text[max(start - 1, 0) : end + 1], wanted, prefix=prefix)


def part(text: str, *, quoted: bool = False) -> Ask:
    """A part of a text, for mode="substring"."""
    wanted = lower(text)

    def holds(event: Event) -> bool:
        if wanted == "is_error" and event.status in ("error", "denied"):
            return True
        return any(wanted in column for column in event.lowered)

    return Ask(f'"{text}"' if quoted else text, holds)


def excluding(ask: Ask) -> Ask:
    return Ask(f"-{ask.text}", lambda event: not ask.holds(event))


def expression(text: str, *, case: bool = False) -> Ask:
    pattern = re.compile(text, re.MULTILINE | (0 if case else re.IGNORECASE))
    return Ask(
        text,
        lambda event: any(found[0] for text in event.columns for found in pattern.finditer(text)),
    )


def in_a_tool(text: str) -> Ask:
    wanted = lower(text)
    return Ask(
        text,
        lambda event: event.type == "tool_use" and wanted in " ".join(event.lowered[1:3]),
    )


def combined(pick: random.Random, depth: int, leaf: Callable[[str], Ask]) -> Ask:
    """A query whose first part is no exclusion: of exclusions alone the terms are looked for."""
    first = _node(pick, depth, leaf)
    for _ in range(pick.choice([0, 1, 1, 2])):
        more = _node(pick, depth, leaf)
        first &= excluding(more) if pick.random() < 0.3 else more
    return first


def _node(pick: random.Random, depth: int, leaf: Callable[[str], Ask]) -> Ask:
    if not depth or pick.random() < 0.3:
        common = [text for text in TERMS if len(text) > 1]
        return leaf(pick.choice(WORDS if pick.random() < 0.6 else common))
    if pick.random() < 0.5:
        other = combined(pick, depth - 1, leaf)
        if pick.random() < 0.3:
            other = excluding(_node(pick, depth - 1, leaf))
        return combined(pick, depth - 1, leaf) | other
    return combined(pick, depth - 1, leaf).grouped()
