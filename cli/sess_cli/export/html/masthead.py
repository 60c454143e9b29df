"""The header of a session's page: its title and facts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sess_cli.export import resuming
from sess_cli.export.html import markup
from sess_cli.export.story import Story
from sess_cli.render import amounts, tallies

_MOST_MODELS = 3
Trail = Sequence[tuple[str, str]]  # (label, URL) of the pages above this one


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
    if resume := resuming.command(story):
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
