"""Reading every text: whatever was screened, joined or sorted on the way, the same is found."""

from __future__ import annotations

import re

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.at_length import amount
from tests.schema.queries.search.search_oracle import Index
from tests.schema.queries.search.test_search_oracle import letters, patterns
from tests.schema.queries.search.test_search_pages import QUERIES

from sess_schema.queries.search import Search, newest, screen
from sess_schema.queries.search.regex import regex
from sess_schema.queries.search.terms import Matching, Term, occurs

BLANK = apsw.Connection("")


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    with Index(tmp_path_factory.mktemp("corpus")) as index:
        yield index


def screened(pattern: str, events: list[list[str]], *, case: bool = False, most: int = 128):
    """Which events pass, which of them without comparison, and which ones Python accepts."""
    found = regex(pattern, Matching("regex", case=case))
    if found.screen is None:
        pytest.skip("without RE2")
    rows = [(n, None, "\n".join(texts).encode(), 1) for n, texts in enumerate(events)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(screen, "_MOST", most)
        passed = [(row[0], sure) for row, sure in found.screen.passed(iter(rows))]
    right = [n for n, texts in enumerate(events) if occurs(found, texts)]
    numbers = [n for n, _ in passed]
    assert numbers == sorted(set(numbers))
    assert set(right) <= set(numbers), pattern
    assert {n for n, sure in passed if sure} <= set(right), pattern
    return passed, right


EVENTS = [
    ["error", "", ""],
    ["", "", ""],
    ["a", "b", "c"],
    ["", "a b", "a\nb"],
    ["err", "or", ""],
    ["", "", "error\n"],
    ["x" * 3000, "", "y" * 3000 + "error"],
    ["\n", "\r\n", "\t"],
    ["ERROR", "\u212a", "\u0130"],
    ["é error é", "日本", "\ufffd"],
    ["aab", "", "1234"],
]


@pytest.mark.parametrize("most", [1, 2, 3, 128])
@pytest.mark.parametrize(
    "pattern",
    [
        r"error", r"^error$", r"\Aerror\Z", r"\berror\b", r"err\s*or", r"a\sb", r"a[^x]b",
        r"(?s)a.b", r"(?s)a.+c", r"a$\n^b", r"^$", r"^\s*$", r"$", r"", r"c\s+", r"\s+e", r"(a)\1b",
        r"a(?=b)", r"(?<!a)b", r"(?-m:^b)", r"(?-m:a$)", r"[^a-z]", r"k", r"i", r"[^\n]{9}",
        r"x{2000,}\Z", r"y{1001,}e", r"(?>a+)b", r"a++b", r"a??", r"error|", r"\d{4}", r"(?a)\w+",
        r"é", r"[^é]\n", r".\Z", r"\W\w", r"(?x) err  or", r"\x00", r"\ufffd",
    ],
)  # fmt: skip
def test_texts_are_told_apart(pattern, most):
    """Many texts are searched as one, and nothing is found between two of them."""
    screened(pattern, EVENTS, most=most)


def test_long_texts_are_searched_few_at_once():
    """As many as would fill the memory are never joined."""
    long = ["", "", "y" * 3_000_000 + "error"]
    passed, _ = screened("error", [*EVENTS, *[long] * 9, *EVENTS])
    assert sum(sure for _, sure in passed) == 9 + 2 * 5


def test_plain_expressions_need_no_comparison():
    """What RE2 finds in a line of ASCII is what Python finds."""
    for pattern in ("error", "^err[aeo]r$", "e.*r", r"(?:a|b){2}b", "a+?b", r"\d+", '[^" \n]{5}'):
        passed, right = screened(pattern, EVENTS)
        assert right
        assert [n for n, sure in passed if sure] == right


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Possible")
@settings(max_examples=amount(166, 1500), deadline=None, derandomize=True)
@given(
    patterns,
    st.lists(st.lists(st.text(letters, max_size=8), min_size=3, max_size=3), max_size=8),
    st.booleans(),
    st.sampled_from([1, 2, 128]),
)
def test_what_is_sure_matches(pattern, events, case, most):
    """No expression finds more without comparison than with it."""
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return
    screened(pattern, events, case=case, most=most)


@pytest.mark.slow
@settings(max_examples=amount(333, 3000), deadline=None, derandomize=True)
@given(st.text(letters, min_size=1, max_size=4), st.lists(st.text(letters, max_size=12)))
def test_like_is_necessary_or_enough(needle, texts):
    """Each of the two patterns of a part of a word, against what lowering both finds."""
    term = Term(needle, (), matching=Matching("substring"))
    for text in (*texts, needle, needle.upper(), needle.lower(), *(t + needle for t in texts)):
        like, enough = (
            pattern and BLANK.execute("SELECT ? LIKE ? ESCAPE '\\'", (text, pattern)).get
            for pattern in (term.like, term.enough)
        )
        if occurs(term, [text]):
            assert like in (None, 1), (needle, text)
        else:
            assert not enough, (needle, text)


def test_a_long_needle_is_compared():
    """SQLite limits a pattern, so that its beginning is not enough."""
    assert Term("x" * 499, (), matching=Matching("substring")).enough is not None
    for text in ("x" * 501, "x" * 499 + "%", "%" * 251):
        assert Term(text, (), matching=Matching("substring")).enough is None


@pytest.mark.parametrize(("text", "options"), [*QUERIES, ("日本 é", {"mode": "substring"})])
@pytest.mark.parametrize("sort", ["newest", "oldest"])
def test_what_is_sorted_later_comes_in_order(index, monkeypatch, text, options, sort):
    """Wherever reading by time ends, and on every page."""
    right = index.found(text, sort=sort, **options)
    for first in (1, 7, 40):
        monkeypatch.setattr(newest, "_FIRST", first)
        check_pages(index, right, text, sort=sort, **options)


def check_pages(index, right, text, *, sort, **options):
    assert index.found(text, sort=sort, **options) == right
    got, cursor = [], None
    while True:
        results = Search(text, limit=9, sort=sort, cursor=cursor, **options).results(index.db)
        page = [hit.event for hit in results.hits()]
        got += page
        if len(page) < 9:
            break
        cursor = results.cursor()
    assert got == right
