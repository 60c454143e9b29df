"""Views give the same with and without digests, which are made for what no longer changes."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC

import pytest
from tests.conftest import World
from tests.schema import corpus

from sess_schema.connection import open_writer
from sess_schema.queries.stats import Stats
from sess_schema.queries.views import (
    digests,
    failures,
    files,
    interruptions,
    overview,
    parts,
    tools,
    usage,
    windows,
)
from sess_schema.sums import QUARTER

DAY = 96 * QUARTER
NOON = 1_769_940_000_000  # within the sessions
A = "aaaaaaaa-1111-4111-8111-111111111111"
ASKED = {
    "everything": {},
    "from noon": {"since": NOON},
    "until noon": {"until": NOON},
    "a minute": {"since": NOON, "until": NOON + 60_000},
    "a day": {"since": NOON - DAY, "until": NOON + DAY},
    "another day": {"since": NOON + 5 * DAY, "until": NOON + 6 * DAY},
    "an agent": {"agents": ["claude"]},
    "without subagents": {"subagents": "exclude"},
    "a project": {"projects": ["teapot"]},
    "a model": {"models": ["claude"]},
    "nothing": {"branches": ["nowhere"]},
}


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Forks, a subagent, denied and failed calls, and conversations from a database."""
    world = World(tmp_path_factory.mktemp("digests"))
    corpus.write(world.root)
    world.run("sessiond", "sync", check=0)
    return world


def opened(world):
    return closing(open_writer(world.state / "index.db"))


def views(db, asked, config):
    return {
        "tools": tools.read_tools(db, asked),
        "failures": failures.read(db, asked, config),
        "files": files.most_edited(db, asked),
        "edits": files.read_edits(db, asked),
        "context": usage.read_context(db, asked),
        "cache": usage.read_cache(db, asked),
        "latency": tools.read_speeds(db, asked),
        "interruptions": interruptions.read_interruptions(db, asked),
        "windows": windows.read_windows(db, asked),
        "overview": overview.read_overview(db, asked, config),
    }


@pytest.mark.parametrize("given", ASKED.values(), ids=ASKED)
def test_views_are_the_same_with_digests(stored, given):
    """Also for windows that cut through sessions; then only these are counted."""
    asked = Stats(zone=UTC, **given)
    with opened(stored) as db:
        parts.clear(db)
        counted = views(db, asked, stored.root)
        digests.make_all(db)
        assert views(db, asked, stored.root) == counted
        assert digests.differences(db) == 0


def test_over_all_time_no_event_is_read(stored):
    with opened(stored) as db:
        digests.make_all(db)
        counted = views(db, Stats(), stored.root)
        db.execute("BEGIN")
        db.execute("DELETE FROM event_texts")
        db.execute("DELETE FROM files")
        db.execute("UPDATE events SET retired = 1")
        db.execute("DELETE FROM stale_sums")
        for name, found in views(db, Stats(), stored.root).items():
            if name != "overview":  # how many sessions ran at once may need their pauses
                assert found == counted[name], name
        db.execute("ROLLBACK")


def test_a_session_that_changed_is_counted_again(world):
    t = world.transcript(A)
    t.append(t.prompt("make tea"), t.call("call_1", command="kettle"), t.result("call_1", "hot"))
    world.run("sessiond", "sync", check=0)
    with opened(world) as db:
        digests.make_all(db)
    t.append(t.call("call_2", command="kettle"), t.result("call_2", "dry", is_error=True))
    world.run("sessiond", "sync", check=0)
    with opened(world) as db:
        assert tools.read_tools(db, Stats()).tools["Bash"].calls == 2
        assert [row.tool for row in failures.read(db, Stats(), world.root).calls] == ["Bash"]
    world.check()


def conversations(world, count):
    for number in range(count):
        t = world.transcript(f"{number:08}-1111-4111-8111-111111111111")
        t.append(t.prompt(f"number {number}"), t.answer("yes"), t.answer("no"))


def digested(world):
    rows = world.sql("SELECT id FROM sessions EXCEPT SELECT session_id FROM undigested")
    return len(rows)


def test_sessions_that_may_go_on_are_left_alone(world, monkeypatch):
    """The newest ones, and as many more as are quickly counted."""
    monkeypatch.setattr(parts, "NEWEST", 2)
    monkeypatch.setattr(parts, "LEFT", 9)
    conversations(world, 6)
    world.ingest()
    assert digested(world) == 0  # of the 18 events, those of three sessions are left
    more = world.transcript("90000000-1111-4111-8111-111111111111")
    more.append(more.prompt("another"), more.answer("yes"), more.answer("no"))
    world.ingest()
    assert digested(world) == 4
    more.append(more.prompt("go on"))
    world.ingest()
    assert digested(world) == 4


def test_a_pass_digests_for_a_share_of_its_time(world, monkeypatch):
    """The next ones go on."""
    monkeypatch.setattr(parts, "NEWEST", 0)
    monkeypatch.setattr(parts, "LEFT", 0)
    monkeypatch.setattr(parts, "_AT_ONCE", 3)
    conversations(world, 3)
    world.ingest()
    with opened(world) as db:
        parts.clear(db)
        assert not digests.make(db, 0.0)
        assert digests.make(db, 1000.0)
        assert digests.make(db, 0.0)
    assert digested(world) == 3


def test_what_another_version_made_is_not_read(world):
    t = world.transcript(A)
    t.append(t.prompt("make tea"), t.call("call_1", command="kettle"))
    world.run("sessiond", "sync", check=0)
    with opened(world) as db:
        digests.make_all(db)
        db.execute("UPDATE digests SET data = '[]'")
        assert tools.read_tools(db, Stats()).tools == {}
        assert digests.differences(db) > 0
        db.execute("UPDATE facts SET value = 'older' WHERE name = 'digests'")
        assert tools.read_tools(db, Stats()).tools["Bash"].calls == 1
        assert digests.differences(db) == 0
    world.run("sessiond", "sync", check=0)
    assert world.sql("SELECT count(*) FROM digests") == [(0,)]
    world.check()


def test_check_finds_a_wrong_digest_and_repair_drops_it(world):
    t = world.transcript(A)
    t.append(t.prompt("make tea"), t.call("call_1", command="kettle"))
    world.run("sessiond", "sync", check=0)
    with opened(world) as db:
        digests.make_all(db)
        db.execute("UPDATE digests SET data = '[]' WHERE part = 'calls'")
    assert "1 row of digests not what they sum up" in world.run("sess", "check", check=4).stdout
    world.run("sessiond", "repair", check=0)
    world.run("sess", "check", check=0)
    assert world.sql("SELECT count(*) FROM digests") == [(0,)]


def test_forgotten_sessions_leave_no_digest(world):
    t = world.transcript(A)
    t.append(t.prompt("make tea"), t.call("call_1", tool="Read", file_path="/secret/tea"))
    world.run("sessiond", "sync", check=0)
    with opened(world) as db:
        digests.make_all(db)
    world.run("sess", "forget", A, "--yes", check=0)
    assert world.sql("SELECT count(*) FROM digests") == [(0,)]
    assert world.sql("SELECT count(*) FROM undigested") == [(0,)]


@pytest.mark.parametrize("numbers", [[], [3, 1, 2], [0, (1 << 32) - 1], [1 << 32, 7], [-1, 5]])
def test_numbers_are_packed(numbers):
    """Those that do not fit into 32 bits are kept as they are."""
    stored = parts.packed([*numbers])
    assert isinstance(stored, str) == all(0 <= one < 1 << 32 for one in numbers)
    assert parts.unpacked([stored, "02000000"]) == sorted([*numbers, 2])
