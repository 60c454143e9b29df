"""Events for tests of exports, and the tags and attributes of their HTML."""

from __future__ import annotations

from collections.abc import Sequence
from html.parser import HTMLParser
from typing import Any

from sess_cli.export.html.cards import Drawer
from sess_cli.export.story import Item
from sess_schema.edits import with_hunks
from sessiond.sources.claude import calls as claude
from sessiond.sources.cursor import summaries as cursor

VOID = frozenset({"br", "hr", "img"})
TAGS = frozenset({
    "a", "article", "b", "bdi", "blockquote", "br", "button", "code", "dd", "del",
    "details", "div", "dl", "dt", "em", "h2", "h3", "h4", "h5", "h6", "header", "hr", "i", "img",
    "ins", "li", "ol", "p", "pre", "section", "span", "strong", "summary", "table", "tbody", "td",
    "th", "thead", "time", "tr", "ul",
})  # fmt: skip
ATTRIBUTES = frozenset({
    "alt", "aria-hidden", "aria-label", "class", "data-kind", "data-l", "data-n",
    "data-session", "data-status", "data-tool", "data-ts", "datetime", "dir", "href", "id",
    "loading", "rel", "role", "src", "start", "tabindex", "title", "type",
})  # fmt: skip


def item(type_: str = "assistant", /, **given: Any) -> Item:
    return Item(**{"type": type_, "id": 1, "number": 0, "key": "k1", "summary": "", **given})


def call(
    tool: str, given: Any = None, output: str = "", patch: Sequence[Any] = (), **more: Any
) -> Item:
    """A call as the index has it; `patch` is the patch in its result."""
    described = claude.describe(tool, given)
    if described.kind == "other":
        described = cursor.describe(tool, given)
    facts = {
        "tool": tool, "given": given, "output": output, "status": "ok",
        "kind": described.kind, "edits": [*with_hunks(described.edits, tuple(patch))],
    }  # fmt: skip
    return item("tool_use", **{**facts, **more})


def drawn(event: Item) -> str:
    return Drawer(utc=True).card(event)


def body(event: Item) -> str:
    """What the card shows below its header."""
    html = drawn(event)
    assert html.endswith("</article>")
    _, found, inside = html.partition('</header><div class="body">')
    return inside.removesuffix("</div></article>") if found else ""


class Looked(HTMLParser):
    """Reads HTML as strictly as its writer must write it."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.links: list[str] = []
        self.said: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert not self._open, self._open

    @property
    def text(self) -> str:
        return "".join(self.said)

    def handle_starttag(self, tag, attrs):
        assert tag in TAGS, tag
        self.tags.append(tag)
        for name, value in attrs:
            assert name in ATTRIBUTES, (tag, name)
            assert value is not None, (tag, name)
            if name == "href":
                assert tag == "a"
                self.links.append(value)
                assert value.lower().startswith(("http://", "https://", "mailto:", "#")), value
            if name == "src":
                media = ("image/png", "image/jpeg", "image/gif", "image/webp")
                assert tag == "img"
                assert value.startswith(tuple(f"data:{one};base64," for one in media)), value
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        raise AssertionError(tag, attrs)

    def handle_endtag(self, tag):
        assert self._open, tag
        assert self._open.pop() == tag, tag

    def handle_data(self, data):
        self.said.append(data)

    def handle_comment(self, data):
        raise AssertionError(data)

    handle_decl = handle_pi = unknown_decl = handle_comment
