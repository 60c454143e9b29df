"""One event as a card: who, a summary, the outcome, and the full content."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from sess_cli.export import json_values
from sess_cli.export.forge import Repository
from sess_cli.export.html import calls, markup, prose
from sess_cli.export.html.markup import attr, text
from sess_cli.export.notice_names import NAMES
from sess_cli.export.story import DAMAGED, Commit, Item, Spent, Story
from sess_cli.render import amounts
from sess_cli.render.tallies import tokens
from sess_common import times
from sess_schema import labels

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

    from sess_schema.queries.sessions import SessionRow

_DEEPEST = 8  # levels of nested subagents
_STATES = {
    "ok": ("✓", "ok"),
    "error": ("✗", "failed"),
    "denied": ("⊘", "denied"),
    "pending": ("…", "no result"),
}
_LONG_ANSWER = 6_000
SPEAKERS = {"user": "User", "assistant": "Assistant", "thinking": "Thinking"}
_LATEST = 253_402_300_799_999  # the last moment of the year 9999
_QUARTER = 15 * times.MINUTE
_NOT_A_NAME = re.compile(r"[^a-z0-9_-]+")
_OPEN_NOTICES = labels.ALARMS | {
    labels.AWAY_SUMMARY, labels.INTERRUPTED, labels.QUEUED, labels.TEAMMATE,
}  # fmt: skip
_SHORT_NOTICE = 200
_TASK_SUMMARY = re.compile(r"<summary>([^<]*)</summary>")
_BATCH = 64
_AHEAD = 8  # batches waiting to be drawn; a limit on memory
_WORTH_A_PROCESS = 1500  # events
_WORTH_SENDING = 100  # if the process already runs


class Drawer:
    """Draws events; commits link to `repository`."""

    def __init__(self, repository: Repository | None = None, utc: bool = False) -> None:
        self._repository = repository
        self._utc = utc
        self._depth = 0

    def card(self, item: Item, prefix: str = "") -> str:
        """The event as an `<article>` whose id is `prefix` and the event's key."""
        name = attr(prefix + item.key)
        kind = _NOT_A_NAME.sub("-", item.type.casefold()) or "other"
        classes = ["card", f"k-{kind}"]
        gist = ""
        if item.type == "tool_use":
            tool = calls.kind_of(item)
            classes.append(f"t-{tool}")
            who, gist = calls.name(item), calls.gist(item, tool)
            body = self._call(item, tool, prefix)
        elif item.type == "user":
            who, body = SPEAKERS["user"], prompt_body(item)
            classes += [f"u-{item.label}"] if item.label in (labels.BASH, labels.COMMAND) else []
        elif item.type == "assistant":
            who, body = SPEAKERS["assistant"], _answer(item.text)
        elif item.type == "thinking":
            who, body = SPEAKERS["thinking"], _thought(item.text)
            classes.append("quiet")
        elif item.type == "summary":
            who, gist, body = _summary(item)
            classes += [] if item.is_title else ["boundary"]
        else:
            who, gist, body = notice_name(item), notice_gist(item), notice_body(item)
            classes += ["boundary"] if item.label == labels.COMPACT else []
            classes += ["quiet"] if body.startswith("<details") else []
        failed = item.failed or (item.type != "user" and item.label in labels.ALARMS)
        classes += ["failed"] if failed else []
        inside = markup.in_runs(body) + _pictures(item) + "".join(map(self._commit, item.commits))
        if item.damaged:
            inside += f'<p class="damaged"><em>{DAMAGED}</em></p>'
        shown = markup.set_apart(f'<div class="body">{inside}</div>') if inside else ""
        label = _label(item, who)
        return (
            f'<article class="{" ".join(classes)}" id="{name}" data-n="{item.number}"'
            f'{_facts(item)} aria-label="{label}">'
            f"{self._header(item, _named_by(item, who, label), gist, name)}{shown}</article>"
        )

    def agent(self, story: Story, prefix: str = "") -> str:
        """A subagent's whole conversation, folded."""
        row = story.row
        if self._depth >= _DEEPEST:
            return f'<p class="deep">{text(story.title)}: nested too deep to show</p>'
        self._depth += 1
        try:
            cards = "".join(self.card(item, prefix) for item in story.items())
            loose = "".join(
                self.agent(child, f"{prefix}{number}-") for number, child in enumerate(story.loose)
            )
        finally:
            self._depth -= 1
        calls = story.total.tool_calls
        facts = [amounts.plural(row.events, "event"), amounts.plural(calls, "tool call")]
        if story.duration_ms:
            facts.append(amounts.duration(story.duration_ms))
        named = f'<span class="who">{text(row.agent_type or "Subagent")}</span>'
        title = f'<span class="gist">{text(markup.line(story.title, 120))}</span>'
        return (
            f'<section class="agent" data-session="{attr(row.session)}"'
            f' aria-label="Subagent: {attr(markup.line(story.title, 120))}">'
            f"<details><summary>{named} {title}"
            f' <span class="facts">{text(", ".join(facts))}</span></summary>'
            f'<div class="conversation">{cards}{loose}</div></details></section>'
        )

    def _call(self, item: Item, tool: str, prefix: str) -> str:
        nested = self.agent(item.agent, f"{prefix}{item.key}-") if item.agent is not None else ""
        return calls.asked(item, tool) + nested + calls.answered(item, tool)

    def _header(self, item: Item, who: str, gist: str, name: str) -> str:
        facts = []
        if item.status is not None:
            mark, word = _STATES.get(item.status, ("·", item.status))
            if code := calls.exit_code(item):
                word = f"exit {code}"
            state = _NOT_A_NAME.sub("-", item.status.casefold())
            facts.append(
                f'<span class="status s-{state}"><span aria-hidden="true">{mark}</span>'
                f" {text(word)}</span>"
            )
        if item.duration_ms:
            facts.append(f'<span class="took">{amounts.duration(item.duration_ms)}</span>')
        if item.spent is not None and item.spent.tokens:
            facts.append(_spent(item.spent))
        facts.append(f'<a class="at" href="#{name}">{self._time(item)}</a>')
        about = f' <span class="gist">{gist}</span>' if gist else ""
        return f'<header>{who}{about} <span class="facts">{" ".join(facts)}</span></header>'

    def _time(self, item: Item) -> str:
        if item.ts is None or not 0 <= item.ts <= _LATEST:
            return f"#{item.number}"
        quarter, rest = divmod(item.ts, _QUARTER)
        utc, date, hour, minute = _clock(quarter, self._utc)
        passed, milliseconds = divmod(rest, times.MINUTE)
        second = f"{milliseconds // 1000:02}"
        shown = f"{hour}:{minute + passed:02}:{second}"
        moment = f"{utc}:{quarter % 4 * 15 + passed:02}:{second}.{milliseconds % 1000:03}Z"
        return f'<time datetime="{moment}" title="{date} {shown}">{shown}</time>'

    def _commit(self, commit: Commit) -> str:
        branch = f' <span class="chip">{text(commit.branch)}</span>' if commit.branch else ""
        return (
            f'<div class="commit"><span class="who">Commit</span>'
            f" {commit_link(commit, self._repository)}"
            f' <span class="gist">{text(commit.subject)}</span>{branch}</div>'
        )


def commit_link(commit: Commit, repository: Repository | None) -> str:
    """Its short hash, which leads to the repository if that is known."""
    sha = f"<code>{text(commit.sha[:7])}</code>"
    target = repository.commit(commit.sha) if repository is not None else None
    return (markup.link(target, sha) if target else None) or sha


@lru_cache(maxsize=4096)
def _clock(quarter: int, utc: bool) -> tuple[str, str, str, int]:
    """What all times in a quarter of an hour share; time zones differ by whole quarters."""
    began = times.local(quarter * _QUARTER, utc=utc)
    moment = times.iso(quarter * _QUARTER) or ""
    return moment[:13], f"{began:%Y-%m-%d}", f"{began:%H}", began.minute


def _facts(item: Item) -> str:
    moment = "" if item.ts is None else f' data-ts="{item.ts}"'
    return _named(item.type, item.tool, item.status) + moment


@lru_cache(maxsize=1024)
def _named(kind: str, tool: str | None, status: str | None) -> str:
    given = {"kind": kind, "tool": tool, "status": status}
    return "".join(
        f' data-{name}="{attr(value)}"' for name, value in given.items() if value is not None
    )


def _named_by(item: Item, who: str, label: str) -> str:
    """Prompts are headings, by which screen readers go through a conversation."""
    name = text(markup.line(who, 120))
    if item.type == "user":
        return f'<h2 class="who" aria-label="{label}">{name}</h2>'
    return f'<span class="who">{name}</span>'


def _label(item: Item, who: str) -> str:
    pieces = [who]
    if item.type == "tool_use":
        pieces.append(item.summary)
        pieces.append(_STATES.get(item.status or "", ("", ""))[1])
    else:
        pieces.append(item.text)
    said = (markup.line(piece, 100) for piece in pieces if piece)
    return attr(", ".join(said))


def prompt_body(item: Item) -> str:
    """What a person said, without its pictures."""
    said = item.text
    if item.label == labels.COMMAND and said.strip():
        name, *rest = said.split(None, 1)
        chip = f'<code class="chip">{text(name)}</code>'
        if rest and "\n" in rest[0]:
            return f'<p class="slash">{chip}</p>{_said(rest[0])}'
        return f'<p class="slash">{chip} {text("".join(rest))}</p>'
    if item.label == labels.BASH:
        command = said.removeprefix("!").strip()
        shown = f'<span class="bang">!</span> {text(command)}'
        return markup.pre(shown, command, "command")
    if item.pictures and said.strip() == "[image]":
        return ""
    chip = f'<p><span class="chip">{text(item.label)}</span></p>' if item.label else ""
    if (pretty := json_values.pretty(said)) is not None:
        return chip + calls.json_block(pretty)
    return chip + _said(said)


def _said(said: str) -> str:
    return markup.fold(prose.html(said), said) if said.strip() else ""


def _answer(said: str) -> str:
    """Answers are what people read, so only very long ones are folded."""
    return prose.html(said) if 0 < len(said) <= _LONG_ANSWER else _said(said)


def _thought(said: str) -> str:
    if not said.strip():
        return ""
    first = markup.line(said, 140).replace("**", "").lstrip("# ")
    return markup.details(first or "…", prose.html(said), "thought")


def _summary(item: Item) -> tuple[str, str, str]:
    if item.is_title:
        return "Title", text(item.text), ""
    if item.label != labels.COMPACT:
        return "Summary", "", _said(item.text)
    return "Conversation so far", "", markup.details("Summary", prose.html(item.text))


def _pictures(item: Item) -> str:
    if not item.pictures:
        return ""
    drawn = [
        prose.picture(image.media, image.data, f"Image {number} of {len(item.pictures)}")
        for number, image in enumerate(item.pictures, 1)
    ]
    return f'<div class="images">{"".join(drawn)}</div>'


def _spent(spent: Spent) -> str:
    details = (
        f"{spent.input_tokens:,} in, {spent.output_tokens:,} out,"
        f" {spent.cache_write_tokens:,} cache write, {spent.cache_read_tokens:,} cache read"
    )
    return f'<span class="spent" title="{details}">{tokens(spent.tokens)}</span>'


# -- notices: system events, under names that readers understand


def notice_name(item: Item) -> str:
    """The name shown in place of a speaker's."""
    if not item.label:
        return "Notice"
    words = item.label.replace("_", " ").replace("-", " ")
    return NAMES.get(item.label) or markup.line(words, 60).capitalize()


def _fits_header(item: Item) -> bool:
    """Whether it fits into the header of its card."""
    return (
        len(item.text) <= _SHORT_NOTICE
        and "\n" not in item.text.strip()
        and item.label not in labels.OUTPUTS
    )


def notice_gist(item: Item) -> str:
    """The rest of the header, as markup."""
    said = item.text.strip()
    named = notice_name(item)
    if said[: len(named)].casefold() == named.casefold():
        rest = said[len(named) :].strip()
        if not rest:
            return ""
        said = rest[1:-1] if rest[0] == "(" and rest[-1] == ")" else said
    if _fits_header(item):
        shown = markup.text(said)
        return markup.link(said, shown) or shown
    if _is_about_task(said) and (summary := _TASK_SUMMARY.search(said)):
        return markup.text(markup.line(summary[1]))
    return ""


def notice_body(item: Item) -> str:
    said = item.text.strip("\n")
    if item.unknown is not None and (shown := json_values.readable(item.unknown)) is not None:
        head = "JSON" if _fits_header(item) else markup.line(said, 140)
        return markup.details(head, prose.code(markup.text(shown), "json"))
    if not said.strip() or _fits_header(item):
        return ""
    if item.label in labels.OUTPUTS:
        return calls.result_html(said)
    if item.label in _OPEN_NOTICES and not _is_about_task(said):
        return markup.fold(prose.html(said), said)
    inside = calls.result_html(said) if said.lstrip()[:1] in ("<", "{", "[") else prose.html(said)
    return markup.details("Notice" if _is_about_task(said) else markup.line(said, 140), inside)


def _is_about_task(said: str) -> bool:
    return said.lstrip().startswith("<task-notification")


# -- cards of a whole session


class HasEvents(Protocol):
    """What has events to draw: a session, or its part of a page."""

    row: SessionRow

    def items(self) -> Iterator[Item]: ...


class Workshop:
    """Draws cards in a second process while this one reads: drawing is half of the work.

    The process starts at the first long session.
    """

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def cards(self, story: HasEvents, drawer: Drawer) -> Iterator[tuple[Item, str]]:
        """Every event with its card, in order."""
        pool = self._pool_for(story)
        if pool is None:
            for item in story.items():
                yield item, drawer.card(item)
            return
        waiting: deque[tuple[list[Item], Future[list[str]]]] = deque()
        events = story.items()
        while batch := [*islice(events, _BATCH)]:
            # Drawing a subagent reads its session, which only this process can.
            sent = [item for item in batch if item.agent is None]
            waiting.append((batch, pool.submit(_drawn_cards, drawer, sent)))
            if len(waiting) > _AHEAD:
                yield from self._received(*waiting.popleft(), drawer)
        while waiting:
            yield from self._received(*waiting.popleft(), drawer)

    @staticmethod
    def _received(
        batch: list[Item], future: Future[list[str]], drawer: Drawer
    ) -> Iterator[tuple[Item, str]]:
        cards = iter(future.result())
        for item in batch:
            yield item, next(cards) if item.agent is None else drawer.card(item)

    def _pool_for(self, story: HasEvents) -> ProcessPoolExecutor | None:
        if self._pool is not None:
            return self._pool if story.row.events >= _WORTH_SENDING else None
        # Elsewhere a new process has to import everything again, which takes longer than it saves.
        if story.row.events < _WORTH_A_PROCESS or sys.platform != "linux" or _cores() < 2:
            return None
        from concurrent.futures import ProcessPoolExecutor  # not for short ones
        from multiprocessing import get_context

        with suppress(OSError):  # without a second process it only takes longer
            self._pool = ProcessPoolExecutor(
                1, get_context("fork"), initializer=signal.signal,
                initargs=(signal.SIGINT, signal.SIG_IGN),
            )  # fmt: skip
        return self._pool


def _drawn_cards(drawer: Drawer, items: list[Item]) -> list[str]:
    return [drawer.card(item) for item in items]


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1
