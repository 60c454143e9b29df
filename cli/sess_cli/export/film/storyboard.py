"""A session as a storyboard, used by all films: a title, scenes in order, closing numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sess_cli.export.film import rows
from sess_cli.export.film.painting import Painter
from sess_cli.export.film.rows import Look, Row
from sess_cli.export.film.scenes import TOOLS, Card, RepeatedFailures, Scene, Storyboard
from sess_cli.export.story import Item, Story
from sess_cli.options import cited_event
from sess_cli.render import amounts, layout, tallies
from sess_common import times
from sess_common.errors import Exit, SessError
from sess_schema.citations import looks_like_one

MAX_OUTPUT = 12
HOME = "github.com/sessiond/sessiond"
_LONG_PAUSE = 10 * times.MINUTE
_CHAPTER = 60
_NAMES = 15  # cells, in the closing numbers
_SHORT_ID = 8
_MADE_WITH = (("sess", Look("mauve", bold=True)), (f"  {HOME}", Look("blue")))
_TAGS = re.compile(r"</?[a-z][a-z-]{0,40}>")
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?")
_AFTER = re.compile(r"\+(\d{1,6})\s*([smh])")
_PROMPTS = re.compile(r"(\d{1,6})?(-)?(\d{1,6})?")
_UNITS = {"s": times.SECOND, "m": times.MINUTE, "h": times.HOUR}
_HINT = (
    "give #1a2b3c4d (an event as `sess show` names it), 12 (its number), 14:30, +5m (into the"
    " session) or 2026-02-20T14:30"
)


def storyboard(
    story: Story,
    columns: int,
    *,
    extent: Extent | None = None,
    only_kind: str | None = None,
    max_output: int = MAX_OUTPUT,
    title: str | None = None,
    utc: bool = False,
) -> Storyboard:
    """Everything that can be shown; pacing selects what there is time for."""
    painter = Painter(story, columns, max_output)
    wanted = kind_filter(only_kind)
    scenes: list[Scene] = []
    chapters: list[str] = []
    agents = 0
    changed: set[str] = set()
    repeated = RepeatedFailures()
    for item in (extent or Extent()).items(story):
        scene = painter.scene(item, len(chapters))
        if scene is not None:
            if scene.kind == "prompt":
                chapters.append(_chapter(item.text) or f"prompt {len(chapters) + 1}")
                scene.chapter = len(chapters)
            agents += scene.kind == "agent"
            if scene.kind in ("edit", "write") and not scene.failed and scene.call:
                changed.add(scene.call.subject)
            if wanted(scene.kind, scene.failed) and not repeated.merge(scene):
                scenes.append(scene)
        commit = painter.commits(item, len(chapters))
        if commit is not None and wanted("commit", commit.failed):
            scenes.append(commit)
    if not scenes and story.row.events and (only_kind or extent):
        raise SessError(
            f'nothing to film in session "{story.row.session}"',
            hint="--from, --to, --prompts and --only leave nothing",
            code=Exit.NOTHING_FOUND,
        )
    repeated.add_counts()
    _end_chapters(scenes)
    _draw_rules(scenes, len(chapters), columns, utc=utc)
    title = rows.one_line(title or rows.plain(rows.inline_markdown(story.title))) or "a session"
    return Storyboard(
        title=title,
        opening=_opening(story, title, columns, utc=utc),
        scenes=scenes,
        closing=_closing(story, title, columns, max(agents, len(story.children)), len(changed)),
        chapters=chapters,
        started=story.row.started,
        ended=story.row.ended,
    )


def _chapter(text: str) -> str:
    return layout.cut(_TAGS.sub("", rows.first_line(text, 4 * _CHAPTER)).strip(), _CHAPTER)


def _end_chapters(scenes: list[Scene]) -> None:
    """Mark the last answer before each next prompt as final."""
    last: dict[int, Scene] = {}
    for scene in scenes:
        if scene.kind == "answer":
            last[scene.chapter] = scene
    for scene in last.values():
        scene.final = True


def _draw_rules(scenes: list[Scene], prompts: int, columns: int, *, utc: bool) -> None:
    """Rules with the time above prompts and after long pauses."""
    before: int | None = None
    for scene in scenes:
        pause = scene.ts - before if scene.ts is not None and before is not None else 0
        before = scene.ts if scene.ts is not None else before
        later = f"{amounts.duration(pause)} later" if pause >= _LONG_PAUSE else ""
        if scene.kind == "prompt":
            words = [f"prompt {scene.chapter} of {prompts}"]
            if scene.ts is not None:
                words.append(f"{times.local(scene.ts, utc=utc):%H:%M}")
            scene.above.insert(0, _rule(" · ".join(filter(None, [*words, later])), columns - 4))
        elif later:
            scene.above.insert(0, _rule(later, columns - 4))


def _rule(words: str, room: int) -> Row:
    dashes = "─" * max(3, room - layout.cells(words) - 5)
    return rows.cut(
        rows.row((f"{dashes} ", Look("surface")), (words, rows.DIM), (" ───", Look("surface"))),
        room,
    )


# -- cards


def _opening(story: Story, title: str, columns: int, *, utc: bool) -> Card:
    room = max(10, min(columns - 4, 88))
    row = story.row
    where = [(rows.one_line(row.agent), Look("mauve", bold=True))]
    if story.project:
        where += [(" in ", rows.DIM), (rows.one_line(story.project), Look("blue"))]
    if story.branch:
        where += [(" on ", rows.DIM), (rows.one_line(story.branch), Look("teal"))]
    when = []
    if row.started is not None:
        when.append(amounts.clock(row.started, utc=utc))
    if story.duration_ms:
        when.append(amounts.duration(story.duration_ms))
    facts = [
        amounts.plural(count, name)
        for count, name in ((story.total.prompts, "prompt"), (story.total.tool_calls, "tool call"))
        if count
    ]
    if not row.events:
        facts.append("no events")
    models = ", ".join(map(rows.one_line, story.models[:4]))
    lines = [
        rows.cut(rows.row(*where), room),
        *rows.wrap(rows.row((" · ".join(when), Look())), room),
        *rows.wrap(rows.row((" · ".join(facts), Look())), room),
        rows.cut(rows.row((models, rows.DIM)), room),
    ]
    heading = rows.row((title, Look("accent", bold=True)))
    return Card(heading, [line for line in lines if line])


def _closing(story: Story, title: str, columns: int, agents: int, files: int) -> Card:
    total = story.total
    facts: list[tuple[str, str, str]] = []
    if story.duration_ms:
        facts.append(("duration", amounts.duration(story.duration_ms), ""))
    facts.append(("prompts", f"{total.prompts:,}", ""))
    facts.append(("tool calls", f"{total.tool_calls:,}", ""))
    share = f"{100 * total.tool_errors / total.tool_calls:.0f}%" if total.tool_errors else ""
    facts.append(("failed", f"{total.tool_errors:,}", share))
    if total.tool_denied:
        facts.append(("denied", f"{total.tool_denied:,}", ""))
    if files:
        facts.append(("files changed", f"{files:,}", ""))
    if agents:
        facts.append(("agents", f"{agents:,}", ""))
    if total.tokens:
        made = f"{tallies.short(total.output_tokens)} out"
        facts.append(("tokens", tallies.short(total.tokens), made))
    if total.cost_nano:
        unknown = f"+ {total.unpriced:,} unpriced" if total.unpriced else ""
        facts.append(("cost", tallies.money(total.cost_nano), unknown))
    lines: list[Row] = []
    for name, value, more in facts:
        look = Look("red" if name == "failed" and total.tool_errors else "text", bold=True)
        line = rows.row(
            (f"{name:<{_NAMES}}", rows.DIM), (value, look), (f"  {more}" if more else "", rows.DIM)
        )
        lines.append(rows.cut(line, max(10, columns - 4)))
    by = rows.row((_one_of(story), rows.DIM), ("  ·  made with ", rows.DIM), *_MADE_WITH)
    heading = rows.row((title, Look("accent", bold=True)))
    return Card(heading, lines, indent=_NAMES, foot=by)


def _one_of(story: Story) -> str:
    """What is told, as somebody who has the index would ask for it."""
    return (
        f"{rows.one_line(story.row.agent)} session {story.cleaned(story.row.session)[:_SHORT_ID]}"
    )


# -- which events, and which of their scenes


@dataclass(slots=True)
class Extent:
    """A bound given by `--from` or `--to`."""

    begin: str | None = None
    end: str | None = None
    utc: bool = False
    prompts: tuple[int, int] | None = None  # the first and the last, by number

    def items(self, story: Story) -> Iterator[Item]:
        """The events in the range, both ends included."""
        items = self._between(story)
        return items if self.prompts is None else self._of_prompts(items, *self.prompts)

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
    """One end of an extent: an event, or a moment."""

    def __init__(self, given: str, story: Story, *, utc: bool, last: bool = False) -> None:
        self.given = given
        self._event = self._number = self._moment = -1
        text = given.strip()
        if text.isascii() and text.isdigit() and len(text) < 12:
            self._number = int(text)
        elif text.startswith("#") and looks_like_one(text[1:]):
            self._event = cited_event(story.db, story.row, text[1:])
        else:
            self._moment = _parse_moment(text, story.row.started, utc=utc, last=last)

    @property
    def is_event(self) -> bool:
        return self._moment < 0

    def reached(self, item: Item, moment: int | None) -> bool:
        if self.is_event:
            return self._event == item.id or self._number == item.number
        return moment is not None and moment >= self._moment

    def passed(self, moment: int | None) -> bool:
        return not self.is_event and moment is not None and moment > self._moment


def parse_prompts(text: str | None) -> tuple[int, int] | None:
    """`3`, `3-7`, `3-` or `-7`."""
    if text is None:
        return None
    bounds = _PROMPTS.fullmatch(text.strip())
    if bounds is not None and (bounds[1] or bounds[3]):
        first = int(bounds[1] or 1)
        last = int(bounds[3]) if bounds[3] else 1 << 30 if bounds[2] else first
        if 1 <= first <= last:
            return first, last
    raise SessError(f'invalid prompts: "{text}"', hint="use 3, 3-7, 3- or -7")


def _parse_moment(text: str, started: int | None, *, utc: bool, last: bool) -> int:
    if clock := _CLOCK.fullmatch(text):
        hour, minute, second = int(clock[1]), int(clock[2]), int(clock[3] or 0)
        if started is not None and hour < 24 and minute < 60 and second < 60:
            midnight = f"{times.local(started, utc=utc):%Y-%m-%d}"
            moment = times.since(f"{midnight}T{hour:02}:{minute:02}:{second:02}", utc=utc)
            # A session that began before midnight may continue the next day.
            return moment if moment >= started - times.MINUTE else moment + times.DAY
    if after := _AFTER.fullmatch(text):
        return (started or 0) + int(after[1]) * _UNITS[after[2]]
    try:
        return max(0, (times.until if last else times.since)(text, utc=utc))
    except SessError:
        raise SessError(f'no such event or time: "{text}"', hint=_HINT) from None


def kind_filter(kind: str | None) -> Callable[[str, bool], bool]:
    """Whether to show a scene of this kind, failed or not."""
    wanted: dict[str | None, Callable[[str, bool], bool]] = {
        None: lambda _kind, _failed: True,
        "tools": lambda kind, _failed: kind in TOOLS or kind == "commit",
        "conversation": lambda kind, _failed: kind in ("prompt", "answer"),
        "errors": lambda _kind, failed: failed,
    }
    return wanted[kind]
