"""The two halves of a tool call, its arguments and its result, as HTML."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

import orjson

from sess_cli.export import ansi, json_values, meaning
from sess_cli.export.ansi import Style
from sess_cli.export.html import highlight, markup, prose
from sess_cli.export.html.markup import text
from sess_cli.export.story import Item
from sess_cli.render import amounts
from sess_common.differ import DiffLine
from sess_schema import calls, edits, kinds
from sess_schema.edits import Edit

_BLOCK = re.compile(r"(?: *\d{1,9}(?:→|\t)[^\n]*(?:\n|\Z))+")
_FIRST = re.compile(r"^ *\d{1,9}(?:→|\t)", re.MULTILINE)
_EXIT = re.compile(r"(?:Error: |Command failed with )?[Ee]xit code (\d{1,3})(?:\n|\Z)")
_WRAPPED = re.compile(r"<tool_use_error>(.*)</tool_use_error>\s*", re.DOTALL)
_LINKS = re.compile(r"^Links: (\[.*\])$", re.MULTILINE)
_TODO_STATES = {"done": ("✓", "done"), "doing": ("▸", "in progress"), "open": ("○", "to do")}
_EDITED = (*calls.OLD, *calls.NEW, "edits", "diff")
_MOST_RUNS = 4_000  # coloured runs in one output; the rest is shown without colour
_SHORT = 160
_SMALL = 60
# The usual sixteen colours, to find the nearest to any other.
_PALETTE = (
    (0, 0, 0), (205, 49, 49), (13, 188, 121), (229, 229, 16), (36, 114, 200), (188, 63, 188),
    (17, 168, 205), (204, 204, 204), (102, 102, 102), (241, 76, 76), (35, 209, 139),
    (245, 245, 67), (59, 142, 234), (214, 112, 214), (41, 184, 219), (255, 255, 255),
)  # fmt: skip
_CUBE = (0, 95, 135, 175, 215, 255)
_HUNK = re.compile(
    r"^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@.*\n(?:[ +\\-].*(?:\n|\Z)|\n)+", re.MULTILINE
)
_CHANGED = re.compile(r"^[+-].*(?:\n|\Z)", re.MULTILINE)
_SIGNS = {" ": "span", "+": "ins", "-": "del", "@": "i"}


def kind_of(item: Item) -> str:
    """The CSS class of a card: a kind of `meaning`, or `other` if it lacks its arguments."""
    kind = meaning.kind_of(item)
    if kind == kinds.PLAN:
        return kind if _plan(item) else kinds.OTHER
    if kind == kinds.QUESTION:
        return kind if _questions(item) else kinds.OTHER
    return kind


def name(item: Item) -> str:
    """`server · tool` for `mcp__server__tool`; else the agent's own name."""
    if not item.tool:
        return "Result without a call" if item.unjoined == "orphan" else "Tool"
    if item.tool.startswith("mcp__"):
        server, _, tool = item.tool.removeprefix("mcp__").partition("__")
        return f"{server} · {tool}" if tool else server
    return item.tool


def gist(item: Item, kind: str) -> str:
    """A one-line summary of the call, as markup."""
    if kind == "shell":
        return text(markup.line(meaning.description(item)))
    if kind in ("edit", "write", "read"):
        return _file(item)
    if kind == "todo":
        listed = meaning.todos(item)
        done = sum(todo.state == "done" for todo in listed)
        return text(f"{done} of {len(listed)} done") if listed else ""
    if kind == "agent":
        return text(markup.line(meaning.description(item) or item.summary))
    if kind in ("question", "plan"):
        return ""
    if kind == "fetch":
        about = meaning.page(item) or item.summary
        shown = text(markup.line(about))
        return markup.link(about, shown) or shown
    if kind == "search":
        about = meaning.pattern(item) or item.summary
        where = meaning.path_of(item)
        inside = f' <span class="where">in {text(markup.line(where))}</span>' if where else ""
        return f"<code>{text(markup.line(about))}</code>{inside if where != about else ''}"
    if isinstance(item.given, dict) and item.summary == ", ".join(map(str, item.given)):
        return ""  # only names, which the arguments below repeat
    return text(markup.line(item.summary, 160))


def asked(item: Item, kind: str) -> str:
    return _ASKED.get(kind, _arguments)(item)


def answered(item: Item, kind: str) -> str:
    if not item.output.strip():
        return ""
    if item.failed:
        return _failure(item, kind)
    return _ANSWERED.get(kind, _result)(item)


# -- arguments


def _shell(item: Item) -> str:
    command = meaning.command(item)
    rest = _rest(
        item, "command", "cmd", "script", shown=(meaning.description(item),), told=(command,)
    )
    if not command:
        return rest
    shown = highlight.coloured(text(command), "shell")
    return markup.fold(f'<pre class="command"><code>{shown}</code></pre>', command) + rest


def _edit(item: Item) -> str:
    drawn = "".join(_diff(edit) for edit in edits.shown(item.edits))
    if patch := meaning.patch_text(item):
        return drawn + markup.details("Original patch", _terminal_html(patch))
    return drawn + _rest(item, *_EDITED, *calls.PATHS, *calls.CONTENTS, told=_edited(item))


def _edited(item: Item) -> list[str]:
    """What the diffs show, by whatever names the arguments have."""
    drawn = [words for edit in item.edits for words in (edit.path, edit.old, edit.new) if words]
    return [*drawn, *(words.removesuffix("\n") for words in drawn)]


def _diff(edit: Edit) -> str:
    return _diff_html(edits.lines(edit, context=None), numbers=bool(edit.hunks))


def _write(item: Item) -> str:
    content = (meaning.written(item) or "").removesuffix("\n")
    hunks = edits.hunks_of(item.edits)
    changed = markup.details("Changes", _diff(item.edits[0])) if hunks else ""
    whole = _numbered(content, meaning.path_of(item), range(1, content.count("\n") + 2))
    return whole + changed + _rest(item, *calls.CONTENTS, *calls.PATHS)


def _todo(item: Item) -> str:
    listed = meaning.todos(item)
    if not listed:
        return _arguments(item)
    rows = []
    for todo in listed:
        mark, word = _TODO_STATES[todo.state]
        rows.append(
            f'<li class="{todo.state}"><span class="box" aria-hidden="true">{mark}</span>'
            f'<span class="unseen">{word}: </span>{text(todo.text)}</li>'
        )
    return f'<ul class="todos">{"".join(rows)}</ul>'


def _agent(item: Item) -> str:
    wanted = meaning.prompt(item)
    if not wanted:
        return _arguments(item)
    return markup.details("Prompt", prose.html(wanted)) + _rest(
        item, "prompt", "task", shown=(meaning.description(item),)
    )


def _web(item: Item) -> str:
    return _rest(item, shown=(meaning.page(item),))


def _search(item: Item) -> str:
    about = meaning.pattern(item)
    return _rest(item, shown=(about, meaning.path_of(item), item.summary))


def _read(item: Item) -> str:
    return _rest(item, "offset", "limit", *calls.PATHS, shown=(item.summary,))


def _plan(item: Item) -> str:
    return meaning.says(item, "plan")


def _asked_plan(item: Item) -> str:
    return markup.fold(prose.html(_plan(item)), _plan(item)) + _rest(item, "plan")


def _ask(item: Item) -> str:
    drawn = []
    for asked in _questions(item):
        question, header, options = asked["question"], asked.get("header"), asked.get("options")
        tag = f'<span class="chip">{text(header)}</span> ' if isinstance(header, str) else ""
        rows = [
            _option(option, question, item.output)
            for option in (options if isinstance(options, list) else ())
        ]
        listed = f"<ul>{''.join(rows)}</ul>" if rows else ""
        drawn.append(f'<div class="question"><p>{tag}{text(question)}</p>{listed}</div>')
    return "".join(drawn) + _rest(item, "questions", "answers")


def _option(option: Any, question: str, answer: str) -> str:
    if not isinstance(option, dict):
        return f"<li>{text(str(option))}</li>"
    label, more = option.get("label"), option.get("description")
    label = label if isinstance(label, str) else ""
    chosen = bool(label) and f'"{question}"="{label}"' in answer
    mark = f'<span class="box" aria-hidden="true">{"✓" if chosen else "○"}</span>'
    mark += '<span class="unseen">chosen: </span>' if chosen else ""
    why = f' <span class="why">{text(more)}</span>' if isinstance(more, str) and more else ""
    state = "done" if chosen else "open"
    return f'<li class="{state}">{mark}<span><b>{text(label)}</b>{why}</span></li>'


def _questions(item: Item) -> list[dict[str, Any]]:
    given = item.given.get("questions") if isinstance(item.given, dict) else None
    listed = given if isinstance(given, list) else []
    whole = all(isinstance(each, dict) and isinstance(each.get("question"), str) for each in listed)
    return listed if whole else []


def _arguments(item: Item) -> str:
    if not isinstance(item.given, dict):
        return _arguments_html(meaning.arguments(item))
    return _rest(item, shown=(item.summary,))


def _rest(item: Item, *names: str, shown: tuple[str, ...] = (), told: Sequence[str] = ()) -> str:
    """Arguments not `told` elsewhere on the card; `shown` is in its header, if it fits there."""
    if not isinstance(item.given, dict):
        return ""
    fits = [words for words in shown if words and markup.line(words) == words]
    return _arguments_html(
        (name, value)
        for name, value in item.given.items()
        if calls.unversioned(str(name)) not in names
        and value not in fits
        and not _is_told(value, told)
    )


def _is_told(value: Any, told: Sequence[str]) -> bool:
    """Whether all that a value says is told: a text, or several under names of their own."""
    if isinstance(value, dict):
        return bool(value) and all(_is_told(inner, told) for inner in value.values())
    return isinstance(value, str) and (value in told or value.removesuffix("\n") in told)


# -- results


def _result(item: Item) -> str:
    return result_html(item.output)


def _aside(item: Item) -> str:
    """A result that only confirms what the card already shows."""
    return markup.details("Result", result_html(item.output))


def _prose(item: Item) -> str:
    if json_values.pretty(item.output) is not None:
        return result_html(item.output)
    return markup.fold(prose.html(item.output), item.output)


def _found(item: Item) -> str:
    """Search results: a JSON list of links in the middle of a text."""
    listed = _LINKS.search(item.output)
    links = _links(listed[1]) if listed else None
    if listed is None or links is None:
        return _prose(item)
    rest = f"{item.output[: listed.start()]}\n{item.output[listed.end() :]}"
    return markup.fold(f'<ul class="links">{links}</ul>{prose.html(rest)}', item.output)


def _links(listed: str) -> str | None:
    try:
        links = orjson.loads(listed)
    except ValueError:
        return None
    rows = []
    for link in links:
        if not isinstance(link, dict) or link.keys() != {"title", "url"}:
            return None
        title, url = str(link["title"]), str(link["url"])
        linked = markup.link(url, text(title or url))
        rows.append(f'<li>{linked or text(title)} <span class="where">{text(url)}</span></li>')
    return "".join(rows)


def _content(item: Item) -> str:
    """A file as it was read, with its line numbers."""
    block = _BLOCK.match(item.output)
    if block is None:
        return result_html(item.output)
    numbers = [number.strip(" →\t") for number in _FIRST.findall(block[0])]
    code = _FIRST.sub("", block[0]).removesuffix("\n")
    rest = item.output[block.end() :].strip()
    title = "Reminder" if rest.startswith("<system-reminder>") else markup.line(rest, 120)
    said = markup.details(title, result_html(rest)) if rest else ""
    return _numbered(code, meaning.path_of(item), numbers) + said


def exit_code(item: Item) -> str:
    """The exit code of a failed shell command, if its output contains one."""
    code = _EXIT.match(item.output.lstrip()) if item.failed else None
    return code[1] if code else ""


def _failure(item: Item, kind: str) -> str:
    answer = item.output.strip()
    if kind == "shell":
        answer = _EXIT.sub("", answer, count=1) if _EXIT.match(answer) else answer
    elif wrapped := _WRAPPED.fullmatch(answer):
        answer = wrapped[1]
    return result_html(answer, "out bad")


def _file(item: Item) -> str:
    path = meaning.path_of(item)
    if not path:
        return text(markup.line(item.summary))
    folder, slash, base = path.rpartition("/")
    shown = f'<span class="path"><bdi>{text(folder)}{slash}<b>{text(base)}</b></bdi></span>'
    given = item.given if isinstance(item.given, dict) else {}
    first, count = given.get("offset"), given.get("limit")
    if isinstance(first, int) and isinstance(count, int):
        return f'{shown} <span class="where">lines {first}–{first + count - 1}</span>'
    if isinstance(first, int) or isinstance(count, int):
        lines = amounts.plural(count, "line") if isinstance(count, int) else ""
        word = f"from line {first}" if isinstance(first, int) else f"first {lines}"
        return f'{shown} <span class="where">{word}</span>'
    return shown


_ASKED: dict[str, Callable[[Item], str]] = {
    "shell": _shell, "edit": _edit, "write": _write, "todo": _todo, "agent": _agent,
    "fetch": _web, "search": _search, "read": _read, "plan": _asked_plan, "question": _ask,
}  # fmt: skip
_ANSWERED: dict[str, Callable[[Item], str]] = {
    "edit": _aside, "write": _aside, "todo": _aside, "plan": _aside, "agent": _prose,
    "fetch": _found, "read": _content,
}  # fmt: skip


# -- values: terminal output, JSON, plain ones


def result_html(answer: str, name: str = "out") -> str:
    """The result of a tool: as JSON if it is JSON, else as terminal output."""
    if not answer.strip():
        return ""
    shown = json_values.pretty(answer)
    return json_block(shown) if shown is not None else _terminal_html(answer.strip("\n"), name)


def json_block(shown: str) -> str:
    return markup.fold(prose.code(text(shown), "json"), shown)


def _terminal_html(answer: str, name: str = "out") -> str:
    """Terminal output with its colours; text without any is only escaped."""
    moves = "\x1b" in answer or "\r" in answer or "\b" in answer or "\x9b" in answer
    html = _coloured(answer) if moves else uncoloured(answer)
    return markup.pre(html, answer, name)


def uncoloured(answer: str) -> str:
    """Only escaped, except that printed diffs get the colours of a diff."""
    html = text(answer)
    return _HUNK.sub(_hunk, html) if _HUNK.search(answer) else html


def _hunk(lines: re.Match[str]) -> str:
    """A part of a printed diff; its signs are text, as the program wrote them."""
    return _CHANGED.sub(
        lambda line: f"<{_SIGNS[line[0][0]]}>{line[0]}</{_SIGNS[line[0][0]]}>", lines[0]
    )


def _coloured(answer: str) -> str:
    pieces = []
    runs = ansi.runs(answer)
    for number, (run, style) in enumerate(runs):
        classes = _classes(style) if number < _MOST_RUNS else ""
        shown = text(run)
        pieces.append(f'<span class="{classes}">{shown}</span>' if classes else shown)
    return "".join(pieces)


@lru_cache(maxsize=1024)
def _classes(style: Style) -> str:
    fg, bg = (style.bg, style.fg) if style.inverse else (style.fg, style.bg)
    names = [
        name
        for name, wanted in (
            ("ab", style.bold), ("ad", style.dim), ("ai", style.italic), ("au", style.underline),
            ("as", style.strike), ("av", style.inverse and fg is None and bg is None),
        )
        if wanted
    ]  # fmt: skip
    if fg is not None:
        names.append(f"a{_nearest(fg)}")
    if bg is not None:
        names.append(f"g{_nearest(bg)}")
    return " ".join(names)


def _nearest(colour: int | tuple[int, int, int]) -> int:
    """One of the sixteen colours, which the page defines for dark and light."""
    if isinstance(colour, int):
        if colour < 16:
            return colour
        if colour >= 232:
            colour = (8 + 10 * (colour - 232),) * 3
        else:
            red, rest = divmod(colour - 16, 36)
            colour = (_CUBE[red], _CUBE[rest // 6], _CUBE[rest % 6])
    r, g, b = colour
    return min(
        range(16),
        key=lambda n: (
            (r - _PALETTE[n][0]) ** 2 + (g - _PALETTE[n][1]) ** 2 + (b - _PALETTE[n][2]) ** 2
        ),
    )


def _indented(value: Any) -> str:
    with suppress(TypeError, ValueError):  # lone surrogates, numbers beyond 64 bits
        return orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS).decode()
    with suppress(ValueError, RecursionError):
        return json.dumps(value, indent=2, ensure_ascii=False, default=str)
    return repr(value)


def _arguments_html(pairs: Iterable[tuple[str, Any]]) -> str:
    """Names and values, each value in a suitable form."""
    short: list[str] = []
    long: list[str] = []
    for name, value in pairs:
        row = f"<div><dt>{text(str(name))}</dt><dd>{_argument_html(value)}</dd></div>"
        (short if _is_small(value) else long).append(row)
    return "".join(
        f'<dl class="{name}">{"".join(rows)}</dl>'
        for name, rows in (("args small", short), ("args", long))
        if rows
    )


def _is_small(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= _SMALL and "\n" not in value
    return value is None or isinstance(value, bool | int | float)


def _argument_html(value: Any) -> str:
    if isinstance(value, str):
        return _string(value)
    if value is None or isinstance(value, bool):
        return f'<code class="hk">{ {None: "null", True: "true", False: "false"}[value] }</code>'
    if isinstance(value, int | float):
        return f'<code class="hn">{value}</code>'
    return json_block(_indented(value))


def _string(value: str) -> str:
    if len(value) <= _SHORT and "\n" not in value:
        shown = text(value)
        return markup.link(value, shown) or f"<code>{shown}</code>"
    return result_html(value)


# -- files


def _numbered(source: str, path: str, numbers: Iterable[int | str]) -> str:
    """A file's text beside its line numbers; `source` is not escaped."""
    code = highlight.coloured(text(source), highlight.family_of_path(path))
    gutter = "\n".join(map(str, numbers))
    return markup.fold(
        f'<div class="lines" tabindex="0" role="group" aria-label="Code">'
        f'<pre class="gutter" aria-hidden="true">{gutter}</pre>'
        f'<pre class="code"><code>{code}</code></pre></div>',
        source,
    )


def _diff_html(lines: Sequence[DiffLine], *, numbers: bool) -> str:
    """A diff; numbers and signs are in attributes, so that copied text is plain code."""
    if not lines:
        return ""
    width = len(str(max((line.new or line.old or 0) for line in lines)))
    shown = iter(_each(piece for line in lines for piece, _ in line.runs))
    rows = []
    for line in lines:
        tag = _SIGNS[line.sign]
        words = "".join(
            f"<b>{next(shown)}</b>" if changed else next(shown) for _, changed in line.runs
        )
        if line.sign == "@":
            rows.append(f"<i>{words}\n</i>")
            continue
        places = f"{line.old or '':>{width}} {line.new or '':>{width}} " if numbers else ""
        rows.append(f'<{tag} data-l="{places}{line.sign}">{words}\n</{tag}>')
    size = f" w{min(width, 6)}" if numbers else ""
    html = f'<div class="diff{size}">{"".join(rows)}</div>'
    return f'<div class="fold">{html}</div>' if len(rows) > 8 else html


def _each(pieces: Iterable[str]) -> list[str]:
    """Escape all the pieces of a diff at once, because there may be thousands."""
    given = [*pieces]
    whole = "\n".join(given)
    if markup.clean(whole) is whole and whole.count("\n") == len(given) - 1:
        return markup.escaped(whole).split("\n")
    return [text(piece) for piece in given]
