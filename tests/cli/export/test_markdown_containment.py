"""Foreign Markdown stays contained: the text around it is parsed as before."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from sess_cli.render.markdown import code, escaped, fenced, prose, quoted

PIECES = (
    "```", "````py", "~~~", "</details>", "<details>", "<script>x</script>", "<!-- ", "-->",
    "<?php", "<![CDATA[", "- ", "1. ", "> ", "    ", "\t", "\n", "\n\n", "text", "# head", "===",
    "---", "`", "[x](javascript:a)", "\\", "<", ">", "|a|b|\n|-|-|", "<img src=x\n", "onerror=1>",
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
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse("\n".join(lines))
    inner = [one for token in tokens for one in (token, *(token.children or ()))]
    told = [one.content.strip() for one in inner if one.type in ("html_block", "html_inline")]
    assert told == [BEFORE, AFTER]
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
    ],
)
@pytest.mark.parametrize("writer", ["prose", "quoted"])
def test_what_once_broke_out(writer, text):
    check(writer, text)


def test_code_in_a_list_keeps_its_language():
    assert [*prose("- a\n  ```py title=x\n  1 < 2\n  ```\nb")] == [
        "- a", "```py", "  1 < 2", "```", "b",
    ]  # fmt: skip
