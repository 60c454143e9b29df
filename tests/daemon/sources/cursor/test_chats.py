"""Chats of cursor-agent, each in a database of its own."""

from __future__ import annotations

from contextlib import closing

import pytest
from tests.cursor_databases import (
    CREATED,
)
from tests.daemon.sources.cursor.agent_files import (
    CHAT,
    SECRET,
    SHOWN,
    SUB,
    TALK,
    Chat,
    Index,
    answer,
    user,
)

from sess_schema import archive
from sessiond.sources.cursor import CursorSource


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_chat_is_shown_with_its_calls_and_results_joined(index, chat, wrapped):
    chat.save(TALK, wrapped=wrapped)
    index.read()
    assert index.shown() == SHOWN
    assert index.sessions() == [CHAT]


def test_a_chat_tells_its_facts(index, chat):
    chat.save(TALK, name="Parser")
    chat.meta(cwd="/code/demo")
    index.read()
    assert index.facts("kind", "project", "title", "models", "mode", "started_at") == (
        *("main", "/code/demo", "Parser", '["gpt-5"]', "default", CREATED),
    )
    assert index.facts("events", "prompts", "tool_calls") == (3, 1, 1)


def test_the_title_of_a_chat_without_a_name_is_its_first_prompt(index, chat):
    chat.save(TALK)
    index.read()
    assert index.facts("title") == "fix it"


def test_a_root_names_the_folder_where_no_file_does(index, chat):
    chat.save(TALK, folder="file:///code/demo")
    index.read()
    assert index.facts("project") == "/code/demo"


def test_a_chat_grows_with_its_roots(index, chat):
    for length in range(1, 5):
        chat.save(TALK[:length])
        index.read()
    assert index.shown() == SHOWN
    assert index.world.sql("SELECT count(*) FROM records") == [(4,)]


def test_a_call_waits_for_its_result(index, chat):
    chat.save(TALK[:2])
    index.read()
    assert index.shown()[1] == ("tool_use", "", "pending")


def test_what_a_compaction_drops_is_still_shown(index, chat):
    chat.save([user("one"), answer("two"), user("three")])
    index.read()
    summary = {"role": "user", "content": [{"type": "text", "text": "in short"}],
               "providerOptions": {"cursor": {"isSummary": True}}}  # fmt: skip
    chat.save([summary, user("three"), answer("four")])
    index.read()
    assert sorted(index.texts()) == sorted(["one", "two", "in short", "three", "four"])
    order = index.texts()
    assert order.index("one") < order.index("two") < order.index("three") < order.index("four")


def test_equal_messages_are_as_many_as_they_are(index, chat):
    chat.save([user("again"), answer("yes"), user("again"), answer("yes")])
    index.read()
    assert index.texts() == ["again", "yes", "again", "yes"]


def test_equal_messages_that_come_one_by_one(index, chat):
    talk = [user("again"), answer("yes"), user("again"), answer("yes")]
    for length in range(1, 5):
        chat.save(talk[:length])
        index.read()
    assert index.texts() == ["again", "yes", "again", "yes"]


def test_equal_messages_of_two_chats_are_shown_in_both(index, chat):
    chat.save(TALK)
    with closing(Chat(index.world.root, SUB)) as other:
        other.save(TALK)
    index.read()
    assert index.shown() == index.shown(SUB) == SHOWN


def test_the_file_beside_a_chat_may_come_later(index, chat):
    chat.save(TALK)
    index.read()
    assert index.facts("project", "title") == (None, "fix it")
    chat.meta(cwd="/code/demo", title="Named later")
    index.read()
    assert index.facts("project", "title") == ("/code/demo", "Named later")


def test_the_daemon_sees_the_file_beside_a_chat(index, chat):
    """Its owner is the database."""
    chat.save(TALK)
    chat.meta(cwd="/code/demo")
    source = CursorSource(environ={"HOME": str(index.world.root)})
    meta = str(chat.folder / "meta.json")
    assert (source.classify(meta), source.owner(meta)) == ("sidecar", str(chat.path))


def test_the_key_of_a_chat_is_nowhere(index, chat):
    chat.save(TALK)
    index.read()
    for table in ("sources", "sessions", "records", "events", "event_texts", "database_rows"):
        for row in index.world.sql(f"SELECT * FROM {table}"):
            assert SECRET not in str(row)
    for (packed,) in index.world.sql("SELECT data FROM chunks"):
        assert SECRET.encode() not in archive.unpack(packed)


def test_a_chat_that_goes_and_returns(index, chat, tmp_path):
    chat.save(TALK)
    index.read()
    chat.close()
    chat.folder.rename(tmp_path / "away")
    index.read()
    assert index.shown() == SHOWN
    (tmp_path / "away").rename(chat.folder)
    index.read()
    assert index.shown() == SHOWN
    states = index.world.sql("SELECT DISTINCT state FROM sources")
    assert states == [("live",)]


def test_a_chat_can_be_restored_and_read_elsewhere(index, chat, tmp_path):
    chat.save(TALK)
    file = tmp_path / "export.jsonl"
    index.world.run("sess", "restore", CHAT, "-o", file, check=0)
    other = Index(type(index.world)(tmp_path / "other"))
    other.world.run("sessiond", "sync", file, check=0)
    assert other.shown() == SHOWN


def test_an_older_root_and_orphans_are_not_shown(index, chat):
    chat.message(answer("an orphan"))
    chat.save([answer("of an older root")])
    chat.save(TALK)
    index.read()
    assert index.shown() == SHOWN
