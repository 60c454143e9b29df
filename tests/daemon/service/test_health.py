"""Status that does not lie: hanging, paused and behind are told, in words, codes and metrics."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from contextlib import closing
from typing import Any

import pytest
from tests.waiting import LIMIT, wait_until

from sess_common import paths, upkeep
from sess_schema.connection import open_reader, open_writer
from sessiond.service import loop, notify, status

LINE = re.compile(r'sessiond_[a-z_]+(\{[a-z]+="[^"]*"\})? -?[0-9.e+]+')


@pytest.fixture
def daemon(world):
    t = world.transcript()
    t.append(t.prompt("hello"), b"broken\n")
    process = world.start()
    wait_until((world.state / "status.json").exists)
    yield process
    process.send_signal(signal.SIGCONT)
    process.terminate()
    process.wait(LIMIT)


def metrics(text):
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert [line for line in lines if not LINE.fullmatch(line)] == []
    return dict(line.rsplit(" ", 1) for line in lines)


def test_a_daemon_that_hangs_is_told(world, daemon):
    """One that a signal has stopped, at once; a sign of life that is too old counts as none."""
    assert world.run("sessiond", "status", "--health", check=0).stdout == "healthy\n"
    os.kill(daemon.pid, signal.SIGSTOP)
    said = world.run("sessiond", "status", "--health", check=3).stdout
    assert said.startswith("a signal has stopped the daemon; ")
    heartbeat = world.state / "status.json"
    facts = json.loads(heartbeat.read_text())
    facts["at"] -= 200_000
    heartbeat.write_text(json.dumps(facts))
    assert "NOT RESPONDING for 2" in world.run("sessiond", "status", check=3).stdout
    hanging = {"running": True, "beat_seconds": 121.0}
    assert status.health_code(hanging, []) == 3
    assert status.health_in_words(hanging, []).startswith("the daemon has not responded for 121 s")
    assert (
        metrics(world.run("sessiond", "status", "--prometheus", "-", check=0).stdout)["sessiond_up"]
        == "0"
    )


def test_metrics_have_every_figure_and_no_text(world, daemon):
    """A file for a collector, readable by others, replaced at once; the last check is in it."""
    wait_until(lambda: world.found("hello"))
    world.run("sess", "check", check=0)
    file = world.root / "sessiond.prom"
    file.write_text("# HELP sessiond_up Earlier figures.\n")
    world.run("sessiond", "status", "--prometheus", file, check=0)
    assert file.stat().st_mode & 0o777 == 0o644
    found = metrics(file.read_text())
    assert (
        found["sessiond_up"] == found["sessiond_healthy"] == found["sessiond_last_check_ok"] == "1"
    )
    assert found["sessiond_lag_bytes"] == found["sessiond_lag_seconds"] == "0"
    assert found['sessiond_sources{state="live"}'] == "1"
    assert found["sessiond_directories_watched"] == found["sessiond_directories"]
    assert time.time() - float(found["sessiond_last_check_timestamp_seconds"]) < LIMIT
    assert [key for key in found if key.startswith("sessiond_warnings{")] != []
    assert "last_backup" not in file.read_text()
    assert str(world.root) not in file.read_text()
    world.run("sessiond", "status", "--prometheus", world.root / "no" / "such", check=2)


def test_each_state_has_its_exit_code():
    """Not running and hanging 3, an index that cannot be written 4, files that cannot be read 5."""
    source = {"path": "/a", "state": "live", "lag_bytes": 0, "lag_seconds": 0.0, "warnings": {}}
    well: dict[str, Any] = {"running": True, "beat_seconds": 3.0, "error": None, "skipped": []}
    parked = {**source, "state": "parked"}
    for daemon, sources, code, words in (
        (well, [source], 0, "healthy"),
        ({"running": False}, [source], 3, "the daemon is not running"),
        ({**well, "beat_seconds": 121.0}, [source], 3, "the daemon has not responded for 121 s"),
        ({**well, "error": "disk full"}, [source], 4, "the index cannot be written: disk full"),
        (well, [parked], 5, "1 file cannot be read; `sessiond status` names them"),
    ):
        assert status.health_code(daemon, sources) == code
        assert status.health_in_words(daemon, sources) == words


def test_an_idle_daemon_gives_signs_of_life(tmp_path, monkeypatch):
    """Also if nothing happens the file is written again; else idle and hanging look the same."""
    heart = notify.Heart(tmp_path / "status.json")
    heart.beat()
    first = upkeep.writer_status(tmp_path / "status.json")["at"]
    heart.flush()
    assert upkeep.writer_status(tmp_path / "status.json")["at"] == first
    monkeypatch.setattr(notify, "AT_LEAST", 0.0)
    time.sleep(0.002)
    heart.flush()
    assert upkeep.writer_status(tmp_path / "status.json")["at"] > first


def test_a_long_wal_is_cut_as_soon_as_no_reader_needs_it(world, monkeypatch):
    """A reader that stands still is told in the status; without it the WAL is cut, idle or not."""
    monkeypatch.setattr(loop, "WAL_LIMIT", 100_000)
    monkeypatch.setattr(loop, "WAL_RETRY", 0.0)
    world.ingest()
    home = paths.Home(str(world.state), str(world.state), str(world.state))
    service = loop.Service(home)
    wal = world.state / "index.db-wal"
    with closing(open_writer(home.index)) as db:
        reader = open_reader(home.index)
        rows = reader.execute("SELECT name FROM sqlite_schema")
        next(rows)
        for number in range(120):
            db.execute("INSERT INTO facts (name, value) VALUES (?, 'x')", (f"n{number}",))
        service._bound_wal(db)
        service._heart.flush()
        assert wal.stat().st_size > 100_000
        assert service._heart.wal_pinned
        rows.close()
        reader.close()
        service._bound_wal(db)
        assert wal.stat().st_size == 0
        assert not service._heart.wal_pinned
