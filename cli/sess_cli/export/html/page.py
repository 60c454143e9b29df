"""One session as one page: the first screens in plain HTML, the rest packed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2s
from typing import BinaryIO

from sess_cli.export.forge import Repository
from sess_cli.export.html import chunks, masthead, overview, shell
from sess_cli.export.html.cards import Drawer, Workshop
from sess_cli.export.html.encrypted import Lock
from sess_cli.export.html.masthead import Combined
from sess_cli.export.html.overview import Outline, PlainText, Strip
from sess_cli.export.story import Item, Story
from sess_common import times
from sess_schema import labels

LEVELS = ("conversation", "tools", "thinking", "everything")
_LEVEL_OF_TYPE = {"user": 0, "assistant": 0, "tool_use": 1, "thinking": 2}
_LOOSE = "subagent"
_LEVEL_OF_LABEL = {
    labels.COMPACT: 0, labels.INTERRUPTED: 1, labels.COMMAND_OUTPUT: 1, labels.BASH_OUTPUT: 1,
    _LOOSE: 1, masthead.SESSION_LABEL: 0,
    **dict.fromkeys(labels.ALARMS, 1),
}  # fmt: skip
_QUARTER = 15 * times.MINUTE
_NUMBER = re.compile(r' data-n="\d+"')
_INNER_CARD = re.compile(r'<article class="[^"]*" id="([0-9a-f]+-[^"]+)"')


@dataclass(frozen=True, slots=True)
class Look:
    """Options of a page."""

    level: str = "tools"
    static: bool = False  # everything in plain HTML
    utc: bool = False
    repository: Repository | None = None
    assets: str | None = None  # the URL of a directory with `shell.style()` and `shell.script()`
    trail: masthead.Trail = ()
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


def _body(story: Story | Combined, look: Look) -> Iterator[str]:
    """All events are read before anything is yielded: the outline precedes the first card."""
    drawn = _Drawn(story, look)
    yield '<a class="skip" href="#talk">Skip to the conversation</a>\n'
    if isinstance(story, Combined):
        yield from story.masthead(utc=look.utc)
    else:
        yield from masthead.html(story, utc=look.utc, trail=look.trail)
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
        part = masthead.SessionPart(story, len(self.facts.keys), utc=self._utc)
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
