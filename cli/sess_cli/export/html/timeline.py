"""`--style timeline`: every event a row, dense enough to audit a long session.

All rows are in the file as plain HTML, readable without JavaScript. Those after the first few are
in `<noscript>`, which a browser with JavaScript keeps as text: the script draws only the rows near
the window from it, and searches the rest as text.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any, BinaryIO

from sess_cli.export import ansi, json_values, meaning
from sess_cli.export.html import calls, cards, shell
from sess_cli.export.html.markup import attr, unmarked
from sess_cli.export.html.markup import text as escaped
from sess_cli.export.story import Item, Story
from sess_cli.render import amounts
from sess_common import times
from sess_schema import edits

if TYPE_CHECKING:
    from sess_cli.export.html.encrypted import Lock

_AT_ONCE = 60  # rows outside `<noscript>`
_SHOWN = 400  # characters of a row, which the width of the window cuts: more than the widest has
_DEEPEST = 4  # levels of subagents that are indented further
_TARGETS = frozenset({"read", "search"})
_FILES = frozenset({"edit", "write"})
_NAMED = {**cards.SPEAKERS, "system": "System", "summary": "Summary"}
_WRAPPING = re.compile(r"</?[a-z][a-z_-]{0,40}>")  # of what an agent adds to a text
_SIGNS = {"+": "add", "-": "del", "@": "at"}
_SECTIONS = {"user": "Message", "assistant": "Response"}
_MARKS = {
    "ok": '<span class="status ok" title="ok">\u2713</span>',
    "error": '<span class="status failed" title="failed">\u2717</span>',
    "denied": '<span class="status failed" title="denied">\u2717</span>',
}
_PENDING = '<span class="status" title="no result">…</span>'


def write(story: Story, out: BinaryIO, *, utc: bool = False, lock: Lock | None = None) -> None:
    """The whole session, subagents included, as one file."""
    rows = Rows(utc=utc)
    drawn = [*rows.of(story, "evt-", 0)]
    for number, child in enumerate(story.loose):
        drawn += rows.of(child, f"evt-agent{number}-", 1)
    title = f"{story.row.session[:8]} {story.title}"
    body = _body(_top(story, rows, utc=utc), drawn)
    style = shell.asset("palette.css") + shell.asset("timeline.css")
    out.writelines(shell.scripted(title, body, style=style, script="timeline.js", lock=lock))


def _body(top: str, drawn: list[str]) -> Iterator[str]:
    yield f'{top}\n<main id="events">'
    if not drawn:
        yield '\n<p class="empty">This session has no events.</p>'
    for number, row in enumerate(drawn):
        yield '\n</main>\n<noscript id="rest">\n' if number == _AT_ONCE else "\n"
        yield row
    yield "\n</noscript>" if len(drawn) > _AT_ONCE else "\n</main>"


class Rows:
    """Draws events and counts calls by tool."""

    def __init__(self, *, utc: bool) -> None:
        self.calls: Counter[str] = Counter()
        self._utc = utc
        self._day = ""

    def of(self, story: Story, prefix: str, depth: int) -> Iterator[str]:
        for item in story.items():
            yield self._row(item, f"{prefix}{item.number}", depth)
            if item.agent is not None:
                yield from self.of(item.agent, f"{prefix}{item.number}-", depth + 1)

    def _row(self, item: Item, anchor: str, depth: int) -> str:
        failed = item.type == "tool_use" and item.failed
        if item.type == "tool_use":
            self.calls[item.tool or "tool"] += 1
        classes = f"event{' error' if failed else ''}{f' d{min(depth, _DEEPEST)}' if depth else ''}"
        tool = f' data-tool="{attr(item.tool)}"' if item.tool else ""
        tool += f' data-kind="{attr(item.kind)}"' if item.kind else ""
        tag = "h2" if item.type == "user" else "span"
        return (
            f'<details class="{classes}" id="{anchor}" data-type="{attr(item.type)}"{tool}'
            f"{self._new_day(item)}>"
            f'<summary class="event-header">{self._time(item)}{self._label(item)}'
            f'<{tag} class="input">{escaped(_in_short(item))}</{tag}>{_measured(item)}</summary>'
            f'<div class="event-body"><a class="link" href="#{anchor}">Link to this event</a>'
            f"{''.join(_sections(item))}</div></details>"
        )

    def _new_day(self, item: Item) -> str:
        """Marks the first event of each new day."""
        if item.ts is None:
            return ""
        day = f"{times.local(item.ts, utc=self._utc):%Y-%m-%d}"
        before, self._day = self._day, day
        return f' data-day="{day}"' if before not in ("", day) else ""

    def _time(self, item: Item) -> str:
        if item.ts is None:
            return "<time>no time</time>"
        local = times.local(item.ts, utc=self._utc)
        return (
            f'<time datetime="{times.iso(item.ts)}" title="{local:%Y-%m-%d %H:%M:%S}">'
            f"{local:%H:%M:%S}</time>"
        )

    def _label(self, item: Item) -> str:
        if item.type == "tool_use":
            name, kind = item.tool or "tool", f"call {meaning.kind_of(item)}"
        else:
            name, kind = _NAMED.get(item.type, item.type), _class(item.type)
            if item.label:
                name = f"{name} {item.label}" if item.type == "user" else cards.notice_name(item)
        return f'<span class="tool {kind}">{escaped(name)}</span>'


def _top(story: Story, rows: Rows, *, utc: bool) -> str:
    started = story.row.started
    when = "no date" if started is None else f"{times.local(started, utc=utc):%Y-%m-%d %H:%M:%S}"
    total = story.total
    outcomes = amounts.outcomes(total.tool_errors, total.tool_denied)
    spent = amounts.spans(story.duration_ms, story.numbers.active_ms)
    failures = f'<span class="errors">{outcomes}</span>' if outcomes else ""
    tools = "".join(
        f'<option value="tool:{attr(name)}">{escaped(name)} ({count:,})</option>'
        for name, count in rows.calls.most_common()
    )
    if tools:
        tools = f'<optgroup label="Tools">{tools}</optgroup>'
    plain = unmarked(story.title)
    return (
        '<header>\n<div class="facts">'
        f'<h1 class="title" title="{attr(plain)}">{escaped(plain)}</h1>'
        f'<span class="id">{escaped(story.row.session[:8])}</span>'
        f"<span>{when}</span>{f'<span>{spent}</span>' if spent else ''}"
        f"<span>{amounts.plural(total.prompts, 'prompt')}</span>"
        f"<span>{amounts.plural(total.tool_calls, 'tool call')}</span>"
        f"{failures}"
        f"{shell.THEME_BUTTON}</div>\n"
        '<div class="filters" id="filters" hidden>'
        '<input type="search" id="text" placeholder="Filter ( / )" aria-label="Filter by text"'
        ' autocomplete="off" spellcheck="false">'
        '<select id="kind" aria-label="Filter by type"><option value="all">All events</option>'
        '<option value="tool_use">Tool calls</option><option value="errors">Errors</option>'
        '<option value="shell">Commands</option><option value="user">Prompts</option>'
        f"{tools}</select>"
        '<output id="count" for="text kind"></output></div>\n</header>'
    )


def _class(name: str) -> str:
    """A CSS class for plain names; `x` for all others."""
    plain = name.lower()
    return plain if plain.replace("_", "").replace("-", "").isalnum() and plain.isascii() else "x"


def _in_short(item: Item) -> str:
    if item.type == "tool_use":
        said = item.summary or _first_text(item.given)
    else:
        said = item.text[: 8 * _SHOWN]
        said = said if item.type == "user" else _WRAPPING.sub(" ", said)
    line = " ".join(said.split())
    if not line and item.pictures:
        line = amounts.plural(len(item.pictures), "image")
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"


def _first_text(value: Any) -> str:
    """What a call without a summary says first, such as its question."""
    if isinstance(value, str):
        return value
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next(filter(None, map(_first_text, inside)), "")


def _measured(item: Item) -> str:
    taken = (
        f'<span class="duration">{amounts.duration(item.duration_ms)}</span>'
        if item.duration_ms and item.duration_ms > 0
        else ""
    )
    return taken + (_MARKS.get(item.status or "", _PENDING) if item.type == "tool_use" else "")


def _sections(item: Item) -> Iterator[str]:
    if item.type == "tool_use":
        yield from _given(item)
    elif item.unknown is not None and (shown := json_values.readable(item.unknown)) is not None:
        yield _section("Record", escaped(shown))
    elif item.text:
        name = _SECTIONS.get(item.type) or _NAMED.get(item.type, item.type)
        said = json_values.pretty(item.text) if item.type == "user" else None
        yield _section(name, escaped(said or ansi.plain(item.text)))
    if item.output:
        kind = " failed" if item.failed else ""
        yield _section("Output", calls.uncoloured(ansi.plain(item.output)), f"output{kind}")
    for commit in item.commits:
        branch = f"{commit.branch} " if commit.branch else ""
        yield _section("Commit", escaped(f"[{branch}{commit.sha}] {commit.subject}"))
    for image in item.pictures:
        yield (
            f'<div class="label">Image</div><img loading="lazy" alt="{image.media}"'
            f' src="data:{image.media};base64,{image.data}">'
        )


def _given(item: Item) -> Iterator[str]:
    """The call's arguments, nothing twice."""
    kind, path = meaning.kind_of(item), meaning.path_of(item)
    shown = {path}
    if kind in _FILES:
        yield _section("File", escaped(path or "Unknown file"))
        if kind == "write":
            content = meaning.written(item) or ""
            shown.add(content)
            yield _section("Content", escaped(content))
        else:
            for edit in item.edits:
                shown |= {edit.old or "", edit.new or "", edit.patch or ""}
            if isinstance(item.given, str):
                shown.add(item.given)
            yield _section("Change", _change(item))
    elif kind in _TARGETS and path:
        yield _section("Target", escaped(path))
    else:
        said = _said(item, kind)
        shown.add(said)
        if said:
            yield _section("Command", escaped(said))
    rest = [(name, value) for name, value in meaning.arguments(item) if not _is_shown(value, shown)]
    if rest:
        only = kind not in _FILES and shown <= {"", path} and not (kind in _TARGETS and path)
        name = ("Target" if kind in _TARGETS else "Command") if only else "Arguments"
        yield _section(name, escaped(_listed(rest)))


def _said(item: Item, kind: str) -> str:
    if kind == "shell":
        return meaning.command(item)
    return meaning.prompt(item) if kind == "agent" else ""


def _is_shown(value: Any, shown: set[str]) -> bool:
    if isinstance(value, str):
        return value in shown
    if isinstance(value, dict | list):
        inside = value.values() if isinstance(value, dict) else value
        return all(_is_shown(inner, shown) for inner in inside)
    return not value


def _listed(arguments: list[tuple[str, Any]]) -> str:
    if [name for name, _ in arguments] == ["input"] and isinstance(arguments[0][1], str):
        return str(arguments[0][1])
    return json.dumps(dict(arguments), indent=2, ensure_ascii=False, default=str)


def _change(item: Item) -> str:
    """Removed and added lines; consecutive ones with the same sign share a span."""
    lines: list[str] = []
    for edit in edits.shown(item.edits):
        for hunk in edit.hunks:
            lines.append(f"@@ -{hunk.get('oldStart', '?')} +{hunk.get('newStart', '?')} @@")
            lines += [line for line in hunk.get("lines") or () if isinstance(line, str)]
        if not edit.hunks:
            diff = edits.lines(edit, context=None)
            lines += [line.text if line.sign == "@" else line.sign + line.text for line in diff]
    drawn = []
    for sign, stretch in groupby(lines, key=lambda line: line[:1]):
        shown = escaped("\n".join(stretch))
        kind = _SIGNS.get(sign)
        drawn.append(f'<span class="{kind}">{shown}</span>' if kind else shown)
    return "\n".join(drawn)


def _section(name: str, shown: str, kind: str = "input") -> str:
    return f'<div class="label">{escaped(name)}</div><pre class="{kind}">\n{shown}</pre>'
