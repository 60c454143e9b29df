"""Each form that Cursor's databases ever had, as a whole."""

from __future__ import annotations

import json
import sqlite3

import pytest
from tests.cursor_databases import (
    CREATED,
    global_database,
)
from tests.cursor_generations import GENERATIONS
from tests.daemon.sources.cursor.cursor_home import Cursor

TALKS: dict[str, list[tuple[str, str, str | None]]] = {
    "generation1": [("user", "g1 question", None), ("assistant", "g1 answer", None)],
    "generation2": [
        ("user", "g2 question", None),
        ("assistant", "g2 answer", None),
        ("tool_use", "g2 file", "ok"),
    ],
    "generation2w": [("user", "g2w question", None), ("assistant", "g2w answer", None)],
}
for _number in (3, 4, 5):
    TALKS[f"generation{_number}"] = [
        ("user", f"g{_number} please fix the parser", None),
        ("thinking", f"g{_number} where is it", None),
        ("tool_use", f"g{_number} 3 passed", "ok"),
        ("tool_use", f"g{_number} broke", "error"),
        ("assistant", f"g{_number} it is fixed", None),
    ]
LATER = CREATED + 4000
FACTS_OF = {
    "generation1": (*("main", "/code/demo", "G1", '["gpt-4"]', None, CREATED, CREATED, 2, 1, 0),),
    "generation2": (
        *("main", "/code/demo", "G2", "[]", "agent", CREATED, CREATED + 5000, 3, 1, 1),
    ),
    "generation2w": (
        *("main", "/code/demo", "G2w", '["claude-3.5-sonnet"]', "chat"),
        *(CREATED + 1000, CREATED + 1000, 2, 1, 0),
    ),
} | {
    f"generation{number}": (
        *("main", "/code/demo", f"G{number}", '["composer-2.5"]', "agent", CREATED, LATER),
        *(5, 1, 2),
    )
    for number in (3, 4, 5)
}
EACH = pytest.mark.parametrize("make", GENERATIONS, ids=lambda make: make.__name__)


@EACH
def test_each_generation_tells_its_conversation(cursor, make):
    session = make(cursor.world.root)
    cursor.read()
    assert cursor.shown(session) == TALKS[make.__name__]


@EACH
def test_each_generation_tells_its_facts(cursor, make):
    session = make(cursor.world.root)
    cursor.read()
    if make.__name__ == "generation2":  # only the list of the window knows of the mode
        assert cursor.facts(session)[:4] == FACTS_OF["generation2"][:4]
        assert cursor.facts(session)[5:] == FACTS_OF["generation2"][5:]
    else:
        assert cursor.facts(session) == FACTS_OF[make.__name__]


@EACH
def test_each_generation_is_one_session_of_as_many_turns_as_bubbles(cursor, make):
    session = make(cursor.world.root)
    cursor.read()
    assert cursor.world.sql("SELECT native_id, records FROM sessions") == [
        (session, len(TALKS[make.__name__]))
    ]


def test_all_generations_in_one_home(cursor):
    """The databases of several at once; each conversation is told as if it were alone."""
    root = cursor.world.root
    for make in (GENERATIONS[0], GENERATIONS[4]):
        make(root)
    db = sqlite3.connect(cursor.path, isolation_level=None)
    for number in (2, 3, 4):
        other = root / f"other{number}"
        GENERATIONS[number - 1](other)
        db.execute("ATTACH ? AS other", (str(global_database(other)),))
        db.execute("INSERT INTO cursorDiskKV SELECT key, value FROM other.cursorDiskKV")
        db.execute("DETACH other")
    db.close()
    cursor.read()
    names = ("g1-tab", "g2-composer", "g3-composer", "g4-composer", "g5-composer")
    for make, session in zip(GENERATIONS, names, strict=False):
        assert cursor.shown(session) == TALKS[make.__name__]


@EACH
def test_each_generation_is_read_only_once(cursor, make):
    make(cursor.world.root)
    cursor.read()
    before = cursor.world.dump()
    assert cursor.read().records == 0
    assert cursor.world.dump() == before


@pytest.mark.slow
@EACH
def test_each_generation_can_be_restored_and_read_elsewhere(cursor, make, tmp_path):
    """`restore` writes envelope lines; they show the same conversation in another home."""
    session = make(cursor.world.root)
    file = tmp_path / "export.jsonl"
    cursor.world.run("sess", "restore", session, "-o", file, check=0)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert {line["composerId"] for line in lines} == {session}
    assert all("bubble" in line for line in lines)
    other = Cursor(type(cursor.world)(tmp_path / "other"))
    other.world.run("sessiond", "sync", file, check=0)
    assert other.shown(session) == TALKS[make.__name__]


@EACH
def test_each_generation_gives_structured_input(cursor, make):
    session = make(cursor.world.root)
    done = cursor.world.run("sess", "show", session, "--json", check=0)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    inputs = [event["input"] for event in events if event["type"] == "tool_use"]
    assert all(isinstance(given, dict) for given in inputs)
    if make.__name__ == "generation2":
        assert inputs == [{"target_file": "a.py"}]
    elif inputs:
        assert [given["command"] for given in inputs] == ["make test", "make lint"]
