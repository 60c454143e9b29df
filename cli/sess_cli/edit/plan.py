"""What a cut takes out: the chosen records, those that must go with them, and what that breaks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from sess_schema.queries.transcripts import Call, Record, Transcript

UNANSWERED, PARENTLESS = "unanswered", "parentless"


class Warning(NamedTuple):  # noqa: A001 - it is one, for people
    """Something that a cut would break in a record that stays."""

    kind: str  # unanswered, parentless
    number: int  # of the record that stays
    about: int  # of the record that goes
    text: str


@dataclass(frozen=True, slots=True)
class Plan:
    """A cut, by the numbers of records."""

    transcript: Transcript
    chosen: frozenset[int]
    pulled: frozenset[int]
    warnings: list[Warning]

    @property
    def gone(self) -> frozenset[int]:
        return self.chosen | self.pulled

    @property
    def before(self) -> int:
        """Tokens of all records."""
        return sum(record.tokens for record in self.transcript.records)

    @property
    def saved(self) -> int:
        return sum(self.transcript.at(number).tokens for number in self.gone)

    def removed(self) -> list[Record]:
        return [self.transcript.at(number) for number in sorted(self.gone)]


def plan(
    transcript: Transcript, chosen: Iterable[int], repeats: dict[int, set[int]] | None = None
) -> Plan:
    """`repeats`: records that only repeat another one, by its number."""
    seeds = frozenset(chosen)
    gone = closure(transcript, seeds, repeats or {})
    return Plan(
        transcript,
        seeds,
        frozenset(gone - seeds),
        [*_unanswered(transcript, gone), *_parentless(transcript, gone)],
    )


def closure(transcript: Transcript, seeds: Iterable[int], repeats: dict[int, set[int]]) -> set[int]:
    """The seeds, and every record with a result of a call that goes, until nothing is added."""
    gone: set[int] = set()
    waiting = [*seeds]
    while waiting:
        number = waiting.pop()
        if number not in gone:
            gone.add(number)
            waiting.extend(transcript.answers[number] | repeats.get(number, set()))
    return gone


def _unanswered(transcript: Transcript, gone: set[int]) -> list[Warning]:
    """Calls that stay while their last result goes."""
    answers: dict[tuple[int, Call], set[int]] = defaultdict(set)
    for edge in transcript.edges:
        if edge.caller not in gone:
            answers[edge.caller, edge.call].add(edge.answer)
    return [
        Warning(
            UNANSWERED,
            caller,
            min(numbers),
            f"{caller} calls {call.tool or 'a tool'}, and its result in {min(numbers)} goes",
        )
        for (caller, call), numbers in answers.items()
        if numbers <= gone
    ]


def _parentless(transcript: Transcript, gone: set[int]) -> list[Warning]:
    """Records that follow one that goes."""
    cut = {transcript.at(number).native_id: number for number in gone}
    kept = {record.native_id for record in transcript.records if record.number not in gone}
    return [
        Warning(
            PARENTLESS,
            record.number,
            cut[record.parent_id],
            f"{record.number} follows {cut[record.parent_id]}, which goes",
        )
        for record in transcript.records
        if record.number not in gone
        and record.parent_id in cut
        and record.parent_id not in kept
        and record.parent_id is not None
    ]


def new_parents(cut: Plan) -> dict[int, str | None]:
    """Whom the records without a parent follow instead: the next ancestor that stays."""
    above = {record.native_id: record.parent_id for record in cut.removed() if record.native_id}
    parents: dict[int, str | None] = {}
    for warning in cut.warnings:
        if warning.kind == PARENTLESS:
            seen = set[str | None]()
            parent = cut.transcript.at(warning.number).parent_id
            while parent in above and parent not in seen:
                seen.add(parent)
                parent = above[parent]
            parents[warning.number] = None if parent in seen else parent
    return parents


def parse_range(text: str, count: int) -> set[int]:
    """The numbers in `5-7,9`."""
    from sess_common.errors import SessError

    numbers: set[int] = set()
    for part in text.split(","):
        first, dash, last = (piece.strip() for piece in part.partition("-"))
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise SessError(f'not a number or range: "{part.strip()}"', hint="such as 5-7,9")
        low, high = sorted((int(first), int(last or first)))
        if low < 1 or high > count:
            raise SessError(
                f"no record {part.strip()}: there are 1 to {count:,}",
                hint="`sess records` lists them",
            )
        numbers.update(range(low, high + 1))
    return numbers
