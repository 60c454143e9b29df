"""Edits by the names of arguments, patches taken apart by file, and the lines they count."""

from __future__ import annotations

import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from sess_common import differ
from sess_schema import edits
from sess_schema.edits import Edit
from sessiond.sourcekit.toolbox import as_hunk, edits_of_arguments, edits_of_patch

BEGUN = """*** Begin Patch
*** Update File: a.py
@@ def f
-old
+new
*** Add File: b/c.py
+one
+two
*** Delete File: gone.py
*** End Patch"""
UNIFIED = """diff --git a/a.py b/a.py
--- a/a.py
+++ b/a.py
@@ -1,2 +1,2 @@
 same
-old
+new
--- /dev/null
+++ b/new.py
@@ -0,0 +1 @@
+one
"""


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"old_string": "a\nb\nc", "new_string": "a\nB\nc"}, (1, 1)),
        ({"old_string": "", "new_string": "x\ny\n"}, (2, 0)),
        ({"oldString": "x\ny", "newString": ""}, (0, 2)),
        ({"old_string": "a\nkeep\nb", "new_string": "A\nkeep\nB\nC"}, (3, 2)),
        ({"edits": [{"old_string": "a", "new_string": "b"}, {"new_string": "c\nd"}]}, (3, 1)),
        ({"content": "one\ntwo\n"}, (2, 0)),
        ({"new_source": "cell"}, (1, 0)),
        ("*** Begin Patch\n*** Update File: a\n@@\n-old\n+new\n+more\n*** End Patch", (2, 1)),
        ({"patch": "--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new"}, (1, 1)),
        ({"command": "ls"}, (0, 0)),
        (None, (0, 0)),
        (7, (0, 0)),
    ],
)
def test_lines_of_an_edit(given, wanted):
    """What differs, not what is repeated around it."""
    if isinstance(given, str):
        found = edits_of_patch(given)
    else:
        found = edits_of_arguments("/w/a", given) if isinstance(given, dict) else ()
    counts = edits.count(found)
    assert (sum(one.added for one in counts), sum(one.removed for one in counts)) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (BEGUN, [("a.py", 1, 1), ("b/c.py", 2, 0), ("gone.py", 0, 0)]),
        (UNIFIED, [("a.py", 1, 1), ("new.py", 1, 0)]),
        ("@@ -1 +1 @@\n-a\n+b\n", [("/w/named", 1, 1)]),
        ("no patch at all", []),
        ("*** Begin Patch\n-nothing named\n*** End Patch", []),
    ],
)
def test_a_patch_is_one_edit_for_each_file(text, wanted):
    found = edits_of_patch(text, "/w/named")
    counts = edits.count(found)
    assert [(one.path, *count) for one, count in zip(found, counts, strict=True)] == wanted


def test_a_hunk_keeps_what_diffs_are_drawn_from_and_nothing_else():
    """Odd numbers of lines are one, other members and lines that are no text are left out."""
    told = {"oldStart": 1 << 70, "newStart": "3", "lines": ["+a", 7], "deep": [[[[]]]]}
    assert as_hunk(told) == {"oldStart": 1, "newStart": 1, "lines": ["+a"]}
    assert as_hunk({"lines": "text"}) is None
    assert as_hunk(None) is None


_TEXTS = st.lists(st.sampled_from(["a", "b", "", "}", "  x"]), max_size=30).map("\n".join)


@drawn(old=_TEXTS, new=_TEXTS)
def test_what_is_counted_is_what_is_drawn(old, new):
    """Of two texts, for every reader: the sum of `+` and `-` in the diff."""
    signs = [line.sign for line in differ.between(old, new, context=None)]
    assert differ.count_between(old, new) == (signs.count("+"), signs.count("-"))


@pytest.mark.parametrize("text", [BEGUN, UNIFIED])
def test_what_is_counted_of_a_patch_is_what_is_drawn(text):
    signs = [line.sign for line in differ.from_patch(text)]
    assert differ.count_patch(text) == (signs.count("+"), signs.count("-"))


def test_what_is_stored_comes_back():
    edit = Edit("/w/a", "x", None, "p", ({"oldStart": 1, "newStart": 2, "lines": ["-x"]},))
    assert edits.unpack("/w/a", edits.pack(edit)) == edit
