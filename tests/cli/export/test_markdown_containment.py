"""Foreign Markdown stays contained: the text around it is parsed as before."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from sess_cli.render.markdown import code, escaped, fenced, in_html, prose, quoted

PIECES = (
    "```", "````py", "~~~", "</details>", "<details>", "<script>x</script>", "<!-- ", "-->",
    "<?php", "<![CDATA[", "- ", "1. ", "> ", "    ", "\t", "\n", "\n\n", "text", "# head", "===",
    "---", "`", "[x](javascript:a)", "\\", "<", ">", "|a|b|\n|-|-|", "<img src=x\n", "onerror=1>",
    "![i](http://h/i)", "[x]: javascript:a\n", "[x]", "![x]", "`` ` ``",
    "<javascript:a>", "](", "[a](\n",
    "- a\n  ```", "\n   ```", "\ncode\n", "\x0b", "\u2028", "1. b\n   ~~~",
)  # fmt: skip
WRITERS = {
    "prose": lambda text: [*prose(text), ""],
    "quoted": quoted,
    "fenced": fenced,
    "code": lambda text: [f"- {code(text)}", ""],
    "escaped": lambda text: [f"## {escaped(text)}", ""],
}
BEFORE, AFTER = "<details><summary>Output</summary>", "</details>"


def check(writer, text):
    """The same tokens around it, and only our own HTML."""
    lines = [BEFORE, "", *WRITERS[writer](text), AFTER, "", "The end."]
    parser = MarkdownIt("commonmark", {"html": True}).enable("table")
    parser.validateLink = lambda url: True  # type: ignore[method-assign]  # noqa: ARG005
    tokens = parser.parse("\n".join(lines))
    inner = [one for token in tokens for one in (token, *(token.children or ()))]
    told = [one.content.strip() for one in inner if one.type in ("html_block", "html_inline")]
    assert told == [BEFORE, AFTER]
    assert not any(one.type == "image" for one in inner)
    assert not any("script:" in str(one.attrGet("href")) for one in inner)
    assert (tokens[-2].content, tokens[-2].level) == ("The end.", 1)


@pytest.mark.parametrize("writer", WRITERS)
@given(pieces=st.lists(st.sampled_from(PIECES), max_size=12))
def test_nothing_breaks_out(writer, pieces):
    check(writer, "".join(pieces))


@pytest.mark.parametrize(
    "text",
    [
        "# head</details><script>x</script>",
        "- a\n  ```py\n  never ends",
        "- a\n  ```\ncode\n```",
        "- a\n  ```|a|b|\n|-|-|-",
        "- a\n   ```\n    ```",
        "\t```\n<script>x</script>",
        "]([x](javascript:a)",
    ],
)
@pytest.mark.parametrize("writer", ["prose", "quoted"])
def test_what_once_broke_out(writer, text):
    check(writer, text)


def test_code_in_a_list_keeps_its_language():
    assert [*prose("- a\n  ```py title=x\n  1 < 2\n  ```\nb")] == [
        "- a", "```py", "  1 < 2", "```", "b",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "inert"),
    [
        ("![x](http://h/a.png)", "[image: x](http://h/a.png)"),
        ("see <img src=http://h/a> here", "see &lt;img src=http://h/a> here"),
        ("[a](javascript:x) [b](https://ok.example) [c](src/a.py#L3)",
         "[a]\\(javascript:x) [b](https://ok.example) [c](src/a.py#L3)"),
        ("[a](java&#115;cript:x) <vbscript:x>", "[a]\\(java&#115;cript:x) &lt;vbscript:x>"),
        ("[a]: javascript:x", "[a]\\: javascript:x"),
        ("[a]:\njavascript:x", "[a]\\:\njavascript:x"),
        ("thanks @ada, see @types/node, not me@h.example",
         "thanks `@ada`, see `@types/node`, not me@h.example"),
        ("This fixes #12 and closes o/r#3", "This fixes `#12` and closes `o/r#3`"),
        ("Resolves: https://h.example/o/r/issues/12", "Resolves: `https://h.example/o/r/issues/12`"),
        ("/close\n/usr/bin/env", "\\/close\n/usr/bin/env"),
        ("```mermaid\na @b\n```", "```text\na @b\n```"),
        ("`@ada <b> #1` and ``a ` <b>``", "`@ada <b> #1` and ``a ` <b>``"),
        # what seems to be code here may be none in a table, or where the line before began some
        ("` a | <img src=x> ` b | `", "` a | &lt;img src=x> ` b | `"),
        ("`\n` <img src=x> `", "`\n` &lt;img src=x> `"),
    ],
)  # fmt: skip
def test_nothing_happens_where_it_is_read(text, inert):
    """No image loads, no script runs, nobody is told, no issue closes; code stays as it is."""
    assert "\n".join(prose(text)) == inert


def test_titles_tell_nobody_either():
    assert escaped("Fix #12 for @ada") == "Fix `#12` for `@ada`"
    assert in_html("Fix #12 for @ada <b>") == (
        "Fix <code>#12</code> for <code>@ada</code> &lt;b&gt;"
    )
