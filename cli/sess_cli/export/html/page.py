"""One session as one page, or several: the first screens in plain HTML, the rest packed."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2s
from typing import BinaryIO

import apsw

from sess_cli.export.files import Failures, open_address
from sess_cli.export.forge import Repository
from sess_cli.export.html import chunks, markup, overview, shell
from sess_cli.export.html.cards import Drawer, Workshop
from sess_cli.export.html.encrypted import Lock
from sess_cli.export.html.overview import Outline, PlainText, Strip
from sess_cli.export.story import Item, Story, usual_redactor
from sess_cli.render import amounts, tallies
from sess_cli.resuming import arguments
from sess_common import paths, times
from sess_common.program import say
from sess_schema import labels, outputs
from sess_schema.citations import Citations
from sess_schema.ids import EventId, SessionId
from sess_schema.queries import sessions

_LEVEL_OF_TYPE = {"user": 0, "assistant": 0, "tool_use": 1, "thinking": 2}
_LOOSE = "subagent"
_LEVEL_OF_LABEL = {
    labels.COMPACT: 0, labels.INTERRUPTED: 1, labels.COMMAND_OUTPUT: 1, labels.BASH_OUTPUT: 1,
    _LOOSE: 1, overview.SESSION_LABEL: 0,
    **dict.fromkeys(labels.ALARMS, 1),
}  # fmt: skip
_QUARTER = 15 * times.MINUTE
_NUMBER = re.compile(r' data-n="\d+"')
_MOST_MODELS = 3
_PREFIX = 4  # bytes
_INNER_CARD = re.compile(r'<article class="[^"]*" id="([0-9a-f]+-[^"]+)"')

Trail = Sequence[tuple[str, str]]  # (label, URL) of the pages above this one


@dataclass(frozen=True, slots=True)
class Look:
    """Options of a page."""

    level: str = "tools"
    static: bool = False  # everything in plain HTML
    utc: bool = False
    repository: Repository | None = None
    assets: str | None = None  # the URL of a directory with `shell.style()` and `shell.script()`
    trail: Trail = ()
    workshop: Workshop | None = None  # may be shared by several pages


def write(
    story: Story | Combined, out: BinaryIO, look: Look | None = None, lock: Lock | None = None
) -> None:
    """With a lock, everything is encrypted, the title included."""
    look = look or Look()
    title, content = story.title, _body(story, look)
    if lock is not None:
        title, content = lock.title, iter([lock.body(title, "".join(content))])
    pieces = shell.document(title, content, assets=look.assets, level=look.level)
    out.writelines(piece.encode("utf-8", "replace") for piece in pieces)


def open_at(db: apsw.Connection, session: SessionId, event: EventId, *, utc: bool) -> None:
    """Open a session's page in the browser, at one event."""
    path = paths.home().data / outputs.OPENED  # overwritten each time: to keep a page, export it
    story = Story(db, sessions.by_key(db, session), usual_redactor())
    with outputs.new_file(str(path)) as out:
        write(story, out, Look(level="everything", utc=utc))
    address = f"{path.as_uri()}#{Citations(db).key(event, session)}"
    say(address)
    open_address(address, hint="open the address above")


def _body(story: Story | Combined, look: Look) -> Iterator[str]:
    """All events are read before anything is yielded: the outline precedes the first card."""
    drawn = _Drawn(story, look)
    yield '<a class="skip" href="#talk">Skip to the conversation</a>\n'
    if isinstance(story, Combined):
        yield from story.masthead(utc=look.utc)
    else:
        yield from _masthead(story, utc=look.utc, trail=look.trail)
    yield from drawn.strip.html()
    yield overview.toolbar(look.level)
    yield '<div class="columns">\n'
    yield from drawn.outline.html()
    yield '<main id="talk" tabindex="-1">\n'
    if not drawn.facts.keys:
        yield '<p class="empty">Nothing was said in this session.</p>\n'
    yield from drawn.first_cards()
    if drawn.cards.counts:
        yield from drawn.plain_text.html()
    yield "\n</main>\n</div>\n"
    yield overview.HELP_DIALOG
    yield chunks.facts_block(drawn.facts, drawn.cards.counts)
    yield from drawn.cards.blocks()


class _Drawn:
    """Every card, and the outline, strip and facts derived from them."""

    def __init__(self, story: Story | Combined, look: Look) -> None:
        self._utc = look.utc
        self._drawer = Drawer(repository=look.repository, utc=look.utc)
        self.cards = chunks.Chunks(all_plain=look.static)
        self.facts = chunks.Facts()
        self.outline = Outline(utc=look.utc)
        self.strip = Strip(utc=look.utc)
        self.plain_text = PlainText()
        workshop = look.workshop or Workshop()
        try:
            if isinstance(story, Combined):
                for each in story.stories:
                    self._add_session(each, story, workshop)
            else:
                for item, card in workshop.cards(story, self._drawer):
                    self._add(item, card)
                self._add_loose(story)
        finally:
            if look.workshop is None:
                workshop.close()
        self.cards.finish()
        self.facts.places = self.strip.places()

    def first_cards(self) -> Iterator[str]:
        """The cards in plain HTML; where there are several days, the first of each names it."""
        several = len({*filter(None, self.facts.days)}) > 1
        last = ""
        for card, day in zip(self.cards.plain, self.facts.days, strict=False):
            if several and day and day != last:
                last = day
                yield _NUMBER.sub(rf'\g<0> data-day="{day}"', card, count=1)
            else:
                yield card

    def _add_session(self, story: Story, whole: Combined, workshop: Workshop) -> None:
        """Its head and its cards; if it cannot be read, the head says why."""
        part = _SessionPart(story, len(self.facts.keys), utc=self._utc)
        cards: list[tuple[Item, str]] = []
        facts = [story.row.session]
        with whole.failures.noted(story):
            facts = part.facts()
            cards = [*workshop.cards(part, self._drawer)]
        why = whole.failures.why
        self._add(part.head, part.head_card(facts, why))
        for item, card in cards:
            self._add(item, card)
        if why is None:
            self._add_loose(story)

    def _add_loose(self, story: Story) -> None:
        """Subagents' sessions that no known call started, each as one card."""
        for child in story.loose:
            number, key, began = len(self.facts.keys), loose_key(child), child.row.started
            item = Item("system", label=_LOOSE, number=number, key=key, ts=began, agent=child)
            card = (
                f'<article class="card loose" id="{key}" data-n="{number}"'
                f' data-kind="system" aria-label="Subagent">'
                f'<div class="body">{self._drawer.agent(child, f"{key}-")}</div></article>'
            )
            self._add(item, card)

    def _add(self, item: Item, card: str) -> None:
        facts = self.facts
        nodes = 2 * card.count("</")
        facts.keys.append(item.key)
        facts.kinds.append(item.type)
        facts.tools.append(item.tool or "" if item.type == "tool_use" else "")
        facts.levels.append(_level(item))
        facts.failed.append(int(item.failed or item.label in labels.ALARMS))
        facts.prompts.append(self.outline.add(item))
        facts.times.append(item.ts)
        facts.days.append("" if item.ts is None else _day_of(item.ts // _QUARTER, self._utc))
        facts.nodes.append(nodes)
        facts.heights.append(_height(item))
        self.strip.add(item)
        if not self.cards.add(card, nodes):
            self.plain_text.add(item)
        if item.agent is not None:
            for key in _INNER_CARD.findall(card):
                facts.inner.setdefault(key, len(facts.keys) - 1)


def loose_key(child: Story) -> str:
    """The key of the card of a subagent's session that no known call started."""
    return blake2s(child.row.session.encode("utf-8", "replace"), digest_size=6).hexdigest()


@lru_cache(maxsize=4096)
def _day_of(quarter: int, utc: bool) -> str:
    """The day of a quarter of an hour; time zones differ by whole quarters."""
    return f"{times.local(quarter * _QUARTER, utc=utc):%A, %Y-%m-%d}"


def _level(item: Item) -> int:
    if item.type in _LEVEL_OF_TYPE:
        return _LEVEL_OF_TYPE[item.type]
    return _LEVEL_OF_LABEL.get(item.label or "", 3)


def _height(item: Item) -> int:
    """An estimate; the page measures the cards it draws."""
    text = item.text or item.output
    lines = text.count("\n", 0, 4000) + min(len(text), 4000) // 90
    return 80 + min(250, 22 * lines)


# -- the head of a page


def _masthead(story: Story, *, utc: bool, trail: Trail) -> Iterator[str]:
    """Sums include subagents, except prompts: those are what people typed."""
    yield '<header class="masthead">\n'
    if trail:
        links = " / ".join(
            f'<a href="{markup.attr(url)}">{markup.text(name)}</a>' for name, url in trail
        )
        yield f'<p class="trail">{links}</p>\n'
    yield f'<h1 dir="auto">{markup.title(story.title)}</h1>\n<details class="about">'
    yield f"<summary>{' '.join(_in_short(story, utc=utc))}</summary>\n"
    yield '<dl class="facts">\n'
    for name, value, kind in _about(story, utc=utc):
        yield f'<div class="{kind}"><dt>{name}</dt><dd>{markup.text(value)}</dd></div>\n'
    yield "</dl>\n"
    if resume := resume_command(story):
        yield (
            f'<p class="resume"><code id="resume">{markup.text(resume)}</code>'
            '<button type="button" class="js-only" data-copy="resume">Copy</button></p>\n'
        )
    yield "</details>\n</header>\n"


def _in_short(story: Story, *, utc: bool) -> Iterator[str]:
    """What people ask first, for one line."""
    row, total = story.row, story.total
    yield f"<b>{markup.text(row.agent)}</b>"
    if story.project:
        yield f"<span>{markup.text(story.project)}</span>"
    if row.started is not None:
        yield f"<span>{amounts.period(row.started, row.ended, utc=utc)}</span>"
    if story.duration_ms:
        yield f"<span>{amounts.duration(story.duration_ms)}</span>"
    yield f"<span>{amounts.plural(total.prompts, 'prompt')}</span>"
    yield f"<span>{amounts.plural(total.tool_calls, 'tool call')}</span>"
    if outcomes := amounts.outcomes(total.tool_errors, total.tool_denied):
        yield f"<em>{outcomes}</em>"
    if total.cost_nano:
        yield f"<span>{tallies.money(total.cost_nano)}</span>"


def _about(story: Story, *, utc: bool) -> Iterator[tuple[str, str, str]]:
    row, total = story.row, story.total
    yield "Agent", " ".join(filter(None, (row.agent, row.version))), "agent"
    if story.project:
        yield "Project", story.project, "mono"
    if story.branch:
        yield "Branch", story.branch, "mono"
    if row.started is not None:
        yield "When", amounts.period(row.started, row.ended, utc=utc) + (" UTC" if utc else ""), ""
    if story.duration_ms:
        yield "Duration", amounts.duration(story.duration_ms), "number"
    if story.numbers.active_ms < story.duration_ms:
        yield "Active", amounts.duration(story.numbers.active_ms), "number"
    yield "Prompts", f"{total.prompts:,}", "number"
    yield "Tool calls", f"{total.tool_calls:,}", "number"
    if total.tool_errors:
        yield "Failed", f"{total.tool_errors:,}", "number error"
    if total.tool_denied:
        yield "Denied", f"{total.tool_denied:,}", "number error"
    if story.models:
        more = len(story.models) - _MOST_MODELS
        shown = ", ".join(story.models[:_MOST_MODELS]) + (f" and {more} more" if more > 0 else "")
        yield "Models", shown, "mono"
    if total.tokens:
        yield "Tokens", tallies.short(total.tokens), "number"
    if total.cost_nano or total.unpriced:
        unknown = f" + {total.unpriced:,} unpriced" if total.unpriced else ""
        yield "Cost", tallies.money(total.cost_nano) + unknown, "number"
    yield "Session", row.session, "mono"


def resume_command(story: Story) -> str:
    """Empty if no command is known: subagents, editors, ids that look like options.

    A page outlives the transcript, so it is the same whether or not that still exists.
    """
    row = story.row
    resumed = shlex.join(arguments(row))
    if not resumed or row.parent_key is not None:
        return ""
    project = story.project if row.directory else ""
    if not project or any(not c.isprintable() for c in project):
        return resumed
    # A redacted home directory begins with `~`, which works only unquoted.
    home, rest = ("~/", project[2:]) if project.startswith("~/") else ("", project)
    return f"cd {home}{shlex.quote(rest)} && {resumed}"


# -- several sessions on one page


@dataclass(frozen=True, slots=True)
class Combined:
    """Several sessions on one page, one after the other."""

    stories: Sequence[Story]
    failures: Failures = field(default_factory=Failures)

    @property
    def of_one_project(self) -> bool:
        return len({story.project for story in self.stories}) == 1

    @property
    def title(self) -> str:
        """Of the project, if all are of one."""
        count = amounts.plural(len(self.stories), "session")
        only = self.stories[0].project if self.of_one_project else ""
        name = posixpath.basename(only.rstrip("/")) or only
        return f"{name}: {count}" if name else count

    def masthead(self, *, utc: bool) -> Iterator[str]:
        rows = [story.row for story in self.stories]
        totals = [story.total for story in self.stories]
        starts = [row.started for row in rows if row.started is not None]
        ends = [row.ended or row.started for row in rows]
        last = max((end for end in ends if end is not None), default=None)
        facts = [amounts.period(min(starts), last, utc=utc)] if starts else []
        facts.append(amounts.plural(sum(total.prompts for total in totals), "prompt"))
        facts.append(amounts.plural(sum(total.tool_calls for total in totals), "tool call"))
        if cost := sum(total.cost_nano for total in totals):
            facts.append(tallies.money(cost))
        agents = ", ".join(dict.fromkeys(row.agent for row in rows))
        yield f'<header class="masthead">\n<h1 dir="auto">{markup.text(self.title)}</h1>\n'
        yield f'<p class="in-short"><b>{markup.text(agents)}</b>{_spans(facts)}</p>\n</header>\n'


class _SessionPart:
    """One of several sessions on a page: its head, and its events as events of the page."""

    def __init__(self, story: Story, number: int, *, utc: bool) -> None:
        self.row = story.row
        self._story, self._number, self._utc = story, number, utc
        # The same in every export: links to a page stay good when it is written again.
        session = story.row.session.encode("utf-8", "replace")
        self._key = blake2s(session, digest_size=_PREFIX).hexdigest()

    def items(self) -> Iterator[Item]:
        for item in self._story.items():
            item.number += self._number + 1
            item.key = self._key + item.key
            yield item

    @property
    def head(self) -> Item:
        """Stands for the session in the outline and among the facts of the page."""
        title, began = self._story.title, self.row.started
        number, key, label = self._number, self._key, overview.SESSION_LABEL
        return Item("system", title, label, number=number, key=key, ts=began)

    def facts(self) -> list[str]:
        row, story = self.row, self._story
        when = amounts.period(row.started, row.ended, utc=self._utc)
        prompts = amounts.plural(story.total.prompts, "prompt")
        return [row.agent, when, ", ".join(story.models), prompts, row.session]

    def head_card(self, facts: Sequence[str], failure: str | None) -> str:
        why = f"<p><em>It could not be exported: {markup.text(failure)}</em></p>" if failure else ""
        return (
            f'<article class="card session" id="{self._key}" data-n="{self._number}"'
            f' data-kind="system" aria-label="Session"><h2 dir="auto"><a href="#{self._key}">'
            f"{markup.title(self._story.title)}</a></h2>"
            f'<p class="in-short">{_spans(facts)}</p>{why}</article>'
        )


def _spans(facts: Iterable[str]) -> str:
    return "".join(f" <span>{markup.text(fact)}</span>" for fact in facts if fact)
