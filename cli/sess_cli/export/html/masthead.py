"""The head of a page: the title and facts of a session, or of several that share the page."""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2s

from sess_cli.export.files import Failures
from sess_cli.export.html import markup
from sess_cli.export.story import Item, Story
from sess_cli.render import amounts, tallies
from sess_cli.resuming import arguments

_MOST_MODELS = 3
Trail = Sequence[tuple[str, str]]  # (label, URL) of the pages above this one
SESSION_LABEL = "session"  # the label of the head of each of several sessions
_PREFIX = 4  # bytes


def html(story: Story, *, utc: bool, trail: Trail = ()) -> Iterator[str]:
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
    for name, value, kind in _facts(story, utc=utc):
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


def _facts(story: Story, *, utc: bool) -> Iterator[tuple[str, str, str]]:
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
        rows, totals = (
            [story.row for story in self.stories],
            [story.total for story in self.stories],
        )
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


class SessionPart:
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
        return Item("system", title, SESSION_LABEL, number=self._number, key=self._key, ts=began)

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
