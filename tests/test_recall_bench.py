"""The bench of recall: how ranks are counted, and how other people's questions are read."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).parents[1] / "bench"
README = BENCH.parent / "README.md"


@pytest.fixture
def recalling(monkeypatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCH))
    import recalling  # type: ignore[import-not-found]

    yield recalling
    for name in [name for name, module in sys.modules.items() if _is_of_bench(module)]:
        del sys.modules[name]


def _is_of_bench(module: object) -> bool:
    return (getattr(module, "__file__", None) or "").startswith(str(BENCH))


def test_the_table_of_the_readme_is_the_last_result(recalling):
    results = json.loads((BENCH / "recall.json").read_text("utf-8"))
    text = README.read_text("utf-8")
    assert recalling.into_readme(text, results) == text
    assert recalling.page(results) == (BENCH / "RECALL.md").read_text("utf-8")


def test_ranks_count_three_places_of_a_session(recalling):
    """The session's rank is among sessions; a place is right only in the right session."""
    hit = recalling.Hit
    case = recalling.Case("?", frozenset({"b"}), lambda text: "yes" in text)
    hits = [hit("a", "yes")] * 5 + [hit("b", "no"), hit("b", "yes")]
    score = recalling.Score()
    score.take(case, recalling.Answer(hits, found=True, confidence=0.5, seconds=0.01))
    score.take(case, recalling.Answer([], found=False))
    assert (score.sessions, score.places) == ([2, 0], [5, 0])
    figures = score.figures()
    assert (figures["session@1"], figures["session@5"], figures["place@5"]) == (0, 0.5, 0.5)
    assert (figures["mrr"], figures["unanswered"]) == (0.25, 0.5)
    assert recalling.curve([0.2, 0.9], [0.1])[4] == (0.2, 1.0, 0.0)


def test_longmemeval_is_read_with_a_history_for_each_question(recalling, tmp_path):
    talks = [
        [{"role": "user", "content": "I adopted a spaniel", "has_answer": True},
         {"role": "assistant", "content": "Congratulations!"}],
        [{"role": "user", "content": "Which tyres for gravel?"}],
    ]  # fmt: skip
    one = {
        "question_id": "q1", "question": "Which spaniel did I adopt?",
        "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/21 (Sun) 02:21"],
        "haystack_session_ids": ["s1", "s2"], "haystack_sessions": talks,
        "answer_session_ids": ["s1"],
    }  # fmt: skip
    path = tmp_path / "longmemeval_s.json"
    path.write_text(json.dumps([one, one | {"question_id": "q2_abs"}]))
    score = recalling.Score()
    for db, case in recalling.longmemeval(path, 0):
        score.take(case, recalling.ours(db)(case.question))
    assert (score.sessions, score.places) == ([1], [1])


def test_locomo_is_read_with_its_evidence(recalling, tmp_path):
    talk = {
        "speaker_a": "Ann", "speaker_b": "Bo",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [{"speaker": "Ann", "dia_id": "D1:1", "text": "My kiln cracked."}],
        "session_2_date_time": "2:10 am on 9 May, 2023",
        "session_2": [{"speaker": "Bo", "dia_id": "D2:1", "text": "The ferry was late."}],
    }  # fmt: skip
    questions = [
        {"question": "What cracked, the kiln?", "evidence": ["D1:1"], "category": 4},
        {"question": "Whose ferry cracked?", "evidence": ["D2:1"], "category": 5},
        {"question": "No evidence?", "evidence": [], "category": 4},
    ]
    path = tmp_path / "locomo10.json"
    path.write_text(json.dumps([{"conversation": talk, "qa": questions}]))
    told = [
        (recalling.ours(db)(case.question).hits[0].text, answered)
        for db, case, answered in recalling.locomo(path, 0)
    ]
    assert "My kiln cracked." in told[0][0]
    assert [answered for _, answered in told] == [True, False]
