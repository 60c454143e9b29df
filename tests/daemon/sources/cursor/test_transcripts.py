"""Transcripts that the agent mirrors, alone and beside what they mirror."""

from __future__ import annotations

import json

import pytest
from tests.cursor_databases import (
    global_database,
)
from tests.daemon.sources.cursor.agent_files import (
    CHAT,
    MIRROR,
    SHOWN,
    SUB,
    Index,
    asked,
    line,
    transcript,
    write_chat,
    write_database,
)


def test_a_transcript_alone_is_shown(index):
    transcript(index.world.root, *MIRROR)
    index.read()
    assert index.texts() == ["fix it", "it is fixed"]


def test_a_subagent_has_a_transcript_of_its_own(index):
    transcript(index.world.root, *MIRROR)
    transcript(index.world.root, asked("look around"), session=SUB, parent=CHAT)
    index.read()
    assert index.texts(SUB) == ["look around"]
    assert index.facts("kind", session=SUB) == "subagent"
    assert index.world.sql(
        "SELECT p.native_id FROM sessions s JOIN sessions p ON p.id = s.parent_id"
    ) == [(CHAT,)]


BETTER = pytest.mark.parametrize("write", [write_database, write_chat])


def texts_of(write):
    return [text for _, text, _ in SHOWN] if write is write_chat else ["fix it", "it is fixed"]


@BETTER
@pytest.mark.parametrize("first", ["file", "database", "both"])
def test_a_transcript_is_not_shown_beside_its_database(index, write, first):
    home = index.world.root
    if first in ("file", "both"):
        transcript(home, *MIRROR)
    if first == "file":
        index.read()
    write(home)
    if first == "database":
        index.read()
        transcript(home, *MIRROR)
    index.read()
    assert index.texts() == texts_of(write)
    assert index.facts("events") == len(texts_of(write))
    assert len(index.found("fixed")) == 1


@BETTER
@pytest.mark.parametrize("first", ["file", "database"])
def test_a_transcript_that_grows_later_is_still_not_shown(index, write, first):
    home = index.world.root
    transcript(home, *MIRROR) if first == "file" else write(home)
    index.read()
    write(home) if first == "file" else transcript(home, *MIRROR)
    index.read()
    transcript(home, line("assistant", "and a word more"))
    index.read()
    assert index.texts() == texts_of(write)
    assert index.world.sql(
        "SELECT count(*) FROM events e JOIN event_texts x ON x.id = e.id"
        " WHERE e.retired = 0 AND x.text LIKE '%a word more%'"
    ) == [(0,)]


FACTS = (
    *("kind", "project", "title", "models", "started_at", "ended_at", "events", "prompts"),
    *("tool_calls",),
)


@BETTER
@pytest.mark.parametrize("first", ["file", "database"])
def test_a_transcript_changes_no_fact_that_the_database_tells(index, write, first, tmp_path):
    """It may say something of times and files; the database knows better."""
    alone = Index(type(index.world)(tmp_path / "alone"))
    write(alone.world.root)
    alone.read()
    home = index.world.root
    stamped = asked("Fix  it").copy()
    content = "<timestamp>Monday, Mar 2, 2026, 9:00 AM (UTC)</timestamp>\n"
    stamped["message"]["content"][0]["text"] = content + "<user_query>\nfix\n</user_query>"
    tool = {"type": "tool_use", "name": "Read", "input": {"path": "/other/place/a.py"}}
    more = {"role": "assistant", "message": {"content": [tool]}}
    if first == "file":
        transcript(home, stamped, more)
        index.read()
    write(home)
    index.read()
    if first == "database":
        transcript(home, stamped, more)
        index.read()
    assert index.facts(*FACTS) == alone.facts(*FACTS)


def test_a_subagent_of_the_database_stays_one_when_its_transcript_is_read(index):
    home = index.world.root
    info = {"parentComposerId": SUB, "toolCallId": "call_1"}
    write_database(home, more={"subagentInfo": info})
    index.read()
    transcript(home, *MIRROR)
    index.read()
    assert index.facts("kind") == "subagent"


def test_a_mirrored_transcript_can_be_restored_by_its_path(index):
    write_database(index.world.root)
    path = transcript(index.world.root, *MIRROR)
    done = index.world.run("sess", "restore", path, "-o", "-", check=0)
    assert done.stdout == path.read_text()


def test_a_mirrored_conversation_is_restored_from_its_database(index):
    write_database(index.world.root)
    transcript(index.world.root, *MIRROR)
    done = index.world.run("sess", "restore", CHAT, "-o", "-", check=0)
    lines = [json.loads(one) for one in done.stdout.splitlines()]
    assert [one["bubble"]["text"] for one in lines] == ["fix it", "it is fixed"]


def test_the_transcript_is_not_needed_when_the_database_is_gone(index):
    """What the database told is kept, and is not told twice then either."""
    home = index.world.root
    write_database(home)
    transcript(home, *MIRROR)
    index.read()
    global_database(home).unlink()
    transcript(home, line("assistant", "more"))
    index.read()
    assert index.texts()[:2] == ["fix it", "it is fixed"]
    assert index.texts().count("fix it") == 1


def test_a_chat_and_a_conversation_of_the_same_id_are_told_once(index):
    home = index.world.root
    write_database(home)
    write_chat(home)
    index.read()
    assert index.texts().count("it is fixed") == 1


# -- the project, which the lines do not name


def project(index, session=CHAT):
    return index.facts("project", "project_from", session=session)


def test_a_transcript_belongs_to_the_folder_that_its_own_is_named_after(index):
    """If there is such a folder; the name alone is ambiguous."""
    there = index.world.root / "my_code" / "demo"
    there.mkdir(parents=True)
    slug = "".join(c if c.isalnum() else "-" for c in str(there)).strip("-")
    transcript(index.world.root, *MIRROR, slug=slug)
    transcript(index.world.root, asked("look"), session=SUB, slug="no-such-folder")
    index.read()
    assert project(index) == (str(there), "folder")
    assert project(index, SUB) == ("no-such-folder", "name")


@pytest.mark.parametrize("slug", ["empty-window", "1765000000000"])
def test_a_window_without_a_folder_has_no_project(index, slug):
    transcript(index.world.root, *MIRROR, slug=slug)
    index.read()
    assert project(index) == (None, None)
