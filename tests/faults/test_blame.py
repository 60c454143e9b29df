"""Data that the index cannot take is charged to its own file; the index and other files go on."""

from __future__ import annotations

import os
from contextlib import closing

import apsw
import pytest

from sess_common.errors import SessError
from sess_schema import sums
from sess_schema.connection import open_writer
from sessiond.ingest import Ingest
from sessiond.prices import Pricer, read_overrides
from sessiond.sources.claude.transcript import ClaudeParser
from sessiond.writing.transaction import Store, Transaction

OTHER = "22222222-1111-4111-8111-111111111111"


@pytest.fixture
def good(world):
    """A transcript that must be indexed whatever other files exist."""
    t = world.transcript()
    t.append(t.prompt("good words"))
    return t


def test_absurd_token_counts_overflow_nothing(world, good):
    """1,100 answers of 2^53 tokens are read and named; counts and statistics go on."""
    t = world.transcript(OTHER)
    t.append(*(t.assistant([], output_tokens=1 << 53) for _ in range(1100)))
    t.append(t.answer("honest", output_tokens=7))
    assert world.ingest().skipped == []
    assert world.found("good") == ["good words"]
    assert world.sql("SELECT sum(output_tokens) FROM usage") == [(7,)]
    assert world.sql("SELECT reason, sum(times) FROM warnings GROUP BY 1") == [
        ("impossible token count ignored", 1100)
    ]
    world.run("sess", "stats", "--no-sync", check=0)
    world.check()


def test_the_largest_counts_that_are_taken_can_be_summed(world):
    """A hundred thousand responses with every number at its limit fit into the sums."""
    t = world.transcript()
    most = t.assistant([{"type": "text", "text": "dear"}], output_tokens=10**9)
    usage = most["message"]["usage"]
    usage |= {"input_tokens": 10**9, "cache_read_input_tokens": 10**9}
    t.append(most)
    world.ingest()
    ((tokens, cost),) = world.sql(
        "SELECT input_tokens + output_tokens + cache_read_tokens, cost_nano FROM usage"
    )
    assert tokens == 3 * 10**9
    assert (cost or 0) * 100_000 < 1 << 63


@pytest.mark.parametrize(
    "error",
    [
        apsw.SQLError("integer overflow"),
        apsw.ConstraintError("NOT NULL constraint failed: records.kind"),
        apsw.TooBigError("string or blob too big"),
        apsw.MismatchError("datatype mismatch"),
        apsw.NoMemError("out of memory"),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("where", ["step", "commit"])
def test_sql_errors_of_one_file_park_that_file(world, good, monkeypatch, error, where):
    """An SQL error that data causes, in a step or at the commit, costs only its file."""
    bad = world.transcript(OTHER)
    bad.append(bad.prompt("poison"))
    third = world.transcript("33333333-1111-4111-8111-111111111111")
    third.append(third.prompt("good words too"))
    add_slice, renew = Transaction.add_slice, sums.renew

    def failing_step(self, source, *rest):
        if source.path == str(bad.path):
            raise error
        add_slice(self, source, *rest)

    def failing_sums(db):
        query = "SELECT 1 FROM event_texts WHERE text = 'poison'"
        if db.execute(query).get:
            raise error
        renew(db)

    with monkeypatch.context() as patch:
        if where == "commit":
            patch.setattr(sums, "renew", failing_sums)
        else:
            patch.setattr(Transaction, "add_slice", failing_step)
        for number in range(5):
            summary = world.ingest()
            assert [path for path, _ in summary.skipped] == ([str(bad.path)] if number < 3 else [])
            assert sorted(world.found("good")) == ["good words", "good words too"]
    ((state, told),) = world.sql("SELECT state, error FROM sources WHERE path = ?", str(bad.path))
    assert (state, told) == ("parked", f"{type(error).__name__}: {error}")
    bad.append(bad.prompt("mended"))
    assert world.ingest().skipped == []
    assert world.shown(OTHER)[0][1] == "poison"
    world.check()


def test_a_damaged_schema_is_not_charged_to_files(world, good):
    """A table that is missing is the index's fault: no file is parked for it."""
    world.ingest()
    with closing(open_writer(world.state / "index.db")) as db:
        db.execute("DROP TABLE spans")
    good.append(good.prompt("more"))
    with pytest.raises(SessError, match="no such table"):
        world.ingest()
    assert world.sql("SELECT state, failures FROM sources") == [("live", 0)]


def test_a_number_that_python_cannot_store_costs_its_own_record(world, good, monkeypatch):
    """A parser that lets a number beyond 64 bits through: the numbers of that record are lost."""
    original = ClaudeParser.parse

    def parse(self, value):
        record = original(self, value)
        if "poison" in str(value):
            record.ts = 1 << 70
            for event in record.events:
                event.duration_ms, event.images = 1 << 70, -(1 << 70)
        return record

    monkeypatch.setattr(ClaudeParser, "parse", parse)
    bad = world.transcript(OTHER)
    bad.append(bad.prompt("before"), bad.prompt("poison"), bad.prompt("after"))
    assert world.ingest().skipped == []
    assert [text for _, text, _ in world.shown(OTHER)] == ["before", "poison", "after"]
    assert world.sql(
        "SELECT ts, duration_ms, images FROM events e JOIN event_texts x USING (id)"
        " WHERE x.text = 'poison'"
    ) == [(None, None, 0)]


def test_a_price_of_the_user_cannot_overflow(world):
    """Prices in config.toml multiply with token counts: the product stays in 64 bits."""
    t = world.transcript()
    t.append(t.answer("dear", output_tokens=10**9))
    world.state.mkdir(mode=0o700)
    prices = read_overrides({"claude-opus-4-5": {"input": 1.0, "output": 99999.0}})
    with closing(open_writer(world.state / "index.db")) as db:
        Ingest(Store(db, Pricer(prices))).reconcile(world.places())
    assert world.sql("SELECT cost_nano, cost_source FROM usage") == [(None, "unknown")]


def test_a_file_from_the_far_future_is_read_once(world, good):
    """Its time does not fit into 64 bits of nanoseconds; it is stored as the latest that does."""
    t = world.transcript(OTHER)
    t.append(t.prompt("far away"))
    os.utime(t.path, ns=(13_000_000_000_000_000_000,) * 2)
    assert world.ingest().skipped == []
    assert len(world.found("good OR far")) == 2
    assert world.ingest().changed == 0
