"""How queries are understood."""

from __future__ import annotations

import apsw
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sess_schema.errors import SessError
from sess_schema.queries import language
from sess_schema.queries.search import TOKENIZER, tokenizer

DB = apsw.Connection(":memory:")
TOKENIZE = " ".join((TOKENIZER[0], *TOKENIZER[1]))
DB.execute(f"CREATE VIRTUAL TABLE words USING fts5 (text, tokenize = '{TOKENIZE}')")
DB.execute("INSERT INTO words VALUES ('go test is_error')")


def parse(text):
    return language.parse(text, tokenizer(DB))


@pytest.mark.parametrize(
    ("text", "expression", "verified"),
    [
        ("flaky test", '("flaky" AND "test")', []),
        ("flaky flaky", '("flaky")', []),
        ('"flaky test"', '("flaky test")', []),
        ('"flaky test', '("flaky test")', []),
        ("fla*", '("fla"*)', []),
        ('"flaky te"*', '("flaky te"*)', []),
        ("flaky -test", '("flaky") NOT ("test")', []),
        ('flaky -"go test" -x', '("flaky") NOT ("go test" OR "x")', []),
        ("what is sqlite?", '("what" AND "is" AND "sqlite")', []),
        ("is_error", '("is_error")', ["is_error"]),
        ("go test ./...", '("go" AND "test")', ["./..."]),
        ("foo.bar()", '("foo.bar()")', ["foo.bar()"]),
        ("C++", '("C++")', ["C++"]),
        ("--no-verify", '("--no-verify")', ["--no-verify"]),
        ("ls | wc", '("ls" AND "wc")', []),
        ("flaky -foo.bar", '("flaky")', ["foo.bar"]),
        ("-rf", '("rf")', []),
        ("flaky 日本", '("flaky")', ["日本"]),
        ("=>", None, ["=>"]),
        ("|", None, ["|"]),
        ("日本語", None, ["日本語"]),
        ("AND OR NOT NEAR(a b)", None, None),
        ('a"b', '("a" AND "b")', []),
    ],
)
def test_a_query_means(text, expression, verified):
    """Each form becomes the FTS5 query that it should, and says what must be verified."""
    query = parse(text)
    if verified is None:
        assert (query.expression() or "").startswith('("AND" AND "OR" AND "NOT"')
        return
    assert query.expression() == expression
    assert [term.text for term in query.verified] == verified


@pytest.mark.parametrize("text", ["", "  ", '""', '"', '-""', "\0"])
def test_an_empty_query_is_a_usage_error(text):
    """Nothing to look for is not everything."""
    with pytest.raises(SessError) as caught:
        parse(text)
    assert (caught.value.message, caught.value.code) == ("nothing to search for", 2)


@settings(max_examples=400)
@given(st.one_of(st.text(), st.text(alphabet='ab"*-()^:{}+\\\0\ud800 \n日é́', max_size=40)))
@example('" OR "')
@example('a" NEAR("b"')
@example("text:foo")
@example("\udcff")
@example("é̈*")
@example("-" * 300)
def test_no_text_is_a_syntax_error(text):
    """FTS5 accepts what any text becomes, exclusions and all."""
    try:
        query = parse(text)
    except SessError:  # nothing to search for
        return
    expression = query.expression()
    if expression is not None:
        DB.execute("SELECT count(*) FROM words WHERE words MATCH ?", (expression,)).get  # noqa: B018
    assert all(term.verified for term in query.wanted if not term.indexed)


@pytest.mark.parametrize("word", ["word{} ", "-word{} ", '"a{} b" ', "x.y{} "])
def test_ten_thousand_characters_are_a_query(word):
    """A pasted file is looked for, not refused."""
    text = "go " + "".join(word.format(number) for number in range(2000))
    expression = parse(text[:10_000]).expression()
    assert DB.execute("SELECT count(*) FROM words WHERE words MATCH ?", (expression,)).get in (0, 1)
