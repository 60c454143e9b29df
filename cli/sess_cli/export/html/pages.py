"""`--style pages`: a transcript in pages of five prompts, with an index page."""

from __future__ import annotations

import json
import os
import re
import zlib
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from html import unescape
from typing import TYPE_CHECKING

from sess_cli.export import json_values, meaning
from sess_cli.export.forge import Repository
from sess_cli.export.html import cards, markup, prose, shell
from sess_cli.export.html.cards import Drawer
from sess_cli.export.story import Commit, Item, Story
from sess_cli.render import amounts
from sess_common import times
from sess_common.errors import SessError
from sess_schema import kinds, labels, outputs

if TYPE_CHECKING:
    from sess_cli.export.html.encrypted import Lock

_PAGE = re.compile(r"page-(\d{3,9})\.html")
_HEAD = 4096  # bytes within which a page names its generator
_PUSH = re.compile(r"^ [ +*!]? *[0-9a-f]{7,40}\.{2,3}([0-9a-f]{7,40}) +\S+ -> ", re.MULTILINE)
_FORGES = {"github": "GitHub", "gitlab": "GitLab", "bitbucket": "Bitbucket", "gitea": "Gitea"}
# Notices shown in full; all others are folded.
_OPEN_NOTICES = frozenset({
    labels.INTERRUPTED, labels.API_ERROR, labels.ERROR, labels.COMMAND_OUTPUT, labels.BASH_OUTPUT,
    labels.COMPACT,
})  # fmt: skip
_LONG_ANSWER = 300  # characters: shorter answers are not listed
_MOST_SAID = 500  # characters of a prompt
_MOST_LINES = 8
_MEASURES = re.compile(r'<span class="facts">.*?</header>', re.DOTALL)  # in a card's header
_INLINE = re.compile(r"</?(?:span|code|b|em|strong|del|a|bdi|mark|time)\b[^>]*>")
_TAGS = re.compile(r"<[^>]*>")
_SPACES = re.compile(r"\s+")
_DIALOG = (
    '<dialog id="modal" aria-label="Search"><div class="ask"><input type="search" id="asked"'
    ' aria-label="Search all pages" autocomplete="off" spellcheck="false">'
    '<button type="button" id="close">Close</button></div>'
    '<p id="status" role="status"></p><div id="results"></div></dialog>'
)
_SEARCH_BOX = (  # not shown where no script runs
    '<div class="search" id="search"><input type="search" id="term"'
    ' placeholder="Search ( / )" aria-label="Search all pages" autocomplete="off"'
    ' spellcheck="false"><button type="button" id="find">Search</button></div>'
)
_STYLES = ("palette.css", "cards.css", "pages.css")  # the last overrides the look of cards
_NUMBERS = 15  # up to this many pages are all listed
_AROUND = 3


@dataclass(slots=True, frozen=True)
class Written:
    files: list[str]  # the index first
    pages: int
    prompts: int
    size: int


def write(
    story: Story,
    folder: str,
    *,
    repository: Repository | None = None,
    utc: bool = False,
    per_page: int = 5,
    lock: Lock | None = None,
) -> Written:
    """Write `index.html`, `page-001.html` and so on; remove extra pages of an earlier run."""
    session = _Session(story, repository, utc=utc, per_page=per_page)
    total = len(session.bodies)
    names = ["index.html", *map(page_name, range(1, total + 1))]
    _prepare(folder, names)
    size = 0
    for number, body in enumerate(session.bodies, 1):
        links = navigation(number, total)
        below = f'<p class="about">Page {number} of {total}</p>'
        lower = navigation(number, total, name="Pages, again")
        whole = "\n".join([_heading(story.title, below), links, "<main>", body, "</main>", lower])
        title = f"{story.title} - page {number}"
        size += _put(folder, page_name(number), title, whole, lock)
    index = _index(story, session, repository, utc=utc)
    size += _put(folder, "index.html", story.title, index, lock)
    for number, path in _earlier(folder):
        if number > total:
            os.unlink(path)
    made = [os.path.join(folder, name) for name in names]
    return Written(made, total, story.total.prompts, size)


class _Session:
    """Reads the story once: the cards of each page, and the data of the index."""

    def __init__(
        self, story: Story, repository: Repository | None, *, utc: bool, per_page: int
    ) -> None:
        self.prompts: list[Prompt] = []
        self.bodies: list[str] = []
        self.packed: list[str] = []
        self.messages = 0
        self._per_page = per_page
        self._repository = repository
        self._drawer = Drawer(repository=repository, utc=utc)
        self._anchors: dict[str, int] = {}
        self._blocks: list[str] = []
        self._asides: list[tuple[Item, str]] = []
        self._texts = SearchTexts()
        for item in story.items():
            if not item.is_title:
                self._add(item)
        for number, child in enumerate(story.loose):
            self._add_loose(number, child)
        self._end_page()

    def _add(self, item: Item) -> None:
        if item.type != "tool_use" and not item.text.strip() and not item.pictures:
            return
        card = self._drawer.card(item)
        anchor = self._anchor(item)
        if item.type == "user" or not self.prompts:
            self._begin(item, anchor)
        self.messages += 1
        self._texts.add(anchor, item.tool or item.type.capitalize(), card)
        message = f'<div class="message" id="{anchor}">{card}</div>'
        if _is_aside(item):
            self._asides.append((item, message))
            return
        self._end_asides()
        if item.type == "summary":
            message = markup.details("Session continuation summary", message, "continuation")
        self._blocks.append(message + _pushed(item, self._repository))
        self._count(item, anchor)

    def _count(self, item: Item, anchor: str) -> None:
        """Collect what the index shows of the event."""
        prompt = self.prompts[-1]
        if item.type == "tool_use":
            prompt.tools[_tally_name(item)] += 1
        elif item.type == "assistant" and len(item.text) >= _LONG_ANSWER:
            prompt.answers.append((item.text, anchor))
        prompt.commits += [(commit, item.ts, anchor) for commit in item.commits]

    def _begin(self, item: Item, anchor: str) -> None:
        self._end_asides()
        is_prompt = item.type == "user"
        number = (self.prompts[-1].number + 1 if self.prompts else 1) if is_prompt else 0
        # Events before the first prompt share its page.
        if number > 1 and (number - 1) % self._per_page == 0:
            self._end_page()
        prompt = item if is_prompt else None
        self.prompts.append(Prompt(number, len(self.bodies) + 1, prompt, anchor))
        name = f"Prompt {number}" if number else "Before the first prompt"
        if not _is_aside(item):
            self._blocks.append(f'<h2 class="number">{name}</h2>')

    def _add_loose(self, number: int, child: Story) -> None:
        """A subagent that no known call started."""
        self._end_asides()
        drawn, anchor = self._drawer.agent(child, f"{number}-"), f"agent-{number}"
        self._texts.add(anchor, "Subagent", drawn)
        self._blocks.append(f'<div class="message" id="{anchor}">{drawn}</div>')

    def _anchor(self, item: Item) -> str:
        """`msg-<epoch ms>`; messages of the same moment get a number."""
        name = f"msg-{item.key if item.ts is None else item.ts}"
        again = self._anchors[name] = self._anchors.get(name, 0) + 1
        return name if again == 1 else f"{name}-{again}"

    def _end_asides(self) -> None:
        if not self._asides:
            return
        names = dict.fromkeys(cards.notice_name(item) for item, _ in self._asides)
        summary = f"{amounts.plural(len(self._asides), 'notice')}: {', '.join(names)}"
        inside = "".join(message for _, message in self._asides)
        self._blocks.append(markup.details(markup.line(summary), inside, "asides"))
        self._asides.clear()

    def _end_page(self) -> None:
        self._end_asides()
        if self._blocks:
            self.bodies.append("\n".join(self._blocks))
            self.packed.append(self._texts.packed())
            self._blocks, self._texts = [], SearchTexts()


def _pushed(item: Item, repository: Repository | None) -> str:
    """A link to what was pushed."""
    if repository is None or item.failed or "git push" not in item.summary:
        return ""
    commits = _PUSH.findall(item.output)
    target = repository.commit(commits[-1]) if commits else None
    name = _FORGES.get(repository.forge, repository.name)
    link = markup.link(target or repository.base_url, f"View on {markup.text(name)}")
    return f'<p class="pushed">{link}</p>' if link else ""


def _is_aside(item: Item) -> bool:
    return item.type == "system" and item.label not in _OPEN_NOTICES


def _tally_name(item: Item) -> str:
    """The name of a call in a list of counts."""
    kind = meaning.kind_of(item)
    if kind == kinds.FETCH:
        return "search" if meaning.says(item, "query") else "fetch"
    return kind if kind == meaning.TODO else item.tool or "tool"


# -- files


def _put(folder: str, name: str, title: str, body: str, lock: Lock | None) -> int:
    whole = _document(title, body, lock)
    with outputs.new_file(os.path.join(folder, name), replace=True) as file:
        file.write(whole)
    return len(whole)


def _prepare(folder: str, names: list[str]) -> None:
    """Create the directory; refuse to overwrite files that are not ours."""
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise SessError(
            f'"{folder}" is not a directory', hint="give the name of a directory"
        ) from None
    for name in names:
        path = os.path.join(folder, name)
        if os.path.lexists(path) and not _is_ours(path):
            raise SessError(f'"{path}" was not written by sess', hint="choose another directory")


def _earlier(folder: str) -> Iterator[tuple[int, str]]:
    """Pages of an earlier run."""
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if (page := _PAGE.fullmatch(name)) and _is_ours(path):
            yield int(page[1]), path


def _is_ours(path: str) -> bool:
    if os.path.islink(path) or not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return f'content="{shell.GENERATOR}"'.encode() in file.read(_HEAD)


# -- the index: prompts, long answers, commits, and a search over all pages


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
class SearchTexts:
    """The text of each message of a page, for the search."""

    messages: list[tuple[str, str, str]] = field(default_factory=list)

    def add(self, anchor: str, name: str, drawn: str) -> None:
        inside = _INLINE.sub("", _MEASURES.sub(" ", drawn))
        plain = unescape(_TAGS.sub(" ", inside))
        self.messages.append((anchor, name, _SPACES.sub(" ", plain).strip()))

    def packed(self) -> str:
        texts = json.dumps(self.messages, ensure_ascii=False, separators=(",", ":"))
        return b64encode(zlib.compress(texts.encode("utf-8", "replace"), 6)).decode()


def _index(story: Story, session: _Session, repository: Repository | None, *, utc: bool) -> str:
    prompts = session.prompts
    links = navigation(0, len(session.packed))
    listed = [
        _prompt_entry(prompt, repository, utc=utc)
        for prompt in prompts
        if prompt.number or prompt.tools or prompt.answers or prompt.commits or len(prompts) == 1
    ]
    counts = f'{_about(story, utc=utc)}<p class="stats">{_counts(story, session)}</p>'
    data = "\n".join(
        f'<script type="text/plain" data-page="{page_name(number)}">{texts}</script>'
        for number, texts in enumerate(session.packed, 1)
    )
    return "\n".join(
        [
            _heading(story.title, counts),
            links,
            '<main class="timeline">',
            *(listed or ['<p class="nothing">This session has no messages.</p>']),
            "</main>",
            navigation(0, len(session.packed), name="Pages, again"),
            _DIALOG,
            data,
        ]
    )


def _about(story: Story, *, utc: bool) -> str:
    pieces = [
        markup.text(piece)
        for piece in (story.row.agent, story.project, story.branch, ", ".join(story.models))
        if piece
    ]
    pieces.append(_moment(story.row.started, utc=utc))
    if spent := amounts.spans(story.duration_ms, story.numbers.active_ms):
        pieces.append(spent)
    return f'<p class="about">{" · ".join(pieces)}</p>'


def _counts(story: Story, session: _Session) -> str:
    commits = {commit.sha for prompt in session.prompts for commit, _, _ in prompt.commits}
    counts = (
        (story.total.prompts, "prompt"),
        (session.messages, "message"),
        (story.total.tool_calls, "tool call"),
        (len(commits), "commit"),
        (len(session.packed), "page"),
    )
    said = [amounts.plural(count, name) for count, name in counts]
    if outcomes := amounts.outcomes(story.total.tool_errors, story.total.tool_denied):
        said.insert(3, outcomes)
    return " · ".join(said)


def _prompt_entry(prompt: Prompt, repository: Repository | None, *, utc: bool) -> str:
    number, when, name, said = "Before the first prompt", "", "", ""
    if prompt.item is not None:
        number, when = f"#{prompt.number}", _moment(prompt.item.ts, utc=utc)
        begins = markup.text(markup.line(prompt.item.text, 100))
        name = f'<span class="unseen">: {begins}</span>' if begins else ""
        said = f'<div class="said">{_prompt_beginning(prompt.item)}</div>'
    pieces = [
        f'<article class="prompt" id="prompt-{prompt.number}">',
        f'<div class="asked"><h2><a href="{page_name(prompt.page)}#{prompt.anchor}"',
        f"><b>{number}</b>{when}{name}</a></h2>{said}</div>",
    ]
    if prompt.tools:
        tally = " · ".join(f"{count:,} {name}" for name, count in prompt.tools.most_common())
        pieces.append(f'<p class="tools">{markup.text(tally)}</p>')
    for text, anchor in prompt.answers:
        pieces.append(
            f'<div class="answer"><div class="fold">{markup.in_runs(prose.html(text))}</div>'
            f'<a class="there" href="{page_name(prompt.page)}#{anchor}">View in context</a></div>'
        )
    pieces.append("</article>")
    for commit, ts, anchor in prompt.commits:
        where = f"{page_name(prompt.page)}#{anchor}"
        pieces.append(_commit_entry(commit, _moment(ts, utc=utc), where, repository))
    return "".join(pieces)


def _prompt_beginning(item: Item) -> str:
    """The beginning of a prompt, drawn as on its page."""
    pretty = None if item.label else json_values.pretty(item.text)
    if pretty is not None:
        return prose.code(markup.text(_beginning(pretty)), "json")
    drawn = cards.prompt_body(replace(item, text=_beginning(item.text.strip())))
    return drawn or f"<p>{amounts.plural(len(item.pictures), 'image')}</p>"


def _beginning(source: str) -> str:
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


def _commit_entry(commit: Commit, when: str, where: str, repository: Repository | None) -> str:
    branch = f'<span class="branch">{markup.text(commit.branch)}</span>' if commit.branch else ""
    return (
        f'<article class="commit">{cards.commit_link(commit, repository)}'
        f'<a class="subject" href="{where}" dir="auto">'
        f"{markup.text(commit.subject)}</a>{branch}{when}</article>"
    )


# -- what is around the content of every page


def _document(title: str, body: str, lock: Lock | None = None) -> bytes:
    column = [f"<div class='column'>\n{body}\n</div>"]
    style = "\n".join(map(shell.asset, _STYLES))
    pieces = shell.scripted(title, column, style=style, script="pages.js", lock=lock, several=True)
    return b"".join(pieces)


def page_name(number: int) -> str:
    return f"page-{number:03}.html"


def navigation(current: int, total: int, *, name: str = "Pages") -> str:
    """Links: Index, Prev, page numbers, Next; 0 is the index, and alone if there is one page."""
    links = [_page_link("Index", 0, current, rel="up")]
    if total > 1 or (total and not current):
        links.append(_page_link("← Prev", current - 1, current, off=current <= 1, rel="prev"))
        before = 0
        for number in range(1, total + 1):
            ends = number in (1, total)
            if total > _NUMBERS and not ends and abs(number - current) > _AROUND:
                continue
            if number != before + 1:
                links.append('<span class="gap">…</span>')
            links.append(_page_link(str(number), number, current))
            before = number
        links.append(_page_link("Next →", current + 1, current, off=current >= total, rel="next"))
    return f'<nav class="pages" aria-label="{name}">{"".join(links)}</nav>'


def _page_link(name: str, number: int, current: int, *, off: bool = False, rel: str = "") -> str:
    if number == current:
        return f'<span class="here" aria-current="page">{name}</span>'
    if off:
        return f'<span class="off" aria-disabled="true">{name}</span>'
    target = page_name(number) if number else "index.html"
    return f'<a href="{target}"{f" rel={rel}" if rel in ("prev", "next") else ""}>{name}</a>'


def _moment(ts: int | None, *, utc: bool) -> str:
    if ts is None:
        return "<time>no time</time>"
    return f'<time datetime="{times.iso(ts)}">{times.local(ts, utc=utc):%Y-%m-%d %H:%M}</time>'


def _heading(title: str, below: str) -> str:
    whole = markup.attr(markup.unmarked(title))
    return (
        f'<header class="top"><div class="named"><h1 title="{whole}" dir="auto">'
        f"{markup.title(markup.line(title))}</h1>"
        f"{_SEARCH_BOX}{shell.THEME_BUTTON}</div>{below}</header>"
    )
