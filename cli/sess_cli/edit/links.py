"""What a cut does to the chain of a session: who follows whom then, and what cannot be mended."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from sess_schema import chains
from sess_schema.chains import Chain, Name
from sess_schema.queries.transcripts import Record, Transcript

Value = Callable[[Record], Any]  # what a record says, decoded
Texts = Callable[[Record], list[str]]  # its words, inputs and outputs


class Link(NamedTuple):
    """A member that names a record that goes, and whom it names instead."""

    number: int  # of the record that stays
    about: int  # of the record that goes
    member: str
    old: str
    new: str | None
    text: str


class Links:
    """The chain of a transcript without some of its records."""

    def __init__(self, transcript: Transcript, gone: set[int], value: Value) -> None:
        self._transcript, self._gone, self._value = transcript, gone, value
        self._chain = transcript.chain
        self._parents: dict[str, str | None] = {}
        self._first: dict[str, int] = {}
        kept: set[str] = set()
        for record in transcript.records:
            if record.own_id is not None:
                self._parents.setdefault(record.own_id, record.own_parent)
                self._first.setdefault(record.own_id, record.number)
                if record.number not in gone:
                    kept.add(record.own_id)
        self._kept = kept

    def _is_cut(self, name: str | None) -> bool:
        return name in self._first and name not in self._kept

    def changed(self) -> list[Link]:
        """What must name another record, so that all that stays is reached."""
        links = [*self._followers()]
        for record, name, old in self._naming():
            new = self._instead(record, name, old)
            text = f"{record.number} names {self._first[old]}, which goes"
            links.append(Link(record.number, self._first[old], name.member, old, new, text))
        return links

    def _followers(self) -> Iterator[Link]:
        member = self._chain.parent
        for record in self._transcript.records if member else ():
            old = record.own_parent
            if record.number not in self._gone and old is not None and self._is_cut(old):
                text = f"{record.number} follows {self._first[old]}, which goes"
                yield Link(
                    record.number, self._first[old], member or "", old, self._above(old), text
                )

    def unanchored(self) -> set[int]:
        """Records that only name what goes, with nothing left to name instead."""
        return {
            record.number
            for record, name, old in self._naming()
            if name.or_goes and self._instead(record, name, old) is None
        }

    def _naming(self) -> Iterator[tuple[Record, Name, str]]:
        """Records that stay and name one that goes, beside the one that they follow."""
        kinds = {name.kind for name in self._chain.names}
        for record in self._transcript.records:
            if record.kind not in kinds or record.number in self._gone:
                continue
            value = self._value(record)
            for name in self._chain.names:
                old = member_of(value, name.member) if name.kind == record.kind else None
                if isinstance(old, str) and self._is_cut(old):
                    yield record, name, old

    def _above(self, name: str | None) -> str | None:
        """The next one above that stays."""
        seen = set[str | None]()
        while self._is_cut(name) and name not in seen:
            seen.add(name)
            name = self._parents[name] if name is not None else None
        return None if name in seen else name

    def _instead(self, record: Record, name: Name, old: str) -> str | None:
        if name.to == chains.BACK and self._chain.parent:
            return self._above(old)
        if not self._chain.parent:
            return self._next_in_file(record, old)
        return self._next_below(record, old) or record.own_id

    def _next_in_file(self, record: Record, old: str) -> str | None:
        places = range(self._first[old], record.number - 1)
        later = (self._transcript.records[place].own_id for place in places)
        return next((one for one in later if one in self._kept and self._after(one, old)), None)

    def _after(self, name: str, old: str) -> bool:
        return self._first[name] > self._first[old]

    def _next_below(self, record: Record, old: str) -> str | None:
        """Of those between a record and one above it, the one that stays and is the highest."""
        found, seen = None, set[str]()
        above = record.own_parent
        while above is not None and above != old and above not in seen:
            seen.add(above)
            found = above if above in self._kept else found
            above = self._parents.get(above)
        return found if above == old else None

    # -- what cannot be mended

    def counted(self) -> list[tuple[int, int, str]]:
        """Records that stay and count some that go: (number, about, text)."""
        kinds = {count.kind for count in self._chain.counts}
        found = []
        for record in self._transcript.records if kinds else ():
            if record.kind not in kinds or record.number in self._gone:
                continue
            value = self._value(record)
            for count in self._chain.counts:
                if count.kind != record.kind or member_of(value, count.member) is None:
                    continue
                before = [
                    number
                    for number in sorted(self._gone)
                    if number < record.number
                    and (count.of == chains.RECORDS or "user" in self._transcript.at(number).types)
                ]
                if before:
                    text = f"{record.number} counts the {count.of} before it, and {before[0]} goes"
                    found.append((record.number, before[0], text))
        return found

    def revived(self) -> list[tuple[int, int, str]]:
        """Records that one that goes had taken back: (number, about, text) of the last of each."""
        records = self._transcript.records
        stands = {one.native_id for one in records if one.native_id and not one.superseded}
        back = {name.kind for name in self._chain.names if name.or_goes}
        back |= {count.kind for count in self._chain.counts}
        found = []
        for number in sorted(self._gone):
            if self._transcript.at(number).kind in back:
                last = next(
                    (
                        one.number
                        for one in reversed(records[: number - 1])
                        if one.superseded
                        and one.events
                        and one.number not in self._gone
                        and one.native_id not in stands
                    ),
                    None,
                )
                if last is not None:
                    text = f"{last} would count again, which {number} takes back"
                    found.append((last, number, text))
        return found

    def unpacked(self) -> list[tuple[int, int, str]]:
        """What the agent would read again without the last record that stands for it."""
        pack = self._last_pack(self._transcript.records)
        if pack is None or pack[0].number not in self._gone:
            return []
        number = pack[0].number
        stay = [
            one.number
            for one in self._transcript.records
            if one.events and one.number not in self._gone
        ]
        if not stay or not stay[0] < number < stay[-1]:  # with all after it gone, as before it
            return []
        first = stay[0]
        return [(first, number, f"{first} may count again, which {number} stands for")]

    def copied(self, texts: Texts) -> list[tuple[int, int, str]]:
        """What goes and stays in the record that the agent goes on from."""
        records = self._transcript.records
        pack = self._last_pack([one for one in records if one.number not in self._gone])
        if pack is None:
            return []
        last, packed = pack
        said = set[str]() if isinstance(packed, str) else strings(packed)  # a summary is no copy
        return [
            (last.number, number, f"{last.number} has a copy of {number}, and counts instead of it")
            for number in sorted(self._gone)
            if number < last.number and self._is_in(said, number, texts)
        ]

    def _is_in(self, said: set[str], number: int, texts: Texts) -> bool:
        record = self._transcript.at(number)
        return bool(said) and (record.own_id in said or not said.isdisjoint(texts(record)))

    def _last_pack(self, records: Sequence[Record]) -> tuple[Record, Any] | None:
        """The last record that stands for all before it, and what it has of them."""
        members = {pack.kind: pack.member for pack in self._chain.packs}
        for record in reversed(records) if members else ():
            if record.kind in members:
                packed = member_of(self._value(record), members[record.kind])
                if packed:
                    return record, packed
        return None

    def strayed(self) -> tuple[int, int, str] | None:
        """Where the agent would go on from another branch than before."""
        named = [record for record in self._transcript.records if record.own_id is not None]
        left = [record for record in named if record.number not in self._gone]
        if not self._chain.from_last or not left or named[-1].number not in self._gone:
            return None
        expected = [one for one in self._path(named[-1].own_id) if one in self._kept]
        if [one for one in self._path(left[-1].own_id) if one in self._kept] == expected:
            return None
        last, leaf = left[-1].number, named[-1].number
        return last, leaf, f"the session would go on from {last}, which is on another branch"

    def _path(self, name: str | None) -> list[str]:
        path: list[str] = []
        seen = set[str]()
        while name is not None and name in self._parents and name not in seen:
            seen.add(name)
            path.append(name)
            name = self._parents[name]
        return path


def member_of(value: Any, member: str) -> Any:
    """The value that dots lead to; None if there is none."""
    for name in member.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def strings(value: Any) -> set[str]:
    """All texts in a value."""
    texts: set[str] = set()
    waiting = [value]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, str):
            texts.add(inner)
        elif isinstance(inner, dict):
            waiting += inner.values()
        elif isinstance(inner, list):
            waiting += inner
    return texts


def is_followed(chain: Chain, record: Record, value: Any) -> bool:
    """Whether the index knows the place of a record in the chain as its file says it."""
    if not isinstance(value, dict) or not chain.id or chain.parent not in value:
        return True
    return bool(
        value.get(chain.id) == record.own_id and value.get(chain.parent) == record.own_parent
    )
