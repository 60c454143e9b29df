"""What is asked of the only writer."""

from __future__ import annotations

from tests.must import must

from sess_common import lock, paths, requests


def test_who_asks_the_daemon_may_show_its_progress_meanwhile(tmp_path, monkeypatch):
    """Until the answer is there; then nothing of the question is left."""
    monkeypatch.setenv("SESSIOND_HOME", str(tmp_path / "state"))
    home = paths.home()
    home.create()
    held = must(lock.acquire(home.lock))
    held.describe(mode="daemon")
    calls: list[None] = []

    def meanwhile():
        calls.append(None)
        if len(calls) == 3:
            (asked,) = requests.folder(home).glob("*.json")
            requests.write(asked.with_suffix(".done"), {"seen": 3})

    assert requests.ask(home, "read", meanwhile=meanwhile, paths=["/x"]) == {"seen": 3}
    held.release()
    assert len(calls) == 3
    assert list(requests.folder(home).iterdir()) == []
