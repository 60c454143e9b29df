"""`sess doctor` as a program."""

from __future__ import annotations

import json
import os
import re
from contextlib import closing

import pytest
from tests.must import must

from sess_common import lock
from sess_schema import page_sums, soundness
from sess_schema.connection import open_reader

pytestmark = pytest.mark.slow


def checks(world, *arguments, code):
    done = world.run("sess", "doctor", "--json", *arguments, check=code)
    found = {}
    for line in done.stdout.splitlines():
        check = json.loads(line)
        found[check["check"]] = check
    return found


def test_a_healthy_installation_is_all_ok(world):
    """Every check says ok, the end-to-end test included, and the exit code is 0."""
    t = world.transcript()
    t.append(t.prompt("hello"))
    world.ingest()
    found = checks(world, "--deep", code=0)
    assert {name: check["state"] for name, check in found.items()} == dict.fromkeys(
        ("SQLite", "home", "places", "daemon", "roots", "agents", "unclaimed", "index", "structure",
         "references", "sources", "skipped", "records", "calls", "archive", "size", "full text",
         "upkeep", "end to end"),
        "ok",
    )  # fmt: skip
    assert found["structure"]["message"] == "integrity_check found no damage"
    assert found["sources"]["message"] == "1 live"


def test_outputs_that_were_never_found_are_named(world):
    """The transcript has only their start, and nothing else would say so."""
    t = world.transcript()
    aside = t.path.with_suffix("") / "tool-results" / "b1.txt"
    details = {"persistedOutputPath": str(aside), "stdout": "start"}
    t.append(t.prompt("go"), t.call("c1"), t.result("c1", "start", toolUseResult=details))
    world.ingest()
    found = checks(world, code=0)["calls"]
    assert found["message"].endswith("1 file with full outputs never found")
    assert found["details"][0].endswith("tool-results/b1.txt")
    aside.parent.mkdir(parents=True)
    aside.write_text("all of it")
    world.ingest()
    assert checks(world, code=0)["calls"]["details"] == []


def test_deep_says_where_the_bytes_are(world):
    """The parts add up to the file, and it is compared with what was read."""
    t = world.transcript()
    t.append(t.prompt("hello"), t.answer("good morning " * 5000))
    world.ingest()
    with closing(open_reader(world.state / "index.db")) as db:
        parts = soundness.bytes_by_part(db)
        assert soundness.transcript_bytes(db) == t.path.stat().st_size
    assert sum(parts.values()) == (world.state / "index.db").stat().st_size
    assert {"archive", "texts", "full text", "records", "events", "usage"} < parts.keys()
    size = checks(world, "--deep", code=0)["size"]
    assert size["message"].endswith("times the 65.7 kB that were read")
    assert sum("texts" in line for line in size["details"]) == 1


def test_rows_without_their_owner_are_exit_code_4(world):
    """What foreign keys would have refused is found, with its table and column."""
    t = world.transcript()
    t.append(t.prompt("hello"), t.answer("hello"))
    world.ingest()
    with closing(page_sums.opened(str(world.state / "index.db"))) as db:
        db.execute("DELETE FROM records WHERE role = 'assistant'")
    found = checks(world, code=4)["references"]
    assert found["state"] == "fail"
    assert found["details"] == [
        "1 of events.record_id are not in records",
        "1 of usage.record_id are not in records",
    ]


def test_odd_records_and_open_files_are_warnings(world):
    """Exit code 5, each with its reason and an example."""
    t = world.transcript()
    t.append(t.prompt("hello"), b"{broken\n")
    world.ingest()
    (world.state / "index.db").chmod(0o644)
    found = checks(world, code=5)
    assert found["home"]["state"] == "warn"
    assert found["home"]["details"] == [
        f"{world.state / 'index.db'} is 0644".replace(str(world.root), "~")
    ]
    assert found["records"]["message"] == "1 unusual record, all kept"
    assert found["records"]["details"][0].endswith(".jsonl:2")


def test_a_damaged_index_is_exit_code_4(world):
    """The other checks still run."""
    world.state.mkdir(mode=0o700)
    (world.state / "index.db").write_bytes(b"garbage " * 1000)
    found = checks(world, code=4)
    assert found["index"]["state"] == "fail"
    assert found["end to end"]["state"] == "ok"


def test_a_home_that_is_a_file_is_exit_code_4(world):
    """It needs another name, not other permissions."""
    world.state.write_text("")
    home = checks(world, code=4)["home"]
    assert home["state"] == "fail"
    assert home["message"].endswith("is not a directory")


def test_damage_inside_a_readable_index_is_found(world):
    """Overwritten pages are exit code 4 as well."""
    t = world.transcript()
    t.append(*(t.prompt(f"hello {number} " + "x" * 1000) for number in range(200)))
    world.ingest()
    index = world.state / "index.db"
    raw = bytearray(index.read_bytes())
    raw[len(raw) // 2 : len(raw) // 2 + 40_000] = b"\xaa" * 40_000
    index.write_bytes(raw)
    assert any(check["state"] == "fail" for check in checks(world, "--deep", code=4).values())


def test_a_new_home_is_a_warning(world):
    """Before the first sync there is no index, which is said."""
    found = checks(world, code=5)
    assert found["index"] == {
        "check": "index",
        "state": "warn",
        "message": "not created yet",
        "details": [],
        "hint": "`sessiond sync` creates it",
    }


@pytest.mark.parametrize(
    ("mode", "what"), [("sync", "a sync is running"), ("daemon", "sessiond is running")]
)
def test_whoever_writes_the_index_is_named(world, mode, what):
    """A sync that somebody started is not the daemon."""
    world.ingest()
    held = must(lock.acquire(world.state / "sessiond.lock"))
    held.describe(mode=mode, pid=1234)
    done = world.run("sess", "doctor", "--json")
    held.release()
    assert f'"{what} (pid 1234)"' in done.stdout


def test_it_reads_nothing_of_ours_into_the_real_index(world):
    """The end-to-end test runs in a separate home."""
    world.run("sess", "doctor")
    assert not world.state.exists()


def test_people_get_one_line_per_check(world):
    """State, name and message are aligned."""
    t = world.transcript()
    t.append(t.prompt("hello"))
    world.ingest()
    lines = world.run("sess", "doctor", check=0).stdout.splitlines()
    assert "ok    sources      1 live" in lines


def test_fix_mends_the_index_and_the_modes(world):
    """A dangling row and an open file are failures before, and none afterwards."""
    t = world.transcript()
    t.append(t.prompt("hello"), t.answer("hello"))
    world.ingest()
    with closing(page_sums.opened(str(world.state / "index.db"))) as db:
        db.execute("DELETE FROM records WHERE role = 'assistant'")
    (world.state / "index.db").chmod(0o644)
    checks(world, code=4)
    found = checks(world, "--fix", "--deep", code=0)
    assert found["references"]["state"] == found["home"]["state"] == "ok"


def test_damage_in_the_archive_is_exit_code_4(world):
    """`--deep` reads every piece; the note of a failed `sess check` is a warning."""
    t = world.transcript()
    t.append(t.prompt("hello"))
    world.ingest()
    with closing(page_sums.opened(str(world.state / "index.db"))) as db:
        data = bytearray(db.execute("SELECT data FROM chunks").get)
        data[20] ^= 1
        db.execute("UPDATE chunks SET data = ?", (bytes(data),))
    assert checks(world, "--deep", code=4)["archive"]["state"] == "fail"
    world.run("sess", "check", check=4)
    assert checks(world, code=5)["upkeep"]["message"] == "the last check found damage"


def test_a_bundle_tells_nothing_of_the_sessions(world, tmp_path):
    """Versions, states and counts are in it; words, titles, paths and projects are not."""
    t = world.transcript()
    t.append(t.prompt("quinquireme"), b"{broken nineveh\n")
    world.ingest()
    report = tmp_path / "report.json"
    checks(world, "--bundle", report, code=5)
    text = report.read_text()
    assert json.loads(text)["index"]["rows"]["sessions"] == 1
    for word in ("quinquireme", "nineveh", "/code/demo", t.session, str(world.root)):
        assert word not in text


def test_secrets_are_counted_and_never_shown(world):
    """By kind, and by session."""
    t = world.transcript()
    key = "ghp_" + "a1B2" * 9
    t.append(t.prompt(f"use {key} please"))
    world.ingest()
    done = world.run("sess", "doctor", "--secrets", check=0)
    assert key not in done.stdout + done.stderr
    assert t.session in done.stdout
    ((line),) = world.run("sess", "doctor", "--secrets", "--json", check=0).stdout.splitlines()
    assert sum(json.loads(line)["secrets"].values()) == 1


def test_everything_that_was_passed_over_is_listed_with_its_reason(world):
    """Links and pipes, by `sess doctor` and `sessiond status`, without a daemon; until they go."""
    t = world.transcript()
    t.append(t.prompt("hello"))
    pipe, link = t.path.with_name("pipe.jsonl"), t.path.with_name("link.jsonl")
    os.mkfifo(pipe)
    link.symlink_to(t.path)
    elsewhere = t.path.parent.with_name("elsewhere")
    elsewhere.symlink_to(world.root, target_is_directory=True)
    world.run("sessiond", "sync", check=5)
    reasons = {
        elsewhere: "is a symbolic link to a directory",
        link: "is a symbolic link",
        pipe: "is not a regular file",
    }
    shown = [f"{path}: {why}".replace(str(world.root), "~") for path, why in reasons.items()]
    found = checks(world, code=5)["skipped"]
    assert (found["state"], found["message"]) == ("warn", "3 not read")
    assert sorted(found["details"]) == sorted(shown)
    said = world.run("sessiond", "status", check=3).stdout
    assert sorted(re.findall(r"^skipped  (.*)$", said, re.MULTILINE)) == sorted(shown)
    told = world.run("sessiond", "status", "--json", check=3).stdout.splitlines()
    (index,) = (one for one in map(json.loads, told) if one["kind"] == "index")
    assert {one["path"]: one["reason"] for one in index["skipped"]} == {
        str(path): why for path, why in reasons.items()
    }
    for path in reasons:
        path.unlink()
    world.run("sessiond", "sync", check=0)
    assert checks(world, code=0)["skipped"]["message"] == "nothing"
