"""Whatever a transcript contains, a card has only known tags and runs nothing."""

from __future__ import annotations

import re
import sys
from dataclasses import fields

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.at_length import amount
from tests.cli.export.html.card_items import Looked, call, drawn, item

from sess_cli.export.html import prose
from sess_cli.export.html.cards import Drawer
from sess_cli.export.story import Commit, Item

PAYLOADS = [
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "</pre></code></div></article><img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)" x="',
    "' onfocus='alert(1)' autofocus='",
    "<svg/onload=alert(1)>",
    "<!-- --><!doctype html><![CDATA[ ]]> ]]>",
    "<?php echo 1 ?>",
    "<style>*{display:none}</style><base href=https://evil.example>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](&#x6A;&#x61;vascript:alert(1))",
    "[x](java\tscript:alert(1))",
    "[x](java%0ascript:alert(1))",
    "[x](\x01javascript:alert(1))",
    "[x](vbscript:msgbox(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "[x](//evil.example/x)",
    '[x](https://e.com/"onclick=alert(1))',
    '[x](https://e.com "t\\" onclick=\\"alert(1)")',
    "<javascript:alert(1)> <https://e.com/'onclick='x>",
    "[ref]\n\n[ref]: javascript:alert(1) 'title'",
    "![x](javascript:alert(1)) ![x](https://evil.example/p.png)",
    '![x"onerror=y](data:image/png;base64,aGk=)',
    '![x](data:image/svg+xml;base64,PHN2Zy8+) ![x](data:image/png;base64,"onerror=alert)',
    "```<b onclick=x>\n</code></pre><script>alert(1)</script>\n```",
    "```js\n\"<script>\" '</script>' // <img onerror>\n```",
    "| <b> | x |\n|-|-|\n| <script> | `</td>` | lost |",
    "\x1b[31m<b>\x1b]8;;javascript:alert(1)\x07link\x1b]8;;\x07\x1b[0m",
    "\x1b]0;title\x07\x9b31m\x90payload\x9c",
    "a\x00b\x07c\x7fd\x85e",
    "\u202egnp.exe\u202c \u2066x\u2069 \u200fy \ufeff",
    "\ud800 lone \udfff",
    "&lt;b&gt; &amp;#60; &#60;script&#62;",
    '{"a":"</script>","<b>":["\\u003cscript\\u003e"]}',
    '[{"title":"<b>","url":"javascript:alert(1)"}]',
    'Links: [{"title":"<b>","url":"javascript:alert(1)"}]',
    "    1→<b>x</b>\n    2→</pre>",
    '*** Begin Patch\n*** Update File: <b>\n@@ <i>\n-<script>\n+"\n*** End Patch',
    "<task-notification><summary><b onclick=x></summary></task-notification>",
    "%3Cscript%3E ${alert(1)} {{7*7}} $(id) `id`",
]  # fmt: skip
TOOLS = [
    "Bash", "Edit", "MultiEdit", "Write", "Read", "Grep", "Glob", "TodoWrite", "Task", "WebFetch",
    "WebSearch", "AskUserQuestion", "ExitPlanMode", "mcp__a__b", "NotebookEdit", "apply_patch",
    "run_terminal_cmd", "edit_file", "Unheard",
]  # fmt: skip
LABELS = [
    None, "command", "bash", "queued", "compact", "ai-title", "interrupted", "bash-output",
    "task-notification", "api_error", "unheard",
]  # fmt: skip


WORDY = [one.name for one in fields(Item) if one.type in ("str", "str | None")]


def arguments(said):
    """Every argument that any card reads, all with the same value."""
    return {
        "command": said, "description": said, "file_path": said, "old_string": said,
        "new_string": f"{said}!", "edits": [{"old_string": said, "new_string": "x"}],
        "content": said, "pattern": said, "path": said, "query": said, "url": said,
        "prompt": said, "plan": said, "todos": [{"content": said, "status": said}],
        "questions": [{"question": said, "header": said, "options": [
            {"label": said, "description": said}]}],
        said: {said: [said, None, 1.5]},
    }  # fmt: skip


def everywhere(said):
    """Cards with this text in each of their fields."""
    patch = [{"oldStart": 1, "newStart": 1, "lines": [f"-{said}", f"+{said}x", f" {said}"]}]
    for tool in [*TOOLS, said]:
        yield call(tool, arguments(said), said, patch=patch, summary=said,
                   commits=[Commit(said, said, said)], key=said)  # fmt: skip
        yield call(tool, arguments(said), said, status="error", summary=said)
    for name, value in arguments(said).items():
        yield call("Edit", {name: value}, said, status=said)
    yield call("Bash", said, said)
    for name in WORDY:
        yield item("tool_use", **{"tool": "Bash", "given": arguments(said), name: said})
    yield call("Unheard", [said], said)
    for kind in ("user", "assistant", "thinking", said):
        yield item(kind, text=said)
    for label in [*LABELS, said]:
        yield item("user", label=label, text=said)
        yield item("system", label=label, text=said)
        yield item("system", label=label, text=said, unknown={said: [said, {"type": said}]})
        yield item("summary", label=label, text=said)


@pytest.mark.parametrize("said", PAYLOADS)
def test_only_known_tags_attributes_and_schemes_come_out(said):
    drawer = Drawer()
    for event in everywhere(said):
        html = drawer.card(event, said)
        Looked(html)
        assert html.encode()  # no lone surrogate
        assert not set("\x00\x07\x1b\x7f\x85\x9b\u202e\u202c\u2066\u200f\ufeff") & set(html)


@pytest.fixture(params=["comrak", "markdown-it-py"])
def renderer(request, monkeypatch):
    """The fast Markdown renderer, and its fallback."""
    if request.param != "comrak":
        monkeypatch.setitem(sys.modules, "comrak", None)
    prose._renderer.cache_clear()
    yield request.param
    prose._renderer.cache_clear()


@pytest.mark.parametrize("said", PAYLOADS)
def test_no_renderer_lets_anything_live_through(said, renderer):
    """Alone, in a list, in a table, in a quotation: only known tags, and links to the web."""
    for source in (
        said,
        f"- {said}",
        f"> # {said}",
        f"| a |\n|-|\n| {said} |",
        f"[{said}]({said})",
    ):
        html = prose.html(source)
        Looked(html)
        assert "javascript:" not in "".join(re.findall('(?:href|src)="[^"]*"', html)).lower()


def test_refused_links_are_shown_as_text():
    said = Looked(drawn(item(text="[click](javascript:alert(1)) and [file](src/a.py)"))).text
    assert "click (javascript:alert(1)) and file (src/a.py)" in said


def test_turned_text_is_made_visible():
    assert "a&lt;U+202E&gt;b" in drawn(item("user", label="command", text="/x a\u202eb"))


NESTED = {
    "quotes": ">" * 30_000 + "x",
    "lists": "\n".join("  " * n + "- x" for n in range(300)),
    "numbered": "1. " * 10_000 + "x",
    "brackets": "[" * 30_000,
    "links": "[a](" * 10_000,
    "images": "![[" * 10_000,
    "stars": "*a **b " * 10_000,
    "backticks": " ".join("`" * n for n in range(1, 300)),
    "angles": "<" * 30_000,
    "entities": "&#x" * 10_000,
    "pipes": "|" * 30_000 + "\n|-|\n" + "|" * 30_000,
    "definitions": "[a]: b\n" * 5_000,
    "quotation marks": "```py\n" + "'\\" * 20_000 + "\n```",
    "comments": "```js\n" + "/* " * 10_000 + "\n```",
    "triples": "```py\n" + "'''\"\"\"" * 5_000 + "\n```",
    "json": "[" * 900 + "]" * 900,
    "escapes": "\x1b[31m" * 20_000,
    "colours": "".join(f"\x1b[{n % 200}mx" for n in range(20_000)),
    "returns": "x\r" * 20_000,
}


@pytest.mark.parametrize("name", NESTED)
def test_deep_and_repeated_markup_is_drawn_flat_and_soon(name):
    said = NESTED[name]
    for event in (item(text=said), item("thinking", text=said), call("X", {"a": said}, said),
                  call("Bash", {"command": said}, said), call("WebFetch", None, said),
                  call("Write", {"file_path": "a.js", "content": said})):  # fmt: skip
        looked = Looked(drawn(event))
        assert len(looked.tags) < 60_000


def test_every_field_of_an_event_is_covered_here():
    """A new field of words is planted with payloads; one of another shape has to be added above."""
    plain = {"str", "int", "EventId", "RecordId", "SessionId", "None"}
    assert {one.name for one in fields(Item) if not {*one.type.split(" | ")} <= plain} == {
        "given", "edits", "pictures", "commits", "spent", "agent", "files", "unknown", "damaged",
        "place", "result_place",
    }  # fmt: skip


WORDS = st.text(
    st.sampled_from("<>&\"'`*_[]()|~#!-+=\\/:;{}\x1b\x00\x9b\u202e\ud800 \t\r\nab0é→"), max_size=80
) | st.text(max_size=40)
VALUES = st.recursive(
    WORDS | st.none() | st.booleans() | st.integers() | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)
KNOWN = st.sampled_from([*arguments("x")])


@settings(max_examples=amount(50, 450), deadline=None)
@given(
    st.sampled_from(TOOLS) | WORDS,
    VALUES | st.dictionaries(KNOWN, VALUES, max_size=4),
    WORDS,
    st.sampled_from(["ok", "error", "denied", "pending"]) | WORDS | st.none(),
    st.none() | st.integers(),
)
def test_any_call_is_well_formed(tool, given_, output, status, moment):
    Looked(drawn(call(tool, given_, output, status=status, summary=output, ts=moment)))


@settings(max_examples=amount(50, 450), deadline=None)
@given(st.sampled_from(["user", "assistant", "thinking", "system", "summary"]) | WORDS,
       st.sampled_from(LABELS) | WORDS, WORDS)  # fmt: skip
def test_any_saying_is_well_formed(kind, label, said):
    Looked(drawn(item(kind, label=label, text=said)))


@settings(max_examples=amount(50, 450), deadline=None)
@given(st.text(st.sampled_from("ab|-:[]() \n>*#`1."), max_size=120))
def test_no_letter_of_a_markdown_text_is_lost(said):
    """If Markdown drops words, the source follows."""
    looked = Looked(drawn(item(text=said)))
    shown = looked.text + "".join(looked.links)
    for word in "".join(c if c.isalpha() else " " for c in said).split():
        assert word in shown
