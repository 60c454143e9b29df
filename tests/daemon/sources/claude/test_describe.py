"""What calls of Claude Code's tools do."""

from __future__ import annotations

import pytest

from sess_schema.edits import Edit
from sessiond.sources.claude.calls import describe

FILE = {"file_path": "/w/a.py"}


@pytest.mark.parametrize(
    ("tool", "given", "kind"),
    [
        ("Bash", {"command": "ls"}, "shell"),
        ("BashOutput", {"bash_id": "1"}, "other"),
        ("Read", FILE, "read"),
        ("Grep", {"pattern": "x"}, "search"),
        ("WebSearch", {"query": "x"}, "fetch"),
        ("Task", {"prompt": "x"}, "agent"),
        ("TodoWrite", {"todos": []}, "plan"),
        ("ExitPlanMode", {"plan": "x"}, "plan"),
        ("AskUserQuestion", {"questions": []}, "question"),
        ("mcp__files__edit", {**FILE, "old_string": "a"}, "mcp"),
        ("str_replace_based_edit_tool", {"command": "view", "path": "/w/a"}, "read"),
        ("str_replace_based_edit_tool", {"command": "undo_edit", "path": "/w/a"}, "other"),
        ("Unheard", {**FILE, "old_string": "a", "new_string": "b"}, "edit"),
        ("Unheard", {**FILE, "content": "a"}, "other"),
        ("Edit", None, "edit"),
        (None, {"command": "ls"}, "other"),
    ],
)
def test_kinds(tool, given, kind):
    """By the name, or by arguments that only an edit has."""
    assert describe(tool, given).kind == kind


@pytest.mark.parametrize(
    ("tool", "given", "edits"),
    [
        ("Edit", {**FILE, "old_string": "a", "new_string": ""}, (Edit("/w/a.py", "a", ""),)),
        ("Write", {**FILE, "content": "a\n"}, (Edit("/w/a.py", None, "a\n"),)),
        (
            "MultiEdit",
            {**FILE, "edits": [{"old_string": "a", "new_string": "b"}, None, {"old_string": "c"}]},
            (Edit("/w/a.py", "a", "b"), Edit("/w/a.py", "c", "")),
        ),
        (
            "NotebookEdit",
            {"notebook_path": "/w/a.ipynb", "new_source": "x"},
            (Edit("/w/a.ipynb", None, "x"),),
        ),
        (
            "str_replace_based_edit_tool",
            {"command": "insert", "path": "/w/a", "insert_line": 3, "insert_text": "x"},
            (Edit("/w/a", "", "x"),),
        ),
        ("Edit", {"old_string": "a", "new_string": "b"}, ()),
        ("Edit", {**FILE, "old_string": 7}, ()),
        ("Bash", {"command": "a", "old_string": "a", **FILE}, ()),
    ],
)
def test_edits(tool, given, edits):
    """A call that names no file, or that is no edit, changes nothing."""
    assert describe(tool, given).edits == edits
