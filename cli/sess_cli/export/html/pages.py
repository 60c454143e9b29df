"""`--style pages`: a transcript in pages of five prompts, with an index page."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sess_cli.export import shapes
from sess_cli.export.files import new_file
from sess_cli.export.forge import Repository
from sess_cli.export.html import markup, notices, pages_frame, pages_index, sealed
from sess_cli.export.html.cards import Drawer
from sess_cli.export.html.pages_index import LONG, Prompt, Texts
from sess_cli.export.story import Item, Story
from sess_cli.render import amounts
from sess_common.errors import SessError
from sess_schema import kinds, labels

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
    names = ["index.html", *map(pages_frame.page_name, range(1, total + 1))]
    _prepare(folder, names)
    size = 0
    for number, body in enumerate(session.bodies, 1):
        links = pages_frame.navigation(number, total)
        below = f'<p class="about">Page {number} of {total}</p>'
        whole = "\n".join(
            [pages_frame.heading(story.title, below), links, "<main>", body, "</main>", links]
        )
        title = f"{story.title} - page {number}"
        size += _put(folder, pages_frame.page_name(number), title, whole, lock)
    index = pages_index.drawn(
        story, session.prompts, session.packed, session.messages, repository=repository, utc=utc
    )
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
        self._texts = Texts()
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
        elif item.type == "assistant" and len(item.text) >= LONG:
            prompt.answers.append((item.text, anchor))
        prompt.commits += [(commit, item.ts, anchor) for commit in item.commits]

    def _begin(self, item: Item, anchor: str) -> None:
        self._end_asides()
        asked = item.type == "user"
        number = (self.prompts[-1].number + 1 if self.prompts else 1) if asked else 0
        # Events before the first prompt share its page.
        if number > 1 and (number - 1) % self._per_page == 0:
            self._end_page()
        self.prompts.append(Prompt(number, len(self.bodies) + 1, item if asked else None, anchor))
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
        names = dict.fromkeys(notices.name(item) for item, _ in self._asides)
        summary = f"{amounts.plural(len(self._asides), 'notice')}: {', '.join(names)}"
        inside = "".join(message for _, message in self._asides)
        self._blocks.append(markup.details(markup.line(summary), inside, "asides"))
        self._asides.clear()

    def _end_page(self) -> None:
        self._end_asides()
        if self._blocks:
            self.bodies.append("\n".join(self._blocks))
            self.packed.append(self._texts.packed())
            self._blocks, self._texts = [], Texts()


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


# -- files


def _put(folder: str, name: str, title: str, body: str, lock: Lock | None) -> int:
    whole = pages_frame.document(title, body, lock)
    with new_file(os.path.join(folder, name)) as file:
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
        return f'content="{sealed.GENERATOR}"'.encode() in file.read(_HEAD)


def _tally_name(item: Item) -> str:
    """The name of a call in a list of counts."""
    kind = shapes.kind_of(item)
    if kind == kinds.FETCH:
        return "search" if shapes.says(item, "query") else "fetch"
    return kind if kind == shapes.TODO else (item.tool or "tool").lower()
