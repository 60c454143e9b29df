"""Finds records that may lead an agent astray. Looks at one session only, and changes nothing."""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import apsw

from sess_schema.ids import SessionId
from sess_schema.queries.transcripts import Record, Transcript

# How sure each is by itself, from 0 to 1.
PHRASES = {
    "no": 0.30,
    "stop": 0.45,
    "wrong": 0.45,
    "nope": 0.50,
    "actually": 0.55,
    "instead": 0.55,
    "undo": 0.55,
    "go back": 0.60,
    "i said": 0.60,
    "let me try": 0.60,
    "try again": 0.60,
    "didn't work": 0.65,
    "doesn't work": 0.65,
    "incorrect": 0.65,
    "revert": 0.65,
    "still failing": 0.70,
    "forget that": 0.75,
    "still broken": 0.75,
    "undo that": 0.75,
    "different approach": 0.80,
    "scratch that": 0.80,
    "that's not right": 0.80,
    "you broke": 0.80,
    "don't do that": 0.85,
    "not what i asked": 0.85,
    "not what i meant": 0.85,
    "stop doing that": 0.85,
    "that is wrong": 0.85,
    "that's wrong": 0.85,
    "try a different approach": 0.90,
    "不是": 0.40,
    "不行": 0.50,
    "没有用": 0.55,
    "再试一次": 0.60,
    "停下": 0.65,
    "不对": 0.70,
    "别这样": 0.70,
    "算了": 0.70,
    "回退": 0.75,
    "撤销": 0.75,
    "搞错了": 0.75,
    "还是不行": 0.75,
    "错了": 0.75,
    "不要这样": 0.80,
    "不是这样": 0.80,
    "走错了": 0.80,
    "重来": 0.80,
    "不是我要的": 0.90,
    "换个思路": 0.90,
}
# Ordinary words elsewhere: they are signs only where a sentence begins.
_OPENING = frozenset({"no", "stop", "actually", "不是"})
_SURE = 0.6  # below, a phrase in a long prompt is a sign only where a sentence begins
_SHORT = 240  # characters; of a longer prompt, the middle is mostly pasted
_BEGINNING = r"(?:^|[\n.!?;\u3002\uff01\uff1f])\s*(?:(?:oh|but|well|wait|hmm?|ok|and|so)\b,? *)*"
_NOT_A_NO = r"(?! (?:need|problem|worries|rush|longer|matter|one|idea|more|doubt|way)\b)"
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


class Correction(NamedTuple):
    phrase: str
    weight: float


def correction(text: str) -> Correction | None:
    """The strongest sign in a text that somebody corrects an agent."""
    lines = text.replace("\u2019", "'").casefold().splitlines()
    plain = "\n".join(" ".join(line.split()) for line in lines).strip()
    is_long = len(plain) > _SHORT
    own = f"{plain[:_SHORT]}\n{plain[-_SHORT:]}" if is_long else plain
    signs = (Correction(*sign) for sign in PHRASES.items())
    said = (sign for sign in signs if _says(own, sign, is_long=is_long))
    return max(said, key=lambda sign: sign.weight, default=None)


def _says(text: str, sign: Correction, *, is_long: bool) -> bool:
    """Latin words count only whole: `note` is no `no`."""
    phrase = sign.phrase
    if phrase not in text:
        return False
    pattern = rf"\b{re.escape(phrase)}\b" if phrase.isascii() else re.escape(phrase)
    if phrase == "no":
        pattern += _NOT_A_NO
    if phrase in _OPENING or (is_long and sign.weight < _SURE):
        pattern = _BEGINNING + pattern
    return re.search(pattern, text) is not None


class Trigger(NamedTuple):
    """Why a record is suggested."""

    id: str
    score: float
    reason: str


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A record that may be worth cutting."""

    record: Record
    triggers: list[Trigger]  # the strongest first
    to_cut: frozenset[int]  # the record itself; of a result, the record with its call

    @property
    def score(self) -> float:
        return round(sum(trigger.score for trigger in self.triggers), 6)

    @property
    def reason(self) -> str:
        return " + ".join(trigger.reason for trigger in self.triggers)


def suggestions(
    db: apsw.Connection, transcript: Transcript, session: SessionId
) -> list[Suggestion]:
    """The records with a reason to cut them, the best reason first."""
    shown = transcript.of(session)
    talk = [record for record in shown if record.role != "system"]
    corrections = _corrections(db, talk)
    best: dict[int, dict[str, Trigger]] = defaultdict(dict)
    for number, trigger in (
        *_costly(talk),
        *_repeated_edits(db, talk),
        *_corrected(transcript, talk, corrections),
        *_failed_then_corrected(transcript, talk, corrections),
        *_drift(talk),
    ):
        known = best[number].setdefault(trigger.id, trigger)
        if trigger.score > known.score:
            best[number][trigger.id] = trigger
    listed = []
    for number, triggers in best.items():
        record = transcript.at(number)
        callers = transcript.callers[number] if record.role == "tool" else ()
        strongest_first = sorted(triggers.values(), key=lambda trigger: -trigger.score)
        listed.append(Suggestion(record, strongest_first, frozenset(callers or (number,))))
    return sorted(listed, key=lambda suggestion: (-suggestion.score, suggestion.record.number))


def _costly(talk: list[Record]) -> Iterator[tuple[int, Trigger]]:
    for record in talk:
        if record.role != "user" and record.tokens >= COSTLY:
            score = 0.6 + 0.4 * min(record.tokens / COSTLY, 3)
            yield record.number, Trigger("high_token_cost", score, f"{record.tokens:,} tokens")


def _repeated_edits(db: apsw.Connection, talk: list[Record]) -> Iterator[tuple[int, Trigger]]:
    calls = [(record.number, call.event) for record in talk for call in record.calls]
    paths = dict[int, str](db.execute(_EDITS, (json.dumps([event for _, event in calls]),)))
    edited = [(number, paths[event]) for number, event in calls if event in paths]
    for path, run in groupby(edited, key=lambda edit: edit[1]):
        streak = [number for number, _ in run]
        if len(streak) >= STREAK:
            reason = f"{os.path.basename(path)} edited {len(streak)} times in a row"
            for number in dict.fromkeys(streak):
                yield number, Trigger("repeated_file_edit", 1.2, reason)


def _corrections(db: apsw.Connection, talk: list[Record]) -> dict[int, Correction | None]:
    """What each prompt corrects, by its number; results are no prompts."""
    corrections: dict[int, Correction | None] = {}
    for record in talk:
        prompts = [*db.execute(_PROMPTS, (json.dumps(record.events),))]
        if prompts:
            text = "\n".join(str(db.execute(_TEXT, (event,)).get) for (event,) in prompts)
            corrections[record.number] = correction(text)
    return corrections


def _corrected(
    transcript: Transcript, talk: list[Record], corrections: dict[int, Correction | None]
) -> Iterator[tuple[int, Trigger]]:
    """What came right before a correction; of a result, the record with its call."""
    last: Record | None = None
    for record in talk:
        complaint = corrections.get(record.number)
        if complaint is not None and last is not None:
            score = 0.8 + 0.6 * complaint.weight
            reason = f"corrected in {record.number}: \u201c{complaint.phrase}\u201d"
            callers = transcript.callers[last.number] if last.role == "tool" else ()
            for number in callers or (last.number,):
                yield number, Trigger("user_correction_follows_up", score, reason)
        last = None if record.number in corrections else record


def _failed_then_corrected(
    transcript: Transcript, talk: list[Record], corrections: dict[int, Correction | None]
) -> Iterator[tuple[int, Trigger]]:
    """Calls that failed before the next prompt corrects."""
    failed: list[Record] = []
    for record in talk:
        if record.number in corrections:
            if corrections[record.number] is not None:
                reason = f"failed, then corrected in {record.number}"
                for result in failed:
                    for number in transcript.callers[result.number]:
                        yield number, Trigger("tool_use_error_then_correction", 1.3, reason)
            failed = []
        elif record.results and (record.failed or _FAILURE.search(record.preview)):
            failed.append(record)


def _drift(talk: list[Record]) -> Iterator[tuple[int, Trigger]]:
    run: list[Record] = []
    for record in [*talk, None]:
        if record is not None and record.role == "assistant" and not record.calls:
            if record.tokens:  # thinking alone is no answer
                run.append(record)
            continue
        if len(run) >= DRIFT:
            reason = f"{len(run)} answers in a row without a call"
            for answer in run:
                yield answer.number, Trigger("long_drift_no_tool_calls", 0.9, reason)
        run = []
