"""Kinds and edits of calls as they are stored."""

from __future__ import annotations

from contextlib import closing

import pytest

from sess_schema import edits
from sess_schema.connection import open_reader
from sess_schema.edits import Edit

HUNK = {"oldStart": 7, "newStart": 7, "lines": [" before", "-x = 1", "+x = 2", "+y = 3"]}
CHANGE = {"file_path": "/w/a.py", "old_string": "x = 1", "new_string": "x = 2\ny = 3"}


def stored(world):
    """Path, lines added and removed, and the edit itself, in order."""
    rows = world.sql("SELECT event_id, path, added, removed FROM edits ORDER BY event_id, number")
    with closing(open_reader(world.state / "index.db")) as db:
        by_event = {event: edits.of_event(db, event) for event, *_ in rows}
    found = [one for changed in by_event.values() for one in changed]
    return [(*row[1:], edit) for row, edit in zip(rows, found, strict=True)]


def test_an_edit_is_stored_with_its_counts(world):
    world.transcript().append(world.transcript().call("c1", "Edit", **CHANGE))
    world.ingest()
    edit = Edit("/w/a.py", "x = 1", "x = 2\ny = 3")
    assert stored(world) == [("/w/a.py", 2, 1, edit)]
    assert world.sql("SELECT kind FROM events") == [("edit",)]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("passes", [1, 2])
def test_a_result_adds_the_lines_of_the_file(world, order, passes):
    """Whether it is read with its call, after it or before it."""
    transcript = world.transcript()
    told = {"toolUseResult": {"structuredPatch": [HUNK]}}
    lines = [transcript.call("c1", "Edit", **CHANGE), transcript.result("c1", "done", **told)]
    for number in order:
        transcript.append(lines[number])
        if passes == 2:
            world.ingest()
    world.ingest()
    edit = Edit("/w/a.py", "x = 1", "x = 2\ny = 3", hunks=(HUNK,))
    assert stored(world) == [("/w/a.py", 2, 1, edit)]


def test_hunks_speak_for_all_edits_of_their_file(world):
    """The lines of a call are counted once: by the result, where it tells them."""
    transcript = world.transcript()
    changes = [
        {"old_string": "x = 1", "new_string": "x = 2"},
        {"old_string": "", "new_string": "y"},
    ]
    told = {"toolUseResult": {"structuredPatch": [HUNK]}}
    transcript.append(
        transcript.call("c1", "MultiEdit", file_path="/w/a.py", edits=changes),
        transcript.result("c1", "done", **told),
    )
    world.ingest()
    assert [row[:3] for row in stored(world)] == [("/w/a.py", 2, 1), ("/w/a.py", 0, 0)]
