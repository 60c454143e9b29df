"""Markdown on a terminal."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.must import must

from sess_cli.render import prose

CODE = re.compile(r"\x1b\[[\d;]*m")
MARKS = [
    *("# ", "## ", "- ", "1. ", "> ", "    ", "```\n", "\n~~~", "**", "*", "_", "`", "\\", " "),
    *("| ", "|---|", "\n| ", "|\n|-|-|\n|", "<b>", "<!--", "-->", "](x)", "[", "![", "]: y"),
    *("\n", "\n\n", "---\n", "&amp;"),
]
pieces = st.sampled_from(MARKS)


def plain(text, width=78):
    return [CODE.sub("", line) for line in must(prose.lines(text, width))]


def test_marks_become_looks():
    """Headings, emphasis, code, lists and tables are drawn; line ends stay."""
    text = "# One\n**bold** `code`\nsecond\n\n- item\n\n```sh\nmake  it\n```\n\n|a|b|\n|-|-|\n|1|2|"
    title, _, first, second, *rest = must(prose.lines(text, 78))
    assert title == "\x1b[1;4mOne\x1b[0m"
    assert first == "\x1b[1mbold\x1b[0m \x1b[36mcode\x1b[0m"
    assert second == "second"
    seen = [CODE.sub("", line).strip() for line in rest]
    assert [line for line in seen if line and not set(line) <= set("─-")] == [
        "• item", "sh", "make  it", "a  b", "1  2",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "a <b>tag</b> <!-- note -->",
        "[name]: http://x",
        "&lt; &#27;[31m",
        "snake_case_name",
        "2 * 3",
    ],
)
def test_what_has_no_form_stays_as_it_was_written(text):
    """HTML, targets of references and entities are text."""
    assert plain(text) == [text]


def test_a_picture_keeps_its_address():
    """A terminal shows none."""
    assert plain("![alt](a.png)") == ["!alt (a.png)"]


def test_no_control_character_comes_out_of_an_address():
    """Entities in addresses are decoded by Markdown, not on the terminal."""
    assert not any("\x1b" in line for line in plain("[x](<&#27;]0;owned&#7;>) <http://a&#27;b>"))


@given(st.lists(pieces, max_size=12))
def test_no_word_is_lost(marks):
    """Whatever marks stand between them, all words are drawn, or the text is left as it is."""
    words = [f"w{n}w" for n in range(len(marks))]
    text = "".join(f"{mark}{word}" for mark, word in zip(marks, words, strict=True))
    drawn = prose.lines(text, 400)
    seen = "".join(CODE.sub("", line) for line in drawn or [text])
    assert [word for word in words if word not in seen] == []


@pytest.mark.parametrize(
    "text", ["> " * 50 + "deep", "- " * 50 + "deep", "|a|\n|-|\n|1|extra|", "[a](b 'title')"]
)
def test_what_would_lose_a_word_is_left_alone(text):
    """Markdown drops what is nested deeply, cells without a column, and titles of links."""
    assert prose.lines(text, 78) is None


def test_long_words_are_folded():
    """None sticks out."""
    assert plain("**" + "x" * 100 + "**", 60) == ["x" * 60, "x" * 40]


def test_answers_are_drawn_on_a_terminal_with_colours_only(story, sess):
    """Elsewhere Markdown stays as it was written."""
    drawn, _ = sess.on_terminal("show", "--no-sync", "1111", colour=True)
    assert "I will run \x1b[1mthe tests\x1b[0m first." in drawn
    assert "I will run **the tests** first." in sess.on_terminal("show", "--no-sync", "1111")[0]
    assert "I will run **the tests** first." in sess("show", "1111").stdout
