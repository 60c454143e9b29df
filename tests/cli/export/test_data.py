"""Sessions as data: JSON that keeps everything, and a database that others can open."""

from __future__ import annotations

import json
import stat
from base64 import b64encode
from typing import Any

import pytest
from sqlite_utils import Database
from sqlite_utils.db import Table

MAIN = "11111111-1111-4111-8111-111111111111"
PIXEL = b64encode(b"\x89PNG not really").decode()
KEY = "ghp_" + "a1B2" * 9


@pytest.fixture
def busy(world):
    t = world.transcript()
    image: dict[str, Any] = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png"},
    }
    image["source"]["data"] = PIXEL
    t.append(
        t.record("user", {"role": "user", "content": [{"type": "text", "text": "look"}, image]}),
        t.call("c1", command="make test"),
        t.result("c1", "\x1b[31mFAILED\x1b[0m", is_error=True),
        t.call("c2", "Edit", file_path="/code/demo/a.py", old_string="1", new_string="2"),
        t.result("c2", "ok"),
        t.call("c3", "Task", prompt="dig", description="Dig"),
        b"{broken\n",
        t.answer(f"the key is {KEY}"),
    )
    agent = world.transcript("agent-7")
    agent.path = t.path.with_suffix("") / "subagents" / "agent-7.jsonl"
    agent.path.parent.mkdir(parents=True)
    agent.append(agent.prompt("dig", sessionId=MAIN, isSidechain=True))
    agent.path.with_suffix(".meta.json").write_text(json.dumps({"toolUseId": "c3"}))
    world.ingest()
    return t


def exported(world, *options):
    done = world.run("sess", "export", "json", MAIN, "-o", "-", "--no-sync", *options, check=0)
    return json.loads(done.stdout)


def test_json_has_every_event_and_every_record_as_it_was_written(world, busy):
    whole = exported(world, "--no-redact")
    assert (whole["format"], whole["version"]) == ("sessiond-session", 2)
    assert [event["type"] for event in whole["events"]] == [
        "user", "tool_use", "tool_use", "tool_use", "system", "assistant",
    ]  # fmt: skip
    assert all(event["event"] == event["key"] for event in whole["events"])
    prompt, failed, edit, task, broken, answer = whole["events"]
    assert prompt["images"] == 1
    assert prompt["image_data"] == [{"media_type": "image/png", "data": PIXEL}]
    assert (failed["status"], failed["output"]) == ("error", "\x1b[31mFAILED\x1b[0m")
    assert edit["input"] == {"file_path": "/code/demo/a.py", "old_string": "1", "new_string": "2"}
    assert edit["files"] == [{"path": "/code/demo/a.py", "action": "edit"}]
    assert task["subagent"] == "agent-7"
    assert broken["text"] == "{broken"
    lines = busy.path.read_bytes().splitlines()
    for record, line in zip(whole["records"], lines, strict=True):
        if line == b"{broken":
            assert record["text"] == "{broken"
        else:
            assert record["value"] == json.loads(line)
    (agent,) = whole["subagents"]
    assert [event["text"] for event in agent["events"]] == ["dig"]
    assert answer["usage"]["output_tokens"] == 10
    assert whole["session"]["output_tokens"] == 40


def test_json_masks_secrets_in_events_and_records(world, busy):
    done = world.run("sess", "export", "json", MAIN, "-o", "-", check=0)
    assert KEY not in done.stdout
    assert KEY in json.dumps(exported(world, "--no-redact"))


def test_a_session_whose_file_is_gone_is_the_same(world, busy):
    before = exported(world)
    busy.path.unlink()
    world.ingest()
    after = exported(world)
    assert after["session"].pop("source_gone") is True
    assert before["session"].pop("source_gone") is False
    assert after == before


def table(db: Database, name: str) -> Table:
    found = db[name]
    assert isinstance(found, Table)
    return found


def test_a_portable_database(world, busy, tmp_path):
    target = tmp_path / "out.db"
    done = world.run("sess", "export", "sqlite", MAIN, "-o", target, check=0)
    assert "1 token" in done.stderr
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    db = Database(target)
    try:
        assert {name: db[name].count for name in ("sessions", "events", "files", "commits")} == {
            "sessions": 2,
            "events": 7,
            "files": 1,
            "commits": 0,
        }
        (found,) = table(db, "events").search("FAILED")
        assert (found["tool"], found["status"]) == ("Bash", "error")
        assert table(db, "events").foreign_keys[0].other_table == "sessions"
        child = next(db["sessions"].rows_where("kind = 'subagent'"))
        assert table(db, "sessions").get(child["parent_id"])["session"] == MAIN
        assert not [*table(db, "events").search("ghp")]
        total = db.query("SELECT sum(output_tokens) AS made FROM events")
        assert next(total)["made"] == next(db["sessions"].rows)["output_tokens"]
    finally:
        db.close()


def test_a_subagent_that_is_named_beside_its_session_is_there_once(world, busy, tmp_path):
    target = tmp_path / "out.db"
    world.run("sess", "export", "sqlite", "agent-7", MAIN, MAIN, "-o", target, check=0)
    db = Database(target)
    try:
        assert [row["session"] for row in db["sessions"].rows] == [MAIN, "agent-7"]
    finally:
        db.close()


@pytest.mark.parametrize("kind", ["md", "json", "sqlite"])
def test_a_target_that_cannot_be_written_is_named(world, busy, tmp_path, kind):
    missing = tmp_path / "no" / "where"
    done = world.run("sess", "export", kind, MAIN, "-o", missing, check=2)
    assert done.stderr.splitlines()[0].endswith(f'no such directory: "{missing.parent}"')
    done = world.run("sess", "export", kind, MAIN, "-o", tmp_path, check=2)
    assert f'"{tmp_path}" is a directory' in done.stderr
    assert not [*tmp_path.glob(".sess-*")]


def test_a_gist_is_uploaded_by_gh(world, busy, tmp_path):
    """With gh's own message if it fails, and a hint where to get it if it is missing."""
    tools = tmp_path / "bin"
    tools.mkdir()
    world.env["PATH"] = str(tools)
    target = tmp_path / "a.md"
    done = world.run("sess", "export", "md", MAIN, "-o", target, "--gist", "--yes", check=69)
    assert "gh is not on PATH" in done.stderr
    assert target.exists()
    gh = tools / "gh"
    gh.write_text(
        '#!/bin/sh\nprintf "%s\\n" "$@" > "$HOME/asked"\necho https://gist.test/me/abc1\n'
    )
    gh.chmod(0o755)
    world.env["PATH"] = f"{tools}:/usr/bin:/bin"
    done = world.run(
        "sess", "export", "md", MAIN, "-o", target, "--gist", "--yes", "--force", check=0
    )
    assert "gist: https://gist.test/me/abc1" in done.stderr
    assert (world.root / "asked").read_text().splitlines() == ["gist", "create", "--", str(target)]
    gh.write_text("#!/bin/sh\necho not logged in >&2\nexit 4\n")
    done = world.run(
        "sess", "export", "md", MAIN, "-o", target, "--gist", "--yes", "--force", check=69
    )
    assert "gh cannot upload: not logged in" in done.stderr


def test_a_value_whose_name_is_secret_is_masked(world):
    t = world.transcript()
    t.append(t.prompt("go"), t.call("c", "Login", user="me", password="hunter2!x"))
    world.ingest()
    (_, call) = exported(world)["events"]
    assert call["input"]["user"] == "me"
    assert "hunter2" not in json.dumps(exported(world))


@pytest.mark.parametrize("form", ["md", "json", "html", "cast", "tape"])
def test_stdout_too_is_followed_by_what_was_masked(world, form):
    """On stderr; the same secret counts once."""
    t = world.transcript()
    t.append(t.prompt("token=a1b2c3d4e5"), t.answer("token=a1b2c3d4e5"))
    world.ingest()
    told = world.run("sess", "export", form, t.session, "-o", "-", "--no-sync", check=0)
    home = "1 home path, " if form == "json" else ""  # the path of the transcript
    assert told.stderr == f"masked {home}1 token; --no-redact turns this off\n"
    told = world.run(
        "sess", "export", form, t.session, "-o", "-", "--no-redact", "--no-sync", check=0
    )
    assert told.stderr == ""
