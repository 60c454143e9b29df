"""The range of a session to film: from one event or moment to another."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sess_cli.cited import event_of
from sess_cli.export.film.scenes import TOOLS
from sess_cli.export.story import Item, Story
from sess_common import times
from sess_common.errors import Exit, SessError
from sess_schema.citations import looks_like_one

_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?")
_AFTER = re.compile(r"\+(\d{1,6})\s*([smh])")
_PROMPTS = re.compile(r"(\d{1,6})?(-)?(\d{1,6})?")
_UNITS = {"s": times.SECOND, "m": times.MINUTE, "h": times.HOUR}
_HINT = (
    "give #1a2b3c4d (an event as `sess show` names it), 12 (its number), 14:30, +5m (into the"
    " session) or 2026-02-20T14:30"
)


@dataclass(slots=True)
class Extent:
    """A bound given by `--from` or `--to`."""

    begin: str | None = None
    end: str | None = None
    utc: bool = False
    prompts: tuple[int, int] | None = None  # the first and the last, by number

    def items(self, story: Story) -> Iterator[Item]:
        """The events in the range, both ends included."""
        found = self._between(story)
        return found if self.prompts is None else self._of_prompts(found, *self.prompts)

    @staticmethod
    def _of_prompts(items: Iterator[Item], first: int, last: int) -> Iterator[Item]:
        number = 0
        for item in items:
            number += item.type == "user"
            if number > last:
                return
            if number >= first:
                yield item

    def _between(self, story: Story) -> Iterator[Item]:
        begins = _Bound(self.begin, story, utc=self.utc) if self.begin else None
        ends = _Bound(self.end, story, utc=self.utc, last=True) if self.end else None
        inside = begins is None
        moment: int | None = None
        for item in story.items():
            moment = item.ts if item.ts is not None else moment
            inside = inside or (begins is not None and begins.reached(item, moment))
            if ends is not None and ends.passed(moment):
                return
            if inside:
                yield item
            if ends is not None and ends.reached(item, moment) and ends.is_event:
                return
        for bound in (begins, ends):
            if bound is not None and bound.is_event:
                if bound is begins and inside:
                    continue
                raise SessError(
                    f'session "{story.row.session}" has no event {bound.given}',
                    hint=_HINT,
                    code=Exit.NOTHING_FOUND,
                )


class _Bound:
    def __init__(self, given: str, story: Story, *, utc: bool, last: bool = False) -> None:
        self.given = given
        self._event = self._number = self._moment = -1
        text = given.strip()
        if text.isascii() and text.isdigit() and len(text) < 12:
            self._number = int(text)
        elif text.startswith("#") and looks_like_one(text[1:]):
            self._event = event_of(story.db, story.row, text[1:])
        else:
            self._moment = _moment(text, story.row.started, utc=utc, last=last)

    @property
    def is_event(self) -> bool:
        return self._moment < 0

    def reached(self, item: Item, moment: int | None) -> bool:
        if self.is_event:
            return self._event == item.id or self._number == item.number
        return moment is not None and moment >= self._moment

    def passed(self, moment: int | None) -> bool:
        return not self.is_event and moment is not None and moment > self._moment


def prompts(text: str | None) -> tuple[int, int] | None:
    """`3`, `3-7`, `3-` or `-7`."""
    if text is None:
        return None
    found = _PROMPTS.fullmatch(text.strip())
    if found is None or not (found[1] or found[3]):
        raise SessError(f'invalid prompts: "{text}"', hint="use 3, 3-7, 3- or -7")
    first = int(found[1] or 1)
    last = int(found[3]) if found[3] else 1 << 30 if found[2] else first
    if not 1 <= first <= last:
        raise SessError(f'invalid prompts: "{text}"', hint="use 3, 3-7, 3- or -7")
    return first, last


def _moment(text: str, started: int | None, *, utc: bool, last: bool) -> int:
    if clock := _CLOCK.fullmatch(text):
        hour, minute, second = int(clock[1]), int(clock[2]), int(clock[3] or 0)
        if started is not None and hour < 24 and minute < 60 and second < 60:
            midnight = f"{times.local(started, utc=utc):%Y-%m-%d}"
            found = times.since(f"{midnight}T{hour:02}:{minute:02}:{second:02}", utc=utc)
            # A session that began before midnight may continue the next day.
            return found if found >= started - times.MINUTE else found + times.DAY
    if after := _AFTER.fullmatch(text):
        return (started or 0) + int(after[1]) * _UNITS[after[2]]
    try:
        return max(0, (times.until if last else times.since)(text, utc=utc))
    except SessError:
        raise SessError(f'no such event or time: "{text}"', hint=_HINT) from None


def only(kind: str | None) -> Callable[[str, bool], bool]:
    """Whether to show a scene of this kind, failed or not."""
    wanted: dict[str | None, Callable[[str, bool], bool]] = {
        None: lambda _kind, _failed: True,
        "tools": lambda kind, _failed: kind in TOOLS or kind == "commit",
        "conversation": lambda kind, _failed: kind in ("prompt", "answer"),
        "errors": lambda _kind, failed: failed,
    }
    return wanted[kind]
