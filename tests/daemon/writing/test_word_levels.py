"""Pieces of the full text at the level of their size."""

from __future__ import annotations

from contextlib import closing

from hypothesis import given
from hypothesis import strategies as some

from sess_schema.connection import open_writer
from sessiond.writing.word_levels import _numbers, _varint, sort_by_size, sorted_by_size

COOKIE = b"\0\0\0\7"


def listed(*levels, merging=0):
    """A list of pieces as FTS5 keeps it; each piece is (number, pages)."""
    body = [len(levels), sum(map(len, levels)), 99]
    for pieces in levels:
        body += [merging, len(pieces)]
        for number, pages in pieces:
            body += [number, 1, pages]
    return COOKIE + b"".join(map(_varint, body))


def test_a_large_piece_is_lifted_and_small_ones_stay():
    before = listed([(1, 5000), (2, 300), (3, 2)])
    assert sorted_by_size(before) == listed([(3, 2)], [], [(2, 300)], [(1, 5000)])


def test_a_piece_never_passes_an_older_one():
    """Of two entries for a text the one in the newer piece counts."""
    assert sorted_by_size(listed([(1, 2), (2, 5000)])) == listed([(1, 2), (2, 5000)])


def test_nothing_changes_while_a_merge_is_under_way_or_in_another_format():
    for before in (listed([(1, 5000)], merging=1), COOKIE + b"\xff\0\0\1" + b"\1\1\1\0\1\1\1\1"):
        assert sorted_by_size(before) == before


pieces = some.lists(some.tuples(some.integers(1, 2000), some.integers(1, 1 << 24)), max_size=6)


@given(some.lists(pieces, max_size=5))
def test_sorting_keeps_all_pieces_and_their_order_and_is_done_once(levels):
    after = sorted_by_size(listed(*levels))
    assert sorted_by_size(after) == after
    assert _all(after) == _all(listed(*levels))


def _all(data):
    """The pieces, oldest first."""
    numbers = _numbers(data[4:])
    levels, _, _ = next(numbers), next(numbers), next(numbers)
    found = []
    for _ in range(levels):
        next(numbers)
        found[:0] = [(next(numbers), next(numbers), next(numbers)) for _ in range(next(numbers))]
    return found


def test_fts5_finds_the_same_words_in_sorted_pieces_and_goes_on_with_them(world):
    """Later lines are added, and their words and the earlier ones are all found."""
    t = world.transcript()
    t.append(
        *(t.prompt(f"word{n} " + " ".join(f"x{n}y{m}" for m in range(40))) for n in range(400))
    )
    world.ingest()
    with closing(open_writer(world.state / "index.db")) as db:
        (level_of,) = [block for (block,) in db.execute(
            "SELECT block FROM event_index_data WHERE id = 10")]  # fmt: skip
        sort_by_size(db)
        assert db.execute("SELECT block FROM event_index_data WHERE id = 10").get != level_of
    for n in range(400, 440):
        t.append(t.prompt(f"word{n}"))
        world.ingest()
    with closing(open_writer(world.state / "index.db")) as db:
        db.execute("INSERT INTO event_index (event_index, rank) VALUES ('integrity-check', 1)")
        found = [
            db.execute(
                "SELECT count(*) FROM event_index WHERE event_index MATCH ?", (f"word{n}",)
            ).get
            for n in (0, 399, 400, 439, 440)
        ]
    assert found == [1, 1, 1, 1, 0]
