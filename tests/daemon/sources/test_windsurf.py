"""Windsurf: chats are looked at only when they change, and in formats that are known."""

from __future__ import annotations

import json
from contextlib import closing

import pytest
from tests.golden_home import GoldenWorld, database

CHAT = "3d500000-0000-4000-8000-000000000001"
KEY = "aiChat.chatdata"


@pytest.fixture
def world(tmp_path):
    made = GoldenWorld(tmp_path, "windsurf")
    made.lay_all()
    made.ingest()
    return made


def put(world, key, edit):
    """Replace a value of the window's database, as the editor does."""
    windows = world.root / ".config/Windsurf/User/workspaceStorage"
    with closing(database(windows / "a1b2c3d4e5f60718293a4b5c6d7e8f90/state.vscdb")) as db:
        rows = list(db.execute("SELECT value FROM ItemTable WHERE key = ?", (key,)))
        db.execute("REPLACE INTO ItemTable VALUES (?, ?)", (key, edit(rows[0][0] if rows else "")))
    return world.ingest()


def test_only_new_messages_of_a_chat_are_written(world):
    """The value has all chats of the window, and is replaced whole."""

    def answer(value):
        chats = json.loads(value)
        chats["tabs"][0]["bubbles"].append({"type": "ai", "id": "b7", "text": "The tide is out."})
        return json.dumps(chats)

    assert put(world, KEY, answer).records == 1
    assert world.found("tide") == ["The tide is out."]
    world.check()


def test_other_values_change_nothing(world):
    """The editor writes its settings into the same table all the time."""
    before = world.dump()
    assert put(world, "workbench.view", lambda _: "{}").records == 0
    assert world.dump() == before


def test_an_unknown_format_is_told_and_loses_nothing(world):
    """What was read before stays."""
    shown = world.shown(CHAT)
    put(world, KEY, lambda _: '{"conversations":[]}')
    assert world.shown(CHAT) == shown
    assert world.sql("SELECT error FROM sources WHERE error IS NOT NULL") == [
        (f"{KEY} is in a format that is not known",)
    ]
