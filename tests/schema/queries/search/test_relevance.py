"""Relevance is FTS5's own bm25, without counting every event of a common phrase."""

import apsw
import pytest

from sess_schema.queries.search import ranking

WEIGHTS = "10.0, 5.0, 1.0, 3.0"


@pytest.fixture
def index():
    """A hundred events: all have `common`, every tenth `rare word`."""
    db = apsw.Connection(":memory:")
    db.execute("CREATE VIRTUAL TABLE event_index USING fts5 (text, input, output, marks)")
    for number in range(1, 101):
        rare = "a rare word" if number % 10 == 0 else ""
        row = (number, f"common {rare}", "common " * (number % 3), "out " * number, "")
        db.execute(
            "INSERT INTO event_index (rowid, text, input, output, marks) VALUES (?,?,?,?,?)", row
        )
    ranking.register_relevance(db)
    return db


def both(db, match):
    return db.execute(
        f"SELECT relevance(event_index, 100, {WEIGHTS}), -bm25(event_index, {WEIGHTS})"
        " FROM event_index WHERE event_index MATCH ? ORDER BY rowid DESC",
        (match,),
    ).fetchall()


@pytest.mark.parametrize(
    "match", ["common", '"rare word"', 'rare AND common OR "word common"', "com*"]
)
def test_equals_bm25(index, match):
    rows = both(index, match)
    assert len(rows) in (10, 100)
    for ours, theirs in rows:
        assert ours == pytest.approx(theirs, rel=1e-9)


def test_counts_only_the_first_of_many(index, monkeypatch):
    """The rest is estimated from how close together these are: here that is exact."""
    exact = [row[1] for row in both(index, '"rare word"')]
    counted = []
    monkeypatch.setattr(ranking, "COUNTED", 4)
    rarity = ranking._rarity

    def noted(rows, hits):
        counted.append(hits)
        return rarity(rows, hits)

    monkeypatch.setattr(ranking, "_rarity", noted)
    assert [row[0] for row in both(index, '"rare word"')] == pytest.approx(exact)
    assert counted == [10.0]
