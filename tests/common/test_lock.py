"""Who holds the writer's lock."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from tests.must import must

from sess_common import lock


@pytest.fixture
def held(tmp_path):
    found = lock.acquire(tmp_path / "lock")
    assert found is not None
    yield found
    found.release()


def test_who_has_just_taken_the_lock_may_finish_describing_itself(held, monkeypatch):
    """Between the two it would be neither a daemon nor a sync, and be refused as both."""
    clock = iter(range(100))
    monkeypatch.setattr(
        lock,
        "time",
        SimpleNamespace(
            monotonic=lambda: next(clock) / 100,
            sleep=lambda _seconds: held.describe(mode="daemon"),
        ),
    )
    assert must(lock.holder(held.path))["mode"] == "daemon"


def test_who_never_describes_itself_still_holds_it(held, monkeypatch):
    """On a full disk nothing can be written into the file."""
    clock = iter(range(1000))
    monkeypatch.setattr(
        lock,
        "time",
        SimpleNamespace(monotonic=lambda: next(clock) / 10, sleep=lambda _seconds: None),
    )
    assert lock.holder(held.path) == {}
