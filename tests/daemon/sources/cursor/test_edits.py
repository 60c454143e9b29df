"""What Cursor's edits changed, wherever a version keeps it."""

from __future__ import annotations

import hashlib
import json

import pytest
from tests.cursor_databases import composer, put, put_bubble, put_conversation, tool
from tests.daemon.sources.cursor.cursor_home import Cursor, say

from sess_schema import edits
from sess_schema.edits import Edit
from sessiond.sources.cursor.tool_calls import tool_event

OLD = "one\ntwo\nthree\n"
NEW = "one\n2\nthree\n"
PARAMS = {"relativeWorkspacePath": "/code/a.py", "noCodeblock": True}


def content_id(text):
    return "composer.content." + hashlib.sha256(text.encode()).hexdigest()


def editing(name="b1", before=OLD, after=NEW, **more):
    """A call of the versions since April 2026; the texts are in rows of their own."""
    result = {"beforeContentId": content_id(before), "afterContentId": content_id(after)}
    return tool(name, "edit_file_v2", params=PARAMS, result=result, **more)


def put_contents(db, *texts):
    for text in texts:
        put(db, content_id(text), text)


def edits_of(cursor, session="c"):
    rows = cursor.world.sql(
        "SELECT x.path, x.data, x.added, x.removed FROM edits x JOIN events e ON e.id = x.event_id"
        " JOIN sessions s ON s.id = e.session_id WHERE s.native_id = ?",
        session,
    )
    return [(edits.unpack(path, data), added, removed) for path, data, added, removed in rows]


def test_an_edit_has_the_texts_that_it_names(cursor):
    """They are shown as a diff, counted by lines, and found by the lines that changed."""
    call = editing()
    put_contents(cursor.db, OLD, NEW)
    put_conversation(cursor.db, composer("c", [call]), [call])
    cursor.read()
    assert edits_of(cursor) == [(Edit("/code/a.py", OLD, NEW), 1, 1)]
    assert cursor.world.sql("SELECT kind, status FROM events") == [("edit", "ok")]
    assert cursor.found("two") == ["c"]
    assert cursor.found("three") == []
    shown = cursor.world.run("sess", "show", "c", check=0).stdout
    assert "- two" in shown
    assert "+ 2" in shown


def test_a_file_that_was_not_there_before(cursor):
    """Cursor names the text of nothing, which has no row."""
    call = editing(before="")
    put_contents(cursor.db, NEW)
    put_conversation(cursor.db, composer("c", [call]), [call])
    cursor.read()
    assert edits_of(cursor) == [(Edit("/code/a.py", None, NEW), 3, 0)]


def test_the_texts_of_an_edit_may_come_after_it(cursor):
    call = editing()
    put_conversation(cursor.db, composer("c", [call]), [call])
    cursor.read()
    assert edits_of(cursor) == []
    put_contents(cursor.db, OLD, NEW)
    put_bubble(cursor.db, "c", call)
    cursor.read()
    assert edits_of(cursor) == [(Edit("/code/a.py", OLD, NEW), 1, 1)]


def test_half_of_an_edit_is_none(cursor):
    """Without the text before, all lines of the file would seem new."""
    call = editing()
    put_contents(cursor.db, NEW)
    put_conversation(cursor.db, composer("c", [call]), [call])
    cursor.read()
    assert edits_of(cursor) == []


def test_texts_of_edits_are_archived(cursor, tmp_path):
    """A restored conversation shows the same diff where the database never was."""
    call = editing()
    put_contents(cursor.db, OLD, NEW)
    put_conversation(cursor.db, composer("c", [call]), [call])
    cursor.read()
    file = tmp_path / "export.jsonl"
    cursor.world.run("sess", "restore", "c", "-o", file, check=0)
    other = Cursor(type(cursor.world)(tmp_path / "other"))
    other.world.run("sessiond", "sync", file, check=0)
    assert edits_of(other) == [(Edit("/code/a.py", OLD, NEW), 1, 1)]


def test_a_bubble_that_names_no_texts_is_archived_as_it_was(cursor):
    (one,) = say("one")
    put_conversation(cursor.db, composer("c", [one]), [one])
    cursor.read()
    assert cursor.lines("c") == [{"composerId": "c", "bubble": one}]


def edited(result=None, additional=None, **params):
    data = {"name": "edit_file_v2", "status": "completed", "params": json.dumps(PARAMS | params)}
    if result is not None:
        data["result"] = json.dumps(result)
    if additional is not None:
        data["additionalData"] = additional
    return tool_event(data, "/t").edits


CHUNK = {"diffString": "-two\n+2\n", "oldStart": 2, "newStart": 2, "linesAdded": 1}
HUNKS = ({"oldStart": 2, "newStart": 2, "lines": ["-two", "+2"]},)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (edited({"diff": {"chunks": [CHUNK]}}), Edit("/code/a.py", hunks=HUNKS)),
        (
            edited({}, {"precomputedDiff": {"chunks": [CHUNK]}}),
            Edit("/code/a.py", hunks=HUNKS),
        ),
        (
            edited({}, {"precomputedDiff": json.dumps([CHUNK])}),
            Edit("/code/a.py", hunks=HUNKS),
        ),
        (
            edited({}, {"precomputedDiff": "@@ -2 +2 @@\n-two\n+2"}),
            Edit("/code/a.py", patch="@@ -2 +2 @@\n-two\n+2"),
        ),
        (
            edited({"contentsBeforeEdit": OLD, "contentsAfterEdit": NEW}),
            Edit("/code/a.py", OLD, NEW),
        ),
        (edited({"afterContentId": "gone"}, streamingContent=NEW), Edit("/code/a.py", new=NEW)),
    ],
)
def test_older_versions_keep_a_diff_or_the_texts_in_the_call(made, expected):
    assert made == (expected,)


def test_arguments_of_the_model_are_exported_beside_those_that_cursor_parsed(cursor):
    """The same argument under two spellings is there once."""
    call = tool("b1", "search_replace", params={"relativeWorkspacePath": "a.py", "oldString": "x"})
    raw = {"relative_workspace_path": "a.py", "old_string": "x", "new_string": "y"}
    call["toolFormerData"]["rawArgs"] = json.dumps(raw)
    put_conversation(cursor.db, composer("c", [call]), [call])
    cursor.read()
    done = cursor.world.run("sess", "show", "c", "--json", check=0)
    assert json.loads(done.stdout)["input"] == {
        "relativeWorkspacePath": "a.py",
        "oldString": "x",
        "new_string": "y",
    }
    assert edits_of(cursor)[0][0] == Edit("a.py", "x", "y")
