"""The outline: the prompts of a session, each with counts of what followed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import zip_longest

from sess_cli.export.html import combined, markup
from sess_cli.export.story import Commit, Item
from sess_cli.render import amounts, tallies
from sess_schema import labels

_MOST_CHARACTERS = 76  # two or three lines
_MOST_TOOLS = 3
_MOST_COMMITS = 3


@dataclass(slots=True)
class Prompt:
    key: str
    text: str
    ts: int | None
    last: int | None = None
    tools: Counter[str] = field(default_factory=Counter)
    failed: int = 0
    denied: int = 0
    commits: list[Commit] = field(default_factory=list)
    tokens: int = 0
    cost_nano: int = 0
    is_session: bool = False  # no prompt, but the head of a session among several

    @property
    def elapsed_ms(self) -> int:
        return 0 if self.ts is None or self.last is None else max(0, self.last - self.ts)


class Outline:
    """Collects prompts and counts from items in order."""

    def __init__(self, *, utc: bool = False) -> None:
        self.prompts: list[Prompt] = []
        self._utc = utc

    def add(self, item: Item) -> int:
        """Return the index of the item's prompt; -1 before the first."""
        session = item.label == combined.SESSION
        if item.type == "user" or session:
            self.prompts.append(Prompt(item.key, _one_line(item), item.ts, is_session=session))
        if not self.prompts:
            return -1
        prompt = self.prompts[-1]
        if item.ts is not None:
            prompt.last = max(prompt.last or 0, item.ts + (item.duration_ms or 0))
        if item.type == "tool_use":
            prompt.tools[item.tool or "tool"] += 1
            prompt.failed += item.status == "error"
            prompt.denied += item.status == "denied"
        prompt.commits += item.commits
        if item.spent is not None:
            prompt.tokens += item.spent.tokens
            prompt.cost_nano += item.spent.cost_nano
        if item.agent is not None:
            prompt.tokens += item.agent.total.tokens
            prompt.cost_nano += item.agent.total.cost_nano
        return len(self.prompts) - 1

    def html(self) -> Iterator[str]:
        count = sum(not prompt.is_session for prompt in self.prompts)
        yield (
            '<nav class="outline" id="outline" aria-label="Prompts">'
            f"<h2>{amounts.plural(count, 'prompt')}</h2><ol>"
        )
        for prompt, following in zip_longest(self.prompts, self.prompts[1:]):
            about = self._day(prompt) if prompt.is_session else self._about(prompt)
            said = f"{markup.title(prompt.text)}<small>{about}</small>"
            if prompt.is_session and about and following and following.text == prompt.text:
                said = about  # the title is the first prompt, which is the next line
            kind = ' class="session"' if prompt.is_session else ""
            yield f'<li{kind}><a href="#{markup.attr(prompt.key)}" dir="auto">{said}</a></li>'
        yield "</ol></nav>\n"

    def _day(self, prompt: Prompt) -> str:
        return "" if prompt.ts is None else amounts.clock(prompt.ts, utc=self._utc)[:10]

    def _about(self, prompt: Prompt) -> str:
        said = []
        if prompt.ts is not None:
            said.append(amounts.clock(prompt.ts, utc=self._utc)[11:])
        if prompt.elapsed_ms >= 1000:
            said.append(amounts.duration(prompt.elapsed_ms))
        tools = prompt.tools.most_common(_MOST_TOOLS)
        said += [f"{count:,} {markup.text(tool)}" for tool, count in tools]
        rest = sum(prompt.tools.values()) - sum(count for _, count in tools)
        if rest:
            said.append(f"{rest:,} more")
        if prompt.tokens:
            said.append(tallies.tokens(prompt.tokens))
        if prompt.cost_nano:
            said.append(tallies.money(prompt.cost_nano))
        line = " · ".join(said)
        if outcomes := amounts.outcomes(prompt.failed, prompt.denied):
            line += f" <em>{outcomes}</em>"
        if prompt.commits:
            shown = " ".join(markup.text(one.sha[:7]) for one in prompt.commits[:_MOST_COMMITS])
            more = "…" if len(prompt.commits) > _MOST_COMMITS else ""
            line += f" <i>⎇ {shown}{more}</i>"
        return line


def _one_line(item: Item) -> str:
    text = " ".join(item.text[: 4 * _MOST_CHARACTERS].split())
    if item.label == labels.BASH and not text.startswith("!"):
        text = f"! {text}"
    if len(text) > _MOST_CHARACTERS:
        return f"{text[: _MOST_CHARACTERS - 1]}…"
    return text or ("(image)" if item.pictures else "(empty)")
