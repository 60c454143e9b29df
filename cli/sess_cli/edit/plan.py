"""What a cut takes out: the chosen records, those that must go with them, and what that breaks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from sess_cli.edit.links import Link, Links, Texts, Value
from sess_schema.queries.transcripts import Call, Record, Transcript

UNANSWERED, PARENTLESS = "unanswered", "parentless"
COUNTED, REVIVED, STRAYED, COPIED = "counted", "revived", "strayed", "copied"


class Warning(NamedTuple):  # noqa: A001 - it is one, for people
    """Something that a cut would break in a record that stays."""

    kind: str  # unanswered, parentless, counted, revived, strayed, copied
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
    links: list[Link]  # what must name another record then

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
    transcript: Transcript,
    chosen: Iterable[int],
    repeats: dict[int, set[int]] | None = None,
    value: Value = lambda _record: None,
    texts: Texts = lambda _record: [],
) -> Plan:
    """`repeats`: records that only repeat another one, by its number."""
    seeds = frozenset(chosen)
    gone = closure(transcript, seeds, repeats or {})
    links = Links(transcript, gone, value)
    while (more := _versions(transcript, gone) | links.unanchored()) - gone:
        gone = closure(transcript, gone | more, repeats or {})
        links = Links(transcript, gone, value)
    changed = links.changed()
    strayed = links.strayed()
    beyond = (
        (COUNTED, links.counted()),
        (REVIVED, [*links.revived(), *links.unpacked()]),
        (COPIED, links.copied(texts)),
        (STRAYED, [strayed] if strayed else []),
    )
    return Plan(
        transcript,
        seeds,
        frozenset(gone - seeds),
        [
            *_unanswered(transcript, gone),
            *(Warning(PARENTLESS, link.number, link.about, link.text) for link in changed),
            *(Warning(kind, *one) for kind, found in beyond for one in found),
        ],
        changed,
    )


def _versions(transcript: Transcript, gone: set[int]) -> set[int]:
    """Earlier versions of what goes: without the last one, the agent would read them again."""
    names = {
        record.native_id
        for record in map(transcript.at, gone)
        if record.native_id is not None and not record.superseded
    }
    return {
        record.number
        for record in transcript.records
        if record.superseded and record.native_id in names
    }


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
