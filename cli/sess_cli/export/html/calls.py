"""The two halves of a tool call: its arguments and its result."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from sess_cli.export import json_text, shapes
from sess_cli.export.html import highlight, markup, prose, values
from sess_cli.export.html.markup import text
from sess_cli.export.story import Item
from sess_cli.render import amounts
from sess_schema import calls, edits, kinds
from sess_schema.edits import Edit

_BLOCK = re.compile(r"(?: *\d{1,9}(?:→|\t)[^\n]*(?:\n|\Z))+")
_FIRST = re.compile(r"^ *\d{1,9}(?:→|\t)", re.MULTILINE)
_EXIT = re.compile(r"(?:Error: |Command failed with )?[Ee]xit code (\d{1,3})(?:\n|\Z)")
_WRAPPED = re.compile(r"<tool_use_error>(.*)</tool_use_error>\s*", re.DOTALL)
_LINKS = re.compile(r"^Links: (\[.*\])$", re.MULTILINE)
_TODO_STATES = {"done": ("✓", "done"), "doing": ("▸", "in progress"), "open": ("○", "to do")}
_EDITED = (*calls.OLD, *calls.NEW, "edits", "diff")


def kind_of(item: Item) -> str:
    """The CSS class of a card: a kind of `shapes`, or `other` if it lacks its arguments."""
    kind = shapes.kind_of(item)
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
        return text(markup.line(shapes.description(item)))
    if kind in ("edit", "write", "read"):
        return _file(item)
    if kind == "todo":
        listed = shapes.todos(item)
        done = sum(todo.state == "done" for todo in listed)
        return text(f"{done} of {len(listed)} done") if listed else ""
    if kind == "agent":
        return text(markup.line(shapes.description(item) or item.summary))
    if kind in ("question", "plan"):
        return ""
    if kind == "fetch":
        about = shapes.page(item) or item.summary
        shown = text(markup.line(about))
        return markup.link(about, shown) or shown
    if kind == "search":
        about = shapes.pattern(item) or item.summary
        where = shapes.path_of(item)
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
    return _ANSWERED.get(kind, _output)(item)


# -- arguments


def _shell(item: Item) -> str:
    command = shapes.command(item)
    rest = _rest(
        item, "command", "cmd", "script", shown=(shapes.description(item),), told=(command,)
    )
    if not command:
        return rest
    shown = highlight.coloured(text(command), "shell")
    return markup.fold(f'<pre class="command"><code>{shown}</code></pre>', command) + rest


def _edit(item: Item) -> str:
    drawn = "".join(_diff(edit) for edit in edits.shown(item.edits))
    if patch := shapes.patch_text(item):
        return drawn + markup.details("Original patch", values.terminal(patch))
    return drawn + _rest(item, *_EDITED, *calls.PATHS, *calls.CONTENTS, told=_edited(item))


def _edited(item: Item) -> list[str]:
    """What the diffs tell, by whatever names the arguments have."""
    told = [words for edit in item.edits for words in (edit.path, edit.old, edit.new) if words]
    return [*told, *(words.removesuffix("\n") for words in told)]


def _diff(edit: Edit) -> str:
    return values.diff(edits.lines(edit, context=None), numbers=bool(edit.hunks))


def _write(item: Item) -> str:
    content = shapes.written(item) or ""
    hunks = edits.hunks_of(item.edits)
    changed = markup.details("Changes", _diff(item.edits[0])) if hunks else ""
    whole = values.numbered(content.removesuffix("\n"), 1, shapes.path_of(item))
    return whole + changed + _rest(item, *calls.CONTENTS, *calls.PATHS)


def _todo(item: Item) -> str:
    listed = shapes.todos(item)
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
    wanted = shapes.prompt(item)
    if not wanted:
        return _arguments(item)
    return markup.details("Prompt", prose.html(wanted)) + _rest(
        item, "prompt", "task", shown=(shapes.description(item),)
    )


def _web(item: Item) -> str:
    return _rest(item, shown=(shapes.page(item),))


def _search(item: Item) -> str:
    about = shapes.pattern(item)
    return _rest(item, shown=(about, shapes.path_of(item), item.summary))


def _read(item: Item) -> str:
    return _rest(item, "offset", "limit", *calls.PATHS, shown=(item.summary,))


def _plan(item: Item) -> str:
    return _said(item, "plan")


def _asked_plan(item: Item) -> str:
    return markup.fold(prose.html(_plan(item)), _plan(item)) + _rest(item, "plan")


def _ask(item: Item) -> str:
    drawn = []
    for one in _questions(item):
        question = one["question"]
        header = one.get("header")
        tag = f'<span class="chip">{text(header)}</span> ' if isinstance(header, str) else ""
        options = one.get("options")
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
    mark = (
        '<span class="box" aria-hidden="true">✓</span><span class="unseen">chosen: </span>'
        if chosen
        else '<span class="box" aria-hidden="true">○</span>'
    )
    why = f' <span class="why">{text(more)}</span>' if isinstance(more, str) and more else ""
    state = "done" if chosen else "open"
    return f'<li class="{state}">{mark}<span><b>{text(label)}</b>{why}</span></li>'


def _questions(item: Item) -> list[dict[str, Any]]:
    given = item.given.get("questions") if isinstance(item.given, dict) else None
    asked = given if isinstance(given, list) else []
    whole = all(isinstance(one, dict) and isinstance(one.get("question"), str) for one in asked)
    return asked if whole else []


def _arguments(item: Item) -> str:
    if not isinstance(item.given, dict):
        return values.arguments(shapes.arguments(item))
    return _rest(item, shown=(item.summary,))


def _rest(item: Item, *names: str, shown: tuple[str, ...] = (), told: Sequence[str] = ()) -> str:
    """Arguments not `told` elsewhere on the card; `shown` is in its header, if it fits there."""
    if not isinstance(item.given, dict):
        return ""
    fits = [one for one in shown if one and markup.line(one) == one]
    return values.arguments(
        (name, value)
        for name, value in item.given.items()
        if calls.unversioned(str(name)) not in names
        and value not in fits
        and not _is_told(value, told)
    )


def _is_told(value: Any, told: Sequence[str]) -> bool:
    """Whether all that a value says is told: a text, or several under names of their own."""
    if isinstance(value, dict):
        return bool(value) and all(_is_told(one, told) for one in value.values())
    return isinstance(value, str) and (value in told or value.removesuffix("\n") in told)


# -- results


def _output(item: Item) -> str:
    return values.output(item.output)


def _aside(item: Item) -> str:
    """A result that only confirms what the card already shows."""
    return markup.details("Result", values.output(item.output))


def _prose(item: Item) -> str:
    if json_text.pretty(item.output) is not None:
        return values.output(item.output)
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
    import orjson  # few answers have any

    try:
        found = orjson.loads(listed)
    except ValueError:
        return None
    rows = []
    for one in found:
        if not isinstance(one, dict) or one.keys() != {"title", "url"}:
            return None
        title, url = str(one["title"]), str(one["url"])
        linked = markup.link(url, text(title or url))
        rows.append(f'<li>{linked or text(title)} <span class="where">{text(url)}</span></li>')
    return "".join(rows)


def _content(item: Item) -> str:
    """A file as it was read, with its line numbers."""
    block = _BLOCK.match(item.output)
    if block is None:
        return values.output(item.output)
    numbers = [one.strip(" →\t") for one in _FIRST.findall(block[0])]
    code = _FIRST.sub("", block[0]).removesuffix("\n")
    rest = item.output[block.end() :].strip()
    title = "Reminder" if rest.startswith("<system-reminder>") else markup.line(rest, 120)
    said = markup.details(title, values.output(rest)) if rest else ""
    return values.numbered_as(numbers, code, shapes.path_of(item)) + said


def exit_code(item: Item) -> str:
    """The exit code of a failed shell command, if its output contains one."""
    found = _EXIT.match(item.output.lstrip()) if item.failed else None
    return found[1] if found else ""


def _failure(item: Item, kind: str) -> str:
    answer = item.output.strip()
    if kind == "shell":
        answer = _EXIT.sub("", answer, count=1) if _EXIT.match(answer) else answer
    elif wrapped := _WRAPPED.fullmatch(answer):
        answer = wrapped[1]
    return values.output(answer, "out bad")


def _file(item: Item) -> str:
    path = shapes.path_of(item)
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


def _said(item: Item, name: str) -> str:
    value = item.given.get(name) if isinstance(item.given, dict) else None
    return value if isinstance(value, str) else ""


_ASKED: dict[str, Callable[[Item], str]] = {
    "shell": _shell, "edit": _edit, "write": _write, "todo": _todo, "agent": _agent,
    "fetch": _web, "search": _search, "read": _read, "plan": _asked_plan, "question": _ask,
}  # fmt: skip
_ANSWERED: dict[str, Callable[[Item], str]] = {
    "edit": _aside, "write": _aside, "todo": _aside, "plan": _aside, "agent": _prose,
    "fetch": _found, "read": _content,
}  # fmt: skip
