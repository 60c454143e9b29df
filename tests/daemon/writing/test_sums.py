"""The sums that the writer keeps equal a count of everything, whatever happened to the files."""

from __future__ import annotations

from contextlib import closing

import pytest

from sess_schema import sums
from sess_schema.connection import open_writer
from sess_schema.queries.stats import Stats

TABLES = ("usage_sums", "event_sums", "spans")
A, B = (f"{letter * 8}-1111-4111-8111-111111111111" for letter in "ab")


def kept(world):
    return {name: world.sql(f"SELECT * FROM {name} ORDER BY 1, 2, 3") for name in TABLES}


def counted_anew(world):
    """From nothing, in a transaction that is taken back."""
    with closing(open_writer(world.state / "index.db")) as db:
        db.execute("BEGIN")
        for name in TABLES:
            db.execute(f"DELETE FROM {name}")
        db.execute(
            "INSERT INTO stale_sums"
            f" SELECT session_id, {sums.quarter('ts')} FROM events"
            f" UNION SELECT session_id, {sums.quarter('answered')} FROM events"
            f" UNION SELECT session_id, {sums.quarter('ts')} FROM usage"
        )
        sums.renew(db)
        found = {name: [*db.execute(f"SELECT * FROM {name} ORDER BY 1, 2, 3")] for name in TABLES}
        db.execute("ROLLBACK")
    return found


def conversation(t, count):
    for number in range(count):
        t.append(
            t.prompt(f"do {number}"),
            t.call(f"call_{t.session[:2]}_{number}", command="make"),
            t.result(f"call_{t.session[:2]}_{number}", "no", is_error=number % 3 == 0),
            t.answer(f"done {number}"),
        )


@pytest.fixture
def busy(world):
    t = world.transcript(A)
    conversation(t, 8)
    world.ingest()
    return t


def test_growing(world, busy):
    conversation(world.transcript(B), 3)
    for _ in range(3):
        busy.append(busy.prompt("more"), busy.answer("and more"))
        world.ingest()
    assert kept(world) == counted_anew(world)
    assert [row[3] for row in kept(world)["event_sums"] if row[2] == ""] == [11, 3]


def test_a_fork_that_is_older_takes_over(world, busy):
    lines = busy.path.read_bytes().replace(A.encode(), B.encode())
    earlier = lines.replace(b"10:00:01", b"09:00:01", 1)
    world.transcript(B).append(earlier)
    world.ingest()
    assert kept(world) == counted_anew(world)


def test_a_file_that_was_cut(world, busy):
    lines = busy.path.read_bytes().splitlines(keepends=True)
    busy.path.write_bytes(b"".join(lines[:5] + lines[9:]))
    world.ingest()
    assert kept(world) == counted_anew(world)
    assert sum(row[3] for row in kept(world)["event_sums"]) == 7


def test_nothing_is_left_stale_and_a_lost_file_changes_nothing(world, busy):
    before = kept(world)
    busy.path.unlink()
    world.ingest()
    assert kept(world) == before
    assert world.sql("SELECT * FROM stale_sums") == []


def test_what_has_no_date_is_summed_apart(world, busy):
    with closing(open_writer(world.state / "index.db")) as db, db:
        db.execute("UPDATE events SET ts = NULL WHERE type = 'user'")
        sums.renew(db)
    assert kept(world) == counted_anew(world)
    assert [row for row in kept(world)["event_sums"] if row[0] == -1] == [(-1, 1, "", 8, 0, 0, 0)]
    with closing(open_writer(world.state / "index.db")) as db:
        assert Stats().groups(db, "day")["undated"].prompts == 8
        assert Stats(since=0).total(db).prompts == 0


@pytest.mark.parametrize("since", range(0, 40, 7))
@pytest.mark.parametrize("until", range(3, 60, 11))
def test_a_window_that_cuts_a_quarter_counts_what_is_inside(world, busy, since, until):
    """Against the events themselves."""
    start = world.sql("SELECT min(ts) FROM events")[0][0]
    asked = Stats(since=start + since * 1000, until=start + until * 1000)
    with closing(open_writer(world.state / "index.db")) as db:
        total = asked.total(db)
        active = asked.active_ms(db)
    window = (asked.since, asked.until)
    inside = "FROM events WHERE ts >= ? AND ts < ?"
    [(prompts, calls, errors)] = world.sql(
        "SELECT coalesce(sum(type = 'user'), 0), coalesce(sum(type = 'tool_use'), 0),"
        f" coalesce(sum(status = 'error'), 0) {inside}",
        *window,
    )
    assert (total.prompts, total.tool_calls, total.tool_errors) == (prompts, calls, errors)
    [(tokens,)] = world.sql(
        "SELECT coalesce(sum(output_tokens), 0) FROM usage WHERE ts >= ? AND ts < ?", *window
    )
    assert total.output_tokens == tokens
    times = [
        ts
        for (ts,) in world.sql(
            f"SELECT ts {inside} UNION SELECT answered FROM events"
            " WHERE answered >= ? AND answered < ? ORDER BY 1",
            *window,
            *window,
        )
    ]
    assert active == (times[-1] - times[0] if times else 0)


def test_calls_whose_outcome_is_unknown_are_no_errors(world):
    t = world.transcript(A)
    t.append(t.prompt("go"), t.call("only", command="make"))
    world.ingest()
    with closing(open_writer(world.state / "index.db")) as db, db:
        db.execute("UPDATE events SET status = NULL WHERE type = 'tool_use'")
        sums.renew(db)
    assert [row[3:] for row in kept(world)["event_sums"] if row[2] == "Bash"] == [(0, 1, 0, 0)]
