"""Arguments and results of tools as HTML: terminal output, JSON, diffs, plain values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import orjson

from sess_cli.export import ansi, json_text
from sess_cli.export.ansi import Style
from sess_cli.export.html import highlight, markup, prose
from sess_cli.export.html.markup import text
from sess_common.differ import DiffLine

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


def output(answer: str, name: str = "out") -> str:
    """The result of a tool: as JSON if it is JSON, else as terminal output."""
    if not answer.strip():
        return ""
    shown = json_text.pretty(answer)
    return json_block(shown) if shown is not None else terminal(answer.strip("\n"), name)


def json_block(shown: str) -> str:
    return markup.fold(prose.code(text(shown), "json"), shown)


def terminal(answer: str, name: str = "out") -> str:
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


def as_json(value: Any) -> str:
    try:
        return orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS).decode()
    except (TypeError, ValueError):  # lone surrogates, numbers beyond 64 bits
        return _by_hand(value)


def _by_hand(value: Any) -> str:
    import json  # hardly ever

    try:
        return json.dumps(value, indent=2, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        return repr(value)


# -- arguments


def arguments(pairs: Iterable[tuple[str, Any]]) -> str:
    """Names and values, each value in a suitable form."""
    short: list[str] = []
    long: list[str] = []
    for name, value in pairs:
        row = f"<div><dt>{text(str(name))}</dt><dd>{argument(value)}</dd></div>"
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


def argument(value: Any) -> str:
    if isinstance(value, str):
        return _string(value)
    if value is None or isinstance(value, bool):
        return f'<code class="hk">{ {None: "null", True: "true", False: "false"}[value] }</code>'
    if isinstance(value, int | float):
        return f'<code class="hn">{value}</code>'
    shown = as_json(value)
    return markup.fold(prose.code(text(shown), "json"), shown)


def _string(value: str) -> str:
    if len(value) <= _SHORT and "\n" not in value:
        shown = text(value)
        return markup.link(value, shown) or f"<code>{shown}</code>"
    return output(value)


# -- files


def numbered(source: str, first: int, path: str) -> str:
    """A file's text with line numbers from `first`; `source` is not escaped."""
    last = first + source.count("\n")
    return _beside("\n".join(map(str, range(first, last + 1))), source, path)


def numbered_as(numbers: Sequence[str], source: str, path: str) -> str:
    """The same with given line numbers."""
    return _beside("\n".join(numbers), source, path)


def _beside(numbers: str, source: str, path: str) -> str:
    code = highlight.coloured(text(source), highlight.family_of_path(path))
    return markup.fold(
        f'<div class="lines" tabindex="0" role="region" aria-label="Code">'
        f'<pre class="gutter" aria-hidden="true">{numbers}</pre>'
        f'<pre class="code"><code>{code}</code></pre></div>',
        source,
    )


def diff(lines: Sequence[DiffLine], *, numbers: bool) -> str:
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
