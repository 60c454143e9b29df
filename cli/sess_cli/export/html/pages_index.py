"""The index of `--style pages`: prompts, long answers, commits, and a search over all pages."""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64encode
from collections import Counter
from dataclasses import dataclass, field, replace
from html import unescape

from sess_cli.export import json_text
from sess_cli.export.forge import Repository
from sess_cli.export.html import cards, markup, prose
from sess_cli.export.html.pages_frame import heading, moment, navigation, page_name
from sess_cli.export.story import Commit, Item, Story
from sess_cli.render import amounts

LONG = 300  # characters: shorter answers are not listed
_MOST_SAID = 500  # characters of a prompt
_MOST_LINES = 8
_MEASURES = re.compile(r'<span class="facts">.*?</header>', re.DOTALL)  # in a card's header
_INLINE = re.compile(r"</?(?:span|code|b|em|strong|del|a|bdi|mark|time)\b[^>]*>")
_TAGS = re.compile(r"<[^>]*>")
_SPACES = re.compile(r"\s+")


@dataclass(slots=True)
class Prompt:
    """A prompt, with what the index shows of its turn; number 0 is what precedes the first."""

    number: int
    page: int
    item: Item | None = None
    anchor: str = ""
    tools: Counter[str] = field(default_factory=Counter)
    commits: list[tuple[Commit, int | None, str]] = field(default_factory=list)
    answers: list[tuple[str, str]] = field(default_factory=list)  # text, anchor


@dataclass(slots=True)
class Texts:
    """The text of each message of a page, for the search."""

    messages: list[tuple[str, str, str]] = field(default_factory=list)

    def add(self, anchor: str, name: str, drawn: str) -> None:
        inside = _INLINE.sub("", _MEASURES.sub(" ", drawn))
        plain = unescape(_TAGS.sub(" ", inside))
        self.messages.append((anchor, name, _SPACES.sub(" ", plain).strip()))

    def packed(self) -> str:
        texts = json.dumps(self.messages, ensure_ascii=False, separators=(",", ":"))
        return b64encode(zlib.compress(texts.encode("utf-8", "replace"), 6)).decode()


def drawn(
    story: Story,
    prompts: list[Prompt],
    packed: list[str],
    messages: int,
    *,
    repository: Repository | None,
    utc: bool,
) -> str:
    links = navigation(0, len(packed))
    listed = [
        _prompt(prompt, repository, utc=utc)
        for prompt in prompts
        if prompt.number or prompt.tools or prompt.answers or prompt.commits or len(prompts) == 1
    ]
    counted = _counts(story, prompts, messages, len(packed))
    data = "\n".join(
        f'<script type="text/plain" data-page="{page_name(number)}">{one}</script>'
        for number, one in enumerate(packed, 1)
    )
    return "\n".join(
        [
            heading(story.title, f'{_about(story, utc=utc)}<p class="stats">{counted}</p>'),
            links,
            '<main class="timeline">',
            *(listed or ['<p class="nothing">This session has no messages.</p>']),
            "</main>",
            links,
            _DIALOG,
            data,
        ]
    )


_DIALOG = (
    '<dialog id="modal" aria-label="Search"><div class="ask"><input type="search" id="asked"'
    ' aria-label="Search all pages" autocomplete="off" spellcheck="false">'
    '<button type="button" id="close">Close</button></div>'
    '<p id="status" role="status"></p><div id="results"></div></dialog>'
)


def _about(story: Story, *, utc: bool) -> str:
    pieces = [
        markup.text(piece)
        for piece in (story.row.agent, story.project, story.branch, ", ".join(story.models))
        if piece
    ]
    pieces.append(moment(story.row.started, utc=utc))
    if spent := amounts.spans(story.duration_ms, story.numbers.active_ms):
        pieces.append(spent)
    return f'<p class="about">{" · ".join(pieces)}</p>'


def _counts(story: Story, prompts: list[Prompt], messages: int, pages: int) -> str:
    commits = {commit.sha for prompt in prompts for commit, _, _ in prompt.commits}
    counts = (
        (story.total.prompts, "prompt"),
        (messages, "message"),
        (story.total.tool_calls, "tool call"),
        (len(commits), "commit"),
        (pages, "page"),
    )
    said = [amounts.plural(count, name) for count, name in counts]
    if outcomes := amounts.outcomes(story.total.tool_errors, story.total.tool_denied):
        said.insert(3, outcomes)
    return " · ".join(said)


def _prompt(prompt: Prompt, repository: Repository | None, *, utc: bool) -> str:
    name, number, when, said = "Before the first prompt", "Before the first prompt", "", ""
    if prompt.item is not None:
        number, when = f"#{prompt.number}", moment(prompt.item.ts, utc=utc)
        name = f"Prompt {prompt.number}, {markup.line(prompt.item.text, 100)}"
        said = f'<div class="said">{_said(prompt.item)}</div>'
    pieces = [
        f'<article class="prompt" id="prompt-{prompt.number}">',
        f'<div class="asked"><h2><a href="{page_name(prompt.page)}#{prompt.anchor}"',
        f' aria-label="{markup.attr(name)}"><b>{number}</b>{when}</a></h2>{said}</div>',
    ]
    if prompt.tools:
        pieces.append(f'<p class="tools">{markup.text(_tally(prompt.tools))}</p>')
    for text, anchor in prompt.answers:
        pieces.append(
            f'<div class="answer"><div class="fold">{markup.in_runs(prose.html(text))}</div>'
            f'<a class="there" href="{page_name(prompt.page)}#{anchor}">View in context</a></div>'
        )
    pieces.append("</article>")
    for commit, ts, anchor in prompt.commits:
        where = f"{page_name(prompt.page)}#{anchor}"
        pieces.append(_commit(commit, moment(ts, utc=utc), where, repository))
    return "".join(pieces)


def _said(item: Item) -> str:
    """The beginning of a prompt, drawn as on its page."""
    pretty = None if item.label else json_text.pretty(item.text)
    if pretty is not None:
        return prose.code(markup.text(_cut(pretty)), "json")
    drawn = cards.prompt(replace(item, text=_cut(item.text.strip())))
    return drawn or f"<p>{amounts.plural(len(item.pictures), 'image')}</p>"


def _cut(source: str) -> str:
    """Whole lines as far as possible: a mark that is cut in two would be drawn as text."""
    if len(source) <= _MOST_SAID and source.count("\n") < _MOST_LINES:
        return source
    lines = source[:_MOST_SAID].split("\n")
    if len(source) > _MOST_SAID and len(lines) <= _MOST_LINES:
        last = lines.pop()
        if not lines:
            return f"{_whole_words(last)}…"
    # On a line of its own, because after a fence it would keep it from ending.
    return "\n".join([*lines[:_MOST_LINES], "…"])


def _whole_words(line: str) -> str:
    words = line.rpartition(" ")[0].rstrip()
    return words if len(words) > _MOST_SAID // 2 else line


def _tally(tools: Counter[str]) -> str:
    return " · ".join(f"{count:,} {name}" for name, count in tools.most_common())


def _commit(commit: Commit, when: str, where: str, repository: Repository | None) -> str:
    sha = f"<code>{markup.text(commit.sha[:7])}</code>"
    address = repository.commit(commit.sha) if repository else None
    linked = (markup.link(address, sha) if address else None) or sha
    branch = f'<span class="branch">{markup.text(commit.branch)}</span>' if commit.branch else ""
    return (
        f'<article class="commit">{linked}<a class="subject" href="{where}" dir="auto">'
        f"{markup.text(commit.subject)}</a>{branch}{when}</article>"
    )
