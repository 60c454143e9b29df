"""Markdown as lines for a terminal. What has no form there stays as it was written."""

from __future__ import annotations

import re
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.color import ColorSystem
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown
from rich.padding import Padding
from rich.segment import Segment
from rich.text import Text
from rich.theme import Theme

from sess_common.escape import safe

_STYLES = {
    **dict.fromkeys(("markdown.h1", "markdown.h2"), "bold underline"),
    **dict.fromkeys(("markdown.h3", "markdown.h4", "markdown.h5", "markdown.h6"), "bold"),
    **dict.fromkeys(("markdown.code", "markdown.code_block"), "cyan"),
    **dict.fromkeys(("markdown.link", "markdown.link_url"), "blue"),
    **dict.fromkeys(("markdown.item.bullet", "markdown.item.number"), "yellow"),
    **dict.fromkeys(("markdown.block_quote", "markdown.hr"), "dim"),
    "markdown.table.border": "dim",
    "markdown.table.header": "bold",
}
_WORD = re.compile(r"[^\W_]+")


def lines(text: str, width: int) -> list[str] | None:
    """The lines, with codes for colours; None if any word of the text would be lost."""
    console = _console()
    options = console.options.update(width=width)
    try:
        drawn = console.render_lines(_Prose(text), options, pad=False)
    except RecursionError:
        return None
    if not _has_every_word(["".join(segment.text for segment in line) for line in drawn], text):
        return None
    return ["".join(map(_coded, line)).rstrip() for line in drawn]


def _has_every_word(drawn: list[str], text: str) -> bool:
    """Markdown drops cells beyond the last column, titles of links, and what is nested deeply."""
    missing = set(_WORD.findall(text)).difference(*map(_WORD.findall, drawn))
    folded = "".join(line.strip() for line in drawn)
    return all(word in folded for word in missing)


def _coded(segment: Segment) -> str:
    text = safe(segment.text)  # an address may have become something else
    if segment.style is None:
        return text
    return segment.style.render(text, color_system=ColorSystem.STANDARD)


@cache
def _console() -> Console:
    """Rich needs one to lay out text; nothing is written to it."""
    return Console(width=80, theme=Theme(_STYLES), force_terminal=True, legacy_windows=False)


@cache
def _parser() -> MarkdownIt:
    """Without what leaves no trace on a terminal: HTML, targets of references, pictures."""
    parser = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
    return parser.disable(["reference", "image", "html_block", "html_inline", "entity"])


class _Heading(Heading):
    LEVEL_ALIGN = dict.fromkeys(Heading.LEVEL_ALIGN, "left")


class _Code(CodeBlock):
    @classmethod
    def create(cls, markdown: Markdown, token: Token) -> _Code:
        return cls(token.info.strip(), markdown.code_theme)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self.lexer_name:
            yield Text(self.lexer_name, "dim")
        code = Text(str(self.text).rstrip(), "cyan", overflow="fold")
        yield Padding(code, (0, 0, 0, 2), expand=False)


class _Prose(Markdown):
    elements = {  # noqa: RUF012 - as rich has it
        **Markdown.elements,
        "heading_open": _Heading,
        "fence": _Code,
        "code_block": _Code,
    }

    def __init__(self, text: str) -> None:
        super().__init__("", hyperlinks=False)
        self.parsed = [*map(_with_breaks, _parser().parse(text))]


def _with_breaks(token: Token) -> Token:
    """Agents write for terminals, where the end of a line is one."""
    for child in token.children or ():
        if child.type == "softbreak":
            child.type = "hardbreak"
    return token
