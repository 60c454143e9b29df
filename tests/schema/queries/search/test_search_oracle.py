"""Search against brute force: each mode finds exactly the events that it must, each once."""

from __future__ import annotations

import random
import re
from contextlib import closing

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.at_length import amount
from tests.schema.queries.search.search_corpus import DEEP, SYNTAX, TERMS, WORDS
from tests.schema.queries.search.search_oracle import (
    Ask,
    Index,
    combined,
    excluding,
    expression,
    in_a_tool,
    part,
    term,
)

from sess_schema.connection import open_reader
from sess_schema.queries.search import Search
from sess_schema.queries.search.regex import regex
from sess_schema.queries.search.terms import Matching

pytestmark = pytest.mark.slow

SENTENCE_END = ".,;:!?"
HASHES = ("da39a3ee5e6b4b0d3255bfef95601890afd80709", "3f2504e0-4f89-41d3-9a0c-0305e82c3301")


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    with Index(tmp_path_factory.mktemp("corpus")) as index:
        yield index


def as_typed(text: str, **how) -> Ask:
    """Without quotes: the end of a sentence is none of the word."""
    word = re.search(r"[^\W_]", text)
    return Ask(text, term(text.rstrip(SENTENCE_END) if word else text, **how).holds)


HOW = [{}, {"case": True}, {"whole": True}, {"case": True, "whole": True}]


@pytest.mark.parametrize("how", HOW, ids=str)
def test_each_term_finds_its_events(index, how):
    """Every word and near miss of the corpus, quoted and bare, is told from all the others."""
    for text in TERMS:
        index.check(term(text, quoted=True, **how), **how)
        if not SYNTAX.search(text):
            index.check(as_typed(text, **how), **how)
            if not how:
                index.check(as_typed(f"{text}?"))


def test_beginnings_of_words(index):
    """`word*` is a beginning of the last word, in quotes and with punctuation too."""
    pick = random.Random(1)
    for text in pick.sample(TERMS, 150):
        start = text[: pick.randint(1, len(text))]
        if re.search(r"[^\W_]$", start):
            index.check(term(start, quoted=True, star=True))
            if not SYNTAX.search(start):
                index.check(term(start, star=True))


def test_the_beginning_of_a_hash_finds_it(index):
    """Six and more hex digits find what begins with them; words and short numbers do not."""
    for text in HASHES:
        for end in range(4, len(text)):
            index.check(term(text[:end].rstrip("-")))
            index.check(term(text[:end].rstrip("-").upper()))
    for text in ("1234567", "123456", "cafe42", "decade", "12345678", "da39a3", "DA39a3"):
        index.check(term(text))
        index.check(term(text, quoted=True))


def test_phrases_from_the_texts(index):
    """Words in a row, and stretches cut anywhere with all their punctuation and white space."""
    pick = random.Random(2)
    for _ in range(amount(80, 800)):
        text = pick.choice(index.texts)
        found = re.findall(r"[^\W_]+", text)
        start = pick.randrange(max(len(found), 1))
        phrase = " ".join(found[start : start + pick.randint(1, 4)])
        if phrase:
            index.check(term(phrase, quoted=True))
        phrase = _stretch(pick, text).strip()
        if phrase and not re.search('["\u0300-\u036f]', phrase):
            index.check(term(phrase, quoted=True))


def _stretch(pick: random.Random, text: str) -> str:
    start = pick.randrange(len(text))
    return text[start : start + pick.choice([1, 2, 3, 5, 8, 13, 30])]


def test_terms_are_combined(index):
    """All of them, either, none, in any nesting, wherever in the event each one stands."""
    pick = random.Random(3)
    for _ in range(amount(100, 1000)):
        index.check(combined(pick, 3, lambda text: term(text, quoted=True)))
    for _ in range(amount(20, 200)):
        index.check(combined(pick, 3, lambda text: part(text, quoted=True)), mode="substring")


def test_bare_words_are_combined(index):
    """Plain words need no quotes: together, either, excluded, in parentheses."""
    pick = random.Random(4)
    words = [word for word in WORDS if len(word) > 2 and word.isalpha()]
    for _ in range(amount(30, 300)):
        a, b, c, d = (term(word) for word in pick.choices(words, k=4))
        either = Ask(f"{a.text} OR {b.text} {c.text}", (a | (b & c)).holds)
        for ask in (a & b, a & b & c, a & excluding(b), either, (a | b) & excluding(c | d)):
            index.check(ask)


def test_parts_of_words(index):
    """Any stretch of any text is found in whatever has it, in either case."""
    pick = random.Random(5)
    for _ in range(amount(100, 1000)):
        text = _stretch(pick, pick.choice(index.texts))
        text = pick.choice([text, text.upper(), text.lower(), text.strip()])
        if text.strip() and '"' not in text:
            index.check(part(text, quoted=True), mode="substring")
    for text in TERMS:
        if len(text) > 1 and not SYNTAX.search(text):
            index.check(part(text), mode="substring")


def test_parts_of_what_tools_were_told_and_said(index):
    """Tool calls only, input and output as one text, nothing in the query means anything."""
    pick = random.Random(6)
    for _ in range(amount(50, 500)):
        text = _stretch(pick, pick.choice(index.texts))
        if text.strip():
            index.check(in_a_tool(text), mode="tools")
    for event in index.events:
        text = f"{event.columns[1][-9:]} {event.columns[2][:9]}"  # over the seam
        if event.type == "tool_use" and text.strip():
            index.check(in_a_tool(text), mode="tools")


EXPRESSIONS = [
    r"is_errors?\b", r"\bgo\s+test\b", r"foo\.bar\(\)", r"^retry", r"test$", r"^\s*$", r"^$",
    r"x*", r"(?i)config", r"(?-i:Config)", r"(?s)retry.+test", r"retry.+test", r"(re)try.*\1",
    r"[^\x00-\x7f]", r"\d{7,}", r"[0-9a-f]{8}(-[0-9a-f]{4}){3}", r"E\d{4}(?!\d)",
    r"(?<!\w)E0308", r"(?<=TS)\d+", r"caf(é|e\u0301)", r"[à-ÿ]+ve", r"stra(ß|ss)e",
    r"\u212aelvin", r"kelvin", r"ISTANBUL", r"ıstanbul", r"İ", r"ſ", r"[k-m]elvin",
    r"[^a]elvin", r"設定|数据库", r"ฐาน\w+", r"\w+ベース", r"[\U0001f300-\U0001ffff]", r"\\",
    r"%[ds]", r"a[_X]b", r"\*\*\w+\*\*", r"\t|\r\n", r"(?x) retry \s test  # both", r"\Aretry",
    r"retry\Z", r"(?:foo|bar)[._]?(?:foo|bar)", r"(?P<q>['\"])hello(?P=q) to",
    r"(?:is_error)?retry", r"(?:x){0}retry", r"(a)?(?(1)b|x)c*",
    r"deep\w+$", r"(?:retry|test){2,}", r"\S{30,}", r"(?>re|r)etry", r"re?+try", r"[[:alpha:]]",
    r"é", r"É", r"É{1,2}s?",
]  # fmt: skip


@pytest.mark.parametrize("case", [False, True])
@pytest.mark.filterwarnings("ignore:Possible nested set")
def test_regular_expressions(index, case):
    """Python's own engine over every text agrees, whatever was screened before."""
    pick = random.Random(7)
    texts = [*EXPRESSIONS, *map(re.escape, pick.sample(TERMS, 25))]
    for _ in range(amount(25, 200)):
        stretch = _stretch(pick, pick.choice(index.texts))
        kinds = ("{}", ".", r"\w", "[{}x]", "{}+")
        texts.append(
            "".join(
                pick.choice(kinds if c.isalnum() else kinds[:2]).format(re.escape(c))
                for c in stretch
            )
        )
    for text in texts:
        index.check(expression(text, case=case), mode="regex", case=case)


# -- screens of regular expressions

# Among them some outside ASCII that equal one inside, or each other, whatever the case.
TWINS = "\u0130\u0131\u212a\u017f\u1e9e\u00df\u00b5\u03bc\u03c3\u03c2\u03a3"
LETTERS = f"aikszAIKSZ{TWINS}éÉe\u0301日 _-.09\n\r\t%\\"
letters = st.sampled_from(LETTERS)
classes = st.builds(
    lambda no, items: f"[{no}{''.join(items)}]",
    st.sampled_from(["", "", "^"]),
    st.lists(
        st.one_of(
            letters.map(re.escape),
            st.tuples(letters, letters).map(lambda ab: "-".join(map(re.escape, sorted(ab)))),
            st.sampled_from([r"\d", r"\D", r"\w", r"\W", r"\s", r"\S"]),
        ),
        min_size=1,
        max_size=3,
    ),
)
EDGES = [".", r"\d", r"\D", r"\w", r"\W", r"\s", r"\S", r"\b", r"\B", "^", "$", r"\A", r"\Z"]
atoms = st.one_of(
    letters.map(re.escape),
    st.text(letters, min_size=2, max_size=6).map(re.escape),
    classes,
    st.sampled_from(EDGES),
    letters.map(lambda c: rf"({re.escape(c)})\1"),
    letters.map(lambda c: f"({re.escape(c)})?(?(1)a|k)"),
)
opening = st.sampled_from(
    ["(?:", "(?i:", "(?-i:", "(?s:", "(?a:", "(?-m:", "(?=", "(?!", "(?<=", "(?<!", "(?>"]
)
repeats = st.sampled_from(
    ["*", "+", "?", "{2}", "{1,}", "{0,2}", "*?", "+?", "??", "*+", "{2,1001}"]
)
patterns = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map("|".join),
        st.tuples(opening, inner).map(lambda both: f"{both[0]}{both[1]})"),
        st.tuples(inner, repeats).map(lambda both: f"(?:{both[0]}){both[1]}"),
    ),
    max_leaves=8,
)
BLANK = apsw.Connection("")


def _accepts(found, text: str) -> None:
    if next(found.places(text), None) is None:
        return
    joined = f"k\n{text}\n\ns"  # as texts are screened: several, with lines between them
    for screened in (text, joined):
        assert found.screen is None or found.screen(screened.encode(), 0), (found.text, text)
    if found.like is not None:
        assert BLANK.execute("SELECT ? LIKE ? ESCAPE '\\'", (text, found.like)).get, found.like


@pytest.mark.filterwarnings("ignore:Possible")
@settings(max_examples=amount(333, 3000), deadline=None, derandomize=True)
@given(
    st.sampled_from(["", "", "(?s)", "(?i)", "(?a)", "(?x)"]),
    patterns,
    st.lists(st.text(letters, max_size=12), min_size=1, max_size=8),
    st.booleans(),
)
def test_no_screen_refuses_what_matches(flags, pattern, texts, case):
    """RE2 and LIKE let through every text in which Python finds something."""
    try:
        re.compile(flags + pattern)
    except (re.error, RecursionError, OverflowError):
        return
    found = regex(flags + pattern, Matching("regex", case=case))
    for text in texts:
        _accepts(found, text)


PIECES = ["{}"] * 12 + [
    "[{}]", "[{}-{}]", "[^q]", ".", "(?:{})", "({})", "(?:{}|q)", "{}+", "{}{{1,2}}", "{}?",
    "q*{}", "(?:qqqqqq)?{}", "(?:qqqqqq)*{}", "(?:{}|qqqqqq)",
    "(?i:{})", "(?-i:{})", "(?={}){}", "(?!q){}", "(?>{})", r"\b{}", "(?<!q){}",
]  # fmt: skip


@settings(max_examples=amount(200, 1800), deadline=None, derandomize=True)
@given(st.data(), st.text(letters, min_size=4, max_size=10), st.booleans())
def test_no_screen_refuses_a_text_in_another_case(data, text, case):
    """Letters in all kinds of brackets against the same letters in any case."""
    pieces = data.draw(st.lists(st.sampled_from(PIECES), min_size=len(text), max_size=len(text)))
    escaped = map(re.escape, text)
    pattern = "".join(one.format(c, c) for one, c in zip(pieces, escaped, strict=True))
    wrapped = data.draw(st.sampled_from(["(?:", "(?i:", "(?-i:"])) + pattern + ")"
    found = regex(wrapped, Matching("regex", case=case))
    same = {c: [d for d in LETTERS if re.fullmatch(re.escape(c), d, re.IGNORECASE)] for c in text}
    _accepts(found, text)
    _accepts(found, "".join(data.draw(st.sampled_from(same[c])) for c in text))


def test_superseded_events_are_found_when_asked_for(index):
    """What left its file is searched only on request."""
    for text in ("retry", "is_error", '"foo.bar()"', "設定"):
        index.check(Ask(text, term(text.strip('"')).holds), superseded=True)


def test_the_end_of_a_long_text_is_found(index):
    """No text is cut."""
    for ask, mode in (
        (term(DEEP), "words"),
        (part(DEEP[2:]), "substring"),
        (expression("p[w]ord$"), "regex"),
    ):
        (event,) = ask.among(index.events)
        (hit,) = index.hits(ask.text, mode=mode)
        assert hit.event == event
        assert hit.field == "output"
        assert hit.snippet.text.endswith(DEEP)


# -- what went wrong before


@pytest.mark.parametrize(
    ("ask", "options"),
    [
        (term("retry") & term("|", quoted=True), {}),
        (term("is") & excluding(term("%", quoted=True)), {}),
        (Ask("retry | test -", (term("retry") & term("test")).holds), {}),
        (part("a*"), {"mode": "substring"}),
        (Ask("cafe\u0301", term("café").holds), {}),
        (expression("(?i)config"), {"mode": "regex", "whole": True}),
    ],
    ids=lambda value: value.text if isinstance(value, Ask) else "",
)
def test_small_things_are_taken_as_they_are_meant(index, ask, options):
    """Punctuation in quotes, a star in a part of a word, accents and flags however written."""
    index.check(ask, **options)


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ('"' + "設定 " * 20_000 + '"', "words"),
        ("x" * 60_000, "regex"),
        ("\\" * 60_000, "substring"),
    ],
)
def test_a_long_query_is_answered(index, text, mode):
    """Whoever pastes a whole page finds it or not, without an error of the database."""
    assert index.found(text, mode=mode) == []


def test_an_odd_expression_is_no_warning(index):
    """Python's worries about the future of brackets are not for people who search."""
    index.found("[[x]foo", mode="regex")


@pytest.mark.parametrize("text", ["🤖", "🧪", "glued", "green", "paused", "100", "main"])
def test_symbols_younger_than_the_tokenizer_are_no_letters(world, text):
    """What Unicode got after 6.1, and what it leaves to others, neither hides a word nor itself."""
    t = world.transcript()
    t.append(t.prompt("🤖🤖glued 🧪🟢green ⏸paused 100₽ \ue0a0main"))
    world.ingest()
    with closing(open_reader(world.state / "index.db")) as db:
        assert len([*Search(text).hits(db)]) == 1
