"""The ranking of a question beside one that reads every text."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.conftest import World
from tests.schema.queries.search.search_corpus import Corpus

from sess_schema.connection import open_reader
from sess_schema.queries.fields import Condition
from sess_schema.queries.recall import ranking
from sess_schema.queries.recall.question import Question
from sess_schema.queries.recall.ranking import FIELD_WEIGHTS, SATURATION, TYPE_WEIGHTS, Ranking

QUESTIONS = [
    "why are retries of the parser timing out",
    "deploying config files failed with mismatched types",
    "how do I build an index of user names",
    "socket queue thread memory leak",
    "launch the database settings",
    "time out",
    "what did no verify do to the hosts",
    "retrieving cached tokens",
]


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    world = World(tmp_path_factory.mktemp("corpus"))
    Corpus(world).write()
    db = open_reader(world.state / "index.db")
    yield db
    db.close()


def all_events(db, vocabulary):
    """What each event says, counted: type, whether it is current, length, terms by column."""
    for event, type_, retired, *texts in db.execute(
        "SELECT e.id, e.type, e.retired, x.text, x.input, x.output, x.marks"
        " FROM events e JOIN event_texts x ON x.id = e.id"
    ):
        columns = [Counter(vocabulary.words(text)) for text in texts]
        yield event, type_, retired, sum(map(Counter.total, columns)), columns


def by_reading_everything(db, question, leading=None):
    """Every current event with its score, the best first."""
    events = [*all_events(db, question.vocabulary)]
    mean = sum(length for _, _, _, length, _ in events) / len(events)
    words, _ = ranking._chosen(question)
    scored = []
    for event, type_, retired, length, columns in events:
        if retired:
            continue

        def times(term, length=length, columns=columns):
            found = sum(
                weight * column[term.text]
                for weight, column in zip(FIELD_WEIGHTS, columns, strict=True)
            )
            return found / (SATURATION * (0.25 + 0.75 * length / mean))

        own = {word.text: sum(t.weight * times(t) for t in word.terms) for word in words}
        leads = any(own[word.text] for word in words if leading is None or word.text in leading)
        score = 0.0
        for word in words:
            near = sum(
                ranking.NEAR_WEIGHT
                * term.weight
                * min(1.0, question.rarity(term.events) / word.rarity)
                * times(term)
                for term in word.near
            )
            leads = leads or bool(near and not word.terms)
            its = TYPE_WEIGHTS.get(type_, 1.0) * (own[word.text] + near)
            score += word.rarity * its / (1 + its)
        if leads and score:
            scored.append((score, event))
    return sorted(scored, key=lambda one: (-one[0], one[1]))


@pytest.mark.parametrize("text", QUESTIONS)
def test_the_first_twenty_are_those_of_reading_everything(index, text):
    question = Question(index, text)
    best = Ranking(index, question).best(20)
    expected = by_reading_everything(index, question)[:20]
    assert [one.score for one in best] == pytest.approx([score for score, _ in expected])
    # Events that say the same may change places.
    exact = dict.fromkeys(event for score, event in expected if score > expected[-1][0] + 1e-9)
    assert exact.keys() <= {one.event for one in best}


def test_common_words_only_add_to_the_events_with_rare_ones(index, monkeypatch):
    """Where the rare words are in enough events; age plays no part."""
    question = Question(index, "retry tests of the socket in memory")
    words = sorted(ranking._chosen(question)[0], key=lambda word: (word.events, word.text))
    first = words[:2]
    monkeypatch.setattr(ranking, "LEADING", sum(word.events for word in first))
    best = Ranking(index, question).best(20)
    expected = by_reading_everything(index, question, {word.text for word in first})[:20]
    assert [one.score for one in best] == pytest.approx([score for score, _ in expected])


@pytest.mark.parametrize("text", QUESTIONS)
def test_a_condition_leaves_out_and_changes_nothing_else(index, text):
    question = Question(index, text)
    every = Ranking(index, question).best(10_000)
    prompts = Ranking(index, question, Condition("e.type = ?", ("user",))).best(10_000)
    assert prompts == [one for one in every if one.type == "user"]


def test_a_word_stands_for_all_with_its_stem(index):
    question = Question(index, "testing files of the parsers")
    seen = {
        term
        for *_, columns in all_events(index, question.vocabulary)
        for column in columns
        for term in column
    }
    for word in question.words:
        stems = {term: question.vocabulary.stems(term) for term in seen if term.isascii()}
        same = {term for term, its in stems.items() if its == [word.stem]}
        assert {term.text for term in word.terms} >= same
        assert same


def test_words_written_together_or_apart_are_one(index):
    terms = {term.text for word in Question(index, "user name").words for term in word.terms}
    assert "username" in terms


def test_a_word_that_no_event_has_is_looked_up_as_a_slip_of_typing(index):
    (word,) = Question(index, "deplyo").words
    assert [term.text for term in word.terms] == ["deploy"]
