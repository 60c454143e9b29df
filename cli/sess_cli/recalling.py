"""Writes what `sess recall` found: for people, for scripts, for agents with a token budget."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence

import apsw

from sess_cli import fresh
from sess_cli.render import amounts, layout
from sess_cli.terminal import Terminal, json_line
from sess_common import times
from sess_common.classes import dataclass
from sess_common.errors import Exit, SessError
from sess_common.escape import safe
from sess_common.program import Ended, counted, say
from sess_schema import objects
from sess_schema.queries import sessions
from sess_schema.queries.recall import Options, Place, Recalled, recall
from sess_schema.queries.search import Filter

MAX_TOKENS = 1500
_BYTES_PER_TOKEN = 3
_PLACES = 5  # that should fit, at least
_TOKENS = 150  # of the shortest places: no more are told than can be printed
_HEAD = 160  # bytes of the lines above a quote
_LEAST = 60  # characters of a quote
_QUESTION = 20_000  # characters read from stdin


def asked(words: Sequence[str]) -> str:
    """The question that was typed; `-` reads it from standard input."""
    return sys.stdin.read(_QUESTION) if [*words] == ["-"] else " ".join(words)


def for_words(options: list[str], words: list[str]) -> None:
    """`sess recall WORDS` with no other options than --no-sync and --json."""
    answer = Answer(asked(words), {}, None, None)
    answer.print(sync="--no-sync" not in options, as_json="--json" in options)


@dataclass(slots=True)
class Answer:
    """A question, where to look, and how much to print."""

    question: str
    filters: Mapping[str, object]
    prefer: str | None
    not_session: str | None
    error: bool | None = None
    limit: int = 20
    max_tokens: int | None = None
    utc: bool = False

    def print(self, *, sync: bool, as_json: bool) -> None:
        """Bring the index up to date, and print the places."""
        if not self.question.strip():
            raise SessError("no question", hint="`sess recall why did the deployment fail`")
        with fresh.open_with_sessions(sync=sync) as db, db:
            places = self.write(db, as_json=as_json)
        if not places:
            raise Ended(Exit.NOTHING_FOUND)

    def write(self, db: apsw.Connection, *, as_json: bool) -> int:
        """Print the places; how many there are."""
        tokens = self.max_tokens if as_json else self.max_tokens or MAX_TOKENS
        found = recall(db, self.question, self._options(tokens))
        if as_json:
            return self._objects(found)
        return self._lines(db, found)

    def _options(self, tokens: int | None) -> Options:
        filters = []
        for name, given in self.filters.items():
            values = given if isinstance(given, list) else [given] if given is not None else []
            filters += [Filter(name, str(value)) for value in values]
        options = Options(
            filters, self.prefer, self.not_session, self.error, limit=self.limit, utc=self.utc
        )
        if tokens is not None:
            options.limit = min(options.limit, max(_PLACES, tokens // _TOKENS))
            room = tokens * _BYTES_PER_TOKEN // _PLACES - _HEAD
            options.quoted = max(_LEAST, min(options.quoted, room // 3))
            options.answered = max(_LEAST, min(options.answered, room * 2 // 3))
        return options

    def _objects(self, found: Recalled) -> int:
        left = None if self.max_tokens is None else self.max_tokens * _BYTES_PER_TOKEN
        number = 0
        for place in found.places:
            value = objects.place(place, found=found.found, known=found.known)
            if left is not None:
                left -= len(json.dumps(value, ensure_ascii=False).encode()) + 1
                if left < 0 and number:
                    break
            json_line(value)
            number += 1
        return number

    def _lines(self, db: apsw.Connection, found: Recalled) -> int:
        terminal = Terminal()
        view = _View(db, terminal, utc=self.utc)
        left = (self.max_tokens or MAX_TOKENS) * _BYTES_PER_TOKEN
        number = 0
        for note in (*_notes(found), *view.occurrences(found)):
            say(f"note: {safe(note)}")
        for place in found.places:
            lines = [*view.place(place)]
            left -= sum(len(line.encode()) + 1 for line in lines)
            if left < 0 and number:
                break
            for line in lines:
                terminal.write(line)
            number += 1
        return number


def _notes(found: Recalled) -> Iterator[str]:
    if not found.places:
        yield "nothing found"
    elif not found.found:
        yield "nothing seems to fit; the nearest places are shown"
    if found.unknown:
        yield f"in no session: {', '.join(found.unknown)}"
    if found.left_out:
        yield f"too common to tell anything: {', '.join(found.left_out)}"


class _View:
    """Draws places, each session with one line above its places."""

    def __init__(self, db: apsw.Connection, terminal: Terminal, *, utc: bool) -> None:
        self._terminal = terminal
        self._ids = sessions.ShortIds(db)
        self._db = db
        self._utc = utc
        self._now = times.now_ms()
        self._session: int | None = None

    def occurrences(self, found: Recalled) -> Iterator[str]:
        """How often an error occurred, and where last."""
        known = found.known
        if known is None or known.last is None:
            return
        row = sessions.by_key(self._db, known.last.session)
        least = "at least " if known.more else ""
        ended = "; it was never solved" if known.never_solved else ""
        yield (
            f"this error occurred {least}{counted(known.times, 'time')} in"
            f" {counted(known.sessions, 'session')}, last {amounts.ago(known.last.ts, self._now)}"
            f" in {self._ids.of(row)}{ended}"
        )

    def place(self, place: Place) -> Iterator[str]:
        t = self._terminal
        short = self._ids.of(sessions.by_key(self._db, place.session_key))
        if place.session_key != self._session:
            if self._session is not None:
                yield ""
            self._session = place.session_key
            about = f"{layout.home_short(place.project)} · {place.agent}"
            title = layout.cut(t.line(place.title), max(20, (t.width or 100) - 40))
            yield f"{t.style(t.line(short), 'cyan')}  {t.style(title, 'bold')}" + t.style(
                f" · {t.line(about)}", "dim"
            )
        when = amounts.ago(place.ts, self._now, utc=self._utc)
        cite = f"{short}#{place.key[:8]}"
        yield f"  {t.style(f'[{t.line(cite)}]', 'dim')} {place.type} · {when} · {place.outcome}"
        yield from self._quoted(place.quote, "  > ")
        if place.answer:
            yield from self._quoted(place.answer, "  → ")

    def _quoted(self, text: str, lead: str) -> Iterator[str]:
        t = self._terminal
        line = t.line(text)
        if t.width is None:
            yield lead + line
            return
        for number, part in enumerate(layout.wrap(line, t.width - len(lead))):
            yield (" " * len(lead) if number else lead) + part
