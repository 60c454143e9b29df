"""What a page has around its cards: outline, timeline strip, toolbar, text without scripts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import zip_longest

from sess_cli.export import meaning
from sess_cli.export.html import markup
from sess_cli.export.story import Commit, Item
from sess_cli.render import amounts, tallies
from sess_schema import labels

SESSION_LABEL = "session"  # the label of the head of each of several sessions
_LONGEST_PROMPT = 76  # two or three lines
_MOST_TOOLS = 3
_MOST_COMMITS = 3
STRIP_WIDTH = 1000
_LONGEST_PAUSE = 60_000
_LANES = ("prompt", "shell", "edit", "read", "agent", "other", "error")
_LANE_NAMES = {
    "prompt": "prompts", "shell": "commands", "edit": "edits", "read": "reads and searches",
    "agent": "agents", "other": "other tools", "error": "errors",
}  # fmt: skip
_LANE_OF = {"shell": "shell", "edit": "edit", "write": "edit", "read": "read", "search": "read",
            "agent": "agent"}  # fmt: skip
_LANE_HEIGHT = 6
_LEVELS = (
    ("conversation", "Conversation"),
    ("tools", "+ Tools"),
    ("thinking", "+ Thinking"),
    ("everything", "Everything"),
)
_KEYS = (
    ("/", "search"),
    ("n N", "next, previous match (also Enter, Shift+Enter)"),
    ("Esc", "clear the search"),
    ("j k", "next, previous prompt"),
    ("e E", "next, previous error"),
    ("g G", "top, bottom"),
    ("1 2 3 4", "level: conversation, tools, thinking, everything"),
    ("o", "outline"),
    ("t", "theme: system, dark, light"),
    ("?", "this list"),
)
_TOP = """\
<div class="toolbar js-only" role="region" aria-label="Toolbar">
<button type="button" id="show-outline" aria-expanded="false" \
aria-controls="outline"><span aria-hidden="true">☰</span> Prompts</button>
<form role="search" id="search"><input type="search" id="query" placeholder="Search  /" \
aria-label="Search this session" autocomplete="off" spellcheck="false">\
<output id="found" aria-live="polite"></output>\
<button type="button" id="elsewhere" title="Show everything" hidden>hidden</button>\
<button type="button" id="previous" aria-label="Previous match" disabled>↑</button>\
<button type="button" id="next" aria-label="Next match" disabled>↓</button></form>
<fieldset class="levels"><legend>Detail</legend>
"""
_END = """\
</fieldset>
<details class="filters" id="filters"><summary>Filter<span id="filtered"></span></summary>\
<div class="panel"></div></details>
<button type="button" id="theme" aria-label="Theme">◐</button>
<button type="button" id="show-help" aria-label="Keyboard shortcuts">?</button>
<span id="said" class="unseen" role="status" aria-live="polite"></span>
</div>
<noscript><p class="plain-note">Search and filters need JavaScript.</p></noscript>
"""
_LONGEST_PLAIN = 4000
_MOST_OF_A_CALL = 90


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
    """The prompts of a session, each with counts of what followed; takes items in order."""

    def __init__(self, *, utc: bool = False) -> None:
        self.prompts: list[Prompt] = []
        self._utc = utc

    def add(self, item: Item) -> int:
        """Return the index of the item's prompt; -1 before the first."""
        session = item.label == SESSION_LABEL
        if item.type == "user" or session:
            self.prompts.append(Prompt(item.key, _prompt_line(item), item.ts, is_session=session))
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
            about = self._about(prompt)
            said = f"{markup.title(prompt.text)}<small>{about}</small>"
            if prompt.is_session and about and following and following.text == prompt.text:
                said = about  # the title is the first prompt, which is the next line
            kind = ' class="session"' if prompt.is_session else ""
            yield f'<li{kind}><a href="#{markup.attr(prompt.key)}" dir="auto">{said}</a></li>'
        yield "</ol></nav>\n"

    def _about(self, prompt: Prompt) -> str:
        moment = "" if prompt.ts is None else amounts.clock(prompt.ts, utc=self._utc)
        if prompt.is_session:
            return moment[:10]
        said = [moment[11:]] if moment else []
        if prompt.elapsed_ms >= 1000:
            said.append(amounts.duration(prompt.elapsed_ms))
        tools = prompt.tools.most_common(_MOST_TOOLS)
        said += [f"{count:,} {markup.text(tool)}" for tool, count in tools]
        if rest := prompt.tools.total() - sum(count for _, count in tools):
            said.append(f"{rest:,} more")
        if prompt.tokens:
            said.append(tallies.tokens(prompt.tokens))
        if prompt.cost_nano:
            said.append(tallies.money(prompt.cost_nano))
        line = " · ".join(said)
        if outcomes := amounts.outcomes(prompt.failed, prompt.denied):
            line += f" <em>{outcomes}</em>"
        if prompt.commits:
            shown = " ".join(
                markup.text(commit.sha[:7]) for commit in prompt.commits[:_MOST_COMMITS]
            )
            more = "…" if len(prompt.commits) > _MOST_COMMITS else ""
            line += f" <i>⎇ {shown}{more}</i>"
        return line


def _prompt_line(item: Item) -> str:
    text = " ".join(item.text[: 4 * _LONGEST_PROMPT].split())
    if item.label == labels.BASH and not text.startswith("!"):
        text = f"! {text}"
    if len(text) > _LONGEST_PROMPT:
        return f"{text[: _LONGEST_PROMPT - 1]}…"
    return text or ("(image)" if item.pictures else "(empty)")


class Strip:
    """When which kind of tool ran, and where errors are; idle time is cut.

    Takes items in order; `places` and `html` need all of them.
    """

    def __init__(self, *, utc: bool = False) -> None:
        self._utc = utc
        self._spent = 0  # elapsed time, with pauses cut short
        self._last: int | None = None
        self._first: int | None = None
        self._starts: list[int] = []
        self._marks: list[tuple[str, int, int]] = []  # lane, from, to

    def add(self, item: Item) -> None:
        if item.ts is not None:
            if self._last is not None:
                self._spent += min(max(0, item.ts - self._last), _LONGEST_PAUSE)
            self._first = item.ts if self._first is None else self._first
            self._last = max(item.ts, self._last or item.ts)
        self._starts.append(self._spent)
        if item.type == "user":
            self._marks.append(("prompt", self._spent, self._spent))
        elif item.type == "tool_use":
            lane = _LANE_OF.get(meaning.kind_of(item), "other")
            taken = min(item.duration_ms or 0, _LONGEST_PAUSE)
            self._marks.append((lane, self._spent, self._spent + taken))
            if item.failed:
                self._marks.append(("error", self._spent, self._spent))

    def places(self) -> list[int]:
        """The position of each item, from 0 to STRIP_WIDTH."""
        if not self._spent:  # no timestamps: by order
            count = max(1, len(self._starts) - 1)
            return [number * STRIP_WIDTH // count for number in range(len(self._starts))]
        return [start * STRIP_WIDTH // self._spent for start in self._starts]

    def html(self) -> Iterator[str]:
        if not self._spent or self._first is None or self._last is None:
            return
        columns = self._columns()
        said = ", ".join(_LANE_NAMES[lane] for lane in _LANES if columns[lane])
        begun = amounts.clock(self._first, utc=self._utc)
        ended = amounts.clock(self._last, utc=self._utc)
        height = _LANE_HEIGHT * len(_LANES)
        yield (
            '<section aria-label="Overview">'
            '<div class="strip" id="strip" tabindex="0" role="slider" aria-label="Timeline"'
            f' aria-valuemin="0" aria-valuemax="{STRIP_WIDTH}" aria-valuenow="0"'
            f' aria-valuetext="{begun}">'
            f'<svg viewBox="0 0 {STRIP_WIDTH} {height}" preserveAspectRatio="none" role="img"'
            f' aria-label="Timeline of {said}">'
        )
        for row, lane in enumerate(_LANES):
            if columns[lane]:
                middle = row * _LANE_HEIGHT + _LANE_HEIGHT // 2
                yield f'<path class="l-{lane}" d="{_strokes(columns[lane], middle)}"/>'
        yield (
            f'<line id="here" x1="0" x2="0" y1="0" y2="{height}"/></svg></div>'
            f'<p class="axis"><time>{begun}</time><span class="legend">'
        )
        for lane in _LANES:
            if columns[lane]:
                yield f'<span><i class="l-{lane}"></i>{_LANE_NAMES[lane]}</span> '
        last = ended[11:] if ended[:10] == begun[:10] else ended
        yield f"</span><time>{last}</time></p></section>\n"

    def _columns(self) -> dict[str, set[int]]:
        """The columns with marks, by lane; at most STRIP_WIDTH, however long the session."""
        columns: dict[str, set[int]] = {lane: set() for lane in _LANES}
        for lane, start, end in self._marks:
            first = min(start * STRIP_WIDTH // self._spent, STRIP_WIDTH - 1)
            last = max(first + 1, end * STRIP_WIDTH // self._spent)  # at least two columns wide
            columns[lane].update(range(first, min(last, STRIP_WIDTH - 1) + 1))
        return columns


def _strokes(columns: set[int], middle: int) -> str:
    """Neighbouring columns as one stroke."""
    pieces = []
    start = end = -2
    for column in [*sorted(columns), STRIP_WIDTH * 2]:
        if column == end + 1:
            end = column
            continue
        if start >= 0:
            pieces.append(f"M{start} {middle}h{end - start + 1}")
        start = end = column
    return "".join(pieces)


def toolbar(level: str) -> str:
    """Search, levels, filters and theme."""
    choices = "".join(
        f'<label><input type="radio" name="level" value="{name}"'
        f"{' checked' if name == level else ''}><span>{shown}</span></label>\n"
        for name, shown in _LEVELS
    )
    return _TOP + choices + _END


def _key_names(keys: str) -> str:
    return " ".join(f"<kbd>{key}</kbd>" for key in keys.split())


HELP_DIALOG = (
    '<dialog id="help" aria-labelledby="help-title"><form method="dialog">'
    '<h2 id="help-title">Keyboard shortcuts</h2><dl>'
    + "".join(f"<div><dt>{_key_names(keys)}</dt><dd>{what}</dd></div>" for keys, what in _KEYS)
    + "</dl><button>Close</button></form></dialog>\n"
)


class PlainText:
    """What is shown without scripts after the first screens: prompts, answers, a line a call."""

    def __init__(self) -> None:
        self._blocks: list[str] = []
        self._calls: list[str] = []
        self._tools: Counter[str] = Counter()

    def add(self, item: Item) -> None:
        if item.type == "tool_use":
            self._tools[item.tool or "tool"] += 1
            failed = " <em>failed</em>" if item.failed else ""
            said = markup.text(_cut_with_count(" ".join(item.summary.split()), _MOST_OF_A_CALL))
            self._calls.append(f"<li>{markup.text(item.tool or 'tool')} {said}{failed}")
        elif item.type in ("user", "assistant"):
            self._close_calls()
            text = markup.text(_cut_with_count(item.text.strip(), _LONGEST_PLAIN))
            head = "<h3>Prompt</h3>" if item.type == "user" else ""
            self._blocks.append(f'{head}<p id="{markup.attr(item.key)}">{text}\n')

    def html(self) -> Iterator[str]:
        self._close_calls()
        if self._blocks:
            yield '<noscript><p class="plain-note">From here on: prompts and answers as plain text'
            yield " and one line for each tool call. The rest needs JavaScript, or an export"
            yield " with <code>--static</code>.</p>\n"
            yield '<div class="plain">\n'
            yield from self._blocks
            yield "</div></noscript>\n"

    def _close_calls(self) -> None:
        if self._calls:
            counts = self._tools.items()
            tools = ", ".join(f"{count:,} {markup.text(tool)}" for tool, count in counts)
            self._blocks.append(
                f"<details><summary>{tools}</summary><ul>{''.join(self._calls)}</ul></details>\n"
            )
            self._calls = []
            self._tools.clear()


def _cut_with_count(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    return f"{text[:most]}… ({len(text) - most:,} more characters)"
