"""Finds records that may lead an agent astray. Looks at one session only, and changes nothing."""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import apsw

from sess_cli.edit.lexicon import Correction, correction
from sess_schema.ids import SessionId
from sess_schema.queries.turns import Turn, Turns

COSTLY = 2000  # tokens
STREAK = 3  # edits of one file in a row
DRIFT = 5  # answers in a row without a call
_FAILURE = re.compile(r"\b(error|failed|exception|traceback)\b", re.IGNORECASE)
_EDITS = (
    "SELECT event_id, path FROM files WHERE action IN ('edit', 'write')"
    " AND event_id IN (SELECT value FROM json_each(?)) ORDER BY event_id, path"
)
_TEXT = "SELECT text FROM event_texts WHERE id = ?"
_PROMPTS = "SELECT id FROM events WHERE type = 'user' AND id IN (SELECT value FROM json_each(?))"


class Trigger(NamedTuple):
    """Why a record is suggested."""

    id: str
    score: float
    reason: str


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A record that may be worth cutting."""

    turn: Turn
    triggers: list[Trigger]  # the strongest first
    to_cut: frozenset[int]  # the record itself; of a result, the record with its call

    @property
    def score(self) -> float:
        return round(sum(trigger.score for trigger in self.triggers), 6)

    @property
    def reason(self) -> str:
        return " + ".join(trigger.reason for trigger in self.triggers)


def suggestions(db: apsw.Connection, turns: Turns, session: SessionId) -> list[Suggestion]:
    """The records with a reason to cut them, the best reason first."""
    shown = turns.of(session)
    talk = [turn for turn in shown if turn.role != "system"]
    corrections = _corrections(db, talk)
    found: dict[int, dict[str, Trigger]] = defaultdict(dict)
    for number, trigger in (
        *_costly(talk),
        *_repeated_edits(db, talk),
        *_corrected(turns, talk, corrections),
        *_failed_then_corrected(turns, talk, corrections),
        *_drift(talk),
    ):
        known = found[number].get(trigger.id)
        if known is None or trigger.score > known.score:
            found[number][trigger.id] = trigger
    listed = []
    for number, triggers in found.items():
        turn = turns.at(number)
        callers = turns.callers[number] if turn.role == "tool" else ()
        strongest_first = sorted(triggers.values(), key=lambda one: -one.score)
        listed.append(Suggestion(turn, strongest_first, frozenset(callers or (number,))))
    return sorted(listed, key=lambda one: (-one.score, one.turn.number))


def _costly(talk: list[Turn]) -> Iterator[tuple[int, Trigger]]:
    for turn in talk:
        if turn.role != "user" and turn.tokens >= COSTLY:
            score = 0.6 + 0.4 * min(turn.tokens / COSTLY, 3)
            yield turn.number, Trigger("high_token_cost", score, f"{turn.tokens:,} tokens")


def _repeated_edits(db: apsw.Connection, talk: list[Turn]) -> Iterator[tuple[int, Trigger]]:
    calls = {call.event: turn.number for turn in talk for call in turn.calls}
    edited: list[tuple[int, str]] = []
    paths = dict[int, str](db.execute(_EDITS, (json.dumps([*calls]),)))
    for turn in talk:
        edited += [(turn.number, paths[call.event]) for call in turn.calls if call.event in paths]
    streak: list[int] = []
    for at, (number, path) in enumerate(edited):
        streak.append(number)
        if at + 1 == len(edited) or edited[at + 1][1] != path:
            if len(streak) >= STREAK:
                reason = f"{os.path.basename(path)} edited {len(streak)} times in a row"
                for one in dict.fromkeys(streak):
                    yield one, Trigger("repeated_file_edit", 1.2, reason)
            streak = []


def _corrections(db: apsw.Connection, talk: list[Turn]) -> dict[int, Correction | None]:
    """What each prompt corrects, by its number; results are no prompts."""
    found: dict[int, Correction | None] = {}
    for turn in talk:
        prompts = [*db.execute(_PROMPTS, (json.dumps(turn.events),))]
        if prompts:
            text = "\n".join(str(db.execute(_TEXT, (event,)).get) for (event,) in prompts)
            found[turn.number] = correction(text)
    return found


def _corrected(
    turns: Turns, talk: list[Turn], corrections: dict[int, Correction | None]
) -> Iterator[tuple[int, Trigger]]:
    """What came right before a correction; of a result, the record with its call."""
    last: Turn | None = None
    for turn in talk:
        told = corrections.get(turn.number)
        if told is not None and last is not None:
            score = 0.8 + 0.6 * told.weight
            reason = f"corrected in {turn.number}: \u201c{told.phrase}\u201d"
            callers = turns.callers[last.number] if last.role == "tool" else ()
            for number in callers or (last.number,):
                yield number, Trigger("user_correction_follows_up", score, reason)
        last = None if turn.number in corrections else turn


def _failed_then_corrected(
    turns: Turns, talk: list[Turn], corrections: dict[int, Correction | None]
) -> Iterator[tuple[int, Trigger]]:
    """Calls that failed before the next prompt corrects."""
    failed: list[Turn] = []
    for turn in talk:
        if turn.number in corrections:
            if corrections[turn.number] is not None:
                reason = f"failed, then corrected in {turn.number}"
                for result in failed:
                    for number in turns.callers[result.number]:
                        yield number, Trigger("tool_use_error_then_correction", 1.3, reason)
            failed = []
        elif turn.results and (turn.failed or _FAILURE.search(turn.preview)):
            failed.append(turn)


def _drift(talk: list[Turn]) -> Iterator[tuple[int, Trigger]]:
    run: list[Turn] = []
    for turn in [*talk, None]:
        if turn is not None and turn.role == "assistant" and not turn.calls:
            if turn.tokens:  # thinking alone is no answer
                run.append(turn)
            continue
        if len(run) >= DRIFT:
            reason = f"{len(run)} answers in a row without a call"
            for one in run:
                yield one.number, Trigger("long_drift_no_tool_calls", 0.9, reason)
        run = []
