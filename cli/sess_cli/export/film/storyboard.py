"""A session as a storyboard, used by all films: a title, scenes in order, closing numbers."""

from __future__ import annotations

import re

from sess_cli.export.film import prose, rows
from sess_cli.export.film.extent import Extent, only
from sess_cli.export.film.frames import Look, Row
from sess_cli.export.film.painting import Painter
from sess_cli.export.film.repeated import Repeated
from sess_cli.export.film.scenes import Card, Scene, Storyboard
from sess_cli.export.story import Story
from sess_cli.render import amounts, layout, tallies
from sess_common import times
from sess_common.errors import Exit, SessError

MAX_OUTPUT = 12
_LONG_PAUSE = 10 * times.MINUTE
_CHAPTER = 60
_NAMES = 15  # cells, in the closing numbers
_TAGS = re.compile(r"</?[a-z][a-z-]{0,40}>")


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
    wanted = only(only_kind)
    scenes: list[Scene] = []
    chapters: list[str] = []
    agents = 0
    changed: set[str] = set()
    repeated = Repeated()
    for item in (extent or Extent()).items(story):
        scene = painter.scene(item, len(chapters))
        if scene is not None:
            if scene.kind == "prompt":
                chapters.append(_chapter(item.text) or f"prompt {len(chapters) + 1}")
                scene.chapter = len(chapters)
            agents += scene.kind == "agent"
            if scene.kind in ("edit", "write") and not scene.failed and scene.call:
                changed.add(scene.call.subject)
            if wanted(scene.kind, scene.failed) and not repeated.merged(scene):
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
    repeated.tell()
    _end_chapters(scenes)
    _draw_rules(scenes, len(chapters), columns, utc=utc)
    title = rows.one_line(title or rows.plain(prose.inline(story.title))) or "a session"
    return Storyboard(
        title=title,
        opening=_opening(story, title, columns, utc=utc),
        scenes=scenes,
        closing=_closing(story, columns, max(agents, len(story.children)), len(changed)),
        chapters=chapters,
        started=story.row.started,
        ended=story.row.ended,
    )


def _chapter(text: str) -> str:
    return layout.cut(_TAGS.sub("", prose.first_line(text, 4 * _CHAPTER)).strip(), _CHAPTER)


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


def _closing(story: Story, columns: int, agents: int, files: int) -> Card:
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
    return Card(rows.row(("session totals", Look("accent", bold=True))), lines, indent=_NAMES)
