"""What came between a failure and the first success of the same command: words, edits, commands."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from os.path import basename
from typing import NamedTuple

import apsw

from sess_common.classes import dataclass, later
from sess_schema import kinds, shown
from sess_schema.ids import EventId, SessionId
from sess_schema.queries.failures import signature

SOLVED, UNSOLVED, UNKNOWN = "done", "failed", "unknown"
BUDGET = 1700  # characters of what followed
MOST = 120  # events after a failure that are looked at
_TOLD = 40  # of them told
_PROMPTS = 2  # a person's, after which the talk is of something else
_LEAST = 140  # characters of a piece, so that it says something
_FIRST = 0.7  # of the pieces that find room; the others are the last ones
_READ = 4000
_OF_A_RECORD = 20  # events of the same record that may stand before the one asked for
_EVENTS = (
    f"SELECT e.id, e.type, e.label, e.tool, e.kind, e.status, e.summary, e.ts"
    f" FROM {shown.EVENTS} WHERE t.session_id = ?1 AND {shown.CURRENT}"
)
_WHOLE = f"{_EVENTS} {shown.IN_ORDER}"
_PART = f"{_EVENTS} AND t.source_id = ?2 AND t.offset >= ?3 {shown.IN_ORDER} LIMIT ?4"
_PLACE = (
    "SELECT t.source_id, t.offset FROM events e JOIN records t ON t.id = e.record_id"
    " WHERE t.session_id = ?1 AND e.id = ?2"
)
_TEXTS = (
    "SELECT id, substr(text, 1, ?2), substr(input, 1, ?2), substr(output, 1, ?2) FROM event_texts"
    " WHERE id IN (SELECT value FROM json_each(?1))"
)
_CHANGING = (kinds.EDIT, kinds.WRITE)
_QUIET = (kinds.READ, kinds.SEARCH, kinds.PLAN)
_BEFORE = later(r"^(?:cd \S+ *(?:&&|;) *|env +|sudo +|\w+=\S* +)+")
_AFTER = later(r" ?(?:2>&1|\||&&|;|>|#|<<).*", re.DOTALL)
_SPACE = later(r"[ \t]*\n\s*|[ \t]{2,}")


class Step(NamedTuple):
    """An event of a session, without its texts."""

    event: EventId
    type: str
    label: str | None
    tool: str | None
    kind: str | None
    status: str | None
    summary: str | None
    ts: int | None

    @property
    def asks(self) -> tuple[str, str] | None:
        """What is called, so that the next try can be recognised."""
        if self.type != "tool_use":
            return None
        return self.tool or "", command(self.summary or "")

    @property
    def asks_alike(self) -> tuple[str, str] | None:
        """The same for a try in other words: the program and its verb, the name of the file."""
        asks = self.asks
        if asks is None:
            return None
        tool, asked = asks
        return tool, program(asked) if self.kind == kinds.SHELL else basename(asked)


@dataclass(frozen=True, slots=True)
class Aftermath:
    """What followed a failure."""

    outcome: str  # done, failed or unknown
    ended_by: EventId | None  # the first success of the same command
    tries: int  # failures of the same command before it
    told: str  # what was said, edited and run in between


def command(summary: str) -> str:
    """A command without the folder it runs in and what happens to its output."""
    return _AFTER.sub("", _BEFORE.sub("", " ".join(summary.split()))).strip()


def program(asked: str) -> str:
    """The program and its verb."""
    return " ".join([word for word in asked.split() if not word.startswith("-")][:2])


class Sessions:
    """The order of events in sessions; `whole` where most failures of each are asked for."""

    def __init__(self, db: apsw.Connection, *, whole: bool = False) -> None:
        self._db = db
        self._whole = whole
        self._read: dict[SessionId, tuple[list[Step], dict[EventId, int]]] = {}

    def following(self, session: SessionId, event: EventId, most: int) -> list[Step]:
        """An event, and at most so many after it."""
        if not self._whole:
            return self._part(session, event, most)
        if session not in self._read:
            steps = self._steps(_WHOLE, session)
            self._read[session] = steps, {step.event: at for at, step in enumerate(steps)}
        steps, places = self._read[session]
        at = places.get(event, len(steps))
        return steps[at : at + 1 + most]

    def _part(self, session: SessionId, event: EventId, most: int) -> list[Step]:
        for source, offset in self._db.execute(_PLACE, (session, event)):
            steps = self._steps(_PART, session, source, offset, most + _OF_A_RECORD)
            at = next((at for at, step in enumerate(steps) if step.event == event), len(steps))
            return steps[at : at + 1 + most]
        return []

    def _steps(self, sql: str, *values: object) -> list[Step]:
        """Each event once, in order."""
        rows = self._db.execute(sql, values)
        return [*{step.event: step for step in map(Step._make, rows)}.values()]

    def after(self, session: SessionId, event: EventId, budget: int = BUDGET) -> Aftermath:
        steps = self.following(session, event, MOST)
        if not steps:
            return Aftermath(UNKNOWN, None, 0, "")
        following = steps[1:]
        end, outcome, tries = end_of(steps[0], following)
        ended_by = following[end].event if outcome == SOLVED and end is not None else None
        told = self.told(following[: _TOLD if end is None else min(end + 2, _TOLD)], budget)
        return Aftermath(outcome, ended_by, tries, told)

    def done(self, steps: Sequence[Step]) -> list[str]:
        """The calls that succeeded among steps, one line each."""
        return [
            self._piece(step, "", step.summary or "", "").split("\n")[0]
            for step in steps
            if step.type == "tool_use" and step.status == "ok" and step.kind != kinds.PLAN
        ]

    def told(self, following: Sequence[Step], budget: int) -> str:
        """What was said, edited and run in some steps, up to a person's second prompt."""
        pieces: list[str] = []
        prompts = 0
        texts = self._texts([step.event for step in following if step.kind not in _QUIET])
        for step in following:
            if step.event not in texts:
                continue
            if step.type == "user" and step.label is None:
                prompts += 1
                if prompts == _PROMPTS:
                    break
            piece = self._piece(step, *texts[step.event])
            if piece:
                pieces.append(piece)
        return _fitted(pieces, budget)

    def _texts(self, events: list[EventId]) -> dict[EventId, tuple[str, str, str]]:
        rows = self._db.execute(_TEXTS, (json.dumps(events), _READ))
        return {row[0]: row[1:] for row in rows}

    def _piece(self, step: Step, text: str, given: str, output: str) -> str:
        if step.type in ("assistant", "thinking", "user"):
            return _tidy(text)
        if step.type != "tool_use":
            return ""
        if step.kind in _CHANGING:
            return self._edited(step, given) if step.status != "error" else ""
        asked = _tidy(step.summary or given)
        failed = f" → {signature.key(output)[1]}" if step.status == "error" else ""
        return f"$ {asked}{failed}" if step.kind == kinds.SHELL else f"{step.tool}: {asked}{failed}"

    def _edited(self, step: Step, given: str) -> str:
        from sess_schema import edits

        changed: dict[str, list[str]] = {}
        for edit in edits.shown(edits.of_event(self._db, step.event)):
            lines = changed.setdefault(basename(edit.path), [])
            for line in edits.lines(edit, context=0):
                if line.sign in "+-" and line.text.strip():
                    lines.append(f"{line.sign}{line.text.strip()}")
        if not any(changed.values()):
            return f"edited {_tidy(step.summary or given)}"
        return "\n".join(
            f"edited {name}: " + " ".join(sorted(lines, key=lambda line: line[0] == "-"))
            for name, lines in changed.items()
        )


def end_of(failed: Step, following: Sequence[Step]) -> tuple[int | None, str, int]:
    """Where the same command succeeded first, the outcome, and the failures until then.

    Where it is never run again in the same words, the same program and verb count.
    """
    if failed.asks is None or not failed.asks[1]:
        return None, UNKNOWN, 0
    tries = 0
    for alike in (False, True):
        wanted = failed.asks_alike if alike else failed.asks
        tries = 0
        for number, step in enumerate(following):
            if step.type == "tool_use" and wanted == (step.asks_alike if alike else step.asks):
                if step.status == "ok":
                    return number, SOLVED, tries
                tries += step.status == "error"
    return None, UNSOLVED if tries else UNKNOWN, tries


def _fitted(pieces: list[str], budget: int) -> str:
    """As many pieces as find room, the first and the last ones, the long ones cut alike."""
    most = max(1, budget // (_LEAST + 1))
    if len(pieces) > most:
        first = max(1, int(most * _FIRST))
        pieces = pieces[:first] + pieces[len(pieces) - (most - first) :]
    longest = budget
    while longest > _LEAST and sum(min(len(p), longest) + 1 for p in pieces) > budget:
        longest -= 10
    return "\n".join(_cut(piece, longest) for piece in pieces)[:budget]


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _tidy(text: str) -> str:
    return _SPACE.sub(" ", text.strip())
