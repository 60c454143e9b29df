"""Exports of conversations, and files named on the command line."""

from __future__ import annotations

import json

import pytest
from tests.cursor_databases import (
    CREATED,
    bubble,
    composer,
    make_global,
    prompt,
    put_conversation,
    small_talk,
    terminal,
)
from tests.daemon.sources.cursor.agent_files import CHAT, MIRROR, write_database


def envelope(session, value):
    return json.dumps({"composerId": session, "bubble": value}) + "\n"


def test_an_export_of_several_conversations(index, tmp_path):
    file = tmp_path / "export.jsonl"
    pairs = zip(small_talk("one"), small_talk("two", CREATED + 60_000), strict=True)
    file.write_text("".join(envelope("c1", a) + envelope("c2", b) for a, b in pairs))
    index.world.run("sessiond", "sync", file, check=0)
    assert index.sessions() == ["c1", "c2"]
    for session, name in (("c1", "one"), ("c2", "two")):
        assert [kind for kind, _, _ in index.shown(session)] == [
            *("user", "thinking", "tool_use", "tool_use", "assistant"),
        ]
        assert all(name in text for text in index.texts(session))
        assert index.facts("events", "title", session=session) == (
            *(5, f"{name} please fix the parser"),
        )


@pytest.mark.parametrize("first", ["export", "database"])
def test_an_export_beside_the_database_is_not_shown_twice(index, tmp_path, first):
    home = index.world.root
    file = tmp_path / "export.jsonl"
    talk = [prompt("b1", "fix it"), bubble("b2", text="it is fixed", at=CREATED + 1000)]
    file.write_text("".join(envelope(CHAT, one) for one in talk) + envelope("other", talk[0]))
    if first == "export":
        index.world.run("sessiond", "sync", file, check=0)
    write_database(home)
    index.world.run("sessiond", "sync", check=0)
    if first == "database":
        index.world.run("sessiond", "sync", file, check=0)
    assert index.texts() == ["fix it", "it is fixed"]
    assert index.texts("other") == ["fix it"]
    assert len(index.found("fixed")) == 1


def test_an_export_that_grows_is_read_on(index, tmp_path):
    file = tmp_path / "export.jsonl"
    talk = small_talk("x")
    for one in talk:
        with file.open("a") as out:
            out.write(envelope("c1", one))
        index.world.run("sessiond", "sync", file, check=0)
    assert len(index.shown("c1")) == 5


def test_an_unfinished_call_in_an_export(index, tmp_path):
    file = tmp_path / "export.jsonl"
    file.write_text(envelope("c1", terminal("b1", "make", status="loading")))
    index.world.run("sessiond", "sync", file, check=0)
    assert [status for _, _, status in index.shown("c1")] == ["pending"]


@pytest.mark.parametrize("name", ["x.jsonl", "a b.JSONL", "state.vscdb.excised.jsonl"])
def test_an_export_may_have_any_name(index, tmp_path, name):
    file = tmp_path / name
    file.write_text(envelope("c1", prompt("b1", "hello")))
    index.world.run("sessiond", "sync", file, check=0)
    assert index.texts("c1") == ["hello"]


@pytest.mark.parametrize("name", ["old.vscdb", "OLD.VSCDB", "copy.sqlite"])
def test_a_database_may_have_any_name_of_its_kind(index, tmp_path, name):
    talk = small_talk("x")
    db = make_global(tmp_path / name, journal="delete")
    put_conversation(db, composer("c1", talk), talk)
    db.close()
    index.world.run("sessiond", "sync", tmp_path / name, check=0)
    assert len(index.shown("c1")) == 5


def test_a_transcript_of_the_agent_is_known_by_its_content(index, tmp_path):
    file = tmp_path / f"{CHAT}.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in MIRROR))
    index.world.run("sessiond", "sync", file, check=0)
    assert index.texts() == ["fix it", "it is fixed"]
    assert index.world.sql("SELECT DISTINCT agent FROM sessions") == [("cursor",)]


@pytest.mark.parametrize("folder", ["exports", "projects/demo/exports", "chats/x"])
def test_a_directory_may_hold_files_of_both_agents(index, tmp_path, folder):
    place = tmp_path / "given"
    (place / folder).mkdir(parents=True)
    (place / folder / "export.jsonl").write_text(envelope("c1", prompt("b1", "hello")))
    t = index.world.transcript()
    t.path = place / folder / f"{t.session}.jsonl"
    t.append(t.prompt("to the other"))
    index.world.run("sessiond", "sync", place, check=0)
    assert index.world.sql("SELECT agent, native_id FROM sessions ORDER BY 1") == [
        ("claude", t.session),
        ("cursor", "c1"),
    ]


def test_a_configured_root_is_read(index, tmp_path):
    place = tmp_path / "exports"
    place.mkdir()
    (place / "export.jsonl").write_text(envelope("c1", prompt("b1", "hello")))
    index.world.state.mkdir(mode=0o700)
    config = index.world.state / "config.toml"
    config.write_text(f'[roots]\ncursor = ["{place}"]\n')
    index.world.run("sessiond", "sync", check=0)
    assert index.texts("c1") == ["hello"]


@pytest.mark.parametrize("place", ["bubble", "line"])
@pytest.mark.parametrize(
    "written", ["2025-04-02T10:00:00Z", 1_743_588_000, 1_743_588_000_000, "1743588000000"]
)
def test_an_export_may_say_when_in_a_timestamp(index, tmp_path, place, written):
    """Programs that export conversations write this field, in the bubble or beside it."""
    said = {"bubbleId": "b1", "type": 1, "text": "hello"}
    line = {"composerId": "c1", "bubble": said}
    (said if place == "bubble" else line)["timestamp"] = written
    file = tmp_path / "export.jsonl"
    file.write_text(json.dumps(line) + "\n")
    index.world.run("sessiond", "sync", file, check=0)
    assert index.facts("started_at", "ended_at", session="c1") == (1_743_588_000_000,) * 2
    assert index.world.sql("SELECT ts, ts_from FROM records") == [(1_743_588_000_000, None)]


def test_a_timestamp_that_is_none_is_reported_once(index, tmp_path):
    """Zero is no time, and the time that Cursor wrote comes first."""
    bad = {"bubbleId": "b1", "type": 1, "text": "hello", "createdAt": "soon", "timestamp": 0.5}
    good = prompt("b2", "again") | {"timestamp": "2020-01-01T00:00:00Z"}
    file = tmp_path / "export.jsonl"
    file.write_text(envelope("c1", bad) + envelope("c1", good))
    index.world.run("sessiond", "sync", file, check=0)
    assert index.facts("started_at", "ended_at", session="c1") == (CREATED, CREATED)
    assert index.world.sql("SELECT reason FROM warnings") == [("bad timestamp",)]
