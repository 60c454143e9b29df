"""The order of hits, pages of them, and what is shown of each, against brute force."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from contextlib import closing
from itertools import chain, pairwise

import pytest
from tests.schema.queries.search.search_corpus import DEEP, NOW, SYNTAX, TERMS, WORDS
from tests.schema.queries.search.search_oracle import (
    COLUMNS,
    Index,
    combined,
    flat,
    is_place,
    looks_like_a_hash,
    occurs,
    term,
)

from sess_schema import search_index
from sess_schema.connection import open_reader
from sess_schema.queries.search import Search, newest, ranking

SORTS = ("relevance", "newest", "oldest")
QUERIES = [
    ("retry", {}),
    ("retry OR test OR is_error -foo", {}),
    ("is_error", {}),
    ("設定 OR 数据库", {}),
    ("err", {"mode": "substring"}),
    ("re?try|test", {"mode": "regex"}),
    ("e", {"mode": "tools"}),
    ("type:tool_use retry", {}),
    ("-type:user", {}),
]
QUERY = pytest.mark.parametrize(("text", "options"), QUERIES, ids=[text for text, _ in QUERIES])


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    with Index(tmp_path_factory.mktemp("corpus")) as index:
        yield index


@QUERY
def test_orders_have_the_same_events(index, text, options):
    """By time the newest or the oldest first; what has no date is the oldest."""
    found = index.found(text, **options)
    dates = {event.id: (event.ts or 0, event.id) for event in index.events}
    assert len(found) > 10
    oldest = index.found(text, sort="oldest", **options)
    assert oldest == sorted(found, key=dates.__getitem__)
    assert index.found(text, sort="newest", **options) == oldest[::-1]


@QUERY
def test_sessions_are_those_of_the_hits(index, text, options):
    """Each session with a match, the one with the newest match first; forks have copies."""
    ordered: list[int] = []
    for hit in index.hits(text, sort="newest", **options):
        copies = index.db.execute(
            "SELECT t.session_id FROM records t JOIN events e ON e.record_id = t.copy_of"
            " WHERE e.id = ? AND t.retired = 0",
            (hit.event,),
        )
        ordered += [hit.session_key, *(session for (session,) in copies)]
    assert [*index.search(text, **options).results(index.db).sessions()] == [
        *dict.fromkeys(ordered)
    ]


def test_relevance_is_in_order_of_score(index):
    """The best first."""
    scores = [hit.score for hit in index.hits("retry OR test")]
    assert all(a >= b for a, b in pairwise(scores))


def small_pools(monkeypatch, first, later, said=300):
    monkeypatch.setattr(ranking, "POOL", first)
    monkeypatch.setattr(ranking, "LATER_POOL", later)
    monkeypatch.setattr(ranking, "_SAID", said)


@pytest.mark.slow
def test_small_pools_hold_the_same_events(index, monkeypatch):
    """However many pools there are, every event is in one of them."""
    pick = random.Random(8)
    asks = [combined(pick, 2, lambda text: term(text, quoted=True)) for _ in range(25)]
    asks += map(term, ("retry", "test", "is", "the", "da39a3e"))
    for first, later, said in ((1, 1, 1), (2, 5, 300), (5, 2, 2), (5, 5, 300), (17, 3, 4)):
        small_pools(monkeypatch, first, later, said)
        for ask in asks:
            index.check(ask)


def test_a_better_match_is_not_hidden_by_newer_ones(world, monkeypatch):
    """Nor is it shown twice; only among very many matches is the best not looked for."""
    t = world.transcript()
    calls = [t.call("best", command="descale samovar")]
    for number in range(20):
        calls += [
            t.call(f"c{number}", command="cat log"),
            t.result(f"c{number}", "samovar " + f"filler{number} " * 400),
        ]
    t.append(*calls)
    world.ingest()
    small_pools(monkeypatch, 4, 5, 2)
    with closing(open_reader(world.state / "index.db")) as db:

        def asked():
            results = Search("samovar", limit=0).results(db)
            return [hit.summary for hit in results.hits()], results.partly

        found, partly = asked()
        assert found[0] == "descale samovar"
        assert not partly
        assert len(found) == 21
        assert found.count("descale samovar") == 1
        monkeypatch.setattr(ranking, "COMMON", 10)
        found, partly = asked()
        assert found[0] == "cat log"
        assert partly
        assert len(found) == 21


def numbers_in_blocks_of(monkeypatch, index, bits):
    """As in an index of millions of events, where a pool spans many blocks."""
    monkeypatch.setattr(search_index, "BLOCK_BITS", bits)
    monkeypatch.setattr(newest, "_GAP", 2)  # so that matches lie in several groups
    bounds: dict[int, int] = {}
    for event in index.events:
        if event.ts is not None:
            bounds[event.id >> bits] = max(event.ts, bounds.get(event.id >> bits, -1))

    def between(_db, first, last):
        found = [
            (bounds.get(block, -1), block) for block in range(first >> bits, (last >> bits) + 1)
        ]
        found.sort(reverse=True)
        return [
            (ts, max(first, block << bits), min(last, (block + 1 << bits) - 1))
            for ts, block in found
        ]

    monkeypatch.setattr(search_index, "blocks_between", between)


@pytest.mark.parametrize("bits", [1, 3, 9])
@pytest.mark.parametrize("text", ["retry", "the", "test OR is", "type:tool_use retry", "re*"])
def test_pools_are_filled_by_time(index, monkeypatch, text, bits):
    """Each pool has the newest matches behind the one before it, as many as asked."""
    numbers_in_blocks_of(monkeypatch, index, bits)
    pools = []
    ranked = ranking.Ranker._ranked

    def kept(self, plan, scale, most, before):
        pools.append((most, ranked(self, plan, scale, most, before)))
        return pools[-1][1]

    small_pools(monkeypatch, 6, 10)
    monkeypatch.setattr(ranking.Ranker, "_ranked", kept)
    monkeypatch.setattr(ranking.Ranker, "said", lambda *_: ranking.Pool([], None))
    dates = {event.id: (event.ts or 0, event.id) for event in index.events}
    newest_first = sorted(index.found(text), key=dates.__getitem__, reverse=True)
    assert len(newest_first) > 10
    for most, pool in pools:
        size = len(pool.rows)
        assert {row[0] for row in pool.rows} == set(newest_first[:size])
        assert size == most or pool.bottom is None
        newest_first = newest_first[size:]
    assert newest_first == []


@pytest.mark.parametrize("bits", [1, 3])
def test_blocks_find_what_one_block_finds(index, monkeypatch, bits):
    """Whatever is asked, and wherever the search goes on."""
    pick = random.Random(5)
    asks = [combined(pick, 2, lambda text: term(text, quoted=True)) for _ in range(25)]
    small_pools(monkeypatch, 4, 8, 2)
    expected = [set(index.found(ask.text)) for ask in asks]
    numbers_in_blocks_of(monkeypatch, index, bits)
    assert [set(index.found(ask.text)) for ask in asks] == expected


def test_old_events_that_are_read_later_do_not_push_new_ones_away(world):
    """Today's best match is the first hit, however many old ones were imported after it."""
    today = world.transcript("11111111-1111-4111-8111-111111111111")
    today.append(today.prompt("the needle of today", timestamp="2026-02-20T10:00:00.000Z"))
    world.ingest()
    old = world.transcript("22222222-2222-4222-8222-222222222222")
    old.append(
        *(
            old.answer(f"a needle of old, number {number}", timestamp="2019-05-01T10:00:00.000Z")
            for number in range(1600)
        )
    )
    world.ingest()
    with closing(open_reader(world.state / "index.db")) as db:
        first, *rest = Search("needle", limit=1601, now=NOW).hits(db)
    assert first.snippet.text == "the needle of today"
    assert len(rest) == 1600


def pages(index, text, **options):
    """The events page by page, each page with the cursor of the one before."""
    cursor = None
    for _ in range(200):
        results = Search(text, limit=7, now=NOW, cursor=cursor, **options).results(index.db)
        page = [hit.event for hit in results.hits()]
        if not page:
            return
        cursor = results.cursor()
        yield page
    pytest.fail("the pages do not end")


@QUERY
@pytest.mark.parametrize("pools", [(5, 9, 8), (2000, 20_000)], ids=["small", "large"])
def test_pages_are_the_whole_list(index, monkeypatch, text, options, pools):
    """Put together, the pages are what one request gives, in its order."""
    small_pools(monkeypatch, *pools)
    for sort in SORTS:
        together = [*chain(*pages(index, text, sort=sort, **options))]
        assert together == index.found(text, sort=sort, **options)


@pytest.mark.parametrize("sort", [*SORTS, "small pools"])
def test_new_events_do_not_get_between_pages(tmp_path, monkeypatch, sort):
    """What is written while somebody turns pages is not seen, and nothing is lost or doubled."""
    if sort == "small pools":
        sort = "relevance"
        small_pools(monkeypatch, 5, 9, 8)
    with Index(tmp_path) as index:
        readers: list[tuple[list, Iterator[list], list]] = [
            (index.found(text, sort=sort, **options), pages(index, text, sort=sort, **options), [])
            for text, options in QUERIES
        ]
        for turn in range(100):
            for _, turning, found in readers:
                found.extend(next(turning, []))
            if turn in (0, 2):
                index.corpus.more(turn)
        for before, _, found in readers:
            assert sorted(found) == sorted(before)
            assert found == before or sort == "relevance"
        for (text, options), (before, _, _) in zip(QUERIES, readers, strict=True):
            assert len(index.found(text, **options)) > len(before)


# -- what is shown


@pytest.mark.slow
def test_a_snippet_marks_what_matched(index):
    """Offsets are places of the term in the field's text, spans the same places in the line."""
    for text in TERMS:
        for ask in [f'"{text}"'] + [text] * (not SYNTAX.search(text)):
            for hit in index.hits(ask):
                _shows(index, hit, [text], prefix=ask == text and looks_like_a_hash(text))
    pick = random.Random(9)
    for _ in range(60):
        words = pick.sample(WORDS, 3)
        for hit in index.hits(f"{words[0]} OR {words[1]} {words[2]}", width=pick.choice([30, 160])):
            _shows(index, hit, words)


def test_snippets_of_the_other_modes(index):
    """A part of a word and an expression are marked where they stand."""
    pick = random.Random(12)
    for text in pick.sample(TERMS, 80):
        for hit in index.hits(f'"{text}"', mode="substring"):
            _marks(index, hit, re.compile(re.escape(text), re.IGNORECASE))
    for text in (
        r"\w+_error",
        "^retry",
        "test$",
        r"[^\x00-\x7f]+",
        r"\d{7,}",
        r"(?<=TS)\d+",
        "設定|库",
    ):
        for hit in index.hits(text, mode="regex"):
            _marks(index, hit, re.compile(text, re.IGNORECASE | re.MULTILINE))


def _marks(index, hit, pattern):
    if hit.field is None:  # it stands in the marks
        assert not any(map(pattern.search, index.by_id[hit.event].columns[:3]))
        return
    text = index.by_id[hit.event].columns[COLUMNS.index(hit.field)]
    assert {*hit.snippet.offsets} <= {found.span() for found in pattern.finditer(text)}
    _spans(hit.snippet, text)


def _spans(shown, text):
    """They lie in the line, in order, and say what the offsets say."""
    assert shown.offsets
    assert shown.spans
    assert 0 <= shown.spans[0][0] < shown.spans[-1][1] <= len(shown.text)
    assert all(a[1] <= b[0] for a, b in pairwise(shown.spans))
    words = {flat(text[start:end]) for start, end in shown.offsets}
    assert {shown.text[start:end].strip() for start, end in shown.spans} <= words
    assert shown.text.removeprefix("…").removesuffix("…") in flat(text)


def _shows(index, hit, terms, *, prefix=False):
    """One of the terms, or nothing when none stands in these texts as it was typed."""
    texts = index.by_id[hit.event].columns[:3]
    shown = hit.snippet
    if not any(occurs(text, one, prefix=prefix) for text in texts for one in terms):
        assert (hit.field, shown.offsets, shown.spans) == (None, (), ())
        return
    text = texts[COLUMNS.index(hit.field)]
    for span in shown.offsets:
        assert any(is_place(text, span, one, prefix=prefix) for one in terms), (terms, span, text)
    _spans(shown, text)


@pytest.mark.parametrize("text", [r"\s+padded", r"output\s+", r"^\s*$"])
def test_spans_of_white_space_stay_in_the_line(index, text):
    """White space that matched and was cut off the line takes its span along."""
    for hit in index.hits(text, mode="regex"):
        for start, end in hit.snippet.spans:
            assert 0 <= start < end <= len(hit.snippet.text)


def test_a_long_match_makes_no_long_line(index):
    """An excerpt is about as wide as was asked for, whatever matched."""
    (hit,) = index.hits(f"lorem.*{DEEP}", mode="regex", width=100)
    assert len(hit.snippet.text) < 1000
