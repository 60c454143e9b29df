"""Homes with Cursor's files in them."""

from __future__ import annotations

from contextlib import closing

import pytest
from tests.daemon.sources.cursor.agent_files import Chat, Index
from tests.daemon.sources.cursor.cursor_home import Cursor


@pytest.fixture
def nobody_writes(monkeypatch):
    """What was read counts at once."""
    monkeypatch.setattr("sessiond.engines.databases.CLOCK_STEP_NS", 0)


@pytest.fixture
def cursor(world, nobody_writes):
    with closing(Cursor(world)) as made:
        yield made


@pytest.fixture
def index(world, nobody_writes):
    return Index(world)


@pytest.fixture
def chat(world):
    with closing(Chat(world.root)) as made:
        yield made
