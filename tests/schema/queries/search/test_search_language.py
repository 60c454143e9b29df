"""How queries are understood."""

from __future__ import annotations

import apsw
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.at_length import amount

from sess_common.errors import SessError
from sess_schema.queries import fields
from sess_schema.queries.fields import Condition, Setting
from sess_schema.queries.search import TOKENIZER, language
from sess_schema.queries.search.engine import tokenizer
from sess_schema.queries.search.language import And, Filter, Not, Or
from sess_schema.queries.search.plan import plan
from sess_schema.queries.search.terms import Matching

DB = apsw.Connection(":memory:")
TOKENIZE = " ".join((TOKENIZER[0], *TOKENIZER[1]))
DB.execute(
    f"CREATE VIRTUAL TABLE words USING fts5 (text, input, output, marks, tokenize = '{TOKENIZE}')"
)
DB.execute("INSERT INTO words (text) VALUES ('go test is_error')")
SETTING = Setting(now=0)


def parse(text, mode="words", **how):
    def fault(one):
        return fields.fault(None, one.field, one.value, SETTING)

    return language.parse(text, tokenizer(DB), Matching(mode, **how), fault)


def planned(text, mode="words"):
    return plan(parse(text, mode), lambda one: Condition(f"{one.field}={one.value}"))


def shape(node):
    """A tree in short: terms as they stand, `~` for a beginning, a list for all, a set for any."""
    if isinstance(node, And):
        return [shape(child) for child in node.nodes]
    if isinstance(node, Or):
        return {"any": [shape(child) for child in node.nodes]}
    if isinstance(node, Not):
        return {"not": shape(node.node)}
    if isinstance(node, Filter):
        return f"{node.field}={node.value}"
    return node.text + "~" * node.prefix


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("flaky test", ["flaky", "test"]),
        ("flaky flaky", "flaky"),
        ('"flaky test"', "flaky test"),
        ('"flaky test', "flaky test"),
        ("fla*", "fla~"),
        ('"flaky te"*', "flaky te~"),
        ("flaky -test", ["flaky", {"not": "test"}]),
        ('flaky -"go test"', ["flaky", {"not": "go test"}]),
        ("what is sqlite?", ["what", "is", "sqlite"]),
        ("a OR b", {"any": ["a", "b"]}),
        ("a b OR c d", {"any": [["a", "b"], ["c", "d"]]}),
        ("a (b OR c) d", ["a", {"any": ["b", "c"]}, "d"]),
        ("a (b c)", ["a", "b", "c"]),
        ("a -(b OR c)", ["a", {"not": {"any": ["b", "c"]}}]),
        ("a AND b", ["a", "b"]),
        ("(a OR b", {"any": ["a", "b"]}),
        ("a OR", "a"),
        ("OR", "OR"),
        ("()", "()"),
        ("not or and", ["not", "or", "and"]),
        ("a NOT b", ["a", {"not": "b"}]),
        ("a AND NOT b c", ["a", {"not": "b"}, "c"]),
        ('a NOT "b c"', ["a", {"not": "b c"}]),
        ("a NOT (b OR c)", ["a", {"not": {"any": ["b", "c"]}}]),
        ("a NOT go", ["a", {"not": "go"}]),
        ("a NOT", ["a", "NOT"]),
        ("(a NOT)", ["a", "NOT"]),
        ("NOT NULL constraint", ["NOT", "NULL", "constraint"]),
        ("NOT a", "a"),
        ("foo.bar()", "foo.bar()"),
        ("(foo.bar() OR main(argc, argv))", {"any": ["foo.bar()", ["main(argc", "argv)"]]}),
        ("argv)", "argv)"),
        ("ls | wc", ["ls", "wc"]),
        ("|", "|"),
        ("-flaky", "flaky"),
        ("rm -rf /tmp/x", ["rm", "-rf", "/tmp/x"]),
        ("tail -100 log", ["tail", "-100", "log"]),
        ("go test -run Foo ./...", ["go", "test", "-run", "Foo", "./..."]),
        ("ls -name x | wc", ["ls", "-name", "x", "wc"]),
        ("--no-verify", "--no-verify"),
        ("git commit --no-verify -amend", ["git", "commit", "--no-verify", "-amend"]),
        ("tool:Bash error", ["tool=Bash", "error"]),
        ("-tool:Bash error", [{"not": "tool=Bash"}, "error"]),
        ('project:"my dir" x', ["project=my dir", "x"]),
        ("tool:Bash tool:Edit x", [{"any": ["tool=Bash", "tool=Edit"]}, "x"]),
        ("is:error is:subagent", ["is=error", "is=subagent"]),
        ("tool:Bash", "tool=Bash"),
        ("std::vector", "std::vector"),
        ("type:int x", ["type:int", "x"]),
        ("http://x.y", "http://x.y"),
        ("file:///etc/hosts", "file:///etc/hosts"),
        ("since:someday", "since:someday"),
        ('foo:"a b"', ["foo", "a b"]),
        ("tool:", "tool"),
        ("3f2a9c1", "3f2a9c1~"),
        ("1234567", "1234567~"),
        ("123456", "123456"),
        ("facade", "facade"),
        ("a1b2c3d4-e5f6", "a1b2c3d4-e5f6~"),
        ('"3f2a9c1"', "3f2a9c1"),
        ('a"b', ["a", "b"]),
        ("@dataclass", "@dataclass"),
    ],
)
def test_a_query_means(text, expected):
    """Each form is understood as people of other search boxes expect it."""
    assert shape(parse(text).tree) == expected


@pytest.mark.parametrize(
    ("text", "match", "compared"),
    [
        ("flaky", '("flaky")', False),
        ("flaky test", '((("flaky" AND "test") OR "flaky test"))', False),
        ("flaky -test -x", None, True),
        ('flaky -test -"go test"', '(("flaky") NOT ("test" OR "go test"))', False),
        ("is_error", '(("is_error" OR "is\ue000error"))', True),
        ("go test ./...", '((("go" AND "test") OR "go test"))', True),
        ("C++", '("C++")', True),
        ("flaky -foo.bar", '("flaky")', True),
        ("flaky 日本", '("flaky")', True),
        ("=>", None, True),
        ("日本語", None, True),
        ("a OR b", '(("a" OR "b"))', False),
        ("a OR tool:Bash", None, False),
        ("(a OR b) tool:Bash", '(("a" OR "b"))', False),
        ("a (b OR foo.bar)", '("a" AND ("b" OR "foo.bar"))', True),
    ],
)
def test_the_index_narrows(text, match, compared):
    """What FTS5 is asked, and whether the texts must be compared after it."""
    made = planned(text)
    if text != "flaky -test -x":  # -x is a flag
        assert made.match == match
    assert (made.residual is not None) is compared


@pytest.mark.parametrize("text", ["", "  ", '""', '"', '-""', "\0"])
@pytest.mark.parametrize("mode", ["words", "substring", "tools"])
def test_an_empty_query_is_a_usage_error(text, mode):
    """Nothing to look for is not everything."""
    if mode == "tools" and '"' in text:
        return  # there it is a text like any other
    with pytest.raises(SessError) as caught:
        parse(text, mode)
    assert (caught.value.message, caught.value.code) == ("nothing to search for", 2)


@pytest.mark.parametrize("text", ["(", "a{2,1}", "*", "(?P<a", "[z-a]", r"\1"])
def test_a_faulty_expression_is_a_usage_error(text):
    """It says what is wrong with what was typed."""
    with pytest.raises(SessError, match="invalid regular expression") as caught:
        parse(text, "regex")
    assert caught.value.code == 2


@settings(max_examples=amount(133, 1200))
@given(
    st.one_of(st.text(), st.text(alphabet='ab"*-()^:{}+\\\0\ud800 \nORis日é́', max_size=60)),
    st.sampled_from(["words", "substring"]),
)
@example('" OR "', "words")
@example('a" NEAR("b"', "words")
@example("text:foo", "words")
@example("\udcff", "words")
@example("é̈*", "words")
@example("-" * 300, "words")
@example("(" * 5000 + "a", "words")
@example("(a OR " * 300, "words")
@example("-(" * 100 + "a b", "words")
def test_no_text_is_a_syntax_error(text, mode):
    """FTS5 accepts what any text becomes, exclusions and all."""
    try:
        made = planned(text, mode)
    except SessError:  # nothing to search for
        return
    if made.match is not None:
        DB.execute("SELECT count(*) FROM words WHERE words MATCH ?", (made.match,)).get  # noqa: B018


@pytest.mark.parametrize("word", ["word{} ", "-word{} ", '"a{} b" ', "x.y{} ", "(w{} OR v) "])
def test_ten_thousand_characters_are_a_query(word):
    """A pasted file is looked for, not refused."""
    text = "go " + "".join(word.format(number) for number in range(2000))
    match = planned(text[:10_000]).match
    assert DB.execute("SELECT count(*) FROM words WHERE words MATCH ?", (match,)).get in (0, 1)


def test_what_was_taken_otherwise_is_told():
    """A filter with an unknown value and a dash word that is a flag leave a note."""
    assert parse("type:int -x").notes == (
        'type:int is searched for as words: no such type: "int"',
        '-x is searched for as a flag; -"x" excludes the word',
    )
