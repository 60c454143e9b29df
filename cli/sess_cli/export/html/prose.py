"""Markdown as inert HTML: raw HTML is text, links lead only to the web.

A library renders; its tags are then checked one by one, and only known ones stay.
"""

from __future__ import annotations

import re
from functools import cache
from html import unescape
from typing import TYPE_CHECKING

from sess_cli.export.html import highlight, markup
from sess_cli.export.json_values import images_in

if TYPE_CHECKING:
    from collections.abc import Callable

# Every tag except the plainest, which stay as they are, and any `<` that begins no tag.
_TAG = re.compile(
    r"<(?!/?(?:p|strong|em|del|code|li|thead|tbody|tr)>)(?:(/?)([a-z][a-z0-9]*)([^<>]*)>)?"
)
_FENCE = re.compile(r"<pre><code([^<>]*)>([^<]*)</code></pre>")
_ATTRIBUTE = re.compile(r'([a-z-]+)="([^"]*)"')
_NESTING = frozenset({"blockquote", "ul", "ol"})
_DEEPEST = 40
_LONGEST = 1 << 20  # characters; rendering takes fifty times as much memory
_LEVELS_ABOVE = 2  # the title of the page, and prompts
# Renderers drop cells beyond the last column of this row, and link definitions.
_COLUMNS = re.compile(r"^[ \t>]*+[|:-][|: \t-]*+$", re.MULTILINE)
_WORD = re.compile(r"[^\W_]+")
# `[x.toml](x.toml)` says its target already.
_TWICE = re.compile(
    r'(<span class="unlinked"[^<>]*>(?:<code>)?)([^<>]+)((?:</code>)?</span>)'
    r' <span class="target">\(\2\)</span>'
)


def html(source: str) -> str:
    """A Markdown text; if rendering drops words, the source follows."""
    source = markup.clean(source)
    if len(source) > _LONGEST:
        return plain(source)
    try:
        drawn = _Page().drawn(_renderer()(source))
    except _TooDeep:
        return plain(source)
    if "]:" in source or ("|" in source and _COLUMNS.search(source)):
        drawn += _left_out(source, drawn)
    return f'<div class="prose" dir="auto">{drawn}</div>'


def plain(source: str) -> str:
    """The text without interpreting Markdown."""
    return f'<pre class="prose plain" dir="auto">{markup.text(source)}</pre>'


@cache
def _renderer() -> Callable[[str], str]:
    try:
        import comrak  # 2 ms, and not every export needs it
    except ImportError:  # there is not a wheel for every system
        return _slower_renderer()

    syntax, output = comrak.ExtensionOptions(), comrak.RenderOptions()
    syntax.table = syntax.strikethrough = syntax.tasklist = syntax.autolink = True
    output.escape = True
    output.unsafe_ = True  # for links only: they are checked here, and shown as text if refused
    output.full_info_string = True
    output.compact_html = True

    def render(source: str) -> str:
        return comrak.render_markdown(source, extension_options=syntax, render_options=output)

    return render


def _slower_renderer() -> Callable[[str], str]:
    """In Python, always installed because rich needs it; without bare links and task lists."""
    from markdown_it import MarkdownIt  # 30 ms

    # Above our own limit for nested lists, because beyond its limit it drops text.
    limits = {"html": False, "maxNesting": 3 * _DEEPEST}
    parser = MarkdownIt("commonmark", limits).enable(["table", "strikethrough"])
    # Links are checked here, and shown as text if refused.
    parser.validateLink = lambda url: True  # type: ignore[method-assign]  # noqa: ARG005
    return lambda source: str(parser.render(source))


class _TooDeep(Exception):
    """Quotes and lists nested deeper than a person would write."""


class _Page:
    """Reads the renderer's tags in order."""

    def __init__(self) -> None:
        self._depth = 0
        self._refused = ""  # the target of the open link, if refused
        self._open = False
        self._headings: list[int] = []  # levels of the headings around this place

    def drawn(self, rendered: str) -> str:
        return _TWICE.sub(r"\1\2\3", self._drawn(rendered))

    def _drawn(self, rendered: str) -> str:
        if "<pre>" not in rendered:
            return _TAG.sub(self._tag, rendered)
        pieces = []
        end = 0
        for fence in _FENCE.finditer(rendered):
            pieces += [_TAG.sub(self._tag, rendered[end : fence.start()]), _code(fence)]
            end = fence.end()
        return "".join([*pieces, _TAG.sub(self._tag, rendered[end:])])

    def _tag(self, found: re.Match[str]) -> str:
        closing, name, rest = found.groups()
        if name is None:
            return "&lt;"
        if name in ("br", "hr"):
            return f"<{name}>"
        if name in _NESTING:
            return self._nesting(closing, name, rest)
        if name == "a":
            return self._link_end() if closing else self._link(_attributes(rest))
        if name == "img":
            return self._image(_attributes(rest))
        if name == "s":
            return f"<{closing}del>"
        if name in ("td", "th"):
            given = _attributes(rest)
            where = given.get("align") or given.get("style", "").removeprefix("text-align:")
            aligned = f' class="{where}"' if where in ("left", "center", "right") else ""
            return f"<{closing}{name}{aligned}>"
        if name == "table":
            if closing:
                return "</table></div>"
            return '<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>'
        if name[0] == "h" and name[1:] in "123456":
            return f"<{closing}h{self._level(int(name[1:]), closing)}>"
        if name == "input":
            done = "checked" in rest
            mark, word = ("☑", "done") if done else ("☐", "to do")
            return (
                f'<span class="box" aria-hidden="true">{mark}</span>'
                f'<span class="unseen">{word}: </span>'
            )
        return markup.escaped(found[0])

    def _level(self, given: int, closing: str) -> int:
        """One below the heading around it, so that no level is left out."""
        if not closing:
            while self._headings and self._headings[-1] >= given:
                self._headings.pop()
            self._headings.append(given)
        return min(6, _LEVELS_ABOVE + len(self._headings))

    def _nesting(self, closing: str, name: str, rest: str) -> str:
        self._depth += -1 if closing else 1
        if self._depth > _DEEPEST:
            raise _TooDeep
        start = _attributes(rest).get("start", "")
        return f'<ol start="{start}">' if start.isdecimal() else f"<{closing}{name}>"

    def _link(self, given: dict[str, str]) -> str:
        target = unescape(given.get("href", ""))
        link = markup.link(target, "")
        self._open = link is not None
        title = f' title="{markup.attr(unescape(given["title"]))}"' if "title" in given else ""
        if link:
            return link.removesuffix("></a>") + title + ">"
        self._refused = target
        return f'<span class="unlinked"{title}>'

    def _link_end(self) -> str:
        if self._open:
            self._open = False
            return "</a>"
        return f'</span> <span class="target">({markup.text(self._refused)})</span>'

    def _image(self, given: dict[str, str]) -> str:
        """An embedded image is shown; a remote one would have to be fetched, so it is a link."""
        target, alt = unescape(given.get("src", "")), unescape(given.get("alt", ""))
        for image in images_in(target):
            return picture(image.media, image.data, alt or "image")
        named = markup.text(f"image: {alt}" if alt else "image")
        linked = None if self._open else markup.link(target, named)
        return linked or f'<span class="unlinked">{named} ({markup.text(target)})</span>'


def picture(media: str, data: str, alt: str) -> str:
    """`data` is valid base64, `media` an image type that cannot run code."""
    return (
        f'<button type="button" class="zoom"><img loading="lazy" alt="{markup.attr(alt)}"'
        f' src="data:{media};base64,{data}"></button>'
    )


def code(source: str, family: str | None) -> str:
    """`source` is clean and escaped."""
    return f'<pre class="code" tabindex="0"><code>{highlight.coloured(source, family)}</code></pre>'


def _code(fence: re.Match[str]) -> str:
    given = _attributes(fence[1])
    source = fence[2].replace("&quot;", '"')
    language = unescape(given.get("class", "")).removeprefix("language-")
    family = highlight.family(language)
    caption = f"{language} {unescape(given.get('data-meta', ''))}".strip()
    named = f'<div class="caption">{markup.text(caption)}</div>' if caption else ""
    return named + code(source, family)


def _attributes(rest: str) -> dict[str, str]:
    return dict(_ATTRIBUTE.findall(rest)) if rest else {}


def _left_out(source: str, drawn: str) -> str:
    if set(_WORD.findall(source)) <= set(_WORD.findall(unescape(drawn))):
        return ""
    return markup.details("Original text", f'<pre class="out">{markup.text(source)}</pre>')
