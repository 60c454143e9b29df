"""What calls of Cursor's tools do, whatever its versions call them."""

from __future__ import annotations

import json

import pytest

from sess_schema.edits import Edit
from sessiond.sources.cursor.summaries import describe
from sessiond.sources.cursor.tool_calls import tool_event

PATCH = "*** Begin Patch\n*** Update File: a.py\n-a\n+b\n*** Add File: b.py\n+c\n*** End Patch"


@pytest.mark.parametrize(
    ("tool", "kind"),
    [
        ("run_terminal_command_v2", "shell"),
        ("Shell", "shell"),
        ("read_file_v2", "read"),
        ("codebase_search", "search"),
        ("list_dir", "search"),
        ("web_search", "fetch"),
        ("task_v2", "agent"),
        ("todo_write", "plan"),
        ("create_plan", "plan"),
        ("ask_question", "question"),
        ("mcp-files-read", "mcp"),
        ("delete_file", "edit"),
        ("write", "write"),
        ("unheard_of", "other"),
        (None, "other"),
    ],
)
def test_kinds(tool, kind):
    assert describe(tool, {"path": "/w/a"}).kind == kind


@pytest.mark.parametrize(
    ("tool", "given", "paths"),
    [
        ("search_replace", {"file_path": "/w/a", "old_string": "a", "new_string": "b"}, ["/w/a"]),
        ("edit_file", {"target_file": "/w/a", "code_edit": "x"}, ["/w/a"]),
        ("write", {"path": "/w/a", "contents": "x"}, ["/w/a"]),
        ("apply_patch", {"patch": PATCH}, ["a.py", "b.py"]),
        ("apply_patch", PATCH, ["a.py", "b.py"]),
        ("edit_file_v2", {"relativeWorkspacePath": "/w/a"}, []),
        ("read_file", {"path": "/w/a", "content": "x"}, []),
    ],
)
def test_files_of_edits(tool, given, paths):
    assert [edit.path for edit in describe(tool, given).edits] == paths


def test_a_call_through_the_gateway_is_of_a_server():
    """Whatever the server calls its tool."""
    data = {"name": "mcp--", "rawArgs": json.dumps({"name": "write", "path": "/w/a"})}
    event = tool_event(data, "/tool")
    assert (event.tool, event.kind, event.edits) == ("write", "mcp", ())


def test_arguments_in_several_places_of_a_bubble_belong_together():
    """The path in one, what was replaced in the other."""
    data = {
        "name": "search_replace",
        "params": json.dumps({"relativeWorkspacePath": "/w/a"}),
        "rawArgs": json.dumps({"file_path": "/w/a", "old_string": "a", "new_string": "b"}),
    }
    event = tool_event(data, "/bubble/toolFormerData")
    assert event.edits == (Edit("/w/a", "a", "b"),)
