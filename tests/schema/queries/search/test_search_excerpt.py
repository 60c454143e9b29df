"""The lines that show why something was found."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.waiting import lines_run

from sess_schema.queries.search import excerpt, language
from sess_schema.queries.search.terms import Matching


def words(query):
    return language.parse(query, str.split, Matching(), lambda _: "").wanted()


def marked(query, *texts, width=60):
    found = excerpt.best(texts, words(query), width)
    for begin, end in reversed(found.spans):
        found = excerpt.Excerpt(f"{found.text[:begin]}[{found.text[begin:end]}]{found.text[end:]}")
    return found.text


@pytest.mark.parametrize(
    ("query", "text", "expected"),
    [
        ("retry", "The Retry failed", "The [Retry] failed"),
        ("try", "retry try tryst", "retry [try] tryst"),
        ("ret*", "retry", "[retry]"),
        ('"a b"', "x a,  b y", "x [a, b] y"),
        ('"css class"', "set css_class to", "set [css_class] to"),
        ("is_error", "the is_error flag", "the [is_error] flag"),
        ("foo.bar()", "call foo.bar() now", "call [foo.bar()] now"),
        ("a b", "b\n\n\ta", "[b] [a]"),
        ("c", "a_c and abc", "a_[c] and abc"),
        ("straße", "DIE STRASSE straße İİ", "DIE STRASSE [straße] İİ"),
    ],
)
def test_the_words_are_marked(query, text, expected):
    """Whole words whatever their case; terms with punctuation as they were typed."""
    assert marked(query, text) == expected


def test_the_place_with_the_most_words_wins():
    """A window that has both words is better than an earlier one that has one."""
    text = "alpha " + "filler " * 100 + "beta then alpha " + "filler " * 100
    assert "[beta] then [alpha]" in marked("alpha beta", text)


def test_the_text_with_the_most_words_wins():
    """What was said comes before what a tool printed, unless that matches better."""
    assert marked("a b", "a here", "b and a") == "[b] and [a]"
    assert marked("a", "a said", "a printed") == "[a] said"


def test_without_a_visible_match_the_answer_is_shown():
    """A hit by a mark shows the output, which tells what failed."""
    assert marked("is_error", "", "pytest", "Exit code 1\nboom") == "Exit code 1 boom"


def test_a_word_deep_in_megabytes_is_shown_fast():
    """Five megabytes before the match take no more steps than a hundred words."""

    def shown(words):
        text = "lorem ipsum dolor " * words + "needle in hay"
        assert marked("needle", text).endswith("[needle] in hay")

    shown(1)  # what is made once is made
    assert lines_run(lambda: shown(300_000)) == lines_run(lambda: shown(100))


@given(
    st.text(alphabet="ab \n\t日éİ.", max_size=300),
    st.text(alphabet="ab日.", min_size=1, max_size=3),
    st.integers(8, 80),
)
def test_an_excerpt_is_one_line_with_its_marks_inside(text, word, width):
    """Whatever the text: no line breaks, bounded length, spans in order and in range."""
    found = excerpt.best([text], words(word), width)
    assert "\n" not in found.text
    assert len(found.text) <= width + 60
    at = 0
    for begin, end in found.spans:
        assert at <= begin < end <= len(found.text)
        at = end
