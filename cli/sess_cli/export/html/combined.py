"""Several sessions on one page, one after the other."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2s

from sess_cli.export.failures import Failures
from sess_cli.export.html import markup
from sess_cli.export.story import Item, Story
from sess_cli.render import amounts, tallies

SESSION = "session"  # the label of the card at the head of each
_PREFIX = 4  # bytes


@dataclass(frozen=True, slots=True)
class Combined:
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
        starts = [one.row.started for one in self.stories if one.row.started is not None]
        ends = [one.row.ended or one.row.started for one in self.stories]
        last = max((end for end in ends if end is not None), default=None)
        totals = [story.total for story in self.stories]
        facts = [amounts.period(min(starts), last, utc=utc)] if starts else []
        facts.append(amounts.plural(sum(one.prompts for one in totals), "prompt"))
        facts.append(amounts.plural(sum(one.tool_calls for one in totals), "tool call"))
        if cost := sum(one.cost_nano for one in totals):
            facts.append(tallies.money(cost))
        agents = ", ".join(dict.fromkeys(story.row.agent for story in self.stories))
        yield f'<header class="masthead">\n<h1 dir="auto">{markup.text(self.title)}</h1>\n'
        said = "".join(f" <span>{markup.text(fact)}</span>" for fact in facts)
        yield f'<p class="in-short"><b>{markup.text(agents)}</b>{said}</p>\n</header>\n'


class Part:
    """The events of one session, numbered and named as events of the page."""

    def __init__(self, story: Story, first: int, *, prefix: str) -> None:
        self.row = story.row
        self._story, self._first, self._prefix = story, first, prefix

    def items(self) -> Iterator[Item]:
        for item in self._story.items():
            item.number += self._first
            item.key = self._prefix + item.key
            yield item


def prefix(story: Story) -> str:
    """The same in every export: links to a page stay good when it is written again."""
    return blake2s(story.row.session.encode("utf-8", "replace"), digest_size=_PREFIX).hexdigest()


def head(story: Story, number: int) -> Item:
    """Stands for the session in the outline and among the facts of the page."""
    key = prefix(story)
    return Item("system", story.title, SESSION, number=number, key=key, ts=story.row.started)


def facts(story: Story, *, utc: bool) -> list[str]:
    row = story.row
    told = [row.agent, amounts.period(row.started, row.ended, utc=utc), ", ".join(story.models)]
    return [*told, amounts.plural(story.total.prompts, "prompt"), row.session]


def head_card(story: Story, item: Item, told: Sequence[str], failed: str | None) -> str:
    said = "".join(f" <span>{markup.text(fact)}</span>" for fact in told if fact)
    why = f"<p><em>It could not be exported: {markup.text(failed)}</em></p>" if failed else ""
    return (
        f'<article class="card session" id="{item.key}" data-n="{item.number}"'
        f' data-kind="system" aria-label="Session"><h2 dir="auto"><a href="#{item.key}">'
        f'{markup.title(story.title)}</a></h2><p class="in-short">{said}</p>{why}</article>'
    )
